# SPDX-License-Identifier: Apache-2.0
"""`torch.compile` with its default settings, of what PyTorch runs eagerly."""

import functools

import torch
from model_ops import torch_module
from programs import Timed, clock

from . import torch as eager


def prepare(name, inputs):
    function = torch.compile(eager.OTHERS.get(name) or getattr(torch, name), dynamic=False)
    call = functools.partial(function, *(torch.from_numpy(x) for x in inputs))
    return Timed(call, lambda: call().numpy())


def prepare_model(model):
    module = torch.compile(torch_module(model), dynamic=False)
    inputs, now = [torch.from_numpy(x) for x in model.inputs()], clock()
    begin = now()
    module(*inputs)
    return now() - begin, functools.partial(module, *inputs)
