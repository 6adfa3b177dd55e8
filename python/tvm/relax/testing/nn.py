# SPDX-License-Identifier: Apache-2.0
"""Small networks for tests, built with the current BlockBuilder."""

import numpy as np

from tvm import relax
from tvm.runtime import tensor


def _builder():
    builder = relax.BlockBuilder.current()
    if builder is None:
        raise RuntimeError("expected to be inside of `with bb.function(...)`")
    return builder


def emit(expr, name_hint=""):
    """Binds an expression in the current function."""
    return _builder().emit(expr, name_hint=name_hint)


def emit_te(func, *args, **kwargs):
    """Binds the result of a tensor expression in the current function."""
    return _builder().emit_te(func, *args, **kwargs)


def _checkpoint(bind, func, args, kwargs):
    from tvm.relax.op.grad import end_checkpoint, start_checkpoint

    def mark(op, value):
        if isinstance(value, (list, tuple)):
            return type(value)(mark(op, v) for v in value)
        return bind(op(value)) if isinstance(value, relax.Expr) else value

    args = [mark(start_checkpoint, a) for a in args]
    kwargs = {k: mark(start_checkpoint, v) for k, v in kwargs.items()}
    return mark(end_checkpoint, func(*args, **kwargs))


def checkpoint(func, *args, **kwargs):
    """Calls `func`, whose intermediate values the gradient computes again."""
    return _checkpoint(lambda expr: expr, func, args, kwargs)


def emit_checkpoint(func, *args, **kwargs):
    """The same with bindings for the marks."""
    return _checkpoint(emit, func, args, kwargs)


def emit_checkpoint_sequential(functions, segments, input, checkpoint_last=False):
    """Calls functions one after the other in checkpointed segments: their number, or where each
    ends."""

    def run(begin, end):
        def forward(value):
            for function in functions[begin:end]:
                value = function(value)
            return value

        return forward

    count = len(functions)
    if isinstance(segments, int):
        segments = [count * (i + 1) // segments for i in range(segments)]
    if not segments or segments[-1] != count or segments != sorted(segments):
        raise ValueError(
            f"expected segments that end at the last of {count} functions, got {segments}"
        )
    begin = 0
    for end in segments:
        last = end == count and not checkpoint_last
        step = run(begin, end)
        input = step(input) if last else emit_checkpoint(step, input)
        begin = end
    return input


def _shaped(shape, dtype):
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"expected a shape that is a list or a tuple, got {type(shape).__name__}")
    return relax.TensorStructInfo(shape, dtype)


def _unique(name):
    builder = relax.BlockBuilder.current()
    return name if builder is None else builder.get_unique_name(name)


class Placeholder(relax.Var):
    """An input."""

    def __init__(self, shape, dtype="float32", name="data"):
        super().__init__(_unique(name), _shaped(shape, dtype))


class Parameter(relax.Var):
    """A weight."""

    def __init__(self, shape, dtype="float32", name="param"):
        super().__init__(_unique(name), _shaped(shape, dtype))


class Module:
    """A part of a network: its attributes that are Parameters or Modules belong to it."""

    def parameters(self):
        """All weights, in the order in which they were set."""
        found = []
        for value in self.__dict__.values():
            for item in value if isinstance(value, (list, tuple)) else [value]:
                if isinstance(item, Parameter):
                    found.append(item)
                elif isinstance(item, Module):
                    found.extend(item.parameters())
        return found

    def forward(self, input):
        raise NotImplementedError(f"{type(self).__name__}: expected a method forward")

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


class Sequential(Module):
    """Modules one after the other."""

    def __init__(self, *modules):
        self.modules = modules

    def forward(self, input):
        for module in self.modules:
            input = module(input)
        return input


class ReLU(Module):
    def forward(self, input):
        return emit(relax.op.nn.relu(input))


class LogSoftmax(Module):
    def forward(self, input):
        return emit(relax.op.nn.log_softmax(input))


class Linear(Module):
    """input @ weight + bias"""

    def __init__(self, in_features, out_features, bias=True):
        self.weight = Parameter((in_features, out_features), name="linear_weight")
        self.bias = Parameter((out_features,), name="linear_bias") if bias else None

    def forward(self, input):
        result = emit(relax.op.matmul(input, self.weight))
        return result if self.bias is None else emit(relax.op.add(result, self.bias))


def init_params(mod):
    """Random values for the weights of main: its parameters behind the first one."""
    rng = np.random.default_rng(0)
    values = []
    for param in list(mod["main"].params)[1:]:
        shape = [int(dim) for dim in param.struct_info.shape]
        values.append(tensor(rng.random(shape).astype(str(param.struct_info.dtype))))
    return values


__all__ = [
    "LogSoftmax",
    "Linear",
    "Module",
    "Parameter",
    "Placeholder",
    "ReLU",
    "Sequential",
    "checkpoint",
    "emit",
    "emit_checkpoint",
    "emit_checkpoint_sequential",
    "emit_te",
    "init_params",
]
