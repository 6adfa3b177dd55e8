# SPDX-License-Identifier: Apache-2.0
"""Models in another layout and in bfloat16 beside themselves, and weights that are transformed when
they are loaded beside a copy of them.

python -m bench.rewritten [resnet50 mobilenet_v2 mlp bert_base weights]
"""

import argparse

import numpy as np
import tvm
from tvm import relax
from tvm.relax import op, transform

from .decoder import alternate
from .model_ops import relax_module
from .models import Model


def _layouts():
    """Channels in blocks of a vector, which the rules of processors prefer, and last."""
    lanes = tvm.target.codegen.llvm_get_vector_width(tvm.target.Target("llvm")) // 4
    blocks = {"relax.nn.conv2d": [f"NCHW{lanes}c", f"OIHW{lanes}i{lanes}o"]}
    return {
        f"NCHW{lanes}c": transform.ConvertLayout(blocks),
        "NHWC": transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]}),
    }


def _precision():
    return {"bfloat16": transform.ToMixedPrecision(dtype="bfloat16")}


MODELS = {
    "resnet50": _layouts,
    "mobilenet_v2": _layouts,
    "mlp": _precision,
    "bert_base": _precision,
}


def _compiled(mod, inputs):
    """A call, and its first result."""
    main = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())["main"]
    run = lambda: main(*inputs)
    result = run()
    return run, (result if hasattr(result, "numpy") else result[0]).numpy()


def rewritten(name, rounds):
    """A line for each form of a model."""
    model = Model(name)
    mod, inputs = relax_module(model), [tvm.runtime.tensor(x) for x in model.inputs()]
    plain, expected = _compiled(mod, inputs)
    for form, conversion in MODELS[name]().items():
        run, result = _compiled(conversion(mod), inputs)
        off = np.abs(result - expected).max() / np.abs(expected).max()
        before, after = alternate(plain, run, rounds)
        yield (
            f"{name} {before * 1e3:.2f} ms, {form} {after * 1e3:.2f} ms: "
            f"{before / after:.2f} times as fast, off by {off:.0e}"
        )


def weights(rounds, layers=16, size=1024):
    """Products by transposed weights, which are transposed once."""
    x = relax.Var("x", relax.TensorStructInfo((1, size), "float32"))
    info = relax.TensorStructInfo((size, size), "float32")
    params = [relax.Var(f"w{i}", info) for i in range(layers)]
    bb = relax.BlockBuilder()
    with bb.function("main", [x, *params], attrs={"num_input": 1}):
        with bb.dataflow():
            y = x
            for param in params:
                y = bb.emit(op.matmul(y, op.permute_dims(param)))
            y = bb.emit_output(y)
        bb.emit_func_output(y)
    lifted = transform.LiftTransformParams()(bb.get())
    machine = relax.VirtualMachine(tvm.compile(lifted, "llvm"), tvm.cpu())
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((size, size), "float32") for _ in params]
    tensors = [tvm.runtime.tensor(array) for array in arrays]
    run = lambda: machine["main_transform_params"](tensors)
    np.testing.assert_array_equal(run()[0].numpy(), arrays[0].T)
    copied, transformed = alternate(lambda: [array.copy() for array in arrays], run, rounds)
    megabytes = layers * size * size * 4 / 2**20
    yield (
        f"weights {megabytes:.0f} MB: copied by NumPy {copied * 1e3:.1f} ms, "
        f"transposed {transformed * 1e3:.1f} ms: {copied / transformed:.2f} times as fast"
    )


def main():
    parser = argparse.ArgumentParser(prog="python -m bench.rewritten", description=__doc__)
    parser.add_argument("names", nargs="*", default=[*MODELS, "weights"])
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    for name in options.names:
        lines = weights(options.rounds) if name == "weights" else rewritten(name, options.rounds)
        for line in lines:
            print(line, flush=True)


if __name__ == "__main__":
    main()
