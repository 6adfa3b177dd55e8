# SPDX-License-Identifier: Apache-2.0
"""Operators and intrinsics that fixed parameters cannot express; the others are derived."""

import functools
import inspect

import numpy as np
import tvm_ffi

from tvm._derive import fill
from tvm.ir import Array, GlobalVar, IntImm, Op
from tvm.ir.expr import _op

from .expr import Call, CommReducer, IterVar, Reduce, StringImm, Var, convert
from .generic import add, multiply, subtract  # noqa: F401

_derived, __dir__ = fill("tvm.tir")
_const = _derived("const")


# ---- constants --------------------------------------------------------------------------------
def const(value, dtype=None, span=None):
    """A constant; a number of NumPy keeps its type, an int beyond 64 bits with a sign is uint64."""
    if dtype is None and isinstance(value, np.generic):
        dtype, value = str(value.dtype), value.item()
    if isinstance(value, int) and 2**63 <= value < 2**64 and dtype in (None, "uint64"):
        return IntImm("uint64", value - 2**64, span)  # its bits
    return _const(value, dtype, span)


# ---- calls ------------------------------------------------------------------------------------
def call_intrin(dtype, func_name, *args, span=None, annotations=None):
    """A call of an operator by name."""
    return Call(dtype, func_name, [convert(a) for a in args], span, annotations)


def _pack(value):
    """Buffers become tensors of packed calls."""
    from .buffer import Buffer

    if not isinstance(value, Buffer):
        return convert(value)
    shape = Call("handle", "tir.tvm_stack_make_shape", value.shape)
    strides = Call("handle", "tir.tvm_stack_make_shape", value.strides) if value.strides else 0
    arguments = [value.data, shape, strides, len(value.shape), const(0, value.dtype)]
    return Call("handle", "tir.tvm_stack_make_array", [*arguments, value.elem_offset])


def call_packed(*args, span=None):
    """A call of a function of the global registry: name, then arguments."""
    return Call("int32", "tir.tvm_call_packed", [_pack(a) for a in args], span)


def call_cpacked(*args, span=None):
    """A call of a C function with the packed interface: name, then arguments."""
    return Call("int32", "tir.tvm_call_cpacked", [_pack(a) for a in args], span)


def call_packed_lowered(*args, span=None):
    return Call("int32", "tir.tvm_call_packed_lowered", [_pack(a) for a in args], span)


def call_cpacked_lowered(*args, span=None):
    return Call("int32", "tir.tvm_call_cpacked_lowered", [_pack(a) for a in args], span)


def call_extern(dtype, func_name, *args, span=None):
    """A call of a C function by name."""
    return Call(dtype, "tir.call_extern", [StringImm(func_name), *map(convert, args)], span)


def call_pure_extern(dtype, func_name, *args, span=None):
    """A call of a C function without effects by name."""
    return Call(dtype, "tir.call_pure_extern", [StringImm(func_name), *map(convert, args)], span)


def _llvm_intrinsic(dtype, op, name, args, span):
    from tvm.target import codegen

    number = codegen.llvm_lookup_intrinsic_id(name) if isinstance(name, str) else name
    if number == 0:
        raise ValueError(f"{op}: expected the name of an LLVM intrinsic, got '{name}'")
    return call_intrin(dtype, "tir." + op, const(number, "uint32"), *args, span=span)


def call_llvm_intrin(dtype, name, *args, span=None):
    """A call of an LLVM intrinsic, "llvm.x86...."."""
    return _llvm_intrinsic(dtype, "call_llvm_intrin", name, args, span)


def call_llvm_pure_intrin(dtype, name, *args, span=None):
    """A call of an LLVM intrinsic without effects."""
    return _llvm_intrinsic(dtype, "call_llvm_pure_intrin", name, args, span)


def call_tir(global_var, *args):
    """A call of a function of the module."""
    if not isinstance(global_var, GlobalVar):
        raise TypeError(f"call_tir: expected a GlobalVar, got {type(global_var).__name__}")
    return Call("void", global_var, [_pack(a) for a in args])


# ---- intrinsics whose signature is all there is to say ------------------------------------------
def _signature(name):
    """(type of the result, parameters) as src/expr/signature.cc has them, or None."""
    text = Op.get("tir." + name).get_attr("TSignature") if "tir." + name in _names() else None
    return None if text is None else str(text).split(": ", 1)


@functools.cache
def _names():
    return frozenset(map(str, Op.list_op_names()))


def _make_intrinsic(name):
    """The Python function of a row: its parameters are the arguments of the call."""
    dtype, params = _signature(name)
    params = [p.strip() for p in params.split(",") if p.strip()]
    names = [p.split("=")[0] for p in params]
    source = dtype[1:] if dtype[:1] == "=" else None
    if source == "dtype":
        names.remove("dtype")
    if source != "dtype":
        given = "" if dtype == "void" else dtype
        dtype = f"convert({source}).dtype" if source else repr(given)
    else:
        dtype = source
    signature = ", ".join([*params, "span=None"])
    doc = Op.get("tir." + name).description
    given = ", ".join(names)
    if params and params[-1].endswith("=None"):  # left out unless it is given
        given = ", ".join(names[:-1]) + f", *(() if {names[-1]} is None else ({names[-1]},))"
    body = f"return call_intrin({dtype}, 'tir.{name}', {given + ', ' if given else ''}span=span)"
    env = {"call_intrin": call_intrin, "convert": convert}
    exec(f"def {name}({signature}): {body}", env)  # the text comes from that table alone
    fn = env[name]
    fn.__doc__, fn.__module__ = doc, __name__
    return fn


