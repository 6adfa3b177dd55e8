# SPDX-License-Identifier: Apache-2.0
"""Random calls of each schedule primitive, aimed at where it applies.

A call looks at the schedule it is made on and draws from its own random numbers: the same call can
be made again on another schedule.
"""

from dataclasses import dataclass

import tvm
from tvm import tir

from .stages import DOT2, SCALE4

_REDUCE = tir.IterVar.CommReduce


class NothingToTry(Exception):
    """The program has no place for the primitive."""


@dataclass
class Place:
    """A block: how to get to it from the root, and what is there."""

    path: tuple
    block: tir.Block
    loops: list
    children: int

    @property
    def reduces(self):
        return self.block.init is not None

    def realize(self):
        def find(stmt):
            if isinstance(stmt, tir.BlockRealize):
                return stmt if stmt.block.same_as(self.block) else None
            for child in stmt.seq if isinstance(stmt, tir.SeqStmt) else ():
                if (found := find(child)) is not None:
                    return found
            return None

        return find(self.loops[-1].body) if self.loops else None

    def reduction_loops(self):
        """The positions of the loops that the reduction runs over."""
        realize = self.realize()
        if realize is None:
            return []
        used = []
        for iter_var, value in zip(self.block.iter_vars, realize.iter_values, strict=True):
            if iter_var.iter_type == _REDUCE:
                used += tir.analysis.undefined_vars(value)
        return [
            i for i, loop in enumerate(self.loops) if any(loop.loop_var.same_as(v) for v in used)
        ]


def look(sch):
    """Every block of the program but the root, outermost first."""
    sch, places = sch.copy(), []
    todo = [((), sch.get_block("root"))]
    while todo:
        path, rv = todo.pop(0)
        children = sch.get_child_blocks(rv)
        if path:
            loops = [sch.get(loop) for loop in sch.get_loops(rv)]
            places.append(Place(path, sch.get(rv), loops, len(children)))
        todo += [((*path, i), child) for i, child in enumerate(children)]
    return places


class Chooser:
    def __init__(self, sch, rng):
        self.sch, self.rng, self.places = sch, rng, look(sch)
        buffers = sch.mod["main"].buffer_map.values()
        self.parameters = [b.data for b in buffers]

    # ---- what to pick ----
    def flag(self):
        return self.rng.random() < 0.5

    def place(self, fits=lambda place: True):
        found = [p for p in self.places if fits(p)]
        if not found:
            raise NothingToTry
        return self.rng.choice(found)

    def rv(self, place):
        """The variable of a block: by its name, or down from the root."""
        names = [p.block.name_hint for p in self.places]
        name = place.block.name_hint
        if name != "root" and names.count(name) == 1 and self.rng.random() < 0.8:
            return self.sch.get_block(name)
        rv = self.sch.get_block("root")
        for i in place.path:
            rv = self.sch.get_child_blocks(rv)[i]
        return rv

    def block(self, fits=lambda place: True):
        return self.rv(self.place(fits))

    def loop(self, fits=lambda loop: True):
        """The variable of one loop that fits, and the place of a block below it."""
        place = self.place(lambda p: any(fits(loop) for loop in p.loops))
        at = self.rng.choice([i for i, loop in enumerate(place.loops) if fits(loop)])
        return self.sch.get_loops(self.rv(place))[at], place.loops[at]

    def is_parameter(self, region):
        return any(region.buffer.data.same_as(data) for data in self.parameters)

    def writes_own(self, place):
        """Whether the first buffer it writes is allocated by the program."""
        return bool(place.block.writes) and not self.is_parameter(place.block.writes[0])

    def elsewhere(self, place):
        """A loop that is not around the block, preferably of one that shares a buffer with it."""
        others = [p for p in self.places if p is not place and p.loops]
        if not others:
            raise NothingToTry
        touched = [r.buffer for r in [*place.block.reads, *place.block.writes]]

        def related(p):
            regions = [*p.block.reads, *p.block.writes]
            return any(r.buffer.same_as(b) for r in regions for b in touched)

        near = [p for p in others if related(p)]
        other = self.rng.choice(near or others)
        return self.rng.choice(self.sch.get_loops(self.rv(other)))


def readers(c, place):
    """The places that read the first buffer that a place writes, and the region they read."""
    buffer = place.block.writes[0].buffer if place.block.writes else None
    return [
        (p, r)
        for p in c.places
        for r in p.block.reads
        if r.buffer.same_as(buffer) and p is not place
    ]


