# SPDX-License-Identifier: Apache-2.0
"""Runs graphs by the definition of each node, on NumPy arrays.

A tensor is an array, a tuple a tuple, a shape a Shape, a scalar a Python number, a function a
Closure. PrimFuncs run in TIR's interpreter. Memory that a program allocates is filled with a
pattern, and again when it is freed, so that what reads it too early or too late is noticed.
"""

import operator
from dataclasses import dataclass, field

import numpy as np
import tvm_ffi

import tvm
from tvm import ir, relax, tir
from tvm.tir.interpreter import interpret

from .numpy_operators import OPERATORS


class Shape(tuple):
    """The value of a shape."""


class Mismatch(Exception):
    """A value that is not what the program says it is."""


@dataclass
class Frame:
    """What variables stand for: values by Id, and sizes by symbolic variable."""

    values: dict = field(default_factory=dict)
    sizes: dict = field(default_factory=dict)

    def inner(self):
        return Frame(dict(self.values), dict(self.sizes))


@dataclass
class Closure:
    func: relax.Function
    frame: Frame


@dataclass
class Bound:
    """A function of the module whose last parameters are given."""

    callee: Closure
    captured: list


_BINARY = {
    tir.Add: operator.add,
    tir.Sub: operator.sub,
    tir.Mul: operator.mul,
    tir.Div: operator.truediv,
    tir.FloorDiv: operator.floordiv,
    tir.FloorMod: operator.mod,
    tir.Min: min,
    tir.Max: max,
    tir.EQ: operator.eq,
    tir.NE: operator.ne,
    tir.LT: operator.lt,
    tir.LE: operator.le,
    tir.GT: operator.gt,
    tir.GE: operator.ge,
    tir.And: lambda a, b: a and b,
    tir.Or: lambda a, b: a or b,
}
_MEMORY = 0xA5


def scalar_value(e, sizes):
    """The value of a scalar expression."""
    if isinstance(e, (tir.IntImm, tir.FloatImm)):
        return bool(e.value) if str(e.dtype) == "bool" else e.value
    if isinstance(e, tir.Var):
        if e not in sizes:
            raise Mismatch(f"the symbolic variable {e.name} has no value")
        return sizes[e]
    if type(e) in _BINARY:
        return _BINARY[type(e)](scalar_value(e.a, sizes), scalar_value(e.b, sizes))
    if isinstance(e, tir.Cast):
        return np.dtype(str(e.dtype)).type(scalar_value(e.value, sizes)).item()
    if isinstance(e, tir.Not):
        return not scalar_value(e.a, sizes)
    if isinstance(e, tir.Select):
        return scalar_value(
            e.true_value if scalar_value(e.condition, sizes) else e.false_value, sizes
        )
    raise NotImplementedError(f"evaluate: scalar {type(e).__name__}")


