# SPDX-License-Identifier: Apache-2.0
"""The functions of the TIR builder that make statements, buffers and iterators."""

import builtins
import contextlib
import inspect
import threading
import typing

import tvm_ffi

from tvm import _derive, tir
from tvm.ir import PointerType, PrimType, Range
from tvm.ir.expr import _op
from tvm.ir.function import own_name
from tvm.tir import Buffer, BufferLoad, BufferRegion, IterVar, SizeVar, Var

from ..base import IRBuilder
from . import frame
from .frame import add, extent_of, range_of
from .types import as_type


def _innermost(kind, what):
    found = IRBuilder.current().find(kind)
    if found is None:
        place = {frame.PrimFuncFrame: "a function", frame.BlockFrame: "a block"}[kind]
        raise ValueError(f"{what}: expected to be inside {place}")
    return found


def as_expr(value):
    """The expression that a value stands for; a slice of a buffer is a vector load."""
    if isinstance(value, BufferRegion):
        return BufferLoad(value.buffer, vector_indices(value))
    if isinstance(value, typing.TypeVar):  # in a signature, where Python evaluates it first
        return Var(value.__name__, "int64")
    return value.asobject() if isinstance(value, tvm_ffi.core.ObjectConvertible) else value


def as_exprs(value):
    """The same for the items of a list, too."""
    if isinstance(value, (list, tuple)):
        return [as_exprs(v) for v in value]
    return as_expr(value)


def vector_indices(region):
    """The indices of the elements of a region, for loads and stores."""
    indices = []
    for i, dom in enumerate(region.region):
        extent = dom.extent
        try:
            lanes = int(extent.value) if isinstance(extent, tir.IntImm) else extent
            ramp = (
                tir.Ramp(dom.min, tir.const(1, dom.min.dtype), lanes)
                if not isinstance(lanes, int) or lanes != 1
                else None
            )
        except (TypeError, ValueError, RuntimeError):
            raise ValueError(
                f"{region.buffer.name}: expected a slice of constant length, or a multiple of "
                f"T.vscale(), in dimension {i}, got {extent}"
            ) from None
        indices.append(dom.min if ramp is None else ramp)
    return indices


def access(buffer, indices):
    """buffer[indices]: an element, or the region where an index is a slice."""
    indices = list(indices) if isinstance(indices, (list, tuple)) else [indices]
    if len(indices) != len(buffer.shape):
        raise ValueError(f"{buffer.name}: expected {len(buffer.shape)} indices, got {len(indices)}")
    indices = [i if isinstance(i, slice) else as_expr(i) for i in indices]
    if not any(isinstance(i, slice) for i in indices):
        return BufferLoad(buffer, indices)
    step = next((i.step for i in indices if isinstance(i, slice) and i.step not in (None, 1)), None)
    region = []
    for index, extent in zip(indices, buffer.shape, strict=True):
        if isinstance(index, slice):
            begin = tir.const(0, extent.dtype) if index.start is None else as_expr(index.start)
            end = extent if index.stop is None else as_expr(index.stop)
            region.append(Range.from_min_extent(begin, extent_of(begin, end)))
        else:
            index = tir.convert(index)
            region.append(Range.from_min_extent(index, tir.const(1, index.dtype)))
    if step is None:
        return BufferRegion(buffer, region)
    last = indices[-1]
    if not isinstance(last, slice) or last.step is not step:
        raise ValueError(f"{buffer.name}: expected a step only in the last index")
    lanes = (int(region[-1].extent) + int(step) - 1) // int(step)
    ramp = tir.Ramp(region[-1].min, tir.const(step, region[-1].min.dtype), lanes)
    return BufferLoad(buffer, [*indices[:-1], ramp])


# ---- buffers ------------------------------------------------------------------------------------
_BUFFER_TYPES = {"": 1, "default": 1, "auto": 2, "auto_broadcast": 2}


def _size(value):
    """A dimension; since 0.27 a text may name a variable that the body declares."""
    if isinstance(value, str):
        func = IRBuilder.current().find(frame.PrimFuncFrame) if IRBuilder.is_in_scope() else None
        if func is not None and value not in func.declared:
            func.declared[value] = Var(value, "int64")
        return Var(value, "int64") if func is None else func.declared[value]
    return as_expr(value) if isinstance(value, typing.TypeVar) else as_expr(tir.convert(value))


