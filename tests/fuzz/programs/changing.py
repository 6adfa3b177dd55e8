# SPDX-License-Identifier: Apache-2.0
"""Groups of statements about memory that changes while something is known of it: conditions on
elements that are written, bounds and indices read from memory, indices through lets and iterators
of blocks, other names for the same memory."""

from tvm import tir
from tvm.ir import Range
from tvm.tir import ForKind, IterVar, Var

from .expressions import call, const

_ZERO = const(0, "int32")
_TRUE = tir.const(True, "bool")
_COMPARE = [tir.LT, tir.LT, tir.LE, tir.GE, tir.GE, tir.GT, tir.EQ, tir.NE]


class Changing:
    """Mixed into Idioms: `row`, `memory`, `each` are theirs."""

    def idiom_changing(self):
        """Scalars in memory, asked for before and after they are written."""
        target = self.row(2, 8, dtypes=["int32", "int64"])
        if target is None or self.steps > 4:
            return None
        state, wrap = self.memory("int32", 3)
        made = _Changes(self, target, state.buffer)
        stmts = [tir.BufferStore(state.buffer, made.small(), [const(k, "int32")]) for k in range(3)]
        for _ in range(self.rng.randint(1, 3)):
            stmts.append(made.statement(2))
        stmts.append(target.store(tir.Cast(target.dtype, state.buffer[made.place()]), _ZERO))
        return wrap(tir.SeqStmt(stmts))

    def idiom_indirect(self):
        """Memory of a block, indexed through lets, through iterators and by what memory holds."""
        target = self.row(2, 8, dtypes=["int32"])
        if target is None or self.in_block or self.steps > 2:
            return None
        size = target.size
        own = tir.decl_buffer((size,), "int32", self.name("own"))
        at, wrap = self.memory("int32", 1)
        times = size * self.rng.randint(1, 2)
        t = Var(self.name("t"), "int32")
        number = self.rng.choice([lambda t: t, lambda t: t * 3 - 4, lambda t: tir.Min(t, 2)])
        index = self.rng.choice(
            [lambda t: t % size, lambda t: (t + 1) % size, lambda t: (times - 1 - t) % size]
        )

        def update(t, place):
            """Begins in the first rounds, and tells in the last ones; `place` makes the index."""
            first = tir.BufferStore(own, number(t), [place()])
            more = tir.BufferStore(own, own[place()] + t, [place()])
            told = target.store(own[place()], place())
            return tir.SeqStmt(
                [tir.IfThenElse(t < size, first), more, tir.IfThenElse(t >= times - size, told)]
            )

        def by_let():
            r = Var(self.name("r"), "int32")
            return tir.LetStmt(r, index(t), update(t, lambda: r))

        def by_expression():
            def place():  # a variable for each use
                x = Var(self.name("x"), "int32")
                return tir.Let(x, t, index(x))

            return update(t, place)

        def by_memory():
            moved = tir.BufferStore(at.buffer, (at.buffer[0] + 1) % size, [_ZERO])
            return tir.SeqStmt([update(t, lambda: at.buffer[0]), moved])

        def by_iterator():
            vt, v = Var(self.name("vt"), "int32"), Var(self.name("v"), "int32")
            iters = [
                IterVar(Range(0, times), vt, IterVar.Opaque),
                IterVar(Range(0, size), v, IterVar.Opaque),
            ]
            return self.realize_block(iters, [t, index(t)], _TRUE, update(vt, lambda: v))

        made = self.rng.choice([by_let, by_let, by_expression, by_memory, by_iterator])()
        loop = tir.For(t, _ZERO, const(times, "int32"), ForKind.SERIAL, made)
        block = self.realize_block([], [], _TRUE, loop, alloc_buffers=[own])
        return wrap(tir.SeqStmt([tir.BufferStore(at.buffer, _ZERO, [_ZERO]), block]))

    def idiom_shared(self):
        """Memory of a block with iterators, written by one block in it and read by another."""
        target = self.row(4, 8, dtypes=["int32"])
        if target is None or self.in_block or self.steps > 2:
            return None
        outer = 2
        inner = target.size // outer
        own = tir.decl_buffer((2 * inner,), "int32", self.name("own"))
        o, vo = Var(self.name("o"), "int32"), Var(self.name("vo"), "int32")

        def block(extent, body):
            v = Var(self.name("v"), "int32")
            iters = [IterVar(Range(0, extent), v, IterVar.DataPar)]
            return self.each(extent, lambda j: self.realize_block(iters, [j], _TRUE, body(v)))

        place = self.rng.choice([lambda v: v, lambda v: v + vo, lambda v: v * 2 + vo])
        stmts = [
            block(2 * inner, lambda v: tir.BufferStore(own, v * 10 + vo, [v])),
            block(
                inner, lambda v: target.store(own[tir.Min(place(v), 2 * inner - 1)], vo * inner + v)
            ),
        ]
        iters = [IterVar(Range(0, outer), vo, IterVar.DataPar)]
        body = self.realize_block(iters, [o], _TRUE, tir.SeqStmt(stmts), alloc_buffers=[own])
        return tir.For(o, _ZERO, const(outer, "int32"), ForKind.SERIAL, body)


