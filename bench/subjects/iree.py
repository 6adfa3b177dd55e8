# SPDX-License-Identifier: Apache-2.0
"""A model of one operator, compiled by IREE for this CPU."""

import subprocess
import sys
import tempfile

import numpy as np
from iree import compiler, runtime
from kernels import onnx_model
from programs import Timed, threads

runtime.flags.parse_flags(f"--task_topology_group_count={threads()}")


def prepare(name, inputs):
    with tempfile.TemporaryDirectory() as folder:
        model, mlir = f"{folder}/model.onnx", f"{folder}/model.mlir"
        with open(model, "wb") as file:
            file.write(onnx_model(name, *(x.shape for x in inputs)))
        importer = [sys.executable, "-m", "iree.compiler.tools.import_onnx", model, "-o", mlir]
        subprocess.run(importer, check=True)
        binary = compiler.compile_file(
            mlir,
            input_type="onnx",
            target_backends=["llvm-cpu"],
            extra_args=["--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3"],
        )
    config = runtime.Config("local-task")
    module = runtime.VmModule.copy_buffer(config.vm_instance, binary)
    function = runtime.load_vm_modules(module, config=config)[-1][name]
    arrays = [runtime.asdevicearray(config.device, x) for x in inputs]
    call = lambda: function(*arrays)
    return Timed(call, lambda: np.array(call().to_host()))
