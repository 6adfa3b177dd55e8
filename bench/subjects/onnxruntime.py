# SPDX-License-Identifier: Apache-2.0
"""A model of one operator in ONNX Runtime, with bound inputs and output."""

import functools

import model_ops
import numpy as np
import onnxruntime
from kernels import onnx_model
from programs import Timed, clock, threads


def open_session(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads(), 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def prepare(name, inputs):
    model = onnx_model(name, *(x.shape for x in inputs))
    return prepare_file(model, inputs, [f"x{i}" for i in range(len(inputs))])


def prepare_file(model, inputs, names):
    session, feeds = open_session(model), dict(zip(names, inputs, strict=True))
    out = onnxruntime.OrtValue.ortvalue_from_numpy(np.empty_like(session.run(None, feeds)[0]))
    binding = session.io_binding()
    for key, x in feeds.items():
        binding.bind_ortvalue_input(key, onnxruntime.OrtValue.ortvalue_from_numpy(x))
    binding.bind_ortvalue_output(session.get_outputs()[0].name, out)
    return Timed(functools.partial(session.run_with_iobinding, binding), out.numpy)


def prepare_model(model):
    text, now = model_ops.onnx_model(model), clock()
    begin = now()
    session = open_session(text)
    seconds = now() - begin
    binding = session.io_binding()
    for name, x in zip(model.signature, model.inputs(), strict=True):
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(x))
    for output in session.get_outputs():
        binding.bind_output(output.name)

    def call():
        session.run_with_iobinding(binding)
        return binding.get_outputs()

    return seconds, call