# ---- functions with rules of their own ---------------------------------------------------------
def ret(val=None, span=None):
    """Returns from the function."""
    if val is None:
        return Call("void", "tir.ret", [], span)
    val = convert(val)
    return Call(val.dtype, "tir.ret", [val], span)


def assume(cond=None):
    """States a condition that holds here."""
    return call_intrin("bool", "tir.assume", cond)


def type_annotation(dtype):
    """A type as an argument of a call."""
    return Call(dtype, "tir.type_annotation", [])


def address_of(obj, span=None):
    """The address of a buffer or of one of its elements."""
    from .buffer import Buffer

    if isinstance(obj, Buffer):
        obj = _derived("BufferLoad")(obj, [0] * len(obj.shape))
    if type(obj).__name__ != "BufferLoad":
        raise TypeError(
            f"address_of: expected a Buffer or an element of one, got {type(obj).__name__}"
        )
    return call_intrin("handle", "tir.address_of", obj, span=span)


def trace(args, trace_action="tvm.default_trace_action"):
    """Calls a registered function with the values and gives the last one on."""
    if not isinstance(args, (list, tuple)):
        raise TypeError(f"trace: expected a list of values, got {type(args).__name__}")
    values = [_pack(a) for a in args]
    return Call(values[-1].dtype, "tir.tvm_call_trace_packed", [StringImm(trace_action), *values])


def _fold(op, args, span):
    if not args:
        raise ValueError("expected at least one condition, got none")
    result = convert(args[0])
    for value in args[1:]:
        result = op(result, value, span)
    return result


def any(*args, span=None):
    """Whether one of the conditions holds."""
    return _fold(_op.logical_or, args, span)


def all(*args, span=None):
    """Whether all conditions hold."""
    return _fold(_op.logical_and, args, span)


def div(a, b, span=None):
    """a / b; integers round towards zero."""
    return _op.div(a, b, span)


def logaddexp(a, b, span=None):
    """log(exp(a) + exp(b)) without overflow."""
    a, b = convert(a), convert(b)
    larger, smaller = _op.max(a, b, span), _op.min(a, b, span)
    # Two infinities of one sign have no difference.
    same = _op.equal(larger, smaller, None)
    grown = larger + _derived("log1p")(_derived("exp")(smaller - larger))
    doubled = larger + const(0.6931471805599453, larger.dtype)
    return _derived("Select")(same, doubled, grown)


def get_vscale_expr(dtype, min_size=128):
    """The number of elements of a scalable vector whose minimum is `min_size` bits."""
    bits = tvm_ffi.dtype(dtype).bits
    return _make("vscale")() * (min_size // bits)


def comm_reducer(fcombine, fidentity, name="reduce"):
    """A reducer: `fcombine(x, y)` of values or tuples, `fidentity(dtype)` its neutral element."""

    def make(expr, axis, where=None, init=None):
        is_tuple = isinstance(expr, (tuple, list, Array))
        values = [convert(e) for e in expr] if is_tuple else [convert(expr)]
        lhs = [Var(f"x{i}" if is_tuple else "x", v.dtype) for i, v in enumerate(values)]
        rhs = [Var(f"y{i}" if is_tuple else "y", v.dtype) for i, v in enumerate(values)]
        result = fcombine(lhs, rhs) if is_tuple else fcombine(lhs[0], rhs[0])
        identity = fidentity(*(v.dtype for v in values))
        result = [convert(r) for r in (result if isinstance(result, (tuple, list)) else [result])]
        identity = [
            convert(i) for i in (identity if isinstance(identity, (tuple, list)) else [identity])
        ]
        combiner = CommReducer(lhs, rhs, result, identity)
        axis = list(axis) if isinstance(axis, (list, tuple, Array)) else [axis]
        for a in axis:
            if not isinstance(a, IterVar):
                raise TypeError(
                    f"{name}: expected axes made by te.reduce_axis, got {type(a).__name__}"
                )
        condition = convert(True if where is None else where)
        if init is not None:
            init = [convert(i) for i in (init if isinstance(init, (tuple, list)) else [init])]
        outputs = [Reduce(combiner, values, axis, condition, i, init) for i in range(len(values))]
        return tuple(outputs) if is_tuple else outputs[0]

    def reducer(expr, axis, where=None, init=None, *args):
        if axis is None or isinstance(axis, (IterVar, list, tuple, Array)):
            if args:
                raise TypeError(f"{name}: expected (expr, axis, where, init), got more arguments")
            return make(expr, axis, where, init)
        # max(a, b, c): values instead of axes
        result = fcombine(expr, axis)
        for value in (v for v in (where, init, *args) if v is not None):
            result = fcombine(result, value)
        return result

    reducer.__name__ = reducer.__qualname__ = name
    reducer.__doc__ = f"{name}(expr, axis, where=None, init=None): reduces over axes."
    return reducer


sum = comm_reducer(lambda x, y: x + y, lambda t: const(0, t), name="sum")
min = comm_reducer(lambda x, y: _op.min(x, y, None), lambda t: _derived("max_value")(t), name="min")
max = comm_reducer(lambda x, y: _op.max(x, y, None), lambda t: _derived("min_value")(t), name="max")


def _make(name):
    value = globals()[name] = _make_intrinsic(name)
    return value


def __getattr__(name):
    # What infers its type is a registered function.
    registered = tvm_ffi.get_global_func("tir." + name, allow_missing=True)
    return _make(name) if registered is None and _signature(name) else _derived(name)


__all__ = [
    name
    for name, value in list(globals().items())
    if name[0] != "_" and inspect.isfunction(value) and name not in ("fill", "convert")
]
