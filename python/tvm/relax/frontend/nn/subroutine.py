# SPDX-License-Identifier: Apache-2.0
"""Modules that become functions of their own, instead of being part of those that call them."""

import contextlib
import functools
import inspect
import re

from tvm import relax as rx
from tvm import tir


def _function_name(cls):
    """RMSNorm -> rms_norm"""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", cls.__name__).lower()


class SubroutineMixin:
    """With `define_subroutine = True` in a class, each call of its forward is a call of a private
    function of the arguments and the module's parameters. Equal functions are one."""

    define_subroutine: bool = False

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        forward = cls.__dict__.get("forward")
        if forward is None:
            return

        @functools.wraps(forward)
        def wrapper(self, *args, **kwargs):
            is_inner = getattr(self, "_in_subroutine", False)
            if not self.define_subroutine or is_inner or rx.BlockBuilder.current() is None:
                return forward(self, *args, **kwargs)
            bound = inspect.signature(forward).bind(self, *args, **kwargs)
            return _Call(self, forward, bound).emit()

        cls.forward = wrapper


class _Call:
    """One call: the function is recorded with parameters of its own in place of everything that
    comes from outside."""

    def __init__(self, module, forward, bound):
        from . import core
        from .exporter import Exporter

        self.module, self.forward, self.bound = module, forward, bound
        self.dims = {}  # symbolic variable of the caller -> the function's own
        self.outer, self.params = [], []  # the caller's values, and the function's parameters
        io = Exporter.io_effect_or_none()
        self.effects = [io] if io else []
        self.effects += [effect for _, effect in core.walk("", module, core.Effect)]

    def emit(self):
        from . import core

        bb, module = core.current_builder(), self.module
        name = _function_name(type(module))
        with contextlib.ExitStack() as stack:
            arguments = {k: self._renewed(k, v) for k, v in list(self.bound.arguments.items())[1:]}
            for key, param in core.walk("", module, core.Parameter):
                before = param._expr
                param._expr = self._param(key, before)
                stack.callback(setattr, param, "_expr", before)
            for i, effect in enumerate(self.effects):
                before = effect.finalize()
                stack.callback(effect.set_state, before)
                effect.set_state([self._param(f"effect{i}", var) for var in before])
            self._pass_numbers()
            self.bound.arguments.update(arguments)
            module._in_subroutine = True
            stack.callback(delattr, module, "_in_subroutine")
            with bb.function(name, self.params, private=True):
                with bb.dataflow():
                    result = self.forward(*self.bound.args, **self.bound.kwargs)
                    states = [v for effect in self.effects for v in effect.finalize()]
                    output = [core.unwrap_nested(result), *states]
                    output = bb.emit_output(rx.Tuple(output) if states else output[0])
                function = bb.emit_func_output(output)
        return self._take(bb.emit(rx.Call(function, self.outer), name), result)

    def _take(self, called, result):
        """The call's value in the structure of what forward returned, and its effects."""
        from . import core

        bb = core.current_builder()
        if self.effects:
            index = 1
            for effect in self.effects:
                count = len(effect.finalize())
                effect.set_state([bb.emit(called[index + i]) for i in range(count)])
                index += count
            called = bb.emit(called[0])
        return _like(bb, called, result)

    def _param(self, name, expr):
        """A parameter of the function for a value of the caller."""
        var = rx.Var(name, self._own(expr.struct_info))
        self.outer.append(expr)
        self.params.append(var)
        return var

    def _own(self, info):
        if isinstance(info, rx.TensorStructInfo):
            return rx.TensorStructInfo([self._dim(d) for d in info.shape], info.dtype)
        if isinstance(info, rx.TupleStructInfo):
            return rx.TupleStructInfo([self._own(field) for field in info.fields])
        return info

    def _dim(self, dim):
        for var in tir.analysis.undefined_vars(dim) if isinstance(dim, tir.PrimExpr) else ():
            self.dims.setdefault(var, tir.Var(var.name, var.dtype))
        return tir.stmt_functor.substitute(dim, self.dims) if self.dims else dim

    def _renewed(self, name, value):
        """An argument as forward sees it inside of the function."""
        from . import core

        if isinstance(value, (list, tuple)):
            return type(value)(self._renewed(f"{name}_{i}", v) for i, v in enumerate(value))
        if isinstance(value, core.Tensor):
            return core.Tensor(_expr=self._param(name, value._expr))
        if isinstance(value, core.Object):
            return type(value)(_expr=self._param(name, value._expr), _name=name)
        return self._dim(value) if isinstance(value, tir.PrimExpr) else value

    def _pass_numbers(self):
        """Symbolic variables that no shape of a parameter is come as a shape."""
        infos = [p.struct_info for p in self.params]
        known = [d for info in infos if isinstance(info, rx.TensorStructInfo) for d in info.shape]
        pairs = [(a, b) for a, b in self.dims.items() if not any(b.same_as(d) for d in known)]
        if pairs:
            self.outer.append(rx.ShapeExpr([a for a, _ in pairs]))
            self.params.append(rx.Var("numbers", rx.ShapeStructInfo([b for _, b in pairs])))


def _like(bb, expr, result):
    from . import core

    if isinstance(result, (list, tuple)):
        items = enumerate(result)
        return type(result)(_like(bb, bb.emit(rx.TupleGetItem(expr, i)), r) for i, r in items)
    if isinstance(result, core.Object):
        return type(result)(_expr=expr, _name=result._name)
    return core.Tensor(_expr=expr)
