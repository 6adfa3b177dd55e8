# SPDX-License-Identifier: Apache-2.0
"""Models in another layout and in bfloat16 beside themselves, weights that are transformed when
they are loaded beside a copy of them, and a model larger than the memory that its process may use.

python -m bench.rewritten [resnet50 mobilenet_v2 mlp bert_base weights lazy] [--threads 2]
"""

import functools
import subprocess
import sys

import numpy as np

from . import measure, part, peers
from .measure import Row
from .programs import Timed


def _layouts():
    """{name: (pass, how far results may be off)}: channels in blocks of a vector, which rules for
    processors prefer, and last."""
    import tvm
    from tvm.relax import transform

    lanes = tvm.target.codegen.llvm_get_vector_width(tvm.target.Target("llvm")) // 32
    layouts = {
        f"NCHW{lanes}c": [f"NCHW{lanes}c", f"OIHW{lanes}i{lanes}o"],
        "NHWC": ["NHWC", "OHWI"],
    }
    convert = lambda layout: transform.ConvertLayout({"relax.nn.conv2d": layout})
    return {name: (convert(layout), 1e-4) for name, layout in layouts.items()}


def _precision():
    from tvm.relax import transform

    return {"bfloat16": (transform.ToMixedPrecision(dtype="bfloat16"), 2e-2)}


MODELS = {
    "resnet50": _layouts,
    "mobilenet_v2": _layouts,
    "mlp": _precision,
    "bert_base": _precision,
}


def _compiled(mod, inputs):
    """A call that can be timed, and its results."""
    import tvm
    from tvm import relax

    main = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())["main"]
    run = lambda: main(*inputs)
    results = run()
    return Timed(run), [x.numpy() for x in ([results] if hasattr(results, "numpy") else results)]


def _beside(case, ours, other, other_name, options):
    """Two rows of one case, measured by turns."""
    timed = {"tvm": ours, other_name: other}
    samples = measure.time_alternating(timed, options.rounds, options.seconds)
    return [Row(case, who, samples[who]) for who in timed]


def model(name, options):
    """Each form of a model beside the model as it was."""
    import tvm

    from .model_ops import relax_module
    from .models import Model

    made = Model(name)
    mod, inputs = relax_module(made), [tvm.runtime.tensor(x) for x in made.inputs()]
    plain, expected = _compiled(mod, inputs)
    rows = []
    for form, (conversion, most) in MODELS[name]().items():
        converted, results = _compiled(conversion(mod), inputs)
        pairs = zip(results, expected, strict=True)
        off = max(np.abs(a - b).max() / np.abs(b).max() for a, b in pairs)
        if off > most:
            raise AssertionError(f"{name} in {form}: off by {off:.1e}, expected at most {most}")
        print(f"note: {name} in {form}: off by {off:.1e}")
        rows += _beside(f"{name} in {form}", converted, plain, "tvm, as it was", options)
    return rows


def weights(name, options, layers=16, size=1024):
    """Weights of products, which are transposed when they are loaded, beside a copy of them."""
    import tvm
    from tvm import relax
    from tvm.relax import op, transform

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
    rng = np.random.default_rng(options.seed)
    arrays = [rng.standard_normal((size, size), "float32") for _ in params]
    tensors = [tvm.runtime.tensor(array) for array in arrays]
    run = lambda: machine["main_transform_params"](tensors)
    for result, array in zip(run(), arrays, strict=True):
        np.testing.assert_array_equal(result.numpy(), array.T)
    copy = lambda: [array.copy() for array in arrays]
    megabytes = layers * size * size * 4 // 2**20
    case = f"{megabytes} MB of {name} transposed"
    return _beside(case, Timed(run), Timed(copy), "NumPy, copied", options)


def lazy(name, options):
    """What 4 GB of weights take of a process that may use 2 GB, and that it fails without lazy
    input."""
    command = [sys.executable, "-m", "bench.lazy_model", "--gigabytes=4", "--limit=2"]
    env = peers.environment(sys.executable)
    run = lambda *more: subprocess.run(
        [*command, *more], env=env, cwd=peers.ROOT, capture_output=True, text=True
    )
    done, eager = run(), run("--eager")
    if done.returncode != 0:
        raise RuntimeError(f"{name}: {done.stderr}")
    if "MemoryError" not in eager.stderr:
        raise AssertionError(f"{name}: expected all weights at once not to fit in the limit")
    used = float(done.stdout.split()[-2]) * 2**30
    return [Row("4 GB of weights, of which 2 GB may be in memory", "tvm, lazy", [used], "B")]


CASES = {**dict.fromkeys(MODELS, model), "weights": weights, "lazy": lazy}


if __name__ == "__main__":
    cases = {name: functools.partial(case, name) for name, case in CASES.items()}
    part.main("python -m bench.rewritten", __doc__, cases)
