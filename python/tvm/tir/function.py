# SPDX-License-Identifier: Apache-2.0
"""Functions and tensor intrinsics."""

import tvm_ffi

from tvm._derive import Node, construct, fill, register_node
from tvm.ir import BaseFunc, DictAttrs, TupleType
from tvm.ir.function import _attribute

from .buffer import Buffer
from .expr import Var

_tir, _ = fill("tvm.tir")


@register_node("tir.PrimFunc")
class PrimFunc(BaseFunc):
    def __init__(self, params, body, ret_type=None, buffer_map=None, attrs=None, span=None):
        buffers, variables = dict(buffer_map or {}), []
        for param in params:
            if isinstance(param, tvm_ffi.core.ObjectConvertible):
                param = param.asobject()
            if isinstance(param, Buffer):
                var = Var(param.name, "handle")
                variables.append(var)
                buffers[var] = param
            elif isinstance(param, Var):
                variables.append(param)
            else:
                raise TypeError(
                    "PrimFunc: expected parameters that are Var or Buffer, "
                    f"got {type(param).__name__}"
                )
        if attrs is None or isinstance(attrs, dict):
            attrs = DictAttrs({k: _attribute(v) for k, v in (attrs or {}).items()})
        ret_type = TupleType([]) if ret_type is None else ret_type
        construct(self, variables, body, ret_type, buffers, attrs, span)

    @property
    def __name__(self):
        if self.attrs is None or "global_symbol" not in self.attrs:
            raise AttributeError("__name__: expected a function with a global_symbol")
        return str(self.attrs["global_symbol"])

    def with_body(self, new_body, span=None):
        """The function with another body."""
        return PrimFunc(self.params, new_body, self.ret_type, self.buffer_map, self.attrs, span)

    def specialize(self, param_map):
        """The function with parameters fixed: scalars to constants, buffers to known shapes."""
        return _tir("Specialize")(self, param_map)


@register_node("tir.TensorIntrin")
class TensorIntrin(Node):
    @staticmethod
    def register(name, desc, impl, override=False):
        """Registers an intrinsic for `Schedule.tensorize`."""
        return _tir("TensorIntrinRegister")(name, TensorIntrin(desc, impl), override)

    @staticmethod
    def get(name, allow_missing=False):
        """A registered intrinsic."""
        return _tir("TensorIntrinGet")(name, allow_missing)
