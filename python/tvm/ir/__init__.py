# SPDX-License-Identifier: Apache-2.0
"""IR core: nodes, types, modules, operators, passes; what is not written here is derived."""

from tvm_ffi import Array, Map

from tvm._derive import Node, fill, make_node, register_node

from .attrs import Attrs, DictAttrs
from .base import EnvFunc, SourceName, Span, assert_structural_equal, load_json, save_json
from .expr import BaseExpr, GlobalVar, PrimExpr, Range, RelaxExpr
from .function import BaseFunc, CallingConv
from .global_info import DummyGlobalInfo, GlobalInfo, VDevice
from .module import IRModule
from .op import Op, register_intrin_lowering, register_op_attr
from .supply import GlobalVarSupply, NameSupply
from .type import PointerType, PrimType, Type

_derived, __dir__ = fill(__name__)


def __getattr__(name):
    if name in ("transform", "instrument", "diagnostics", "container", "analysis"):
        import importlib

        return importlib.import_module("tvm.ir." + name)
    if name == "PrimFunc":
        from tvm.tir import PrimFunc

        return PrimFunc
    return _derived(name)
