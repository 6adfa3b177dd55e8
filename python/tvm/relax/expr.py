# SPDX-License-Identifier: Apache-2.0
"""Expressions, bindings and functions of the graph language."""

from numbers import Number

import numpy as np
import tvm_ffi

from tvm._aliases import spelled
from tvm._derive import Node, construct, fill, finite, register_node
from tvm.ir import BaseFunc, DictAttrs, GlobalVar, PrimExpr, RelaxExpr, Type  # noqa: F401
from tvm.ir.expr import FloatImm, IntImm
from tvm.ir.function import _attribute
from tvm.runtime import Tensor, tensor

Expr = RelaxExpr
_ir, _ = fill("tvm.ir")
_relax, _ = fill("tvm.relax")


@register_node("relax.Id")
class Id(Node):
    pass


@register_node("ir.StructInfo")
class StructInfo(Node):
    """What is known about the values of an expression; compared by structure."""

    def __eq__(self, other):
        return isinstance(other, StructInfo) and _ir("structural_equal")(self, other, False)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(_ir("structural_hash")(self, False))

    def is_base_of(self, derived):
        """Whether everything of the derived kind is of this kind."""
        from .analysis import BaseCheckResult, struct_info_base_check

        return struct_info_base_check(self, derived) == BaseCheckResult.PASS


def as_info(value):
    """The struct info that something stands for: R.Tensor(("n", 4)), a type. What is none stays."""
    if isinstance(value, tvm_ffi.core.ObjectConvertible):
        value = value.asobject()
    if isinstance(value, Type):
        from .ty import info_of

        return info_of(value)
    return value


def _prim(value):
    """A Python number as a scalar of the graph: int64, float64 or bool."""
    if isinstance(value, bool):
        return IntImm("bool", value)
    if isinstance(value, (int, np.integer)):
        return IntImm("int64", int(value))
    if isinstance(value, (float, np.floating)):
        return FloatImm("float64", float(value))
    raise TypeError(f"expected a number or an expression, got {type(value).__name__}")


def _operand(value, like):
    """The other operand of Python's operators: a number takes the dtype of the tensor it meets."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, PrimExpr):
        return PrimValue(value)
    if isinstance(value, Number):
        info = like.struct_info_
        kind = type(info).__name__ if info is not None else ""
        if kind == "PrimStructInfo":
            return PrimValue(_prim(value))
        dtype = str(info.dtype) if kind == "TensorStructInfo" else ""
        return const(value, dtype if dtype not in ("", "void") else None)
    if isinstance(value, (np.ndarray, Tensor)):
        return const(value)
    raise TypeError(f"expected an expression or a number, got {type(value).__name__}")


def _op(name, *args):
    from . import op

    return getattr(op, name)(*args)


def _binary(name):
    def forward(self, other):
        return _op(name, self, _operand(other, self))

    def reverse(self, other):
        return _op(name, _operand(other, self), self)

    return forward, reverse


class ExprWithOp(Expr):
    """Python's operators on expressions; each makes a call."""

    __slots__ = ()
    __array_ufunc__ = None  # array + x is x's __radd__, not a sum for each element

    __add__, __radd__ = _binary("add")
    __sub__, __rsub__ = _binary("subtract")
    __mul__, __rmul__ = _binary("multiply")
    __truediv__, __rtruediv__ = _binary("divide")
    __floordiv__, __rfloordiv__ = _binary("floor_divide")
    __mod__, __rmod__ = _binary("mod")
    __pow__, __rpow__ = _binary("power")
    __lt__, _ = _binary("less")
    __gt__, _ = _binary("greater")
    __le__, _ = _binary("less_equal")
    __ge__, _ = _binary("greater_equal")
    __hash__ = tvm_ffi.Object.__hash__

    def __neg__(self):
        return _op("negative", self)

    def astype(self, dtype):
        """The value in another type."""
        return _op("astype", self, dtype)

    def __call__(self, *args, attrs=None):
        """A call of this function."""
        attrs = DictAttrs(attrs) if isinstance(attrs, dict) else attrs
        return Call(self, args, attrs)

    def __getitem__(self, index):
        """A field of this tuple."""
        info = self.struct_info_
        if info is not None and not hasattr(info, "fields"):
            raise TypeError(f"expected a tuple to take an item of, got {info}")
        if hasattr(info, "fields") and index >= len(info.fields):
            # IndexError ends the iteration of `a, b = expr`.
            raise IndexError(
                f"Tuple index out of range: expected an index below {len(info.fields)}, got {index}"
            )
        return TupleGetItem(self, index)

    def __iter__(self):
        """The fields of this tuple. Without, Python would ask for items until there is none: for
        ever where it is not known how many there are."""
        info = self.struct_info_
        if not hasattr(info, "fields"):
            got = "one without struct info; BlockBuilder.emit finds it" if info is None else info
            raise TypeError(f"expected a tuple to take the items of, got {got}")
        return (self[i] for i in range(len(info.fields)))

    @property
    def dtype(self):
        return _DTypeProxy(self)

    @property
    def ndim(self):
        return _inspect("tensor_ndim", self)

    @property
    def shape(self):
        return _IndexProxy(self, "tensor_shape_i")

    @property
    def strides(self):
        return _IndexProxy(self, "tensor_stride_i")

    @property
    def byte_offset(self):
        return _inspect("tensor_byte_offset", self)

    @property
    def elem_offset(self):
        return _inspect("tensor_elem_offset", self)


