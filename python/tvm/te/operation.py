# SPDX-License-Identifier: Apache-2.0
"""Building tensor expressions."""

import inspect

import tvm_ffi

from tvm import tir
from tvm.ir import Array, Range
from tvm.tir import IterVar, Var, convert

from . import _location, _truth
from .tag import TagScope
from .tensor import ComputeOp, ExternOp, Tensor, TensorSlice, _op

__all__ = [
    "AXIS_SEPARATOR",
    "compute",
    "const",
    "create_prim_func",
    "extern",
    "extern_primfunc",
    "placeholder",
    "reduce_axis",
    "scan",
    "size_var",
    "thread_axis",
    "var",
]

AXIS_SEPARATOR = tir.IndexMap.AXIS_SEPARATOR


def _shape(what, shape):
    """A shape from a tuple, a list or a single extent."""
    if shape is None or isinstance(shape, str):
        raise TypeError(f"{what}: expected a shape such as (n, m), got {shape!r}")
    shape = list(shape) if isinstance(shape, (tuple, list, Array, tvm_ffi.Shape)) else [shape]
    for i, extent in enumerate(shape):
        if isinstance(extent, bool) or not (
            isinstance(extent, tir.PrimExpr) or hasattr(type(extent), "__index__")
        ):
            raise TypeError(
                f"{what}: expected integers or expressions as shape, got {type(extent).__name__} "
                f"{extent!r} in dimension {i}"
            )
        if not isinstance(extent, tir.PrimExpr):
            shape[i] = int(extent)
    return shape


@_location.located
def placeholder(shape, dtype=None, name="placeholder"):
    """An input tensor: its elements come with the call of what is compiled.

    A = te.placeholder((n, 64), name="A")

    Parameters
    ----------
    shape : integers or expressions such as te.size_var("n"); a single extent stands for one.
    dtype : the name of a type; "float32" if None.
    """
    return _op.placeholder(_shape(name, shape), "float32" if dtype is None else dtype, name)


