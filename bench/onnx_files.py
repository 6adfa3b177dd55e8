# SPDX-License-Identifier: Apache-2.0
"""Models as ONNX files that the tools of others write: integer networks, products by 4 bits."""

import numpy as np

from . import measure
from .measure import Row


def quantized_network(name, folder, seed):
    """A network whose convolutions and products are between QuantizeLinear and DequantizeLinear."""
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    from .model_ops import onnx_model
    from .models import Model

    model = Model(name, seed)

    class Calibration(quantization.CalibrationDataReader):
        def __init__(self):
            self.feeds = iter([dict(zip(model.signature, model.inputs(), strict=True))])

        def get_next(self):
            return next(self.feeds, None)

    plain, folded, path = (f"{folder}/{stage}.onnx" for stage in ("plain", "folded", "quantized"))
    with open(plain, "wb") as file:
        file.write(onnx_model(model))
    quant_pre_process(plain, folded, skip_symbolic_shape=True)
    quantization.quantize_static(folded, path, Calibration(), per_channel=True)
    return path, dict(zip(model.signature, model.inputs(), strict=True))


def nibbles_product(rows, columns, depth, folder, seed, block=32):
    """A product by weights of 4 bits, in blocks with a scale each (MatMulNBits)."""
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(seed)
    packed = random.integers(0, 256, (columns, depth // block, block // 2), np.uint8)
    scales = random.uniform(0.01, 0.02, columns * depth // block).astype(np.float32)
    weights = [numpy_helper.from_array(packed, "w"), numpy_helper.from_array(scales, "s")]
    sizes = {"K": depth, "N": columns, "bits": 4, "block_size": block}
    node = helper.make_node(
        "MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", accuracy_level=0, **sizes
    )
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, (rows, size))
        for name, size in (("x", depth), ("y", columns))
    ]
    graph = helper.make_graph([node], "nibbles", values[:1], values[1:], weights)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    path = f"{folder}/nibbles.onnx"
    with open(path, "wb") as file:
        file.write(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())
    return path, {"x": random.standard_normal((rows, depth), np.float32)}


FILES = {
    "resnet50 int8": lambda *to: quantized_network("resnet50", *to),
    "product 1x4096x4096 of 4 bits": lambda *to: nibbles_product(1, 4096, 4096, *to),
}


def rows(name, folder, subjects, options):
    """Rows of one file, by everyone who reads it."""
    path, feeds = FILES[name](folder, options.seed)
    found = {}
    for subject in subjects:
        try:
            one = subject.prepare(path, list(feeds.values()), list(feeds), action="prepare_file")
        except RuntimeError as error:
            print(f"note: {name}: {error}")
            continue
        if one is not None:
            found[subject.name] = one
    samples = measure.time_alternating(found, options.rounds, options.seconds)
    # (Some have a result only once they ran.)
    results = {who: one.output() for who, one in found.items()}
    for who, got in results.items():  # (an integer that was rounded otherwise changes what follows)
        off = np.abs(got - results["tvm"]).max() / np.abs(got).max()
        if not off <= 0.1:  # also where all of them are 0
            raise AssertionError(f"{name}: {who} has other results than we, by {off:.1%}")
    return [Row(name, who, samples[who]) for who in found]