def _inspect(name, *args):
    """A call of an operator that looks into a tensor's header."""
    info = args[0].struct_info_
    if info is not None and type(info).__name__ not in ("TensorStructInfo", "ObjectStructInfo"):
        raise TypeError(f"expected a tensor to look into, got {info}")
    return Call(_ir("GetOp")("relax.inspect." + name), list(args))


class _DTypeProxy:
    """`x.dtype`: its parts are scalars of the program."""

    def __init__(self, expr):
        self._expr = expr

    @property
    def type_code(self):
        return _inspect("tensor_dtype_code", self._expr)

    @property
    def bits(self):
        return _inspect("tensor_dtype_bits", self._expr)

    @property
    def lanes(self):
        return _inspect("tensor_dtype_lanes", self._expr)


class _IndexProxy:
    """`x.shape` and `x.strides`: their items are scalars of the program."""

    def __init__(self, expr, name):
        self._expr, self._name = expr, name

    def __getitem__(self, axis):
        axis = axis if isinstance(axis, Expr) else PrimValue(axis)
        return _inspect(self._name, self._expr, axis)

    def __iter__(self):
        raise TypeError("expected an index into a shape whose length may be unknown, got a loop")


@register_node("relax.expr.Call")
class Call(ExprWithOp):
    @spelled
    def __init__(self, op, args, attrs=None, sinfo_args=None, span=None):
        if isinstance(sinfo_args, StructInfo):
            sinfo_args = [sinfo_args]
        if not all(isinstance(arg, Expr) for arg in args):
            from .utils import convert_to_expr

            args = map(convert_to_expr, args)
        construct(self, op, list(args), attrs, list(sinfo_args or []), span)


@register_node("relax.expr.If")
class If(ExprWithOp):
    pass


@register_node("relax.expr.Tuple")
class Tuple(ExprWithOp):
    def __init__(self, fields, span=None):
        from .utils import convert_to_expr

        if isinstance(fields, (list, tuple)):
            fields = [convert_to_expr(field) for field in fields]
        construct(self, fields, span)

    def __iter__(self):
        return iter(self.fields)

    def __getitem__(self, index):
        try:
            return self.fields[index]
        except IndexError:
            raise IndexError(
                f"Tuple index out of range: expected an index below {len(self)}, got {index}"
            ) from None

    def __len__(self):
        return len(self.fields)


@register_node("relax.expr.TupleGetItem")
class TupleGetItem(ExprWithOp):
    pass


@register_node("relax.expr.ShapeExpr")
class ShapeExpr(ExprWithOp):
    def __init__(self, values, span=None):
        if not hasattr(values, "__iter__"):
            raise TypeError(
                f"ShapeExpr: expected dimensions in a list or tuple, got {type(values).__name__}"
            )
        construct(self, list(values), span)

    def __iter__(self):
        return iter(self.values)

    def __getitem__(self, index):
        try:
            return self.values[index]
        except IndexError:
            raise IndexError(
                f"ShapeExpr index out of range: expected an index below {len(self)}, got {index}"
            ) from None

    def __len__(self):
        return len(self.values)


def make_shape(shape):
    """A ShapeExpr of a list or tuple."""
    if isinstance(shape, (list, tuple, tvm_ffi.Array)):
        return ShapeExpr(shape)
    raise ValueError(f"make_shape: expected a list or a tuple, got {type(shape).__name__}")


@register_node("relax.expr.Constant")
class Constant(ExprWithOp):
    @spelled
    def __init__(self, data, struct_info=None, span=None):
        construct(self, data, struct_info, span)


@register_node("relax.expr.Var")
class Var(ExprWithOp):
    """A variable of a graph: relax.Var("x", relax.TensorStructInfo((n, 64), "float32"))."""

    @spelled(name="name_hint")
    def __init__(self, name_hint, struct_info=None, span=None):
        struct_info = as_info(struct_info)
        if struct_info is not None and not isinstance(struct_info, StructInfo):
            raise TypeError(
                f"Var: expected struct info for '{name_hint}', got {type(struct_info).__name__}"
            )
        vid = Id(name_hint) if isinstance(name_hint, str) else name_hint
        if not isinstance(vid, Id):
            raise TypeError(f"Var: expected a text as name, got {type(name_hint).__name__}")
        construct(self, vid, struct_info, span)

    @property
    def name_hint(self):
        return str(self.vid.name_hint)

    name = name_hint  # since 0.27


@register_node("relax.expr.DataflowVar")
class DataflowVar(Var):
    __init__ = Var.__init__