class Evaluator:
    def __init__(self, mod):
        self.mod = mod

    def run(self, name, args):
        return self.apply(Closure(self.mod[name], Frame()), args)

    # ---- functions ------------------------------------------------------------------------------
    def apply(self, callee, args):
        func, frame = callee.func, callee.frame.inner()
        if len(func.params) != len(args):
            raise Mismatch(f"expected {len(func.params)} arguments, got {len(args)}")
        infos = [p.struct_info for p in func.params]
        self.match(infos, args, frame)
        for param, arg in zip(func.params, args, strict=True):
            frame.values[param.vid] = arg
        result = self.sequence(func.body, frame)
        self.match([func.ret_struct_info], [result], frame.inner())
        return result

    def sequence(self, seq, frame):
        for block in seq.blocks:
            for binding in block.bindings:
                self.bind(binding, frame)
        return self.eval(seq.body, frame)

    def bind(self, binding, frame):
        value = self.eval(binding.value, frame)
        if isinstance(value, Closure):  # it may call itself
            value.frame.values[binding.var.vid] = value
        if isinstance(binding, relax.MatchCast):
            self.match([binding.struct_info], [value], frame)
        # What was inferred must hold, too; it defines nothing.
        self.match([binding.var.struct_info], [value], frame, define=False)
        frame.values[binding.var.vid] = value

    # ---- struct info ----------------------------------------------------------------------------
    def match(self, infos, values, frame, define=True):
        """Binds the symbolic variables that stand alone, then checks all."""
        pairs = []
        for info, value in zip(infos, values, strict=True):
            self._dims(info, value, pairs, frame)
        if define:
            for dim, size in pairs:
                if isinstance(dim, tir.Var) and dim not in frame.sizes:
                    frame.sizes[dim] = size
        for dim, size in pairs:
            if scalar_value(dim, frame.sizes) != size:
                raise Mismatch(f"expected {dim} to be {scalar_value(dim, frame.sizes)}, got {size}")

    def _dims(self, info, value, pairs, frame):
        def expect(fits):
            if not fits:
                raise Mismatch(f"expected {info}, got {_text(value)}")

        def add(dims, sizes):
            expect(len(dims) == len(sizes))
            pairs.extend(zip(dims, map(int, sizes), strict=True))

        if isinstance(info, relax.TensorStructInfo):
            expect(isinstance(value, np.ndarray))
            expect(info.ndim in (-1, value.ndim))
            expect(str(info.dtype) in ("", "void", str(value.dtype)))
            if isinstance(info.shape, relax.ShapeExpr):
                add(info.shape.values, value.shape)
            elif isinstance(info.shape, relax.Var):
                expect(tuple(frame.values[info.shape.vid]) == value.shape)
        elif isinstance(info, relax.ShapeStructInfo):
            expect(isinstance(value, Shape) and info.ndim in (-1, len(value)))
            if info.values is not None:
                add(info.values, value)
        elif isinstance(info, relax.PrimStructInfo):
            expect(isinstance(value, (bool, int, float)))
            if info.value is not None:
                pairs.append((info.value, value))
        elif isinstance(info, relax.TupleStructInfo):
            if not info.fields and value is None:  # what packed functions return for nothing
                return
            expect(isinstance(value, tuple) and not isinstance(value, Shape))
            expect(len(value) == len(info.fields))
            for part, item in zip(info.fields, value, strict=True):
                self._dims(part, item, pairs, frame)
        elif isinstance(info, relax.FuncStructInfo):
            expect(isinstance(value, (Closure, Bound, relax.ExternFunc, tir.PrimFunc)))

    # ---- expressions ----------------------------------------------------------------------------
    def eval(self, e, frame):
        return getattr(self, "eval_" + type(e).__name__)(e, frame)

    def eval_Var(self, e, frame):
        return frame.values[e.vid]

    eval_DataflowVar = eval_Var

    def eval_Constant(self, e, frame):
        return e.data.numpy()

    def eval_Tuple(self, e, frame):
        return tuple(self.eval(f, frame) for f in e.fields)

    def eval_TupleGetItem(self, e, frame):
        return self.eval(e.tuple_value, frame)[e.index]

    def eval_ShapeExpr(self, e, frame):
        return Shape(scalar_value(v, frame.sizes) for v in e.values)

    def eval_PrimValue(self, e, frame):
        return scalar_value(e.value, frame.sizes)

    def eval_StringImm(self, e, frame):
        return str(e.value)

    def eval_DataTypeImm(self, e, frame):
        return str(e.value)

    def eval_Function(self, e, frame):
        return Closure(e, frame.inner())

    def eval_ExternFunc(self, e, frame):
        return e

    def eval_GlobalVar(self, e, frame):
        func = self.mod[e]
        return Closure(func, Frame()) if isinstance(func, relax.Function) else func

    def eval_SeqExpr(self, e, frame):
        return self.sequence(e, frame.inner())

    def eval_If(self, e, frame):
        condition = self.eval(e.cond, frame)
        return self.sequence(e.true_branch if condition else e.false_branch, frame.inner())

    def eval_Call(self, e, frame):
        if isinstance(e.op, ir.Op):
            method = getattr(self, "op_" + e.op.name.removeprefix("relax.").replace(".", "_"), None)
            if method is not None:
                return method(e, frame)
            if e.op.name not in OPERATORS:
                raise NotImplementedError(f"evaluate: operator {e.op.name}")
            args = [self.eval(a, frame) for a in e.args]
            with np.errstate(all="ignore"):
                result = OPERATORS[e.op.name](args, e.attrs)
            if e.op.name in _GIVE_SHAPES:
                return Shape(result)
            return np.asarray(result) if isinstance(result, np.generic) else result
        callee = self.eval(e.op, frame)
        args = [self.eval(a, frame) for a in e.args]
        if isinstance(callee, Closure):
            return self.apply(callee, args)
        if isinstance(callee, Bound):
            return self.apply(callee.callee, args + callee.captured)
        if isinstance(callee, tir.PrimFunc):
            return interpret(callee)(*args)
        return self.packed(callee, args)

    # ---- calls of other functions ---------------------------------------------------------------
    def packed(self, callee, args):
        function = tvm_ffi.get_global_func(str(callee.global_symbol))
        return from_tvm(function(*map(to_tvm, args)))

    def outputs(self, e, frame):
        """Arrays for what a call_tir or its kin writes."""
        (info,) = e.sinfo_args
        infos = info.fields if isinstance(info, relax.TupleStructInfo) else [info]
        return [
            _memory([scalar_value(d, frame.sizes) for d in i.shape.values], str(i.dtype))
            for i in infos
        ]

    def result(self, e, outs):
        return tuple(outs) if isinstance(e.sinfo_args[0], relax.TupleStructInfo) else outs[0]

    def op_call_tir(self, e, frame):
        args = self.eval(e.args[1], frame)
        args = args if isinstance(args, tuple) and not isinstance(args, Shape) else (args,)
        outs = self.outputs(e, frame)
        extra = self.eval(e.args[2], frame) if len(e.args) > 2 else ()
        interpret(self.mod[e.args[0]])(*args, *outs, *extra)
        return self.result(e, outs)

    op_call_tir_with_grad = op_call_tir

    def op_call_tir_inplace(self, e, frame):
        args = list(self.eval(e.args[1], frame))
        outs, new = [], []
        fresh = self.outputs(e, frame)
        for out, index in zip(fresh, map(int, e.attrs.inplace_indices), strict=True):
            outs.append(out if index < 0 else args[index])
            if index < 0:
                new.append(out)
        extra = self.eval(e.args[2], frame) if len(e.args) > 2 else ()
        interpret(self.mod[e.args[0]])(*args, *new, *extra)
        return self.result(e, outs)

    def op_call_dps_packed(self, e, frame):
        outs = [tvm.runtime.tensor(o) for o in self.outputs(e, frame)]
        callee, args = self.eval(e.args[0], frame), self.eval(e.args[1], frame)
        args = args if isinstance(args, tuple) else (args,)
        tvm_ffi.get_global_func(str(callee.global_symbol))(*map(to_tvm, args), *outs)
        return self.result(e, [o.numpy() for o in outs])

    def op_call_pure_packed(self, e, frame):
        callee, *args = (self.eval(a, frame) for a in e.args)
        return self.packed(callee, args)

    def op_make_closure(self, e, frame):
        callee, captured = (self.eval(a, frame) for a in e.args)
        return Bound(callee, list(captured))

    def op_invoke_pure_closure(self, e, frame):
        callee, args = self.eval(e.args[0], frame), list(self.eval(e.args[1], frame))
        if isinstance(callee, Bound):
            return self.apply(callee.callee, args + callee.captured)
        return self.apply(callee, args)

    op_invoke_closure = op_invoke_pure_closure

    # ---- memory ---------------------------------------------------------------------------------
    def op_builtin_alloc_tensor(self, e, frame):
        return _memory(self.eval(e.args[0], frame), self.eval(e.args[1], frame))

    def op_memory_alloc_storage(self, e, frame):
        return np.full(self.eval(e.args[0], frame), _MEMORY, "uint8")

    def op_memory_alloc_tensor(self, e, frame):
        storage, offset, shape, dtype = (self.eval(a, frame) for a in e.args[:4])
        size = int(np.prod(shape, dtype="int64")) * np.dtype(dtype).itemsize
        if offset + size > storage.size:
            raise Mismatch(f"expected {offset + size} bytes of storage, got {storage.size}")
        return storage[offset : offset + size].view(dtype).reshape(shape)

    def op_memory_kill_storage(self, e, frame):
        self.eval(e.args[0], frame).fill(_MEMORY)
        return ()

    def op_memory_kill_tensor(self, e, frame):
        return ()


_GIVE_SHAPES = {"relax.shape_of", "relax.tensor_to_shape"}


def _memory(shape, dtype):
    """An array that nobody wrote yet."""
    size = int(np.prod(shape, dtype="int64")) * np.dtype(dtype).itemsize
    return np.full(size, _MEMORY, "uint8").view(dtype).reshape(shape)


def _text(value):
    return f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else repr(value)


def to_tvm(value):
    if isinstance(value, np.ndarray):
        return tvm.runtime.tensor(np.array(value, order="C"))
    if isinstance(value, Shape):
        return tvm_ffi.Shape(value)
    return tuple(map(to_tvm, value)) if isinstance(value, tuple) else value


def from_tvm(value):
    if hasattr(value, "numpy"):
        return value.numpy()
    if isinstance(value, tvm_ffi.Shape):
        return Shape(value)
    return tuple(map(from_tvm, value)) if isinstance(value, (tvm_ffi.Array, tuple)) else value
