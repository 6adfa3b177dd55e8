# SPDX-License-Identifier: Apache-2.0
"""Groups of statements that single passes are about, which chance would hardly put together."""

from tvm import tir
from tvm.ir import Range
from tvm.tir import ForKind, IterVar, Var

from .changing import Changing
from .expressions import call, const
from .numbers import FLOATS, INTEGERS, Value

OBSERVE_TENSOR = "fuzz.observe_tensor"
CHANGE_TENSOR = "fuzz.change_tensor"
_ZERO = const(0, "int32")


class _Row:
    """Elements of a store of which only the last index varies."""

    def __init__(self, store, most):
        self.buffer, self.root, self.dtype = store.buffer, store.root, store.dtype
        self.size = min(most, store.shape[-1].high)
        self.fixed = [const(0, str(e.node.dtype)) for e in store.shape[:-1]]
        self.index_type = str(store.shape[-1].node.dtype)

    def place(self, j):
        j = j if str(j.dtype) == self.index_type else tir.Cast(self.index_type, j)
        return [*self.fixed, j]

    def __getitem__(self, j):
        return tir.BufferLoad(self.buffer, self.place(j))

    def store(self, value, j):
        return tir.BufferStore(self.buffer, value, self.place(j))


class Idioms(Changing):
    """Mixed into Statements."""

    def idiom(self, depth):
        kind = self.choose(
            double_buffer=3, rolling_buffer=2, padded=3, chain=2, tensor_call=2, virtual=2,
            opaque=2, pipeline=2, changing=6, indirect=4, shared=2,
        )  # fmt: skip
        made = getattr(self, "idiom_" + kind)()
        return self.store(depth) if made is None else made

    # ---- parts ----------------------------------------------------------------------------------
    def row(self, low, high, writable=True, dtypes=(*INTEGERS, *FLOATS)):
        """The first elements along the last axis of some store, or None."""
        found = [
            s
            for s in self.stores
            if (s.writable if writable else s.readable) and s.kind == "data" and s.shape
            and not s.pinned and s.shape[-1].high >= low and s.dtype in dtypes
            and s.root is not None
        ]  # fmt: skip
        return _Row(self.rng.choice(found), high) if found else None

    def memory(self, dtype, size, scope="global"):
        return self.scratch(dtype, [Value(const(size, "int32"), size, size)], "temp", scope)

    def each(self, size, make, kind=ForKind.SERIAL):
        """for j in range(size): make(j)"""
        j = Var(self.name("j"), "int32")
        self.loop_vars.append(j)
        with self.saved(vars=[*self.vars, Value(j, 0, size - 1)], may_leave=False):
            body = make(j)
        return tir.For(j, _ZERO, const(size, "int32"), kind, body)

    def number(self, dtype, depth=1):
        return self.integer(dtype, depth) if dtype in INTEGERS else self.stored(dtype, depth)

    def without(self, *roots):
        """A scope in which these memories are not read, and nothing is written."""
        return self.saved(
            stores=[
                s.copy(writable=False)
                for s in self.stores
                if s.root is not None and not any(s.root is r for r in roots)
            ],
            may_leave=False,
        )

    def tensor(self, buffer, offset, size):
        """Some elements of memory as an argument of a packed function."""
        shape = call("handle", "tvm_stack_make_shape", const(size, "int32"))
        strides = self.rng.choice(
            [_ZERO, call("handle", "tvm_stack_make_shape", const(1, "int32"))]
        )
        return call(
            "handle", "tvm_stack_make_array", buffer.data, shape, strides, const(1, "int32"),
            const(0, "int32"), const(offset, "int32"),
        )  # fmt: skip

    # ---- the groups -----------------------------------------------------------------------------
    def idiom_double_buffer(self):
        """A loop whose first part fills memory that the second uses."""
        target = self.row(1, 8)
        if target is None or self.steps > 4 or self.in_block:
            return None
        size, dtype = target.size, target.dtype
        memory, wrap = self.memory(dtype, size, self.rng.choice(["global", "local"]))
        low = self.rng.choice([0, 0, 2])
        times = self.extent("int32", 5)
        i = Var(self.name("i"), "int32")
        with self.saved(vars=[*self.vars, Value(i, low, low + times.high - 1)]):
            with self.without(target.root):
                fill = self.each(
                    size, lambda j: tir.BufferStore(memory.buffer, self.number(dtype), [j])
                )
            use = self.each(
                size,
                lambda j: target.store(tir.Max(memory.buffer[size - 1 - j], target[j]), j),
            )
        node = self.rng.choice([memory.buffer, memory.buffer.data])
        body = tir.SeqStmt(
            [tir.AttrStmt(node, "double_buffer_scope", const(1, "int32"), fill), use]
        )
        kind = ForKind.SERIAL
        if self.chance(0.3):
            return tir.For(i, const(low, "int32"), times.node, kind, wrap(body))
        return wrap(tir.For(i, const(low, "int32"), times.node, kind, body))

    def idiom_rolling_buffer(self):
        """A loop whose windows of some memory overlap."""
        target, source = self.row(1, 8), self.row(4, 16, writable=False)
        if target is None or source is None or self.steps > 4 or self.in_block:
            return None
        if source.root is target.root:
            return None
        step = self.rng.randint(1, 2)
        window = self.rng.randint(step + 1, min(source.size, 4))
        times = self.rng.randint(1, min((source.size - window) // step + 1, target.size))
        memory, wrap = self.memory(source.dtype, source.size)
        element = memory.buffer

        def fill(i, j):
            x = i * step + j
            store = tir.BufferStore(element, tir.Max(source[x], const(1, source.dtype)), [x])
            return tir.IfThenElse(x < source.size - 1, store) if self.chance(0.2) else store

        def use(i):
            x = i * step + self.rng.randint(0, window - 1)
            value = tir.Max(element[i * step], element[x])
            value = value if source.dtype == target.dtype else tir.Cast(target.dtype, value)
            return target.store(value, i)

        def iteration(i):
            node = self.rng.choice([element, element.data])
            first = self.each(window, lambda j: fill(i, j))
            mark = tir.AttrStmt(node, "rolling_buffer_scope", const(1, "int32"), first)
            return tir.SeqStmt([mark, use(i)])

        return wrap(self.each(times, iteration))

    def idiom_pipeline(self):
        """A loop of blocks whose iterations may overlap."""
        target = self.row(2, 8)
        if target is None or self.in_block or self.steps > 1:
            return None
        size, dtype = target.size, target.dtype
        memory = tir.decl_buffer((1,), dtype, self.name("stage"))
        second = tir.decl_buffer((1,), dtype, self.name("stage"))
        stages, order = self.rng.choice(
            [([0, 1, 1], [0, 1, 2]), ([0, 0, 1], [0, 1, 2]), ([0, 1, 2], [2, 1, 0]),
             ([0, 2, 2], [0, 1, 2]), ([0, 1, 3], [1, 2, 0])]
        )  # fmt: skip
        notes = {"software_pipeline_stage": stages, "software_pipeline_order": order}
        if self.chance(0.3):
            notes["software_pipeline_async_stages"] = [0]
        i = Var(self.name("i"), "int32")
        with self.without(target.root), self.saved(vars=[*self.vars, Value(i, 0, size - 1)]):
            first = self.number(dtype)
        blocks = [
            self.realize_block([], [], tir.const(True, "bool"), stmt)
            for stmt in (
                tir.BufferStore(memory, first, [_ZERO]),
                tir.BufferStore(second, tir.Max(memory[0], const(1, dtype)), [_ZERO]),
                target.store(second[0], i),
            )
        ]
        body = self.realize_block(
            [], [], tir.const(True, "bool"), tir.SeqStmt(blocks), alloc_buffers=[memory, second]
        )
        return tir.For(i, _ZERO, const(size, "int32"), ForKind.SERIAL, body, None, notes)

    def idiom_padded(self):
        """Memory whose end is known to hold 0, and choices that need not be made there."""
        target = self.row(2, 8)
        if target is None:
            return None
        size, dtype = target.size, target.dtype
        memory, wrap = self.memory(dtype, size)
        zero, end = const(0, dtype), const(self.rng.randint(1, size - 1), "int32")
        scale = self.rng.choice([lambda e: e, lambda e: tir.Max(e, zero), lambda e: e + e])
        if dtype not in INTEGERS:
            scale = self.rng.choice([lambda e: e, lambda e: tir.Max(e, zero)])

        def fill(j):
            with self.without(memory.root):
                value = call(dtype, "if_then_else", j < end, self.number(dtype), zero)
            return tir.BufferStore(memory.buffer, value, [j])

        def assume(j):
            holds = tir.Or(j < end, tir.EQ(memory.buffer[j], zero))
            return tir.Evaluate(call("bool", "assume", holds))

        def use(j):
            value, kind = scale(memory.buffer[j]), self.rng.randrange(4)
            if kind == 0:
                value = call(dtype, "if_then_else", j < end, value, zero)
            elif kind == 1:
                value = tir.Select(tir.GE(j, end), zero, value)
            else:
                return tir.IfThenElse(j < end, target.store(value, j), target.store(zero, j))
            return target.store(value, j)

        stmts = [self.each(size, fill), self.each(size, assume), self.each(size, use)]
        if self.chance(0.4):
            stmts.append(self.undefined_end(target, size, end, zero))
        return wrap(tir.SeqStmt(stmts))

    def undefined_end(self, target, size, end, zero):
        """A part that may hold anything until it is written."""
        undef = call(target.dtype, "undef")
        first = lambda j: tir.IfThenElse(
            j < end,
            target.store(tir.Max(target[j], zero), j),
            target.store(undef, j),
        )
        second = lambda j: tir.IfThenElse(tir.GE(j, end), target.store(zero, j))
        return tir.SeqStmt([self.each(size, first), self.each(size, second)])

    def idiom_chain(self):
        """Memories used one after the other, some of them element by element."""
        target = self.row(2, 8)
        if target is None:
            return None
        size, dtype = target.size, target.dtype
        source, wraps, stmts = target, [], []
        for _ in range(self.rng.randint(2, 4)):
            memory, wrap = self.memory(dtype, size)
            place = self.rng.choice([lambda j: j, lambda j: size - 1 - j])
            memory = _Row(memory, size)
            stmts.append(self.each(size, _copy(memory, source, place)))
            wraps.append(wrap)
            source = memory
        stmts.append(self.each(size, _copy(target, source, lambda j: j)))
        stmt = tir.SeqStmt(stmts)
        for wrap in reversed(wraps):
            stmt = wrap(stmt)
        return stmt

    def idiom_tensor_call(self):
        """A packed call of a part of some memory, and of values of other types."""
        source = self.row(1, 8, writable=False, dtypes=["int32"])
        if source is None or len(source.buffer.strides) or not self.sequential:
            return None
        if not isinstance(source.buffer.elem_offset, tir.IntImm):
            return None
        size = self.rng.randint(1, source.size)
        tensor = self.tensor(source.buffer, self.rng.randint(0, source.size - size), size)
        more = [self.index().node, tir.StringImm("text"), const(0.5, "float32"), self.condition(1)]
        more = self.rng.sample(more, self.rng.randint(0, len(more)))
        stmt = tir.Evaluate(
            call("int32", "tvm_call_packed", tir.StringImm(OBSERVE_TENSOR), tensor, *more)
        )
        for key in self.rng.choice([[], ["device_id"], ["device_type", "device_id"]]):
            value = const(1 if key == "device_type" else 0, "int32")
            stmt = tir.AttrStmt(_ZERO, key, value, stmt)
        return stmt

    def idiom_virtual(self):
        """Virtual threads with memory, names and branches of their own."""
        target = self.row(2, 8)
        if target is None or self.in_block:
            return None
        size, dtype = target.size, target.dtype
        memory, wrap = self.memory(dtype, 2, "local")
        v, x, i = (Var(self.name(n), "int32") for n in "vxi")
        with self.without(target.root), self.saved(vars=[*self.vars, Value(v, 0, size - 1)]):
            values = [self.number(dtype) for _ in range(2)]
            other = self.condition(1)
        own, zero = memory.buffer, const(0, dtype)
        stmts = [tir.BufferStore(own, value, [const(k, "int32")]) for k, value in enumerate(values)]
        store = target.store(tir.Max(own[x - v], zero), v)
        stmts.append(
            self.rng.choice([
                lambda: store,
                lambda: tir.IfThenElse(v < 1, store, target.store(own[1], v)),
                lambda: tir.IfThenElse(other, store),
                lambda: tir.For(i, _ZERO, v % 2 + 1, ForKind.SERIAL, store),
                lambda: tir.AssertStmt(
                    v < size, tir.StringImm("ValueError: expected less"), store
                ),
                lambda: _counted(own, x - v, v, store, dtype),
            ])()
        )  # fmt: skip
        body = tir.LetStmt(x, v + 1 if self.chance(0.5) else v, wrap(tir.SeqStmt(stmts)))
        thread = IterVar(Range(0, size), v, IterVar.ThreadIndex, "vthread")
        return tir.AttrStmt(thread, "virtual_thread", const(size, "int32"), body)

    def idiom_opaque(self):
        """Memory that a function changes in some of the virtual threads, or iterations: nothing
        else says that it is not the same in all of them, nor that it is another one afterwards."""
        target = self.row(2, 8, dtypes=["int32"])
        if target is None or self.in_block or not self.sequential or self.steps > 4:
            return None
        size = target.size
        memory, wrap = self.memory("int32", 2)
        own, v = memory.buffer, Var(self.name("v"), "int32")
        with self.without(target.root):
            values = [self.integer("int32", 1) for _ in range(2)]
        change = tir.Evaluate(
            call("int32", "tvm_call_packed", tir.StringImm(CHANGE_TENSOR), self.tensor(own, 0, 2))
        )
        limit = const(self.rng.randint(1, size), "int32")
        for _ in range(self.rng.choice([0, 1, 1, 2])):
            change = self.rng.choice([
                lambda: tir.IfThenElse(v < limit, change),  # noqa: B023
                lambda: tir.IfThenElse(tir.GE(v, limit), tir.Evaluate(0), change),  # noqa: B023
                lambda: tir.For(
                    Var(self.name("i"), "int32"), _ZERO, v % 2 + 1, ForKind.SERIAL, change,  # noqa: B023
                ),
            ])()  # fmt: skip
        stmts = [
            *(tir.BufferStore(own, x, [const(k, "int32")]) for k, x in enumerate(values)),
            *([target.store(own[1], v)] if self.chance(0.3) else []),
            change,
            target.store(tir.Max(own[0], target[v]) if self.chance(0.3) else own[0], v),
        ]
        body = wrap(tir.SeqStmt(stmts))
        if self.chance(0.4):
            return tir.For(v, _ZERO, const(size, "int32"), ForKind.SERIAL, body)
        thread = IterVar(Range(0, size), v, IterVar.ThreadIndex, "vthread")
        return tir.AttrStmt(thread, "virtual_thread", const(size, "int32"), body)


def _copy(to, source, place):
    return lambda j: to.store(source[place(j)], j)


def _counted(own, place, v, store, dtype):
    """A while loop that ends after one round, if it begins."""
    one = tir.BufferStore(own, const(1, dtype), [place])
    loop = tir.While(tir.NE(own[place], const(1, dtype)), one)
    return tir.SeqStmt([loop, store])