# ---- compute ----------------------------------------------------------------------------------
def _axis_names(fcompute, ndim, name, varargs_names):
    """The names of the function's parameters: one per axis, `*i` stands for all further ones."""
    if not callable(fcompute):
        got = type(fcompute).__name__
        raise TypeError(f"{name}: expected a function of the indices, got {got}")
    kinds = inspect.Parameter
    try:
        parameters = inspect.signature(fcompute).parameters.values()
    except ValueError:  # a builtin without a signature: it takes what it takes
        return [f"i{i}" for i in range(ndim)]
    positional = (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    fixed = [p for p in parameters if p.kind in positional]
    rest = [p.name for p in parameters if p.kind == kinds.VAR_POSITIONAL]
    required = [p for p in fixed if p.default is kinds.empty]
    names = [p.name for p in fixed[: max(ndim, len(required))]]
    if rest:
        further = ndim - len(names)
        if varargs_names is None:
            names += [f"{rest[0]}{i}" for i in range(further)]
        elif len(varargs_names) == further:
            names += varargs_names
        else:
            raise ValueError(
                f"{name}: expected {further} varargs_names for the axes of *{rest[0]}, "
                f"got {len(varargs_names)}"
            )
    if len(names) != ndim:
        example = ", ".join((names + [f"i{i}" for i in range(len(names), ndim)])[:ndim])
        raise ValueError(
            f"{name}: expected a function of {ndim} {'index' if ndim == 1 else 'indices'}, one per "
            f"dimension of the shape, got one of {len(names)}; write `lambda {example}: ...`"
            + ("" if rest else " or `lambda *i: ...`")
        )
    return names


def _value(name, value):
    """What the user's function gave, as an expression."""
    if isinstance(value, Tensor):
        if value.ndim == 0:
            return value()
        raise TypeError(
            f"{name}: expected the value of one element, got the tensor {value.name}; "
            f"write {value.name}[{', '.join('ijkl'[: value.ndim])}]"
        )
    if value is None:
        raise TypeError(
            f"{name}: expected the value of one element, got None; does the function return it?"
        )
    try:
        return convert(value.asobject() if isinstance(value, TensorSlice) else value)
    except TypeError:
        raise TypeError(
            f"{name}: expected an expression as the value of one element, "
            f"got {type(value).__name__}; "
            "read an input through te.placeholder and pass the data when you run the function"
        ) from None


def _check_free_reduce_axes(name, body, axis, fcompute):
    """A reduction axis in sight of the function, used where nothing reduces over it."""
    free = _op.free_vars(body, axis)
    if not free:
        return
    scope = inspect.getclosurevars(fcompute) if inspect.isfunction(fcompute) else None
    known = [*scope.nonlocals.values(), *scope.globals.values()] if scope else []
    known += [v for values in known if isinstance(values, (list, tuple)) for v in values]
    for v in (v for v in known if isinstance(v, IterVar)):
        if v.iter_type == IterVar.CommReduce and any(v.var.same_as(f) for f in free):
            k = v.var.name
            raise ValueError(
                f"{name}: expected the reduction axis {k} inside a reduction over it, "
                f"got it outside; write te.sum(..., axis={k}), te.max(..., axis={k}) or the like"
            )


@_location.located
def compute(shape, fcompute, name="compute", tag="", attrs=None, varargs_names=None):
    """The tensor whose elements `fcompute(i, j, ...)` gives.

    B = te.compute((n, 64), lambda i, j: te.exp(A[i, j]) + 1, name="B")

    Parameters
    ----------
    shape : integers or expressions, one for each index.
    fcompute : a function of the indices that returns an expression: one of te.exp, te.if_then_else
        and their kin, not of math or numpy. With a list it gives several tensors.
    tag, attrs : a word and a dictionary that the operation keeps, for schedules.
    varargs_names : names of the indices that `*args` of `fcompute` stands for.
    """
    scope = TagScope.get_current()
    if scope is not None:
        if tag:
            raise ValueError(
                f"{name}: expected no tag inside tag_scope('{scope.tag}'), got '{tag}'"
            )
        tag = scope.tag
    shape = _shape(name, shape)
    try:
        names = _axis_names(fcompute, len(shape), name, varargs_names)
        axis = [IterVar(Range(e), n, 0) for n, e in zip(names, shape, strict=True)]
        with _truth.inside(axis):
            result = fcompute(*(iv.var for iv in axis))
        several = isinstance(result, (tuple, list, Array))
        body = [_value(name, v) for v in (result if several else [result])]
        op = ComputeOp(name, tag, attrs or {}, axis, body)
        _check_free_reduce_axes(name, body, axis, fcompute)
    except Exception as error:
        _location.add(error, _location.of_error(error) or _location.of_function(fcompute))
        raise
    outputs = _op.outputs(op)
    return tuple(outputs) if several and len(outputs) > 1 else outputs[0]


# ---- other operations ---------------------------------------------------------------------------
def _list(value):
    return list(value) if isinstance(value, (tuple, list, Array)) else [value]


@_location.located
def scan(init, update, state_placeholder, inputs=None, name="scan", tag="", attrs=None):
    """A recurrence along the first axis: `init` gives the first elements of the state, `update`
    each further one from those before, which it reads through `state_placeholder`.

    m, n = te.var("m"), te.var("n")
    X = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n))
    init = te.compute((1, n), lambda _, i: X[0, i])
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i])
    cumulative = te.scan(init, update, state, inputs=[X])
    """
    scope = TagScope.get_current()
    tag = scope.tag if scope is not None else tag
    init, update, state, inputs = map(_list, (init, update, state_placeholder, inputs or []))
    outputs = _op.scan(init, update, state, inputs, name, tag, attrs or {})
    return outputs[0] if len(outputs) == 1 else list(outputs)


@_location.located
def extern(
    shape,
    inputs,
    fcompute,
    name="extern",
    dtype=None,
    in_buffers=None,
    out_buffers=None,
    tag="",
    attrs=None,
):
    """Tensors that a statement fills: `fcompute(ins, outs)` gives it for the buffers of inputs and
    outputs, as a statement or as a call.

    te.extern((n,), [A], lambda ins, outs: tvm.tir.call_packed("my.sort", ins[0], outs[0]))
    """
    scope = TagScope.get_current()
    tag = scope.tag if scope is not None else tag
    inputs = _list(inputs)
    for i, t in enumerate(inputs):
        if not isinstance(t, Tensor):
            got = type(t).__name__
            raise TypeError(f"{name}: expected tensors as inputs, got {got} as number {i}")
    sequence = (tuple, list, Array)
    several = isinstance(shape, sequence) and len(shape) > 0 and isinstance(shape[0], sequence)
    shapes = [_shape(name, s) for s in (shape if several else [shape])]
    if in_buffers is None:
        in_buffers = [tir.decl_buffer(t.shape, t.dtype, t.op.name) for t in inputs]
    if out_buffers is None:
        if dtype is None:
            types = {str(t.dtype) for t in inputs}
            if len(types) != 1:
                raise ValueError(
                    f"{name}: expected dtype, as the inputs have no common one, got {sorted(types)}"
                )
            dtype = types.pop()
        dtypes = _list(dtype) if isinstance(dtype, (tuple, list)) else [dtype] * len(shapes)
        if len(dtypes) != len(shapes):
            raise ValueError(
                f"{name}: expected one dtype per output ({len(shapes)}), got {len(dtypes)}"
            )
        out_buffers = [tir.decl_buffer(s, t, name) for s, t in zip(shapes, dtypes, strict=True)]
    in_buffers, out_buffers = _list(in_buffers), _list(out_buffers)
    body = fcompute(in_buffers, out_buffers)
    if isinstance(body, tir.PrimExpr):
        body = tir.Evaluate(body)
    if not isinstance(body, tir.Stmt):
        got = type(body).__name__
        raise TypeError(f"{name}: expected the function to give a statement or a call, got {got}")
    outputs = _op.outputs(ExternOp(name, tag, attrs or {}, inputs, in_buffers, out_buffers, body))
    return outputs[0] if len(outputs) == 1 else list(outputs)


@_location.located
def extern_primfunc(input_tensors, primfunc, **kwargs):
    """The tensors that a PrimFunc writes, its other buffers being the given tensors in order."""
    inputs = _list(input_tensors)
    ins, outs, body = _op.split_primfunc(inputs, primfunc)
    shapes = [list(b.shape) for b in outs]
    return extern(
        shapes, inputs, lambda _ins, _outs: body, in_buffers=ins, out_buffers=outs, **kwargs
    )


# ---- variables and functions ---------------------------------------------------------------------
def var(name="tindex", dtype="int32", span=None):
    """A variable."""
    return Var(name, dtype, span)


def size_var(name="size", dtype="int32", span=None):
    """A variable that is not negative: the size of a dimension."""
    return tir.SizeVar(name, dtype, span)


def const(value, dtype="int32", span=None):
    """A constant."""
    return tir.const(value, dtype, span)


@_location.located
def thread_axis(dom=None, tag="", name="", span=None):
    """An iterator over threads: `te.thread_axis((0, 128), "threadIdx.x")`, or the tag alone."""
    if isinstance(dom, str):
        dom, tag = None, dom
    if not tag:
        raise ValueError("thread_axis: expected a tag such as 'threadIdx.x', got none")
    return IterVar(dom, name or tag, IterVar.ThreadIndex, tag, span)


@_location.located
def reduce_axis(dom, name="rv", thread_tag="", span=None):
    """An axis to sum over, or to reduce in another way: `dom` is (begin, end), end excluded.

    k = te.reduce_axis((0, 64), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    """
    return IterVar(dom, name, IterVar.CommReduce, thread_tag, span)


@_location.located
def create_prim_func(ops, index_dtype_override=None):
    """The PrimFunc that computes tensors, to be scheduled or compiled.

    `ops` lists its parameters in their order: placeholders, results and scalar variables. Tensors
    between them that are not listed become memory of the function. `index_dtype_override` is the
    type of loops and indices, "int64" for instance.
    """
    ops = _list(ops)
    for i, op in enumerate(ops):
        if not isinstance(op, (Tensor, Var)):
            got = type(op).__name__
            raise TypeError(
                f"create_prim_func: expected tensors and variables, got {got} as number {i}"
            )
    return _op.create_prim_func(ops, index_dtype_override)
