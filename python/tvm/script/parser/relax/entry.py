# SPDX-License-Identifier: Apache-2.0
"""Struct info as it is written, and the decorators of functions and macros."""

import ast
import contextlib
import functools
import inspect
import threading
import typing

import tvm_ffi

from tvm import relax
from tvm._aliases import spelled
from tvm.ir import PrimExpr
from tvm.relax import StructInfo
from tvm.tir import Var as SymbolicVar

from ...ir_builder import IRBuilder
from ...ir_builder.ir import IRModuleFrame
from ...ir_builder.relax.ir import find_vdevice
from ..core.parser import ScriptMacro
from ..core.utils import in_module_class

_state = threading.local()


# ---- symbolic dimensions ------------------------------------------------------------------------
class Symbols:
    """What texts in shapes mean: variables by name, and expressions of them."""

    def __init__(self, evaluate=None, names=None, may_define=True):
        self.names, self.may_define = {} if names is None else names, may_define
        self._evaluate = evaluate

    def dim(self, text):
        text = text.strip()
        if text in self.names:
            return self.names[text]
        value = None if self._evaluate is None else self._evaluate(text, self.names)
        if value is not None:
            return value
        if text.isidentifier():
            if not self.may_define:
                raise ValueError(f"undefined symbolic variable '{text}'")
            self.names[text] = SymbolicVar(text, "int64")
            return self.names[text]
        return _Dims(self).visit(ast.parse(text, mode="eval").body)


class _Dims(ast.NodeVisitor):
    """An expression of dimensions outside of any program."""

    def __init__(self, symbols):
        self._symbols = symbols

    def visit_Name(self, node):
        return self._symbols.dim(node.id)

    def visit_Constant(self, node):
        return node.value

    def visit_BinOp(self, node):
        from ..core.evaluator import _BINARY

        return _BINARY[type(node.op)](self.visit(node.left), self.visit(node.right))

    def generic_visit(self, node):
        raise ValueError(f"expected a dimension such as 'n + 1', got {ast.unparse(node)!r}")


@contextlib.contextmanager
def symbols(found):
    """Texts in struct info mean these from here on; None: they wait for what they mean."""
    outer = getattr(_state, "symbols", None)
    _state.symbols = found
    try:
        yield found
    finally:
        _state.symbols = outer


# ---- struct info --------------------------------------------------------------------------------
class StructInfoProxy(tvm_ffi.core.ObjectConvertible):
    """Struct info with texts in it, which a function gives their meaning."""

    def __init__(self, make, texts):
        self._make, self._texts = make, texts

    def as_struct_info(self, dict_globals=None):
        """The struct info; names in it are taken from the dict, or are new variables."""
        known = {k: v for k, v in (dict_globals or {}).items() if isinstance(v, PrimExpr)}
        return self._make(Symbols(names=known))

    def resolve(self, found):
        return self._make(found)

    def get_symbolic_vars(self):
        """The names that this defines: texts that are identifiers."""
        return {text for text in self._texts if text.isidentifier()}

    def asobject(self):
        return self.as_struct_info()


def _struct_info(make, texts):
    """Struct info at once where nothing in it waits for a meaning."""
    found = getattr(_state, "symbols", None)
    if found is not None or not texts:
        return make(found)
    return StructInfoProxy(make, texts)


class StructInfoName(tvm_ffi.core.ObjectConvertible):
    """R.Tensor and the like: called with arguments, or as it is."""

    def __init__(self, function):
        functools.update_wrapper(self, function)

    def __call__(self, *args, **kwargs):
        return self.__wrapped__(*args, **kwargs)

    def asobject(self):
        return self.__wrapped__()


def resolve(value, found):
    """The struct info that an annotation stands for."""
    if isinstance(value, StructInfo):
        return value
    if isinstance(value, StructInfoProxy):
        return value.resolve(found)
    if isinstance(value, StructInfoName):
        return resolve(value(), found)
    raise TypeError(f"expected struct info such as R.Tensor((2, 3), 'float32'), got {value!r}")


def _texts(*values):
    """All texts in a struct info's arguments."""
    found = []
    for value in values:
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, StructInfoProxy):
            found += value._texts
        elif isinstance(value, (list, tuple)):
            found += _texts(*value)
    return found


def _names(dims):
    """The dimensions, with texts for variables of Python: `n = TypeVar("n")`, since 0.27."""
    return [dim.__name__ if isinstance(dim, typing.TypeVar) else dim for dim in dims]


def _dims(values, found):
    return [found.dim(v) if isinstance(v, str) else v for v in values]


@StructInfoName
def Object():
    """Any value."""
    return relax.ObjectStructInfo()


