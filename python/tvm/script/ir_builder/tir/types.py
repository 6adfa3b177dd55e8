# SPDX-License-Identifier: Apache-2.0
"""Types: T.int32 is an annotation, T.int32() a variable, T.int32(1) a constant."""

import functools
import re

import tvm_ffi

from tvm import tir
from tvm.ir import PointerType, PrimType, TensorMapType, Type
from tvm.tir import SizeVar, Var

_DTYPE = re.compile(
    r"(bool|u?int\d+|bfloat16|float\d+(_e\d+m\d+(b\d+)?(fn|fnu|uz|fnuz)?)?)(x\d+|xvscalex\d+)?"
)
_UINT64 = 1 << 64


class DType:
    """A scalar or vector type that makes variables and constants."""

    def __init__(self, name):
        self.name = name

    def __call__(self, expr=None, *, is_size_var=False):
        if expr is None:
            return (SizeVar if is_size_var else Var)("", self.name)
        if isinstance(expr, str):
            expr = float(expr)
        if isinstance(expr, int) and self.name.startswith("uint64") and expr >= _UINT64 // 2:
            expr -= _UINT64  # a constant holds the bits
        return tir.const(expr, self.name)

    @property
    def type(self):
        return PrimType(self.name)

    def __str__(self):
        return self.name

    def __repr__(self):
        return "T." + self.name

    def __eq__(self, other):
        return str(other) == self.name

    def __hash__(self):
        return hash(self.name)


class _Void(DType):
    def __init__(self):
        super().__init__("void")

    def __call__(self, expr=None):
        return Var("", self.type) if expr is None else tir.Cast("void", expr)

    @property
    def type(self):
        return PrimType("")


class _Handle(DType):
    """T.handle: an untyped pointer; T.handle("float32", "shared") one to elements in a scope;
    T.handle("tensormap") a description of a tensor for the copy engine of NVIDIA's GPUs."""

    def __init__(self):
        super().__init__("handle")

    def __call__(self, dtype=None, storage_scope="global", *, is_size_var=False):
        if dtype is None:
            return (SizeVar if is_size_var else Var)("", "handle")
        if isinstance(dtype, str) and dtype == "tensormap":
            return Var("", TensorMapType())
        if isinstance(dtype, tir.PrimExpr) and not isinstance(dtype, Var):
            return tir.Cast("handle", dtype)
        if isinstance(dtype, Var) and not dtype.name_hint:
            element = dtype.type_annotation  # T.handle(T.handle("float32"))
        else:
            element = dtype if isinstance(dtype, Type) else as_type(dtype)
        return Var("", PointerType(element, storage_scope))


@functools.cache
def dtype(name):
    """The constructor of a type's name, or None."""
    if name == "void":
        return _Void()
    if name == "handle":
        return _Handle()
    if name == "boolean":
        name = "bool"
    return DType(name) if _DTYPE.fullmatch(name) else None


def as_type(annotation):
    """The Type that an annotation stands for."""
    if isinstance(annotation, Type):
        return annotation
    if isinstance(annotation, DType):
        return annotation.type
    if isinstance(annotation, Var):
        return annotation.type_annotation
    if isinstance(annotation, str):
        return PrimType("" if annotation == "void" else annotation)
    raise TypeError(f"expected a type such as T.int32, got {annotation!r}")


# The names of the interface; any other type that exists works as well.
_FLOATS = (
    "float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 "
    "float8_e5m2fnuz float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn "
    "float16 float32 float64"
).split()
_INTS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
NAMES = [base + lanes for base in _FLOATS for lanes in ("", "x2", "x4", "x8", "x16", "x32", "x64")]
NAMES += [base + lanes for base in _INTS for lanes in ("", "x4", "x8", "x16", "x32", "x64")]
NAMES += ["bfloat16", "bool", "boolean", "handle", "void"]


def dtype_value(name):
    """A type as a value: in attributes."""
    return tvm_ffi.dtype(name)