@register_node("relax.expr.PrimValue")
class PrimValue(Expr):
    def __init__(self, value, span=None):
        construct(self, value if isinstance(value, PrimExpr) else _prim(value), span)


def prim_value(value, dtype=None):
    """A scalar of the graph, of that type."""
    if dtype is None or isinstance(value, PrimExpr):
        return PrimValue(value)
    return PrimValue((FloatImm if "float" in str(dtype) else IntImm)(dtype, value))


@register_node("relax.expr.StringImm")
class StringImm(Expr):
    pass


@register_node("relax.expr.DataTypeImm")
class DataTypeImm(Expr):
    pass


@register_node("relax.expr.Binding")
class Binding(Node):
    pass


@register_node("relax.expr.MatchCast")
class MatchCast(Binding):
    pass


@register_node("relax.expr.VarBinding")
class VarBinding(Binding):
    pass


@register_node("relax.expr.BindingBlock")
class BindingBlock(Node):
    pass


@register_node("relax.expr.DataflowBlock")
class DataflowBlock(BindingBlock):
    pass


@register_node("relax.expr.SeqExpr")
class SeqExpr(ExprWithOp):
    pass


def _attrs(attrs):
    if attrs is None or isinstance(attrs, dict):
        return DictAttrs({k: _attribute(v) for k, v in (attrs or {}).items()})
    return attrs


@register_node("relax.expr.Function")
class Function(BaseFunc):
    @spelled
    def __init__(self, params, body, ret_struct_info=None, is_pure=True, attrs=None, span=None):
        given = (params, body, ret_struct_info, is_pure, _attrs(attrs), span)
        args = [finite(v) if type(v) in (list, tuple, dict) else v for v in given]
        self.__init_handle_by_constructor__(_make_function, *args)

    @property
    def ret_ty(self):
        """What the function returns, as it is called since 0.27."""
        return self.ret_struct_info

    @staticmethod
    @spelled
    def create_empty(params, ret_struct_info, is_pure=True, attrs=None, span=None):
        """A function of that signature whose body is still to come."""
        return Function._create_empty(params, ret_struct_info, is_pure, _attrs(attrs), span)

    def __call__(self, *args):
        """A call of this function."""
        return Call(self, args)

    def bind_symbolic_vars(self, binding_map):
        """The function with symbolic variables replaced, by variable or name."""
        return _relax("FunctionBindSymbolicVars")(self, binding_map)

    def bind_params(self, binding_map):
        """The function with parameters fixed, by variable or name: to expressions, numbers or
        arrays."""
        return _relax("FunctionBindParams")(self, values_of_params(binding_map))

    def inline_functions(self, function_map):
        """The function with calls of the functions in the map, by variable or name, inlined."""
        return _relax("FunctionInlineFunctions")(self, function_map)


def values_of_params(params):
    """Expressions for what people bind parameters to: numbers, arrays, tensors."""

    def convert(value):
        if isinstance(value, Expr):
            return value
        return PrimValue(value) if isinstance(value, (int, float, PrimExpr)) else const(value)

    return {name: convert(value) for name, value in params.items()}


_make_function = tvm_ffi.get_global_func("relax.expr.Function._make")


@register_node("relax.expr.ExternFunc")
class ExternFunc(BaseFunc, ExprWithOp):
    @spelled
    def __init__(self, global_symbol, struct_info=None, span=None):
        construct(self, global_symbol, as_info(struct_info), span)

    __call__ = ExprWithOp.__call__


@spelled
def extern(name, struct_info=None, span=None):
    """A function that is found by name at run time."""
    return ExternFunc(name, struct_info, span)


_SHORT = {"float64": "float32", "int64": "int32"}


def const(value, dtype=None):
    """A constant tensor. Python numbers (and lists of them) are int32, float32 or bool unless
    `dtype` says otherwise; arrays keep their dtype."""
    if isinstance(value, Constant):
        return value
    if not isinstance(value, Tensor):
        from_python = isinstance(value, (Number, list, tuple)) and not isinstance(value, np.generic)
        if dtype is None:
            value = np.array(value)
            dtype = _SHORT.get(str(value.dtype), value.dtype) if from_python else value.dtype
        value = tensor(np.asarray(value).astype(_numpy_dtype(dtype)))
    elif dtype is not None and str(value.dtype) != str(dtype):
        value = tensor(value.numpy().astype(_numpy_dtype(dtype)))
    return Constant(value)


def _numpy_dtype(dtype):
    try:
        return np.dtype(str(dtype))
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, str(dtype)))


def te_tensor(value, tir_var_map, name="rxplaceholder"):
    """A placeholder of tensor expressions for a tensor, its symbolic variables replaced as the map
    says."""
    from tvm import te, tir

    shape = [tir.stmt_functor.substitute(dim, tir_var_map) for dim in value.struct_info.shape]
    return te.placeholder(shape, value.struct_info.dtype, name)


def get_shape_of(expr):
    """The shape of a tensor as an expression: what is known of it, or a call that asks for it."""
    return _relax("GetShapeOf")(expr)
