# SPDX-License-Identifier: Apache-2.0
"""A model of one operator in ONNX Runtime, with bound inputs and output."""

import functools

import numpy as np
import onnxruntime
from kernels import onnx_model
from programs import Timed, threads


def prepare(name, inputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads(), 1
    session = onnxruntime.InferenceSession(
        onnx_model(name, *(x.shape for x in inputs)), options, providers=["CPUExecutionProvider"]
    )
    feeds = {f"x{i}": x for i, x in enumerate(inputs)}
    out = onnxruntime.OrtValue.ortvalue_from_numpy(np.empty_like(session.run(None, feeds)[0]))
    binding = session.io_binding()
    for key, x in feeds.items():
        binding.bind_ortvalue_input(key, onnxruntime.OrtValue.ortvalue_from_numpy(x))
    binding.bind_ortvalue_output("y", out)
    return Timed(functools.partial(session.run_with_iobinding, binding), out.numpy)
