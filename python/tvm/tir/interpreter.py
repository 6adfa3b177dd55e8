# SPDX-License-Identifier: Apache-2.0
"""The interpreter: runs TIR on NumPy arrays, slowly and by the definition of each node.

It shares no code with folding, lowering or code generation, so that it can say which of them is
wrong. A scalar is a Python number (see _scalar), a vector a tuple of them, a handle a Pointer.
Memory that nobody wrote holds a pattern that is NaN or -1; every access is checked.
"""

import builtins
import itertools
import math
import re
from functools import reduce

import numpy as np

from tvm import error as tvm_error
from tvm.ir import GlobalVar, IRModule

from ._calls import Calls
from ._memory import (
    NULL,
    Bound,
    Break,
    Continue,
    Memory,
    Pointer,
    Return,
    as_array,
    as_value,
    lane,
    lanes_of,
    raise_error,
    to_numpy,
)
from ._scalar import BINARY, LANE_WISE, type_of
from ._threads import Launches, launched, warp_size
from ._warpgroups import TensorMaps, Warpgroups
from ._warps import WARP, Warps
from .expr import IterVar, Var
from .function import PrimFunc


class Interpreter(TensorMaps, Calls, Launches, Warps, Warpgroups):
    """Runs functions of a module; `values` holds what variables stand for now."""

    def __init__(self, module, threads="forward", vscale=1, seed=0):
        self.module, self.threads, self.vscale, self.seed = module, threads, vscale, seed
        self.values = {}
        self.shapes = {}  # of fragments
        self.realized = {}

    # ---- functions ------------------------------------------------------------------------------
    def call(self, func, args):
        if len(args) != len(func.params):
            raise TypeError(f"interpret: expected {len(func.params)} arguments, got {len(args)}")
        saved, self.values = self.values, {}
        outer, self.warp_size = self.warp_size, warp_size(func)
        try:
            waiting = []
            for param, arg in zip(func.params, args, strict=True):
                buffer = func.buffer_map.get(param, None)
                if buffer is None:
                    self.values[param] = self.argument(param, arg)
                else:
                    waiting.append((buffer, self.bind_data(buffer, arg)))
            for buffer, array in waiting:  # first what defines variables, then what uses them
                self.bind_extents(buffer, array)
            for buffer, array in waiting:
                self.check_extents(buffer, array)
            self.run(func.body)
        except Return as result:
            return result.args[0]
        finally:
            self.values, self.warp_size = saved, outer
        return None

    def argument(self, param, arg):
        t = type_of(param.dtype)
        if not t.is_handle:
            return t.bring(arg.item() if isinstance(arg, np.generic) else arg)
        if arg is None:
            return NULL
        return arg if isinstance(arg, Pointer) else Pointer(Memory.of_array(as_array(arg)))

    def bind_data(self, buffer, arg):
        if isinstance(arg, Pointer):  # a call of another function: nothing more is known
            self.values[buffer.data] = arg
            return None
        array = as_array(arg)
        t = type_of(buffer.dtype)
        if array.dtype != t.numpy:
            raise TypeError(
                f"interpret: expected {buffer.name} of type {t.name}, got {array.dtype}"
            )
        if array.ndim != len(buffer.shape):
            raise ValueError(
                f"interpret: expected {buffer.name} of rank {len(buffer.shape)}, got {array.ndim}"
            )
        self.values[buffer.data] = Pointer(Memory.of_array(array))
        return array

    def bind_extents(self, buffer, array):
        pairs = [(buffer.elem_offset, 0)]
        if array is not None:
            pairs += zip(buffer.shape, array.shape, strict=True)
            pairs += zip(buffer.strides, (s // array.itemsize for s in array.strides), strict=False)
        for expr, value in pairs:
            if isinstance(expr, Var) and expr not in self.values:
                self.values[expr] = value

    def check_extents(self, buffer, array):
        if array is None:
            return
        shape = tuple(self.eval(e) for e in buffer.shape)
        if shape != array.shape:
            raise ValueError(
                f"interpret: expected {buffer.name} of shape {shape}, got {array.shape}"
            )
        strides = tuple(s // array.itemsize for s in array.strides)
        expected = self.strides(buffer)
        used = array.size > 0  # NumPy gives an empty array other strides
        if used and any(n > 1 and a != b for n, a, b in zip(shape, strides, expected, strict=True)):
            raise ValueError(
                f"interpret: expected {buffer.name} with strides {expected}, got {strides}"
            )

    # ---- memory ---------------------------------------------------------------------------------
    def strides(self, buffer):
        if len(buffer.strides):
            return tuple(self.eval(e) for e in buffer.strides)
        shape = [self.eval(e) for e in buffer.shape]
        return tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))

    def element(self, buffer, indices):
        """The pointer to one element, its index checked."""
        if buffer in self.realized:
            pointer, bounds = self.realized[buffer]
            lows, shape = zip(*bounds, strict=True) if bounds else ((), ())
            indices = [i - low for i, low in zip(indices, lows, strict=True)]
            strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
            offset = 0
        else:
            if buffer.data not in self.values:
                raise ValueError(f"interpret: expected {buffer.name} to be defined before its use")
            pointer, shape = self.values[buffer.data], [self.eval(e) for e in buffer.shape]
            strides, offset = self.strides(buffer), self.eval(buffer.elem_offset)
        for axis, (index, extent) in enumerate(zip(indices, shape, strict=True)):
            if not 0 <= index < extent:
                raise IndexError(
                    f"{buffer.name}: expected index {axis} in [0, {extent}), got {index}"
                )
        t = type_of(buffer.dtype)
        offset += sum(i * s for i, s in zip(indices, strides, strict=True))
        return pointer + offset * t.bytes * t.lanes

    def elements(self, node):
        """Pointers to the elements a load or store touches; none where its predicate is false."""
        indices = [self.eval(i) for i in node.indices]
        count = max((len(lanes_of(i)) for i in indices), default=1)
        mask = lanes_of(self.eval(node.predicate)) if node.predicate is not None else (1,) * count
        for i in range(count):
            active = lane(mask, i) if len(mask) > 1 else mask[0]
            yield self.element(node.buffer, [lane(k, i) for k in indices]) if active else None

    def read(self, pointer, t, what):
        """The lanes of one element."""
        raw = pointer.view(t.bytes * t.lanes, what)
        convert = (lambda v: float(v)) if t.is_float else (lambda v: int(v))
        return tuple(convert(v) for v in np.frombuffer(raw.tobytes(), t.numpy))

    def write(self, pointer, t, lanes, what):
        data = np.array([to_numpy(v, t) for v in lanes], t.numpy)
        pointer.view(t.bytes * t.lanes, what)[:] = np.frombuffer(data.tobytes(), np.uint8)

    # ---- statements -----------------------------------------------------------------------------
    def run(self, stmt):
        self.method("run_", stmt)(stmt)

    def method(self, prefix, node):
        found = getattr(self, prefix + type(node).__name__, None)
        if found is None:
            raise NotImplementedError(
                f"interpret: expected a program of statements and buffers, got a "
                f"{type(node).__name__} node"
            )
        return found

    def bound_all(self, values):
        """A scope where variables stand for values."""
        return Bound(self.values, values)

    def bound(self, var, value):
        return self.bound_all({var: value})

    def run_SeqStmt(self, s):
        for i, child in enumerate(s.seq):
            self.step(i)
            with self.nested():
                self.run(child)

    def run_Evaluate(self, s):
        self.eval(s.value)

    def run_LetStmt(self, s):
        with self.bound(s.var, self.eval(s.value)):
            self.run(s.body)

    def run_AssertStmt(self, s):
        if not self.eval(s.condition):
            message = str(self.eval(s.message))
            kind = re.match(r"(\w+): ", message)
            known = kind and (hasattr(builtins, kind[1]) or hasattr(tvm_error, kind[1]))
            raise_error(
                kind[1] if known else "RuntimeError", message[kind.end() :] if known else message
            )
        self.run(s.body)

    def run_IfThenElse(self, s):
        if self.eval(s.condition):
            self.run(s.then_case)
        elif s.else_case is not None:
            self.run(s.else_case)

    def run_For(self, s):
        if launched(s):
            return self.launch(s)
        step = 1 if s.step is None else self.eval(s.step)
        start, extent = self.eval(s.min), self.eval(s.extent)
        for i in range(start, start + extent, step):
            values = {s.loop_var: i}
            if s.thread_binding is not None:  # a virtual thread
                values[s.thread_binding.var] = i
            self.step(i)
            with self.bound_all(values), self.nested():
                try:
                    self.run(s.body)
                except Continue:
                    continue
                except Break:
                    break

    def run_While(self, s):
        for i in itertools.count():
            if not self.eval(s.condition):
                break
            self.step(i)
            try:
                with self.nested():
                    self.run(s.body)
            except Continue:
                continue
            except Break:
                break

    def run_BufferStore(self, s):
        t = type_of(s.buffer.dtype)
        value = lanes_of(self.eval(s.value))
        for i, pointer in enumerate(list(self.elements(s))):
            if pointer is not None:
                lanes = (
                    value[i * t.lanes : (i + 1) * t.lanes] if len(value) > 1 else value * t.lanes
                )
                self.write(pointer, t, lanes, s.buffer.name)

    def store(self, buffer, indices, value):
        t = type_of(buffer.dtype)
        self.write(self.element(buffer, indices), t, lanes_of(value), buffer.name)

    def allocate(self, dtype, shape, data=None):
        """Memory that `data` will point to; that of a block, or of a warp, as its scope says."""
        t = type_of(dtype)

        def make():
            return Pointer(Memory.fresh(math.prod(shape) * t.bytes * t.lanes))

        scope = getattr(getattr(data, "type_annotation", None), "storage_scope", "")
        if self.worker is not None and scope.startswith("shared"):
            return self.worker.shared(data, make)
        if self.worker is not None and scope == "warp":
            return self.worker.shared((data, self.warp()), make)
        if self.worker is not None and scope.startswith("wmma."):
            return self.worker.shared((data, self.worker.number // WARP), make)
        return make()

    def run_Allocate(self, s):
        size = [self.eval(e) for e in s.extents]
        pointer = self.allocate(s.dtype, size, s.buffer_var) if self.eval(s.condition) else NULL
        with self.bound(s.buffer_var, pointer):
            self.run(s.body)

    def run_AllocateConst(self, s):
        if s.data is None:
            data = self.module.attrs["constants"][s.irmod_storage_idx]
        else:
            data = s.data
        with self.bound(s.buffer_var, Pointer(Memory.of_array(as_array(data).copy()))):
            self.run(s.body)

    def run_DeclBuffer(self, s):
        self.run(s.body)

    def run_BufferRealize(self, s):
        bounds = [(self.eval(r.min), self.eval(r.extent)) for r in s.bounds]
        pointer = self.allocate(s.buffer.dtype, [extent for _, extent in bounds])
        with Bound(self.realized, {s.buffer: (pointer, bounds)}):
            self.run(s.body)

    def run_AttrStmt(self, s):
        if launched(s):
            return self.launch(s)
        if s.attr_key == "virtual_thread" and isinstance(s.node, IterVar):
            for i in range(self.eval(s.value)):
                with self.bound(s.node.var, i):
                    self.run(s.body)
            return None
        if s.attr_key == "reduce_scope":
            self.reducer = s.node
        self.run(s.body)

    def run_BlockRealize(self, s):
        if not self.eval(s.predicate):
            return
        values = [self.eval(v) for v in s.iter_values]
        block = s.block
        for iter_var, value in zip(block.iter_vars, values, strict=True):
            low, extent = self.eval(iter_var.dom.min), self.eval(iter_var.dom.extent)
            if not low <= value < low + extent:
                raise IndexError(
                    f"block {block.name_hint}: expected {iter_var.var.name} in "
                    f"[{low}, {low + extent}), got {value}"
                )
        with Bound(
            self.values, {v.var: value for v, value in zip(block.iter_vars, values, strict=True)}
        ):
            self.run(block)

    def run_Block(self, s):
        fresh = {}
        for b in s.alloc_buffers:
            size = self.eval(b.shape[0]) * self.strides(b)[0] if len(b.shape) else 1
            fresh[b.data] = self.allocate(b.dtype, [size], b.data)
        with Bound(self.values, fresh):
            with Bound(self.values, reduce(dict.__or__, map(self.view, s.match_buffers), {})):
                starts = (
                    self.values[v.var] == self.eval(v.dom.min)
                    for v in s.iter_vars
                    if v.iter_type == IterVar.CommReduce
                )
                if s.init is not None and all(starts):
                    self.run(s.init)
                self.run(s.body)

    def view(self, match):
        """What a match_buffer binds: data, offset, shape and strides of a part of its source."""
        source, target = match.source.buffer, match.buffer
        strides = self.strides(source)
        lows = [self.eval(r.min) for r in match.source.region]
        extents = [self.eval(r.extent) for r in match.source.region]
        offset = self.eval(source.elem_offset) + sum(
            i * s for i, s in zip(lows, strides, strict=True)
        )
        dropped = len(extents) - len(target.shape)
        found = list(zip(target.shape, extents[dropped:], strict=True)) + list(
            zip(target.strides, strides[dropped:], strict=False)
        )
        bound = {e: v for e, v in found if isinstance(e, Var) and e not in self.values}
        pointer, t = self.values[source.data], type_of(source.dtype)
        if isinstance(target.elem_offset, Var) and target.elem_offset not in self.values:
            return {**bound, target.data: pointer, target.elem_offset: offset}
        shift = offset - self.eval(target.elem_offset)
        return {**bound, target.data: pointer + shift * t.bytes * t.lanes}

    # ---- expressions ----------------------------------------------------------------------------
    def eval(self, e):
        name = type(e).__name__
        if name in BINARY:
            return self.lane_wise(BINARY[name], e.dtype, [e.a, e.b])
        return self.method("eval_", e)(e)

    def lane_wise(self, function, dtype, args):
        t, operand = type_of(dtype), type_of(args[0].dtype)
        values = [self.eval(a) for a in args]
        return as_value(
            [t.bring(function(*(lane(v, i) for v in values), operand)) for i in range(t.lanes)]
        )

    def eval_Var(self, e):
        if e not in self.values:
            raise ValueError(f"interpret: expected variable {e.name} to be defined, got none")
        return self.values[e]

    eval_SizeVar = eval_Var

    def eval_IntImm(self, e):
        return type_of(e.dtype).bring(int(e.value))

    def eval_FloatImm(self, e):
        return float(e.value)

    def eval_StringImm(self, e):
        return str(e.value)

    def eval_And(self, e):
        return self.logic(e, all)

    def eval_Or(self, e):
        return self.logic(e, any)

    def logic(self, e, combine):
        """As in C, the second operand counts only where the first one does not decide."""
        a = self.eval(e.a)
        if not isinstance(a, tuple):
            decided = bool(a) == (combine is any)
            return a if decided else self.eval(e.b)
        return tuple(int(combine(pair)) for pair in zip(a, self.eval(e.b), strict=True))

    def eval_Not(self, e):
        return as_value([int(not v) for v in lanes_of(self.eval(e.a))])

    def eval_Select(self, e):
        # Both values may be evaluated, so that both must be valid: evaluate them.
        condition, a, b = (self.eval(x) for x in (e.condition, e.true_value, e.false_value))
        lanes = type_of(e.dtype).lanes
        return as_value([lane(a, i) if lane(condition, i) else lane(b, i) for i in range(lanes)])

    def eval_Cast(self, e):
        t = type_of(e.dtype)
        return as_value([t.bring(v) for v in lanes_of(self.eval(e.value))])

    def eval_Let(self, e):
        with self.bound(e.var, self.eval(e.value)):
            return self.eval(e.body)

    def eval_Ramp(self, e):
        t = type_of(e.dtype)
        base, stride = lanes_of(self.eval(e.base)), self.eval(e.stride)
        count = t.lanes // len(base)
        strides = lanes_of(stride) * (len(base) if not isinstance(stride, tuple) else 1)
        return as_value(
            [t.bring(b + s * i) for i in range(count) for b, s in zip(base, strides, strict=True)]
        )

    def eval_Broadcast(self, e):
        value = lanes_of(self.eval(e.value))
        return as_value(value * (type_of(e.dtype).lanes // len(value)))

    def eval_Shuffle(self, e):
        lanes = [v for vector in e.vectors for v in lanes_of(self.eval(vector))]
        return as_value([lanes[self.eval(i)] for i in e.indices])

    def eval_BufferLoad(self, e):
        t = type_of(e.buffer.dtype)
        lanes = []
        for pointer in self.elements(e):
            zero = (0.0 if t.is_float else 0,) * t.lanes  # what lanes without a predicate hold
            lanes += zero if pointer is None else self.read(pointer, t, e.buffer.name)
        return as_value(lanes)

    def eval_Call(self, e):
        if isinstance(e.op, GlobalVar):
            return self.call(self.module[e.op], [self.eval(a) for a in e.args])
        name = e.op.name.removeprefix("tir.")
        if name in LANE_WISE:
            return self.lane_wise(LANE_WISE[name], e.dtype, e.args)
        method = getattr(self, "call_" + name, None)
        if method is None:
            raise NotImplementedError(
                f"interpret: expected an operator with a meaning here, got {name}"
            )
        if self.worker is None and any(hasattr(c, "call_" + name) for c in (Warps, Warpgroups)):
            raise ValueError(f"interpret: expected {name} inside of a launch of threads")
        return method(e)


def interpret(func_or_module, threads="forward", vscale=1, seed=0):
    """A Python function that runs a PrimFunc, or the only (or `main`) function of a module.

    Buffers are NumPy arrays or tensors of the CPU and are written in place; the result is what the
    function returns.

    threads says in which order the threads of a GPU block run: "forward" or "backward", each to the
    next barrier; "random", drawn from seed, with warps that fall behind others and copies that are
    done early or late; or "lockstep", all of them statement by statement, which is what a program
    means until ThreadSync inserts barriers. vscale is the factor of scalable vectors, which here
    are only counted with: extents may use it.
    """
    if threads not in ("forward", "backward", "random", "lockstep"):
        raise ValueError(
            "interpret: expected threads to be forward, backward, random or lockstep, got "
            f"'{threads}'"
        )
    if isinstance(func_or_module, PrimFunc):
        module, func = IRModule({"main": func_or_module}), func_or_module
    else:
        module = func_or_module
        functions = {v.name_hint: f for v, f in module.functions.items() if isinstance(f, PrimFunc)}
        func = functions.get("main")
        if func is None:
            if len(functions) != 1:
                raise ValueError(
                    f"interpret: expected a function main or a single one, got {sorted(functions)}"
                )
            (func,) = functions.values()
    return lambda *args: Interpreter(module, threads, vscale, seed).call(func, args)
