# SPDX-License-Identifier: Apache-2.0
"""The program as written, without a schedule: by us, or by Apache TVM where that is installed."""

import functools
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from kernels import KERNELS, LISTED
from model_ops import relax_module
from programs import Timed, clock, host_target


def prepare(name, inputs, entry="main"):
    import tvm
    from tvm import te

    kernel = (KERNELS | LISTED)[name]
    tensors = [te.placeholder(x.shape, kernel.dtype, f"A{i}") for i, x in enumerate(inputs)]
    target = tvm.target.Target(host_target())
    with target:
        result = kernel.te(te, *tensors)
    module = tvm.compile(te.create_prim_func([*tensors, result]), target=target)
    function = module[entry] if entry else module
    out = tvm.runtime.empty([int(s) for s in result.shape], result.dtype)
    if kernel.dtype == "bfloat16":
        import ml_dtypes

        inputs = [x.astype(ml_dtypes.bfloat16) for x in inputs]
    return Timed(functools.partial(function, *map(tvm.runtime.tensor, inputs), out), out.numpy)


def prepare_model(model):
    """(seconds to compile, a call that gives all results)."""
    import tvm
    from tvm import relax

    module, now = relax_module(model), clock()
    begin = now()
    disabled = [name for name in os.environ.get("BENCH_DISABLED_PASSES", "").split(",") if name]
    with tvm.transform.PassContext(opt_level=3, disabled_pass=disabled):
        executable = tvm.compile(module, target=host_target())
    main = relax.VirtualMachine(executable, tvm.cpu())["main"]
    seconds = now() - begin
    inputs = [tvm.runtime.tensor(x) for x in model.inputs()]

    def call():
        result = main(*inputs)
        return [result] if hasattr(result, "numpy") else list(result)

    call.memory = functools.partial(_memory, executable, model.inputs())
    return seconds, call


def prepare_file(path, inputs, names):
    """A model as an ONNX file, of one result."""
    import tvm
    from tvm import relax

    executable = tvm.compile(path, target=host_target())
    call = functools.partial(
        relax.VirtualMachine(executable, tvm.cpu())["main"], *map(tvm.runtime.tensor, inputs)
    )
    return Timed(call, lambda: call().numpy())


def _memory(executable, inputs):
    """In a process that only has the exported library."""
    with tempfile.TemporaryDirectory() as folder:
        executable.export_library(f"{folder}/model.so")
        np.savez(f"{folder}/inputs.npz", *inputs)
        script = pathlib.Path(__file__).parents[1] / "model_memory.py"
        command = [sys.executable, script, f"{folder}/model.so", f"{folder}/inputs.npz"]
        done = subprocess.run(command, capture_output=True, check=True, text=True)
    return int(done.stdout)