def buffer(
    shape,
    dtype="float32",
    data=None,
    strides=None,
    elem_offset=None,
    scope="global",
    align=0,
    offset_factor=0,
    buffer_type="",
    axis_separators=None,
):
    """A buffer that no statement declares."""
    shape = list(shape) if isinstance(shape, (list, tuple, tvm_ffi.Array)) else [shape]
    dtype = str(dtype)
    if buffer_type not in _BUFFER_TYPES:
        raise ValueError(
            f"Buffer: expected a buffer_type of {list(_BUFFER_TYPES)}, got '{buffer_type}'"
        )
    if data is None:
        data = Var("", PointerType(PrimType(dtype), scope))
    shape = [_size(e) for e in shape]
    if elem_offset is None and offset_factor not in (0, None):
        bits = builtins.max([32, *(tvm_ffi.dtype(e.dtype).bits for e in shape)])
        elem_offset = Var("elem_offset", f"int{bits}")
    return _make_buffer(
        data, dtype, shape, [_stride(s) for s in strides or []], elem_offset,
        builtins.max(align or 0, 0), offset_factor or 0, _BUFFER_TYPES[buffer_type],
        [int(a) for a in axis_separators or []],
    )  # fmt: skip


def _stride(value):
    """A stride; a text is a new variable of that name."""
    return Var(value, "int32") if isinstance(value, str) else as_expr(value)


_make_buffer = tvm_ffi.get_global_func("script._buffer")


buffer_decl = buffer


def _like_buffer(*first):
    """Gives a function that hands its arguments on the signature of `buffer`, after `first`."""

    def decorate(function):
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        params = [inspect.Parameter(name, kind) for name in first]
        params += inspect.signature(buffer).parameters.values()
        function.__signature__ = inspect.Signature(params)
        return function

    return decorate


@_like_buffer("param")
def match_buffer(param, shape=None, dtype=None, *args, **kwargs):
    """The buffer that a handle parameter points to; in a block, a view of a region."""
    if isinstance(param, (BufferLoad, BufferRegion)):
        if isinstance(param, BufferLoad):
            doms = [Range.from_min_extent(i, tir.const(1, i.dtype)) for i in param.indices]
            param = BufferRegion(param.buffer, doms)
        shape = [dom.extent for dom in param.region] if shape is None else shape
        dtype = param.buffer.dtype if dtype is None else dtype
    elif shape is None:
        raise ValueError("match_buffer: expected a shape")
    made = buffer(shape, "float32" if dtype is None else dtype, *args, **kwargs)
    if isinstance(param, BufferRegion):
        _innermost(frame.BlockFrame, "match_buffer").match_buffers.append(
            tir.MatchBufferRegion(made, param)
        )
        return made
    func = _innermost(frame.PrimFuncFrame, "match_buffer")
    if not any(param.same_as(arg) for arg in func.args):
        raise ValueError(f"match_buffer: expected a parameter of the function, got {param}")
    if param in func.buffer_map:
        raise ValueError(f"match_buffer: expected one buffer per parameter, got two for {param}")
    func.buffer_map[param] = made
    return made


@_like_buffer()
def alloc_buffer(*args, **kwargs):
    """A buffer that the block, or the root block of the function, allocates."""
    made = buffer(*args, **kwargs)
    block = IRBuilder.current().find((frame.BlockFrame, frame.PrimFuncFrame))
    if block is None:
        raise ValueError("alloc_buffer: expected to be inside a function or a block")
    is_block = isinstance(block, frame.BlockFrame)
    (block.alloc_buffers if is_block else block.root_alloc_buffers).append(made)
    return made


@_like_buffer()
def decl_buffer(shape, dtype="float32", data=None, *args, **kwargs):
    """A view of `data` for the statements that follow; without data it is allocated, too."""
    made = buffer(shape, dtype, data, *args, **kwargs)

    def make(body):
        stmt = tir.DeclBuffer(made, body)
        if data is None:
            stmt = tir.Allocate(made.data, made.dtype, made.shape, tir.const(True, "bool"), stmt)
        return stmt

    return frame.DeclBufferFrame(make, made)


# ---- functions ----------------------------------------------------------------------------------
def prim_func(is_private=False, root_block=True):
    """The frame of a function."""
    return frame.PrimFuncFrame(is_private, root_block)


def arg(name, obj):
    """A parameter."""
    return _innermost(frame.PrimFuncFrame, "arg").add_param(name, obj)


