# SPDX-License-Identifier: Apache-2.0
"""Eager operators of PyTorch; elementwise ones into a preallocated result."""

import functools

import torch
from kernels import LISTED
from model_ops import torch_module
from programs import Timed, threads

torch.set_num_threads(threads())
torch.set_grad_enabled(False)
OUT = ("sigmoid", "exp", "tanh", "erf", "log")
OTHERS = {
    "gelu": torch.nn.functional.gelu,
    "softmax": lambda a: torch.softmax(a, 1),
    "layer_norm": lambda a, s, b: torch.nn.functional.layer_norm(a, (a.shape[1],), s, b),
    "row_sum": lambda a: a.sum(1),
    "column_sum": lambda a: a.sum(0),
    "transpose": lambda a: a.T.contiguous(),
    "matmul": lambda a, b: a @ b,
    "conv2d": torch.nn.functional.conv2d,
}


def prepare(name, inputs):
    tensors = [torch.from_numpy(x) for x in inputs]
    if name in LISTED:
        kernel = LISTED[name]
        tensors = [x.to(getattr(torch, kernel.dtype)) for x in tensors]
        call = functools.partial(kernel.torch, torch, *tensors)
        exact = torch.int32 if kernel.dtype == "int8" else torch.float32
        return Timed(call, lambda: call().to(exact).numpy())
    if name in OUT:
        out = torch.empty_like(tensors[0])
        return Timed(functools.partial(getattr(torch, name), *tensors, out=out), out.numpy)
    call = functools.partial(OTHERS[name], *tensors)
    return Timed(call, lambda: call().numpy())


def prepare_model(model):
    module, inputs = torch_module(model), [torch.from_numpy(x) for x in model.inputs()]
    return None, functools.partial(module, *inputs)
