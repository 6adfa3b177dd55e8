# SPDX-License-Identifier: Apache-2.0
"""Random statements: in bounds, every element written before it is read, no races, few steps."""

import numpy as np
from tvm import tir
from tvm.ir import PointerType, PrimType, Range
from tvm.tir import ForKind, IterVar, Var

from .expressions import LANES, Expressions, call, const
from .idioms import Idioms
from .numbers import (
    INTEGERS,
    Storage,
    Value,
    epsilon,
    fill,
    has_nan,
    int_range,
    scalar_type,
    stored_bound,
    with_lanes,
)

TRUE = tir.const(True, "bool")
MAX_STEPS = 48  # iterations of a loop nest
OBSERVE = "fuzz.observe"
_LOOP_NOTES = [
    {"note": 1},
    {"pragma_loop_partition_hint": 1},
    {"pragma_auto_unroll_max_step": 16},
    {"pragma_unroll_explicit": 1},
]
_MESSAGES = ["expected a true condition", "ValueError: expected a true condition", "no: colon"]
_THREADS = ["blockIdx.x", "threadIdx.x", "vthread.x"]


class Statements(Idioms, Expressions):
    """Makes statements; `features` names what a program holds that some checks cannot run."""

    def __init__(self, rng):
        super().__init__(rng)
        self.features = set()
        self.steps = 1  # iterations of the loops around
        self.sequential = True  # effects happen in a known order: no parallel loop around
        self.may_leave = False  # break and continue have a loop to act on
        self.in_block = False
        self.loop_vars = []
        self.procedures = []  # (GlobalVar, dtype, size): functions of a pointer
        self.count = 0

    def name(self, base):
        self.count += 1
        return f"{base}{self.count}"

    # ---- sequences ------------------------------------------------------------------------------
    def body(self, size, depth):
        """`size` statements; those that open a scope hold the ones after them."""
        if size <= 0:
            return [self.store()]
        scoped = self.chance(0.35)
        if scoped:
            kind = self.choose(
                let=3, check=1.5, attribute=1.5, allocate=2, view=1.5, constant=1,
                realize=0.15 if self.sequential and not self.in_block else 0,
                alloc_block=1 if not self.in_block else 0,
            )  # fmt: skip
            return getattr(self, "scope_" + kind)(lambda: self.body(size - 1, depth))
        kind = self.choose(
            store=4,
            vector_store=2,
            loop=3 if depth > 0 else 0,
            block=3 if depth > 0 and not self.in_block else 0,
            reduction=2 if depth > 0 and not self.in_block else 0,
            branch=2 if depth > 0 else 0,
            repeat=1 if depth > 0 and self.steps < 8 else 0,
            leave=1.5 if self.may_leave else 0,
            evaluate=1,
            idiom=3 if depth > 0 else 0,
        )
        made = getattr(self, kind)(depth)
        return [made, *(self.body(size - 1, depth) if size > 1 else [])]

    def joined(self, stmts):
        return stmts[0] if len(stmts) == 1 else tir.SeqStmt(_flat(stmts))

    # ---- stores ---------------------------------------------------------------------------------
    def value_for(self, store, depth, lanes=1):
        dtype = scalar_type(store.dtype)
        if store.kind == "approx":
            value = self.approx(dtype, depth, lanes)
            store.tolerance[0] = max(store.tolerance[0], 64 * epsilon(dtype) * value.bound)
            return value.node
        if store.kind == "any" and has_nan(dtype):
            return self.wild(dtype, lanes)
        if dtype == "bool":
            return self.condition(depth, lanes)
        if dtype in INTEGERS:
            if dtype in ("int32", "int64") and lanes == 1 and self.chance(0.3):
                return self.index(dtype, depth).node
            return self.integer(dtype, depth, lanes)
        return self.stored(dtype, depth, lanes)

    def targets(self):
        return [s for s in self.stores if s.writable]

    def store(self, depth=2):
        found = self.targets()
        if not found:
            return self.evaluate(depth)
        store = self.rng.choice(found)
        lanes = _lanes(store)
        return tir.BufferStore(store.buffer, self.value_for(store, 2, lanes), self.indices(store))

    def vector_store(self, depth=2):
        lanes = self.rng.choice(LANES)
        found = [s for s in self.targets() if _lanes(s) == 1]
        for store in self.rng.sample(found, len(found)):
            indices = self.indices(store, lanes)
            if indices is not None:
                mask = self.condition(1, lanes) if self.chance(0.15) else None
                if mask is not None and self.chance(0.4):
                    dtype = self.rng.choice(["int32", "int64"])
                    mask = call(
                        f"boolx{lanes}", "get_active_lane_mask", const(0, dtype),
                        self.index(dtype, 1).node,
                    )  # fmt: skip
                value = self.value_for(store, 2, lanes)
                return tir.BufferStore(store.buffer, value, indices, mask)
        return self.store(depth)

    # ---- loops ----------------------------------------------------------------------------------
    def extent(self, dtype="int32", limit=8):
        """A loop's extent: a constant or a shape variable."""
        limit = max(1, min(limit, MAX_STEPS // self.steps))
        known = [v for v in self.variables(dtype) if v.low == v.high and 1 <= v.low <= limit]
        if known and self.chance(0.4):
            return self.rng.choice(known)
        value = self.rng.randint(1, limit)
        return Value(const(value, dtype), value, value)

    def loop(self, depth):
        kind = ForKind(
            self.rng.choices(
                [ForKind.SERIAL, ForKind.UNROLLED, ForKind.PARALLEL, ForKind.VECTORIZED,
                 ForKind.THREAD_BINDING],
                [5, 2, 2, 2, 0.3 if not self.in_block else 0],
            )[0]
        )  # fmt: skip
        if kind not in (ForKind.SERIAL, ForKind.UNROLLED):
            return self.parallel_loop(kind, depth)
        dtype = self.rng.choice(["int32", "int32", "int64"])
        extent = self.extent(dtype)
        if kind == ForKind.UNROLLED and extent.node.__class__ is not tir.IntImm:
            extent = Value(const(extent.high, dtype), extent.high, extent.high)
        low = self.rng.randint(-2, 5) if self.chance(0.3) else 0
        step = self.rng.randint(2, 3) if self.chance(0.15) else None
        var = Var(self.name("i"), dtype)
        self.loop_vars.append(var)
        annotations = self.rng.choice(_LOOP_NOTES) if self.chance(0.2) else {}
        known = Value(var, low, low + extent.high - 1)
        leave = kind == ForKind.SERIAL
        with self.saved(vars=[*self.vars, known], steps=self.steps * extent.high, may_leave=leave):
            body = self.joined(self.body(self.rng.randint(1, 3), depth - 1))
        step = None if step is None else const(step, dtype)
        return tir.For(var, const(low, dtype), extent.node, kind, body, None, annotations, step)

    def parallel_loop(self, kind, depth):
        """Iterations write only where the loop variable is an index."""
        places = [
            (s, axis)
            for s in self.targets()
            for axis, extent in enumerate(s.shape)
            if axis not in (s.pinned or {})
            and extent.high <= MAX_STEPS // self.steps
            and (kind != ForKind.VECTORIZED or isinstance(extent.node, tir.IntImm))
        ]
        if not places:
            return self.store(depth)
        target, axis = self.rng.choice(places)
        extent = target.shape[axis]
        dtype = str(extent.node.dtype)
        var = Var(self.name("p"), dtype)
        self.loop_vars.append(var)
        thread = None
        if kind == ForKind.THREAD_BINDING:
            self.features.add("threads")
            tag = self.rng.choice(_THREADS)
            thread = IterVar(None, Var("", dtype), IterVar.ThreadIndex, tag)
        known = Value(var, 0, extent.high - 1)
        with self.saved(
            vars=[*self.vars, known], steps=self.steps * extent.high, may_leave=False,
            sequential=False, stores=self.owned(target, {axis: var}),
        ):  # fmt: skip
            body = self.joined(self.body(self.rng.randint(1, 2), depth - 1))
        return tir.For(var, const(0, dtype), extent.node, kind, body, thread)

    def owned(self, target, pinned):
        """The stores where only `target`, at the pinned indices, is written; what shares its
        memory is read nowhere else."""
        result = []
        for s in self.stores:
            if s is target:
                result.append(s.copy(pinned={**(s.pinned or {}), **pinned}))
            else:
                shares = s.root is not None and s.root is target.root
                result.append(s.copy(writable=False, readable=s.readable and not shares))
        return result

    def repeat(self, depth):
        """A while loop, counted in memory."""
        counter, wrap = self.scratch("int32", [Value(const(1, "int32"), 1, 1)], "counter")
        zero = const(0, "int32")
        load = tir.BufferLoad(counter.buffer, [zero])
        times = self.rng.randint(1, 4)
        first = tir.BufferStore(counter.buffer, tir.Add(load, const(1, "int32")), [zero])
        with self.saved(steps=self.steps * times, may_leave=True):
            body = self.body(self.rng.randint(1, 2), depth - 1)
        loop = tir.While(tir.LT(load, const(times, "int32")), tir.SeqStmt(_flat([first, *body])))
        return wrap(tir.SeqStmt([tir.BufferStore(counter.buffer, zero, [zero]), loop]))

    def leave(self, depth):
        op = self.rng.choice(["break_loop", "continue_loop"])
        return tir.IfThenElse(self.condition(2), tir.Evaluate(call("void", op)))

    def branch(self, depth):
        condition = self.condition(2)
        then = self.joined(self.body(self.rng.randint(1, 2), depth - 1))
        other = self.joined(self.body(1, depth - 1)) if self.chance(0.5) else None
        return tir.IfThenElse(condition, then, other)

    # ---- scopes ---------------------------------------------------------------------------------
    def scope_let(self, rest):
        dtype = self.rng.choice(["int32", "int64", *self.integers, *self.floats])
        if dtype in ("int32", "int64"):
            value = self.index(dtype)
        elif dtype in INTEGERS:
            value = Value(self.integer(dtype), *int_range(dtype))
        else:
            value = self.exact(dtype)
        var = Var(self.name("x"), dtype)
        known = Value(var, value.low, value.high, value.fraction)
        with self.saved(vars=[*self.vars, known]):
            return [tir.LetStmt(var, value.node, self.joined(rest()))]

    def scope_check(self, rest):
        value = self.index()
        holds = tir.LE(value.node, const(value.high, "int32"))
        if self.chance(0.3):
            holds = tir.Or(holds, self.condition(1))
        return [
            tir.AssertStmt(holds, tir.StringImm(self.rng.choice(_MESSAGES)), self.joined(rest()))
        ]

    def scope_attribute(self, rest):
        key = self.rng.choice(["fuzz_note", "pragma_auto_unroll_max_step", "fuzz_text"])
        value = tir.StringImm("a note") if key == "fuzz_text" else const(4, "int32")
        if self.chance(0.1) and not self.in_block and self.sequential:
            return self.scope_threads(rest)
        return [tir.AttrStmt(const(0, "int32"), key, value, self.joined(rest()))]

    def scope_threads(self, rest):
        """A statement that one thread runs."""
        self.features.add("threads")
        var = Var(self.name("t"), "int32")
        thread = IterVar(Range(0, 1), var, IterVar.ThreadIndex, self.rng.choice(_THREADS))
        with self.saved(vars=[*self.vars, Value(var, 0, 0)], may_leave=False):
            body = self.joined(rest())
        return [tir.AttrStmt(thread, "thread_extent", const(1, "int32"), body)]

    def shape(self, rank=None, dtype="int32"):
        rank = self.rng.randint(1, 3) if rank is None else rank
        return [self.extent(dtype, [8, 6, 3][min(rank, 3) - 1]) for _ in range(rank)]

    def scratch(self, dtype, shape, name, scope="global"):
        """Memory for a statement: its store, and what wraps the statement. Now and then it is
        larger than what is used of it: worth sharing with others."""
        data = Var(self.name(name), PointerType(PrimType(dtype), scope))
        extents = [e.node for e in shape]
        if self.chance(0.3) and isinstance(extents[0], tir.IntImm):
            extents[0] = const(int(extents[0]) + 1024, str(extents[0].dtype))
        made = tir.Buffer(data, dtype, extents, [], const(0, "int32"), data.name)
        annotations = {"note": 1} if self.chance(0.05) else {}

        def wrap(body):
            body = tir.DeclBuffer(made, body)
            return tir.Allocate(data, dtype, extents, TRUE, body, annotations)

        return Storage(made, shape, root=data), wrap

    def filled(self, store):
        """Writes every element: nobody reads what nobody wrote."""
        variables = [Var(self.name("f"), e.node.dtype) for e in store.shape]
        with self.saved(
            vars=[
                *self.vars,
                *(Value(v, 0, e.high - 1) for v, e in zip(variables, store.shape, strict=True)),
            ],
            stores=[s for s in self.stores if s.root is not store.root],
            may_leave=False,
        ):
            value = self.value_for(store, 1, _lanes(store))
        stmt = tir.BufferStore(store.buffer, value, variables)
        for v, e in reversed(list(zip(variables, store.shape, strict=True))):
            stmt = tir.For(v, const(0, str(v.dtype)), e.node, ForKind.SERIAL, stmt)
        return stmt

    def data_type(self):
        return self.rng.choice(["bool", *2 * self.integers, *2 * self.floats])

    def scope_allocate(self, rest):
        dtype = self.data_type()
        if self.chance(0.1) and dtype in ("int32", "float32", "float64"):
            dtype = with_lanes(dtype, 4)
        store, wrap = self.scratch(dtype, self.shape(), "temp")
        fill_it = self.filled(store)
        with self.saved(stores=[*self.stores, store]):
            return [wrap(tir.SeqStmt(_flat([fill_it, *rest()])))]

    def scope_view(self, rest):
        """Another shape for memory that exists."""
        found = [
            s
            for s in self.stores
            if s.shape and not s.pinned and s.readable and not len(s.buffer.strides)
            and s.kind == "data" and s.root is not None
        ]  # fmt: skip
        if not found:
            return self.body(1, 0)
        source = self.rng.choice(found)
        size = int(np.prod([e.high for e in source.shape]))
        old = source.buffer
        first, offset = 0, old.elem_offset
        if self.chance(0.4) and isinstance(offset, tir.IntImm):  # a part of it
            first = self.rng.randrange(size)
            size -= first
            offset = const(int(offset) + first, str(offset.dtype))
        view = tir.Buffer(
            old.data, old.dtype, [const(size, "int32")], [], offset, self.name("view")
        )
        store = source.copy(buffer=view, shape=[Value(const(size, "int32"), size, size)])
        with self.saved(stores=[*self.stores, store]):
            return [tir.DeclBuffer(view, self.joined(rest()))]

    def scope_constant(self, rest):
        import tvm

        dtype = self.rng.choice(["int32", "float32", "float64", "int8", "uint16"])
        shape = [Value(const(n, "int32"), n, n) for n in (self.rng.randint(1, 4), 2)]
        data = Var(self.name("const"), PointerType(PrimType(dtype), "global"))
        made = tir.Buffer(data, dtype, [e.node for e in shape], [], const(0, "int32"), data.name)
        values = fill(self.rng, "data", dtype, [e.high for e in shape])
        store = Storage(made, shape, writable=False, root=data)
        with self.saved(stores=[*self.stores, store]):
            body = tir.DeclBuffer(made, self.joined(rest()))
        extents = [e.node for e in shape]
        return [tir.AllocateConst(data, dtype, extents, tvm.runtime.tensor(values), body)]

    def scope_realize(self, rest):
        self.features.add("realize")
        shape = self.shape(dtype="int32")
        made = tir.decl_buffer([e.node for e in shape], "float32", self.name("realized"))
        store = Storage(made, shape)  # nobody may take its address
        fill_it = self.filled(store)
        with self.saved(stores=[*self.stores, store]):
            body = tir.SeqStmt(_flat([fill_it, *rest()]))
        bounds = [Range.from_min_extent(const(0, "int32"), e.node) for e in shape]
        return [tir.BufferRealize(made, bounds, TRUE, body)]

    # ---- blocks ---------------------------------------------------------------------------------
    def scope_alloc_block(self, rest):
        """A block without iterators that owns a buffer."""
        shape = self.shape()
        made = tir.decl_buffer([e.node for e in shape], self.data_type(), self.name("owned"))
        store = Storage(made, shape, root=made.data)
        with self.saved(may_leave=False):
            fill_it = self.fill_block(store) if self.chance(0.5) else self.filled(store)
            with self.saved(stores=[*self.stores, store]):
                body = tir.SeqStmt(_flat([fill_it, *rest()]))
        return [self.realize_block([], [], TRUE, body, alloc_buffers=[made])]

    def realize_block(self, iter_vars, values, predicate, body, **fields):
        annotations = {"note": self.rng.choice([1, "text", [1, 2]])} if self.chance(0.1) else {}
        name = self.name("block")
        draft = tir.Block(iter_vars, [], [], name, body, annotations=annotations, **fields)
        known = {s.buffer.data: s.buffer for s in self.stores}
        regions = tir.analysis.get_block_access_region(draft, known)
        block = tir.Block(
            iter_vars, regions[0], regions[1], name, body, annotations=annotations, **fields
        )
        return tir.BlockRealize(values, predicate, block)

    def fill_block(self, store):
        return self.block(0, store, read_target=False)

    def block(self, depth, target=None, read_target=True):
        """Loops around a block that writes each element it names once."""
        if target is None:
            found = [
                s for s in self.targets()
                if not s.pinned and s.shape and _size(s.shape) <= MAX_STEPS // self.steps
            ]  # fmt: skip
            if not found:
                return self.store(depth)
            target = self.rng.choice(found)
        loops, iters, values, predicate = self.axes(target.shape, IterVar.DataPar)
        body, fields = self.block_body(iters, target, depth, read_target)
        realized = self.realize_block(iters, values, predicate, body, **fields)
        return self.nest(loops, realized)

    def axes(self, shape, kind):
        """Iterators over a shape and the loops that bind them; some are split in two."""
        loops, iters, values, predicate = [], [], [], TRUE
        for extent in shape:
            dtype = str(extent.node.dtype)
            v = Var(self.name("v"), dtype)
            chosen = kind
            if kind == IterVar.DataPar and self.chance(0.1):
                chosen = self.rng.choice([IterVar.Ordered, IterVar.Opaque])
            iters.append(IterVar(Range(const(0, dtype), extent.node), v, chosen))
            if self.chance(0.25) and extent.high > 1 and isinstance(extent.node, tir.IntImm):
                factor = self.rng.randint(2, 3)
                outer = (extent.high + factor - 1) // factor
                o, i = Var(self.name("o"), dtype), Var(self.name("i"), dtype)
                loops += [(o, const(outer, dtype)), (i, const(factor, dtype))]
                value = tir.Add(tir.Mul(o, const(factor, dtype)), i)
                if extent.high % factor:
                    inside = tir.LT(value, extent.node)
                    predicate = inside if predicate is TRUE else tir.And(predicate, inside)
                values.append(value)
            else:
                i = Var(self.name("i"), dtype)
                loops.append((i, extent.node))
                values.append(i)
        return loops, iters, values, predicate

    def nest(self, loops, stmt, serial=False):
        for i, (var, extent) in enumerate(reversed(loops)):
            kind = ForKind.SERIAL
            if not serial and self.chance(0.15):
                kinds = [ForKind.PARALLEL, ForKind.UNROLLED]
                if i == 0 and isinstance(extent, tir.IntImm):
                    kinds.append(ForKind.VECTORIZED)
                kind = self.rng.choice(kinds)
                if kind == ForKind.UNROLLED and not isinstance(extent, tir.IntImm):
                    kind = ForKind.SERIAL
            stmt = tir.For(var, const(0, str(var.dtype)), extent, kind, stmt)
        return stmt

    def block_scope(self, iters, target, read_target=True):
        """Only the iterators, the scalars of the function and the stores are known in a block."""
        own = [Value(iv.var, 0, e.high - 1) for iv, e in zip(iters, target.shape, strict=False)]
        pinned = {axis: iv.var for axis, iv in enumerate(iters[: len(target.shape)])}
        stores = self.owned(target, pinned)
        if not read_target:
            stores = [s.copy(readable=False) if s.root is target.root else s for s in stores]
        if not any(s.buffer.same_as(target.buffer) for s in stores):
            stores.append(target.copy(pinned=pinned, readable=read_target))
        known = [v for v in self.vars if not any(v.node.same_as(i) for i in self.loop_vars)]
        return self.saved(
            vars=[*known, *own], stores=stores, may_leave=False, in_block=True,
            sequential=False, steps=self.steps * _size(target.shape),
        )  # fmt: skip

    def block_body(self, iters, target, depth, read_target):
        fields = {}
        with self.block_scope(iters, target, read_target):
            own = next(s for s in self.stores if s.buffer.same_as(target.buffer))
            if self.chance(0.2):
                fields["match_buffers"] = self.match()
            value = self.value_for(own, 2, _lanes(own))
            stmt = tir.BufferStore(own.buffer, value, [iv.var for iv in iters])
            if depth > 0 and self.chance(0.25):
                stmt = tir.SeqStmt(_flat([stmt, *self.body(1, depth - 1)]))
        return stmt, fields

    def match(self):
        """A view of a part of something readable."""
        found = [
            s for s in self.stores
            if s.readable and not s.pinned and s.shape and s.kind == "data" and s.root is not None
        ]  # fmt: skip
        if not found:
            return []
        source = self.rng.choice(found)
        region, shape = [], []
        for extent in source.shape:
            size = self.rng.randint(1, extent.high)
            dtype = str(extent.node.dtype)
            low = self.rng.randint(0, extent.high - size)
            region.append(Range.from_min_extent(const(low, dtype), const(size, dtype)))
            shape.append(Value(const(size, dtype), size, size))
        strides = [Var(self.name("s"), "int32") for _ in shape]
        made = tir.decl_buffer(
            [e.node for e in shape], source.dtype, self.name("match"), strides=strides,
            elem_offset=Var(self.name("offset"), "int32"), scope=source.buffer.scope(),
            offset_factor=1,
        )  # fmt: skip
        self.stores.append(source.copy(buffer=made, shape=shape, writable=False))
        return [tir.MatchBufferRegion(made, tir.BufferRegion(source.buffer, region))]

    def reduction(self, depth):
        found = [
            s for s in self.targets()
            if not s.pinned and s.kind == "data" and _lanes(s) == 1 and s.dtype != "bool"
            and _size(s.shape) * 2 <= MAX_STEPS // self.steps
        ]  # fmt: skip
        if not found:
            return self.store(depth)
        target = self.rng.choice(found)
        limit = MAX_STEPS // (self.steps * _size(target.shape))
        reduced = [self.extent("int32", min(limit, 4))]
        loops, iters, values, predicate = self.axes(target.shape, IterVar.DataPar)
        more, axes, bound, _ = self.axes(reduced, IterVar.CommReduce)
        more, axes, bound = more[-1:], axes, [more[-1][0]]
        more = [(more[0][0], reduced[0].node)]
        dtype, times = target.dtype, reduced[0].high
        place = [iv.var for iv in iters]
        with self.block_scope(iters, target, read_target=False):
            self.vars = [*self.vars, Value(axes[0].var, 0, times - 1)]
            op = self.rng.choice([tir.Add, tir.Min, tir.Max])
            if dtype in INTEGERS:
                first, term = self.integer(dtype, 1), self.integer(dtype, 2)
            else:
                bound_each = stored_bound(dtype) // times if op is tir.Add else None
                term = self.stored(dtype, 2, bound=bound_each or 1)
                first = const(0, dtype) if op is tir.Add else self.stored(dtype, 0)
            if op is tir.Add and dtype not in INTEGERS and not bound_each:
                op = tir.Max
        load = tir.BufferLoad(target.buffer, place)
        update = tir.BufferStore(target.buffer, op(load, term), place)
        init = tir.BufferStore(target.buffer, first, place) if self.chance(0.8) else None
        if init is None and op is tir.Add and dtype not in INTEGERS:
            init = tir.BufferStore(target.buffer, first, place)
        with self.block_scope(iters, target):
            realized = self.realize_block(
                [*iters, *axes], [*values, *bound], predicate, update, init=init
            )
        return self.nest(loops, self.nest(more, realized, serial=True), serial=False)

    # ---- calls ----------------------------------------------------------------------------------
    def evaluate(self, depth):
        kind = self.choose(
            nothing=1, pure=1, assume=1, packed=2 if self.sequential else 0,
            procedure=8 if self.procedures and self.sequential else 0,
        )  # fmt: skip
        if kind == "nothing":
            return tir.Evaluate(const(0, "int32"))
        if kind == "assume":
            value = self.index()
            return tir.Evaluate(
                call("bool", "assume", tir.LE(value.node, const(value.high, "int32")))
            )
        if kind == "packed":
            return tir.Evaluate(
                call("int32", "tvm_call_packed", tir.StringImm(OBSERVE), self.index().node)
            )
        made = self.call_procedure() if kind == "procedure" else None
        return made or tir.Evaluate(self.integer("int32"))

    def call_procedure(self):
        """With memory of its type, or None."""
        var, dtype, size = self.rng.choice(self.procedures)
        found = [
            s for s in self.targets()
            if s.dtype == dtype and not s.pinned and not len(s.buffer.strides)
            and s.root is not None and _size(s.shape) >= size and s.kind == "data"
        ]  # fmt: skip
        if not found:
            return None
        return tir.Evaluate(tir.Call("void", var, [self.pointer(self.rng.choice(found), size)]))

    def pointer(self, store, size):
        """To so many elements of a store, not always the first ones."""
        data, room = store.buffer.data, _size(store.shape) - size
        if self.chance(0.5):
            return data
        kind = call(store.dtype, "type_annotation")
        offset, count = (const(n, "int32") for n in (self.rng.randint(0, room), size))
        return call("handle", "tvm_access_ptr", kind, data, offset, count, const(3, "int32"))


def _flat(stmts):
    """Statements without nested sequences."""
    result = []
    for s in stmts:
        result += _flat(list(s.seq)) if isinstance(s, tir.SeqStmt) else [s]
    return result


def _lanes(store):
    dtype = store.dtype
    return int(dtype[dtype.rindex("x") + 1 :]) if scalar_type(dtype) != dtype else 1


def _size(shape):
    return int(np.prod([e.high for e in shape])) if shape else 1