def func_name(name):
    func = _innermost(frame.PrimFuncFrame, "func_name")
    if func.name is not None:
        raise ValueError(f"func_name: expected one name, got {func.name} and {name}")
    func.name = name


def func_attr(attrs):
    """Attributes of the function."""
    func = _innermost(frame.PrimFuncFrame, "func_attr")
    if func.attrs is not None:
        raise ValueError("func_attr: expected once in a function, got twice")
    func.attrs = {own_name(key): value for key, value in attrs.items()}


def func_ret(ret_type):
    func = _innermost(frame.PrimFuncFrame, "func_ret")
    func.ret_type = as_type(ret_type)
    return func.ret_type


# ---- blocks -------------------------------------------------------------------------------------
_suffix = threading.local()


@contextlib.contextmanager
def block_name_suffix_context(block_suffix):
    """Blocks made inside get `block_suffix` after their name."""
    outer = getattr(_suffix, "value", "")
    _suffix.value = outer + block_suffix
    try:
        yield
    finally:
        _suffix.value = outer


def block(name="", no_realize=False):
    """The frame of a block; see old_block for one with its iterators in a list."""
    if isinstance(name, (list, tuple)) and name:
        from .old_block import OldBlockFrame

        return OldBlockFrame(name, no_realize if isinstance(no_realize, str) else "")
    if isinstance(name, (list, tuple)):
        name, no_realize = no_realize or "", False
    return frame.BlockFrame(name + getattr(_suffix, "value", ""), no_realize)


def init():
    """The frame of the statement that starts a reduction."""
    return frame.BlockInitFrame()


def _set_once(field, value, what):
    owner = _innermost(frame.BlockFrame, what)
    if getattr(owner, field) is not None:
        raise ValueError(f"{what}: expected once in a block, got twice")
    setattr(owner, field, value)


def where(predicate):
    """The block runs where `predicate` holds."""
    _set_once("predicate", _condition(predicate), "where")


def _regions(slices, what):
    regions = []
    for item in slices:
        if isinstance(item, (list, tuple)):
            regions += _regions(item, what)
        elif isinstance(item, BufferRegion):
            regions.append(item)
        elif isinstance(item, BufferLoad):
            doms = [_index_range(i) for i in item.indices]
            regions.append(BufferRegion(item.buffer, doms))
        elif isinstance(item, Buffer):
            regions.append(BufferRegion(item, [range_of(e) for e in item.shape]))
        else:
            raise TypeError(f"{what}: expected parts of buffers, got {type(item).__name__}")
    return regions


def _index_range(index):
    if isinstance(index, tir.Ramp):
        return Range.from_min_extent(index.base, index.lanes)
    return Range.from_min_extent(index, tir.const(1, index.dtype))


def reads(*buffer_slices):
    """The parts of buffers that the block reads."""
    _set_once("reads", _regions(buffer_slices, "reads"), "reads")


def writes(*buffer_slices):
    """The parts of buffers that the block writes."""
    _set_once("writes", _regions(buffer_slices, "writes"), "writes")


def block_attr(attrs):
    """Annotations of the block."""
    owner = _innermost(frame.BlockFrame, "block_attr")
    owner.annotations = _merged(owner.annotations or {}, attrs)


def _merged(known, more):
    """Both attributes; dictionaries in them become one, anything else is said once."""
    result = dict(known)
    for key, value in more.items():
        if key in known and isinstance(known[key], dict) and isinstance(value, dict):
            result[key] = _merged(known[key], value)
        elif key in known and not tvm_ffi.structural_equal(known[key], value):
            raise ValueError(
                f"block_attr: expected one value of '{key}', got {known[key]} and {value}"
            )
        else:
            result[key] = value
    return result


def _axis(kind):
    def make(dom, binding, dtype="int32"):
        dom = range_of(dom)
        if dtype != "int32":  # the default: as the extent
            cast = lambda value: _op.cast(dtype, value, None)
            dom = Range.from_min_extent(cast(dom.min), cast(dom.extent))
            binding = None if binding is None else cast(as_expr(binding))
        return axis.iter(IterVar(dom, Var("", dom.extent.dtype), kind), binding)

    return make


