# SPDX-License-Identifier: Apache-2.0
"""One operator, or a whole model, in OpenVINO: float32, for the shortest time of one request."""

import model_ops
import openvino
from kernels import onnx_model
from programs import Timed, clock, threads

core = openvino.Core()


def compile_onnx(text):
    config = {"INFERENCE_NUM_THREADS": threads(), "PERFORMANCE_HINT": "LATENCY"}
    config["INFERENCE_PRECISION_HINT"] = "f32"
    return core.compile_model(core.read_model(text), "CPU", config)


def prepare_model(model):
    text, now = model_ops.onnx_model(model), clock()
    begin = now()
    compiled = compile_onnx(text)
    seconds = now() - begin
    request, inputs = compiled.create_infer_request(), model.inputs()
    for name, x in zip(model.signature, inputs, strict=True):
        request.set_tensor(name, openvino.Tensor(x, shared_memory=True))

    def call(kept=inputs):  # their memory is what it reads
        request.start_async()
        request.wait()
        return [request.get_output_tensor(i).data for i in range(len(compiled.outputs))]

    return seconds, call


def prepare(name, inputs):
    model = onnx_model(name, *(x.shape for x in inputs))
    return prepare_file(model, inputs, [f"x{i}" for i in range(len(inputs))])


def prepare_file(model, inputs, names):
    request = compile_onnx(model).create_infer_request()
    for name, x in zip(names, inputs, strict=True):
        request.set_tensor(name, openvino.Tensor(x, shared_memory=True))

    def call():
        request.start_async()
        request.wait()

    return Timed(call, lambda: request.get_output_tensor().data.copy())
