# SPDX-License-Identifier: Apache-2.0
"""A model of one operator in OpenVINO, in float32, for the shortest time of one request."""

import openvino
from kernels import onnx_model
from programs import Timed, threads

core = openvino.Core()


def prepare(name, inputs):
    config = {"INFERENCE_NUM_THREADS": threads(), "PERFORMANCE_HINT": "LATENCY"}
    config["INFERENCE_PRECISION_HINT"] = "f32"
    model = core.read_model(onnx_model(name, *(x.shape for x in inputs)))
    compiled = core.compile_model(model, "CPU", config)
    request = compiled.create_infer_request()
    for i, x in enumerate(inputs):
        request.set_tensor(f"x{i}", openvino.Tensor(x, shared_memory=True))

    def call():
        request.start_async()
        request.wait()

    return Timed(call, lambda: request.get_output_tensor().data.copy())