class axis:
    """Iterators of blocks."""

    spatial = S = staticmethod(_axis(IterVar.DataPar))
    reduce = R = staticmethod(_axis(IterVar.CommReduce))
    scan = staticmethod(_axis(IterVar.Ordered))
    opaque = staticmethod(_axis(IterVar.Opaque))

    @staticmethod
    def iter(iter_var, binding):
        """An iterator of any kind, bound to a value."""
        owner = _innermost(frame.BlockFrame, "axis")
        if owner.stmts:
            raise ValueError("axis: expected before the statements of the block")
        owner.iter_vars.append(iter_var)
        if not owner.no_realize:
            if binding is None:
                raise ValueError("axis: expected a value for the iterator")
            value = tir.convert(as_expr(binding))
            if str(value.dtype)[:3] not in ("int", "uin"):
                raise TypeError(f"axis: expected an integer, got {value} of {value.dtype}")
            if isinstance(value, tir.IntImm) and value.dtype != iter_var.var.dtype:
                value = tir.const(int(value), iter_var.var.dtype)
            owner.iter_values.append(value)
        return iter_var.var

    @staticmethod
    def remap(kinds, bindings, dtype="int32"):
        """Iterators over the same ranges as loops: "SR" with [i, j]."""
        bindings = list(bindings) if isinstance(bindings, (list, tuple)) else [bindings]
        if len(kinds) != len(bindings):
            raise ValueError(
                f"axis.remap: expected {len(kinds)} loop variables, got {len(bindings)}"
            )
        result = []
        for kind, binding in zip(kinds, bindings, strict=True):
            if kind not in "SR":
                raise ValueError(f"axis.remap: expected 'S' or 'R', got '{kind}'")
            make = axis.spatial if kind == "S" else axis.reduce
            result.append(make(_loop_range(binding), binding, dtype))
        return result[0] if len(result) == 1 else result


def _loop_range(var):
    for loop in reversed(IRBuilder.current().frames):
        if isinstance(loop, frame.ForFrame):
            for v, dom in zip(loop.vars, loop.doms, strict=True):
                if v.same_as(var):
                    return dom
    raise ValueError(f"axis.remap: expected the variable of a loop around the block, got {var}")


# ---- loops --------------------------------------------------------------------------------------
def _loop(kind):
    def make(start, stop=None, *, annotations=None, step=None):
        return _for(kind, start, stop, annotations, step)

    return make


def _for(kind, start, stop=None, annotations=None, step=None, thread=None):
    if stop is None:
        stop = tir.convert(as_expr(start))
        start = tir.const(0, stop.dtype)
    start, stop = tir.convert(as_expr(start)), tir.convert(as_expr(stop))
    extent = extent_of(start, stop)
    start = start if start.dtype == extent.dtype else _op.cast(extent.dtype, start, None)
    var = Var("", extent.dtype)
    if isinstance(thread, str):
        thread = IterVar(None, Var("", extent.dtype), IterVar.ThreadIndex, thread)

    def make(vars, doms, body):
        return tir.For(
            vars[0], doms[0].min, doms[0].extent, kind, body, thread, annotations or {}, step
        )

    return frame.ForFrame([var], [Range.from_min_extent(start, extent)], make, annotations)


serial = _loop(tir.ForKind.SERIAL)
parallel = _loop(tir.ForKind.PARALLEL)
vectorized = _loop(tir.ForKind.VECTORIZED)
unroll = _loop(tir.ForKind.UNROLLED)


def thread_binding(start, stop=None, thread=None, *, annotations=None, step=None):
    """A loop whose iterations the threads of a GPU run."""
    if thread is None:
        if isinstance(stop, str):
            stop, thread = None, stop
        else:
            raise ValueError('thread_binding: expected a thread such as "threadIdx.x"')
    return _for(tir.ForKind.THREAD_BINDING, start, stop, annotations, step, thread)


def grid(*extents):
    """Nested serial loops from 0."""
    if not extents:
        raise ValueError("grid: expected at least one extent")
    doms = [range_of(as_expr(e)) for e in extents]

    def make(vars, doms, body):
        for var, dom in reversed(list(zip(vars, doms, strict=True))):
            body = tir.For(var, dom.min, dom.extent, tir.ForKind.SERIAL, body)
        return body

    return frame.ForFrame([Var("", dom.extent.dtype) for dom in doms], doms, make)


# ---- other statements ---------------------------------------------------------------------------
def _condition(value):
    """A condition; an integer holds where it is not 0."""
    if isinstance(value, (bool, int)):
        return tir.const(bool(value), "bool")
    value = as_expr(value)
    is_integer = isinstance(value, tir.PrimExpr) and value.dtype.startswith(("int", "uint"))
    return _op.cast("bool", value, None) if is_integer else value


