# SPDX-License-Identifier: Apache-2.0
"""Modules of `nn` as functions of the graph language: each method runs once and is recorded."""

import contextlib
import threading

from tvm import relax as rx
from tvm import tir
from tvm.relax.block_builder import BlockBuilder

from . import core
from . import spec as _spec
from .modules import IOEffect


class _Stack(threading.local):
    """The exporters that are at work in this thread."""

    def __init__(self):
        self.exporters = []


_stack = _Stack()


def add_extern(mod):
    """The external module becomes one of the model that is being exported."""
    Exporter.current().add_external_module(mod)


class Exporter:
    """Exports the methods of one module."""

    def __init__(self, debug):
        self.builder = BlockBuilder()
        self.io_effect = IOEffect() if debug else None
        self.extern_mods = []

    @staticmethod
    def current():
        """The exporter at work in this thread."""
        if not _stack.exporters:
            raise RuntimeError("nn: expected to be inside of export_tvm, got no exporter")
        return _stack.exporters[-1]

    @staticmethod
    def io_effect_or_none():
        """The effect that orders debug functions, where a model is exported for debugging."""
        return _stack.exporters[-1].io_effect if _stack.exporters else None

    def __enter__(self):
        _stack.exporters.append(self)
        return self

    def __exit__(self, exc_type, exc, traceback):
        _stack.exporters.pop()

    def add_external_module(self, mod):
        """Each module once."""
        if mod not in self.extern_mods:
            self.extern_mods.append(mod)

    def build(self, spec):
        """(IRModule, [(name, parameter)], external modules)"""
        params = {}  # a parameter that has two names is one of the function, by its first name
        for name, param in core.walk("", spec.module, core.Parameter):
            params.setdefault(id(param), (name, param))
        params = list(params.values())
        effects = [] if self.io_effect is None else [("", self.io_effect)]
        effects += core.walk("", spec.module, core.Effect)
        if effects:
            self._initialize_effects(effects)
        for name, method in zip(spec.method_names, spec.method_specs, strict=True):
            self._method(name, method, params, effects)
        return self.builder.finalize(), params, self.extern_mods

    def _initialize_effects(self, effects):
        bb = self.builder
        with bb.function("_initialize_effect", params=[]):
            with bb.dataflow():
                states = [v for name, effect in effects for v in effect.emit_init(name, bb)]
                output = bb.emit_output(rx.Tuple(states))
            bb.emit_func_output(output)

    def _method(self, name, spec, params, effects):
        bb, named = self.builder, {}
        inputs = [_Input(n, s, named) for n, s in zip(spec.arg_names, spec.arg_specs, strict=True)]
        with contextlib.ExitStack() as stack:
            variables = [_own_variable(n, p, named, stack) for n, p in params]
            states = [v for n, effect in effects for v in effect.create(n)]
            groups = [[i.var for i in inputs], *_as_mode(spec.effect_mode, states, "effects")]
            count = sum(map(len, groups))
            groups += _as_mode(spec.param_mode, variables, "packed_params")
            arguments = [var for group in groups for var in group]
            with bb.function(name, arguments, attrs={"num_input": count}):
                with bb.dataflow():
                    if spec.effect_mode == "packed" and states:
                        _unpack(bb, groups[1][0], effects)
                    if spec.param_mode == "packed" and params:
                        packed = arguments[-1]
                        for i, (param_name, param) in enumerate(params):
                            param._expr = bb.emit(rx.TupleGetItem(packed, i), param_name)
                    result = core.unwrap_nested(spec.method(*(i.value(bb) for i in inputs)))
                    last = [v for _, effect in effects for v in effect.finalize()]
                    if effects and spec.effect_mode != "none":
                        result = rx.Tuple([result, rx.Tuple(last)])
                    output = bb.emit_output(result)
                function = bb.emit_func_output(output)
        if any(isinstance(d, tir.PrimExpr) for _, p in params for d in p._dims):
            # Variables in the shapes of parameters serve all methods; of a function they are its
            # own.
            bb.update_func(function, rx.utils.copy_with_new_vars(bb.get()[function]))


def _as_mode(mode, variables, name):
    """[group of parameters of the function], by the mode."""
    if mode == "none" or (mode == "packed" and not variables and name == "effects"):
        return [[]]
    if mode == "plain":
        return [variables]
    return [[rx.Var(name, rx.TupleStructInfo([v.struct_info for v in variables]))]]


def _unpack(bb, packed, effects):
    index = 0
    for name, effect in effects:
        count = len(effect.finalize())
        items = [bb.emit(rx.TupleGetItem(packed, index + i), name) for i in range(count)]
        effect.set_state(items)
        index += count


def _own_variable(name, param, named, stack):
    """The variable that stands for a parameter in this method."""
    info = rx.TensorStructInfo(core.as_dims(param._dims, named), param.dtype)
    before, param._expr = param._expr, rx.Var(name, info)
    stack.callback(setattr, param, "_expr", before)
    return param._expr


class _Input:
    """An argument: the parameter of the function, and what the method gets for it."""

    def __init__(self, name, spec, named):
        self.name, self.spec = name, spec
        self.number = None
        if isinstance(spec, _spec.Int):
            self.number = named.setdefault(name, tir.Var(name, "int64"))
        self.var = rx.Var(name, self._info(spec, named))

    def _info(self, spec, named):
        if isinstance(spec, _spec.Int):
            return rx.ShapeStructInfo([self.number])
        if isinstance(spec, _spec.Object):
            return rx.ObjectStructInfo()
        if isinstance(spec, _spec.Tuple):
            for item in spec.elements:
                if isinstance(item, _spec.Int):
                    raise TypeError(f"spec: expected no int inside of the tuple '{spec.name}'")
            return rx.TupleStructInfo([self._info(s, named) for s in spec.elements])
        return rx.TensorStructInfo(core.as_dims(spec.shape, named), spec.dtype)

    def value(self, bb):
        return self.number if self.number is not None else self._value(bb, self.spec, self.var)

    def _value(self, bb, spec, expr):
        if isinstance(spec, _spec.Object):
            return spec.object_type(_expr=expr, _name=self.name)
        if isinstance(spec, _spec.Tuple):
            items = [
                self._value(bb, s, bb.emit(rx.TupleGetItem(expr, i), f"{spec.name}_{i}"))
                for i, s in enumerate(spec.elements)
            ]
            return type(spec.elements)(items)
        return core.Tensor(_expr=expr)