class _Changes:
    """Statements about three scalars in memory."""

    def __init__(self, make, target, state):
        self.make, self.rng, self.target, self.state = make, make.rng, target, state

    def place(self):
        return const(self.rng.choice([0, 0, 0, 0, 0, 1, 2]), "int32")  # mostly the same one

    def small(self):
        return const(self.rng.randint(0, 4), "int32")

    def condition(self):
        load = self.state[self.place()]
        if self.make.chance(0.2):
            load = load + self.state[self.place()]
        return self.rng.choice(_COMPARE)(load, self.small())

    def result(self):
        """Tells in the target which way a condition went."""
        a, b = (const(self.rng.randint(1, 99), self.target.dtype) for _ in range(2))
        j = const(self.rng.randrange(self.target.size), "int32")
        if self.make.chance(0.5):
            return self.target.store(
                call(self.target.dtype, "if_then_else", self.condition(), a, b), j
            )
        return tir.IfThenElse(self.condition(), self.target.store(a, j), self.target.store(b, j))

    def change(self):
        """Writes one of them: as itself, or through a view."""
        at, load = self.place(), self.state[self.place()]
        value = self.rng.choice([self.small(), load + self.small(), load % 3])
        kind = self.rng.randrange(4)
        if kind == 0:
            view = tir.decl_buffer((3, 1), "int32", self.make.name("view"), data=self.state.data)
            return tir.DeclBuffer(view, tir.BufferStore(view, value, [at, _ZERO]))
        if kind == 1 and not self.make.in_block:
            part = tir.decl_buffer((3,), "int32", self.make.name("part"), offset_factor=1)
            source = tir.BufferRegion(self.state, [Range(0, 3)])
            return self.make.realize_block(
                [], [], _TRUE, tir.BufferStore(part, value, [at]),
                match_buffers=[tir.MatchBufferRegion(part, source)],
            )  # fmt: skip
        return tir.BufferStore(self.state, value, [at])

    def sequence(self, depth):
        stmts = []
        for _ in range(self.rng.randint(1, 3)):
            stmts += [self.change() if self.make.chance(0.5) else self.statement(depth - 1)]
        return tir.SeqStmt([*stmts, self.result()])

    def statement(self, depth):
        if depth <= 0:
            return self.rng.choice([self.result, self.result, self.change])()
        kind = self.make.choose(branch=4, loop=2, bounded=2, check=1, repeat=1)
        return getattr(self, "_" + kind)(depth)

    def _branch(self, depth):
        other = self.sequence(depth - 1) if self.make.chance(0.4) else None
        return tir.IfThenElse(self.condition(), self.sequence(depth), other)

    def _loop(self, depth):
        body = self.sequence(depth)
        i = Var(self.make.name("i"), "int32")
        kind = self.rng.choice([ForKind.SERIAL, ForKind.SERIAL, ForKind.UNROLLED])
        return tir.For(i, _ZERO, const(self.rng.randint(1, 3), "int32"), kind, body)

    def _bounded(self, depth):
        """A loop whose bounds are read from what its body writes."""
        i = Var(self.make.name("i"), "int32")
        limit = tir.Min(tir.Max(self.state[self.place()], 0), 3)
        low = self.rng.choice([_ZERO, _ZERO, tir.Min(tir.Max(self.state[self.place()], 0), 2)])
        j = const(self.rng.randrange(self.target.size), "int32")
        seen = self.target.store(tir.Cast(self.target.dtype, i + self.rng.randint(0, 9)), j)
        asked = tir.IfThenElse(i < self.state[self.place()], seen)
        body = tir.SeqStmt([self.rng.choice([seen, asked]), self.sequence(depth - 1)])
        return tir.For(i, low, limit, ForKind.SERIAL, body)

    def _check(self, depth):
        holds = tir.Or(self.condition(), tir.LE(self.state[self.place()], const(10**6, "int32")))
        return tir.AssertStmt(
            holds, tir.StringImm("ValueError: expected less"), self.sequence(depth - 1)
        )

    def _repeat(self, depth):
        """A while loop of a few rounds."""
        count, wrap = self.make.memory("int32", 1)
        more = tir.BufferStore(count.buffer, count.buffer[0] + 1, [_ZERO])
        body = tir.SeqStmt([more, self.sequence(depth - 1)])
        loop = tir.While(count.buffer[0] < self.rng.randint(1, 3), body)
        return wrap(tir.SeqStmt([tir.BufferStore(count.buffer, _ZERO, [_ZERO]), loop]))