def plain(loop):
    return loop.kind == tir.ForKind.SERIAL and not loop.annotations


def extent(loop):
    """As a number, or 0."""
    return int(loop.extent) if isinstance(loop.extent, tir.IntImm) else 0


# ---- loops --------------------------------------------------------------------------------------
def split(c):
    loop, node = c.loop(plain)
    a, b = c.rng.randrange(1, 6), c.rng.randrange(1, 4)
    exact = [d for d in range(1, extent(node) + 1) if extent(node) % d == 0]
    if exact and c.flag():
        d = c.rng.choice(exact)
        c.sch.split(loop, [d, extent(node) // d], disable_predication=c.flag())
    else:
        factors = c.rng.choice([[None, a], [a, None], [a, None, b], [None, a, b]])
        c.sch.split(loop, factors, preserve_unit_iters=c.flag())


def nest(c, least=2):
    place = c.place(lambda p: len(p.loops) >= least)
    loops = c.sch.get_loops(c.rv(place))
    count = c.rng.randrange(least, len(loops) + 1)
    start = c.rng.randrange(len(loops) - count + 1)
    return loops[start : start + count]


def fuse(c):
    c.sch.fuse(*nest(c), preserve_unit_iters=c.flag())


def reorder(c):
    loops = nest(c)
    c.sch.reorder(*c.rng.sample(loops, len(loops)))


def merge(c):
    def neighbour(p):
        path = (*p.path[:-1], p.path[-1] + 1)
        found = [q for q in c.places if q.path == path and len(q.loops) == len(p.loops) > 0]
        return found[0] if found else None

    first = c.place(neighbour)
    second, depth = neighbour(first), c.rng.randrange(1, len(first.loops) + 1)
    loops = [c.sch.get_loops(c.rv(p))[depth - 1] for p in (first, second)]
    c.sch.merge(*loops)


def loop_partition(c):
    loop, node = c.loop(lambda n: plain(n) and extent(n) > 1)
    size = c.rng.randrange(1, extent(node))
    factors = c.rng.choice([[size], [size, None], [None, size]])
    c.sch.loop_partition(loop, factors, preserve_unit_iters=c.flag())


def add_unit_loop(c):
    c.sch.add_unit_loop(c.block() if c.flag() else c.loop()[0])


def parallel(c):
    c.sch.parallel(c.loop()[0])


def vectorize(c):
    c.sch.vectorize(c.loop(extent)[0])


def unroll(c):
    c.sch.unroll(c.loop()[0])


def bind(c):
    tags = ["threadIdx.x", "threadIdx.y", "blockIdx.x", "blockIdx.z", "vthread", "vthread.y"]
    c.sch.bind(c.loop()[0], c.rng.choice(tags))


# ---- sampling -----------------------------------------------------------------------------------
def sample_perfect_tile(c):
    loop, node = c.loop(lambda n: plain(n) and extent(n))
    limit = c.rng.choice([-1, 4, 16])
    c.sch.split(loop, c.sch.sample_perfect_tile(loop, c.rng.randrange(1, 4), limit))


def sample_partitioned_tile(c):
    loop, node = c.loop(lambda n: plain(n) and extent(n))
    inner = c.rng.choice([d for d in range(1, extent(node) + 1) if extent(node) % d == 0])
    n = c.rng.randrange(2, 4)
    factors = c.sch.sample_partitioned_tile(loop, n, c.rng.randrange(1, n), inner)
    c.sch.split(loop, factors)


def sample_categorical(c):
    value = c.sch.sample_categorical([1, 2, 3], [0.2, 0.3, 0.5])
    if c.flag():
        c.sch.annotate(c.block(), "sampled", value)
    else:
        c.sch.split(c.loop(plain)[0], [None, value])


def sample_compute_location(c):
    block = c.block(c.writes_own)
    c.sch.compute_at(block, c.sch.sample_compute_location(block))


# ---- looking ------------------------------------------------------------------------------------
def get_block(c):
    c.sch.get_block(c.place().block.name_hint, "main")


def get_loops(c):
    c.sch.get_loops(c.block())


def get_child_blocks(c):
    c.sch.get_child_blocks(c.loop()[0] if c.flag() else c.block())


def get_producers(c):
    c.sch.get_producers(c.block())


def get_consumers(c):
    c.sch.get_consumers(c.block())


def get_output_blocks(c):
    c.sch.get_output_blocks("root" if c.flag() else c.block())


# ---- moving -------------------------------------------------------------------------------------
def compute_at(c):
    place = c.place(c.writes_own)
    loop = c.elsewhere(place)
    c.sch.compute_at(c.rv(place), loop, preserve_unit_loops=c.flag(), index=c.rng.choice([-1, -2]))


def reverse_compute_at(c):
    place = c.place(lambda p: not all(c.is_parameter(r) for r in p.block.reads))
    loop = c.elsewhere(place)
    index = c.rng.choice([-1, -2])
    c.sch.reverse_compute_at(c.rv(place), loop, preserve_unit_loops=c.flag(), index=index)


def stores_once(p):
    return isinstance(p.block.body, tir.BufferStore) and not p.reduces


def compute_inline(c):
    c.sch.compute_inline(c.block(lambda p: stores_once(p) and c.writes_own(p)))


def reverse_compute_inline(c):
    def fits(p):
        own = [r for r in p.block.reads if not c.is_parameter(r)]
        writers = [
            q
            for q in c.places
            if any(w.buffer.same_as(r.buffer) for r in own for w in q.block.writes)
        ]
        return stores_once(p) and len(writers) == 1 and stores_once(writers[0])

    c.sch.reverse_compute_inline(c.block(fits))


# ---- copies -------------------------------------------------------------------------------------
SCOPES = ["global", "global", "global.other", "local"]


def reads_other(p):
    return any(not any(r.buffer.same_as(w.buffer) for w in p.block.writes) for r in p.block.reads)


def a_read(c, place):
    """The position of a buffer that the block only reads."""
    only = [
        i
        for i, r in enumerate(place.block.reads)
        if not any(r.buffer.same_as(w.buffer) for w in place.block.writes)
    ]
    return c.rng.choice(only)


def cache_read(c):
    place = c.place(reads_other)
    rv = c.rv(place)
    c.sch.cache_read(rv, a_read(c, place), c.rng.choice(SCOPES), [rv] if c.flag() else None)


def cache_write(c):
    place = c.place(lambda p: p.block.writes)
    at = c.rng.randrange(len(place.block.writes))
    c.sch.cache_write(c.rv(place), at, c.rng.choice(SCOPES))


def cache_inplace(c):
    def both(p):
        return [
            i
            for i, r in enumerate(p.block.reads)
            if any(r.buffer.same_as(w.buffer) for w in p.block.writes)
        ]

    if any(both(p) for p in c.places):
        place = c.place(both)
        return c.sch.cache_inplace(c.rv(place), c.rng.choice(both(place)), c.rng.choice(SCOPES))
    place = c.place(lambda p: p.reduces and p.loops)  # its update reads what it writes
    c.sch.decompose_reduction(rv := c.rv(place), c.sch.get_loops(rv)[0])
    c.sch.cache_inplace(rv, 0, c.rng.choice(SCOPES))


def cache_index(c):
    c.sch.cache_index(c.block(), "global", c.rng.randrange(3))


def reindex(c):
    place = c.place(lambda p: not p.children)
    if reads_other(place) and c.flag():
        return c.sch.reindex(c.rv(place), ("read", a_read(c, place)))
    c.sch.reindex(c.rv(place), ("write", 0))


def reindex_cache_read(c):
    place = c.place(lambda p: not p.children and reads_other(p))
    order = c.rng.sample(range(len(place.block.iter_vars)), len(place.block.iter_vars))
    c.sch.reindex_cache_read(
        c.rv(place), a_read(c, place), c.rng.choice(SCOPES), lambda *i: [i[o] for o in order]
    )


def reindex_cache_write(c):
    place = c.place(lambda p: not p.children and p.block.writes)
    spatial = [i for i, v in enumerate(place.block.iter_vars) if v.iter_type != _REDUCE]
    order = c.rng.sample(spatial, len(spatial))
    c.sch.reindex_cache_write(
        c.rv(place), 0, c.rng.choice(SCOPES), lambda *i: [i[o] for o in order]
    )


def read_at(c):
    place = c.place(lambda p: p.loops and reads_other(p))
    rv = c.rv(place)
    c.sch.read_at(c.rng.choice(c.sch.get_loops(rv)), rv, a_read(c, place), "global")


def write_at(c):
    place = c.place(lambda p: p.loops and p.block.writes)
    rv = c.rv(place)
    c.sch.write_at(c.rng.choice(c.sch.get_loops(rv)), rv, 0, "global")


# ---- reductions ---------------------------------------------------------------------------------
def decompose_reduction(c):
    place = c.place(lambda p: p.reduces and p.loops)
    rv = c.rv(place)
    first = min(place.reduction_loops() or [len(place.loops) - 1])
    c.sch.decompose_reduction(rv, c.sch.get_loops(rv)[c.rng.randrange(first + 1)])


def rfactor(c):
    place = c.place(lambda p: p.reduces and p.reduction_loops())
    loop = c.sch.get_loops(c.rv(place))[c.rng.choice(place.reduction_loops())]
    rank = len(place.block.writes[0].buffer.shape)
    c.sch.rfactor(loop, c.rng.randrange(-rank - 1, rank + 1))


def adds(p):
    return isinstance(getattr(p.block.body, "value", None), tir.Add)


def fuse_reduction_epilogue(c):
    def fits(p):
        found = readers(c, p)
        return p.reduces and adds(p) and c.writes_own(p) and len(found) == 1 and adds(found[0][0])

    place = c.place(fits)
    c.sch.fuse_reduction_epilogue(c.rv(place), c.rv(readers(c, place)[0][0]))


def decompose_padding(c):
    rv = c.block(lambda p: "_pad" in p.block.name_hint and p.loops)
    loop = c.rng.choice(c.sch.get_loops(rv))
    possible = c.sch.can_decompose_padding(rv, loop)
    try:
        c.sch.decompose_padding(rv, loop)
    except tir.ScheduleError:
        assert not possible, "can_decompose_padding promised too much"
        raise
    assert possible, "can_decompose_padding did not see it"


def pad_einsum(c):
    place = c.place(lambda p: p.reduces or not p.children)
    c.sch.pad_einsum(c.rv(place), [c.rng.choice([1, 2, 4]) for _ in place.block.iter_vars])


def pad_edge(c):
    place = c.place(lambda p: p.reduces or not p.children)
    of = [1 if i.iter_type == _REDUCE else 3 for i in place.block.iter_vars]
    c.sch.pad_edge(c.rv(place), [c.rng.choice([1, most]) for most in of])


def pack_products(c):
    def product(p):
        value = getattr(p.block.body, "value", None)
        return p.reduces and adds(p) and isinstance(value.b, tir.Mul)

    place = c.place(product)
    types = {str(r.buffer.dtype) for r in place.block.reads}
    fitting = ["float32"]
    if types & {"int8", "uint8", "int16"}:
        fitting = ["dot_shorts"] if types & {"int16", "uint8"} else ["dot_bytes", "dot_shorts"]
        if types >= {"int8", "uint8"}:
            fitting = ["dot_bytes"]
    instruction = c.rng.choice([*fitting * 8, "dot_bfloat16"])
    shifted = c.rng.choice([-1, 0, 1]) if instruction == "dot_bytes" else -1
    padding = [c.rng.choice([1, 1, 2, 3]) for _ in place.block.iter_vars]
    c.sch.pack_products(c.rv(place), instruction, shifted, c.rng.choice([[], padding]))


def rolling_buffer(c):
    def overlaps(p):
        """Whether the one reader needs several elements, or sums over them."""
        found = readers(c, p)
        if len(found) != 1 or not c.writes_own(p) or p.reduces:
            return False
        reader, region = found[0]
        return reader.loops and (
            reader.reduces
            and "_pad" in p.block.name_hint
            or any(not isinstance(r.extent, tir.IntImm) or int(r.extent) > 1 for r in region.region)
        )

    place = c.place(overlaps)
    reader = readers(c, place)[0][0]
    spatial = [i for i in range(len(reader.loops)) if i not in reader.reduction_loops()]
    rv = c.rv(place)
    if spatial:
        c.sch.compute_at(rv, c.sch.get_loops(c.rv(reader))[c.rng.choice(spatial)])
    c.sch.rolling_buffer(rv, 0)


# ---- blocks -------------------------------------------------------------------------------------
def blockize(c):
    if c.rng.random() < 0.8:
        return c.sch.blockize(c.loop()[0], preserve_unit_iters=c.flag())
    c.sch.blockize([c.block()], preserve_unit_iters=c.flag())


def tensorize(c):
    def scales(p):
        value = getattr(p.block.body, "value", None)
        return not p.children and not p.reduces and isinstance(value, tir.Mul)

    def dots(p):
        value = getattr(p.block.body, "value", None)
        return p.reduces and isinstance(value, tir.Add) and isinstance(value.b, tir.Mul)

    def size(p):
        return 4 if scales(p) else 2 if dots(p) else 0

    def fits(p):
        last = extent(p.loops[-1]) if p.loops and plain(p.loops[-1]) else 0
        return last and size(p) and last % size(p) == 0

    place = c.place(fits)
    name = SCALE4 if scales(place) else DOT2
    rv = c.rv(place)
    if dots(place):
        c.sch.decompose_reduction(rv, c.sch.get_loops(rv)[min(place.reduction_loops() or [0])])
    loop = c.sch.get_loops(rv)[-1]
    if extent(place.loops[-1]) != size(place) or c.flag():
        _, loop = c.sch.split(loop, [None, size(place)])
    c.sch.tensorize(loop if c.flag() else c.sch.blockize(loop), name)


def reorder_block_iter_var(c):
    place = c.place(lambda p: p.block.iter_vars)
    count = len(place.block.iter_vars)
    c.sch.reorder_block_iter_var(c.rv(place), c.rng.sample(range(count), count))


def transform_block_layout(c):
    place = c.place(lambda p: p.block.iter_vars and len(p.loops) >= len(p.block.iter_vars))
    iters = place.block.iter_vars
    last = extent(iters[-1].dom)
    alike = len({int(v.iter_type) for v in iters}) == 1
    if len(iters) == 2 and alike and last and c.flag():
        index_map = lambda i, j: (i * last + j,)
    else:
        order = c.rng.sample(range(len(iters)), len(iters))
        index_map = lambda *i: [i[o] for o in order]
    c.sch.transform_block_layout(c.rv(place), index_map)


# ---- buffers ------------------------------------------------------------------------------------
def transform_layout(c):
    place = c.place(lambda p: c.writes_own(p) and p.block.writes[0].buffer.shape)
    buffer = place.block.writes[0].buffer
    which = c.rng.choice([("write", 0), buffer.name])
    size, pad = c.rng.choice([2, 4]), None
    if c.flag():
        order = c.rng.sample(range(len(buffer.shape)), len(buffer.shape))
        index_map = lambda *i: [i[o] for o in order]
    else:
        index_map = lambda *i: [*i[:-1], i[-1] // size, i[-1] % size]
        pad = c.rng.choice([None, 0.0])
    c.sch.transform_layout(c.rv(place), which, index_map, pad)


def set_axis_separator(c):
    place = c.place(c.writes_own)
    rank = len(place.block.writes[0].buffer.shape)
    at = c.rng.randrange(rank + 1)
    c.sch.set_axis_separator(c.rv(place), ("write", 0), [at] if 0 < at < rank else [])


def storage_align(c):
    c.sch.storage_align(c.block(c.writes_own), 0, -1, 8, c.rng.randrange(4))


def set_scope(c):
    scope = c.rng.choice(["shared", "local", "global.other"])
    c.sch.set_scope(c.block(c.writes_own), 0, scope)


def unsafe_set_dtype(c):
    c.sch.unsafe_set_dtype(c.block(c.writes_own), 0, "float64")


def unsafe_hide_buffer_access(c):
    place = c.place(lambda p: p.block.reads)
    c.sch.unsafe_hide_buffer_access(c.rv(place), "read", [c.rng.randrange(len(place.block.reads))])


def annotate_buffer_access(c):
    place = c.place(lambda p: p.block.reads)
    at = c.rng.randrange(len(place.block.reads))
    shape = place.block.reads[at].buffer.shape
    c.sch.annotate_buffer_access(c.rv(place), at, "read", lambda *i: [(0, d) for d in shape])


# ---- annotations --------------------------------------------------------------------------------
def annotate(c):
    value = c.rng.choice([1, "two", 3.5, [1, "a"], {"key": [1, 2]}])
    c.sch.annotate(c.block() if c.flag() else c.loop()[0], f"key{c.rng.randrange(9)}", value)


def unannotate(c):
    marked = [p for p in c.places if p.block.annotations]
    if marked and c.flag():
        place = c.rng.choice(marked)
        return c.sch.unannotate(c.rv(place), c.rng.choice(list(place.block.annotations)))
    rv = c.block() if c.flag() else c.loop()[0]
    c.sch.annotate(rv, "passing", 1)
    c.sch.unannotate(rv, "passing")


def enter_postproc(c):
    c.sch.enter_postproc()


# The instructions of traces, and the methods that make them.
METHODS = {kind: method for kind, method, *_ in tvm.get_global_func("tir.schedule._examples")()}
CALLS = {name: globals()[name] for name in METHODS.values() if name in globals()}