def Assert(condition, message):
    condition = _condition(condition)
    return frame.AssertFrame(lambda body: tir.AssertStmt(condition, message, body))


def LetStmt(value, type_annotation=None, *, var=None):
    """A variable with a value for the statements that follow."""
    value = tir.convert(as_expr(value))
    if var is None:
        var = Var(
            "", as_type(type_annotation) if type_annotation is not None else PrimType(value.dtype)
        )
    if isinstance(value, (tir.IntImm, tir.FloatImm)) and value.dtype != var.dtype:
        value = tir.const(value, var.dtype)
    return frame.LetFrame(lambda body: tir.LetStmt(var, value, body), var)


def Let(expr, where):
    """`expr` with variables standing for values."""
    expr = tir.convert(as_expr(expr))
    for var, value in reversed(list(where.items())):
        expr = tir.Let(var, as_expr(value), expr)
    return expr


def let(v, value, body=None):
    return LetStmt(value, var=v) if body is None else tir.Let(v, as_expr(value), body)


def realize(buffer_slice, storage_scope, condition=True):
    region = _regions([buffer_slice], "realize")[0]
    condition = _condition(condition)

    def realized(body):
        body = tir.BufferRealize(region.buffer, region.region, condition, body)
        if storage_scope in ("", region.buffer.scope()):
            return body
        return tir.AttrStmt(region.buffer, "realize_scope", tir.StringImm(storage_scope), body)

    return frame.RealizeFrame(realized)


def allocate(
    extents, dtype, scope="global", condition=None, annotations=None, type_annotation=None
):
    """Memory for the statements that follow."""
    dtype = str(dtype)
    var = Var(
        "", PointerType(PrimType(dtype), scope) if type_annotation is None else type_annotation
    )
    condition = _condition(True if condition is None else condition)
    extents = list(extents) if isinstance(extents, (list, tuple, tvm_ffi.Array)) else [extents]
    return frame.AllocateFrame(
        lambda body: tir.Allocate(var, dtype, extents, condition, body, annotations or {}), var
    )


def allocate_const(
    data,
    dtype,
    extents,
    annotations=None,
    *,
    bits=False,
    irmod_storage_idx=None,
    type_annotation=None,
):
    """Constant memory for the statements that follow; with `bits` the numbers are bit patterns."""
    dtype = str(dtype)
    if isinstance(data, (list, tuple)):
        import ml_dtypes  # noqa: F401  (its types get names in numpy)
        import numpy as np

        from tvm.runtime import tensor

        width = tvm_ffi.dtype(dtype).bits
        array = np.asarray(data, dtype=f"{'' if width == 64 else 'u'}int{width}" if bits else dtype)
        array = array.view(dtype) if bits else array
        data = tensor(array.reshape([int(e) for e in extents]))
    var = Var(
        "", PointerType(PrimType(dtype), "global") if type_annotation is None else type_annotation
    )
    content = irmod_storage_idx if data is None else data
    return frame.AllocateConstFrame(
        lambda body: tir.AllocateConst(var, dtype, extents, content, body, annotations or {}), var
    )


def attr(node, attr_key, value):
    """Says something about `node` for the statements that follow."""
    value = tir.StringImm(value) if isinstance(value, str) else tir.convert(as_expr(value))
    node = _derive.convert(node) if isinstance(node, (list, tuple, dict)) else node
    return frame.AttrFrame(lambda body: tir.AttrStmt(node, attr_key, value, body))


def While(condition):
    condition = _condition(condition)
    return frame.WhileFrame(lambda body: tir.While(condition, body))


def If(condition):
    return frame.IfFrame(_condition(condition))


def Then():
    return frame.ThenFrame()


def Else():
    return frame.ElseFrame()


def env_thread(thread_tag, dtype="int32"):
    """The index of a thread; T.launch_thread gives its extent."""
    return IterVar(None, Var("", str(dtype)), IterVar.ThreadIndex, thread_tag)


def launch_thread(thread, extent):
    """The statements that follow run in each of `extent` threads."""
    extent = tir.convert(as_expr(extent))
    if isinstance(thread, str):
        var, tag = Var("", extent.dtype), thread
    else:
        var, tag = thread.var, thread.thread_tag
        if isinstance(extent, tir.IntImm) and extent.dtype != var.dtype:
            extent = tir.const(int(extent), var.dtype)
    dom = Range.from_min_extent(tir.const(0, extent.dtype), extent)
    iter_var = IterVar(dom, var, IterVar.ThreadIndex, tag)
    return frame.LaunchThreadFrame(
        lambda body: tir.AttrStmt(iter_var, "thread_extent", extent, body), var
    )