@StructInfoName
def Tensor(shape=None, dtype=None, vdevice=None, ndim=-1):
    """A tensor; dimensions may be texts."""
    if isinstance(shape, str) and dtype is None:
        shape, dtype = None, shape
    if shape is not None and not isinstance(shape, (tuple, list, relax.Expr, tvm_ffi.Array)):
        raise ValueError(f"Tensor: expected a shape of dimensions, got {type(shape).__name__}")
    is_list = isinstance(shape, (tuple, list))
    if is_list:
        shape = _names(shape)

    def make(found):
        dims = _dims(shape, found) if is_list else shape
        device = find_vdevice(vdevice) if isinstance(vdevice, str) else vdevice
        return relax.TensorStructInfo(dims, dtype, device, ndim)

    texts = _texts(shape) if is_list else []
    if isinstance(vdevice, str) and not _in_module():
        texts.append("")  # waits for the module
    return _struct_info(make, texts)


def _in_module():
    return IRBuilder.is_in_scope() and IRBuilder.current().find(IRModuleFrame) is not None


@StructInfoName
def Shape(values=None, ndim=-1):
    """A shape; dimensions may be texts."""
    values = None if values is None else _names(values)

    def make(found):
        return relax.ShapeStructInfo(None if values is None else _dims(values, found), ndim)

    return _struct_info(make, _texts(values or []))


@StructInfoName
def Prim(dtype=None, value=None):
    """A scalar, maybe of a known value, which may be a text."""
    if dtype is None and value is None:
        raise TypeError("Prim: expected a dtype or a value, got neither")

    def make(found):
        return relax.PrimStructInfo(dtype, found.dim(value) if isinstance(value, str) else value)

    return _struct_info(make, _texts(value))


@StructInfoName
def Tuple(*fields):
    """A tuple."""
    if len(fields) == 1 and isinstance(fields[0], (list, tuple)):
        fields = fields[0]

    def make(found):
        return relax.TupleStructInfo([resolve(f, found) for f in fields])

    return _struct_info(make, _texts(*fields))


@StructInfoName
def Callable(params=None, ret=None, purity=None, derive_func=None):
    """A function; without parameters one that takes anything."""
    if params is not None and not isinstance(params, (list, tuple)):
        params = [params]

    def make(found):
        if params is None:
            result = relax.ObjectStructInfo() if ret is None else resolve(ret, found)
            return relax.FuncStructInfo.opaque_func(
                ret=result, derive_func=derive_func, purity=bool(purity)
            )
        if ret is None:
            raise ValueError("Callable: expected what the function returns, got parameters only")
        infos = [resolve(param, found) for param in params]
        is_pure = True if purity is None else purity
        return relax.FuncStructInfo(infos, resolve(ret, found), is_pure)

    return _struct_info(make, _texts(params or [], ret if ret is not None else []))


class MatchCastPair:
    """R.match_cast(value, struct_info), to be bound to a name."""

    def __init__(self, value, struct_info):
        self.value, self.struct_info = value, struct_info


@spelled
def match_cast(value, struct_info):
    """The value, checked at run time to be as the struct info says."""
    if value is None or struct_info is None:
        raise ValueError("match_cast: expected a value and its struct info")
    return MatchCastPair(value, struct_info)


# ---- decorators ---------------------------------------------------------------------------------
def function(f=None, pure=True, private=False, check_well_formed=True):
    """Parses a Python function into a function of the graph.

    The parser reads `pure` and `private` where the decorator is written."""
    from ..core.entry import parse

    in_class = in_module_class(2)

    def decorate(f):
        if not inspect.isfunction(f):
            raise TypeError(f"function: expected a function, got {f!r}")
        return f if in_class else parse(f, check_well_formed=check_well_formed)

    return decorate if f is None else decorate(f)


function.dispatch_token = "relax"


class RelaxMacro(ScriptMacro):
    """A macro whose last statement returns what a call of it stands for."""

    def visit(self, parser):
        *body, last = self.definition.body
        if not isinstance(last, ast.Return) or last.value is None:
            from ..core.error import ParserError

            raise ParserError(last, "expected a macro to end in a return of a value")
        parser.visit_body(body)
        return parser.eval(last.value)


def macro(*args, hygienic=True):
    """A function whose body is parsed where it is called; if not hygienic, with names of there."""
    from ..core.entry import scan_macro

    def decorate(func):
        return RelaxMacro(*scan_macro(func), hygienic, "relax")

    if not args:
        return decorate
    if len(args) > 1 or not inspect.isfunction(args[0]):
        raise TypeError("macro: expected @R.macro or @R.macro(hygienic=...) on a function")
    return decorate(args[0])


macro.dispatch_token = "relax.macro"