def buffer_store(buffer, value, indices, predicate=None):
    """buffer[indices] = value"""
    target = access(buffer, indices)
    indices = vector_indices(target) if isinstance(target, BufferRegion) else target.indices
    value = tir.convert(as_expr(value))
    stored = BufferLoad(buffer, indices).dtype
    if value.dtype != stored:
        value = _converted(value, stored)
    add(tir.BufferStore(buffer, value, indices, predicate))


def _converted(value, dtype):
    """The value in the type of what it is stored to: cast, and a scalar in all lanes."""
    if isinstance(value, (tir.IntImm, tir.FloatImm)):
        return tir.const(value, dtype)
    own, wanted = tvm_ffi.dtype(value.dtype), tvm_ffi.dtype(dtype)
    if own.lanes == 1 and wanted.lanes > 1:
        element = str(wanted.with_lanes(1))
        value = value if value.dtype == element else _op.cast(element, value, None)
        return tir.Broadcast(value, wanted.lanes)
    # What cannot be cast, BufferStore refuses.
    return _op.cast(dtype, value, None) if own.lanes == wanted.lanes else value


def evaluate(value):
    """Evaluates an expression for its effect."""
    if isinstance(value, tir.Stmt):
        add(value)
    else:
        add(tir.Evaluate(tir.convert(as_expr(value))))


# ---- values -------------------------------------------------------------------------------------
def min(a, b, dtype=None):
    """The smaller one; it has the type of the operands, whatever `dtype` says."""
    return _op.min(as_expr(a), as_expr(b), None)


def max(a, b, dtype=None):
    """The larger one; it has the type of the operands, whatever `dtype` says."""
    return _op.max(as_expr(a), as_expr(b), None)


def cast(src, dtype, span=None):
    """The value in another type."""
    return _op.cast(str(dtype), as_expr(src), span)


def iter_var(v, dom, iter_type, thread_tag=""):
    """An iterator over a variable."""
    kind = getattr(IterVar, iter_type, None) if iter_type[:1].isupper() else None
    if kind is None:
        raise ValueError(f"iter_var: expected the name of a kind of iterator, got '{iter_type}'")
    return IterVar(None if dom is None else range_of(dom), v, kind, thread_tag)


def comm_reducer(combiner, identity):
    """A reducer from a function of two values and the identity elements."""
    identity = [tir.convert(as_expr(i)) for i in identity]
    n = len(identity)
    lhs = [Var(f"x{i}" if n > 1 else "x", e.dtype) for i, e in enumerate(identity)]
    rhs = [Var(f"y{i}" if n > 1 else "y", e.dtype) for i, e in enumerate(identity)]
    result = combiner(*lhs, *rhs)
    result = list(result) if isinstance(result, (list, tuple)) else [result]
    return tir.CommReducer(lhs, rhs, [tir.convert(as_expr(r)) for r in result], identity)


def index_map(mapping, *, inverse_index_map=None):
    """A map of indices."""
    return tir.IndexMap.from_func(mapping, inverse_index_map=inverse_index_map)


def target(target_config, host=None):
    """A target, from a string or a dict."""
    from tvm.target import Target

    return Target(target_config, host) if host is not None else Target(target_config)


def buffer_var(dtype, storage_scope="global"):
    return ptr(dtype, storage_scope)


def ptr(dtype, storage_scope="global", is_size_var=False):
    kind = SizeVar if is_size_var else Var
    return kind("", PointerType(PrimType(str(dtype)), storage_scope))


def var(dtype, name=""):
    return Var(name, str(dtype))


def call(dtype, op, args, span=None, annotations=None):
    op = getattr(op, "var", op)  # a function of the module
    return tir.Call(str(dtype), op, [as_expr(a) for a in args], span, annotations)


class meta_var:
    """Marks a value as Python's own: assigning it makes no variable of the program."""

    def __init__(self, value):
        self.value = value

    def __iter__(self):
        return (meta_var(v) for v in self.value)


def __getattr__(name):
    if name[:1] == "_":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from tvm.script.ir_builder import tir as package  # what it derives has this name as well

    return getattr(package, name)
