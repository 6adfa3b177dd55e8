# SPDX-License-Identifier: Apache-2.0
"""Attention on CPUs in one pass over the keys: running maxima and sums, rescaled block by block.

One generator makes all kernels. They differ in where keys and values lie (pages, or rows that
follow each other), in which sequence a query belongs to, and in which keys it sees.
"""

import math
from typing import NamedTuple

from tvm import tir
from tvm.tir import ir_builder

from .position_embedding import emit_angles, emit_turned, turns_neighbours

BLOCK = 16  # keys at a time
NOTHING = -1.0e30  # a score of keys that are not seen; twice it is still a number


class Kernel:
    """Parameters of a kernel, in order, and the builder of its body."""

    def __init__(self):
        self.ib = ir_builder.create()
        self.params, self.buffers = [], {}

    def tensor(self, name, shape, dtype):
        buffer = tir.decl_buffer(shape, dtype, name, offset_factor=1)
        self.params.append(tir.Var(name, "handle"))
        self.buffers[self.params[-1]] = buffer
        return self.ib.buffer_ptr(buffer)

    def scalar(self, name, dtype):
        self.params.append(tir.Var(name, dtype))
        return self.params[-1]

    def finish(self, name):
        func = tir.PrimFunc(self.params, self.ib.get(), None, self.buffers)
        # What loads and stores through several parameters never overlaps in a cache.
        attrs = {"tir.noalias": True, "tir.is_scheduled": True, "global_symbol": name}
        return func.with_attr(attrs)

    def raise_index_error(self, text, value):
        """Ends the kernel."""
        args = [tir.StringImm("IndexError"), tir.StringImm(text), value.astype("int64")]
        self.ib.emit(tir.call_intrin("int32", "tir.tvm_raise_error", *args))


def dim(name):
    return tir.Var(name, "int64")


def i64(value):
    return tir.const(value, "int64") if isinstance(value, int) else value.astype("int64")


def f32(value):
    return (
        tir.const(value, "float32") if isinstance(value, (int, float)) else value.astype("float32")
    )


class Rotary(NamedTuple):
    """How keys and queries are turned when they are read."""

    mode: tir.Var  # 0: not at all
    scale: tir.Var
    theta: tir.Var
    scaling: dict


class Source(NamedTuple):
    """Keys and values of one sequence."""

    count: object  # keys
    locate: object  # key number -> where it is; calls its argument inside of what guards it
    key: object  # (place, element) -> load
    value: object


def _lanes(d):
    return next(lanes for lanes in (16, 8, 4, 2, 1) if d % lanes == 0)


def _reduce(ib, array, lanes, combine):
    """array[0] = all lanes combined, by halves."""
    while lanes > 1:
        lanes //= 2
        with ib.for_range(0, lanes, "l", dtype="int64", kind="vectorized") as l:
            array[l] = combine(array[l], array[l + lanes])


def emit_rows(
    kernel, source, visible, query, query_position, key_position, store, group, d, d_v,
    sm_scale, rotary,
):  # fmt: skip
    """Attention of `group` queries, query(g, e), over the keys of a source.

    visible(g, j): whether the query sees the key j, or None for all; store(g, output, lse) writes.
    Without `rotary` nothing is turned, and there are no positions.
    """
    rows = _Rows(kernel, source, visible, store, group, d, d_v)
    scale = sm_scale.astype("float32") * f32(math.log2(math.e))
    scaled = lambda g, e: f32(query(g, e)) * scale

    def as_they_are():
        rows.begin(scaled)
        rows.over_keys(lambda j, place: lambda e: f32(source.key(place, e)))

    if rotary is None:
        as_they_are()
    else:
        # Two loops over the keys: what turns them costs nothing where they are as they shall be.
        with kernel.ib.if_scope(rotary.mode == 0):
            as_they_are()
        with kernel.ib.else_scope():
            rows.begin_turned(scaled, query_position, rotary)
            rows.over_keys(rows.turned_key(key_position, rotary))
    rows.end()


class _Rows:
    """The parts of attention of some queries over the keys of one sequence."""

    def __init__(self, kernel, source, visible, store, group, d, d_v):
        self.ib, self.source, self.visible, self.store = kernel.ib, source, visible, store
        self.group, self.d, self.d_v, self.lanes = group, d, d_v, _lanes(d)
        f32s = lambda shape, name: self.ib.allocate("float32", shape, name)
        self.q, self.o = f32s((group, d), "q_row"), f32s((group, d_v), "o_row")
        self.largest, self.total = f32s(group, "largest"), f32s(group, "total")
        self.scores, self.reduced = f32s((group, BLOCK), "scores"), f32s(BLOCK, "reduced")
        self.products, self.key = f32s(self.lanes, "products"), f32s(d, "key")
        self.cos, self.sin = f32s(d // 2, "cos"), f32s(d // 2, "sin")
        self.places = self.ib.allocate("int64", BLOCK, "places")

    def loop(self, extent, name, kind="serial"):
        return self.ib.for_range(0, extent, name, dtype="int64", kind=kind)

    def vector(self, extent):
        return self.loop(extent, "e", "vectorized")

    def begin(self, query):
        with self.loop(self.group, "g") as g:
            self._clear(g)
            with self.vector(self.d) as e:
                self.q[g, e] = query(g, e)

    def begin_turned(self, query, position, rotary):
        self._angles(position, rotary)
        with self.loop(self.group, "g") as g:
            self._clear(g)

            def put(e, value, g=g):
                self.q[g, e] = value

            self._turn(put, lambda e, g=g: query(g, e), rotary)

    def _clear(self, g):
        self.largest[g] = NOTHING
        self.total[g] = 0.0
        with self.vector(self.d_v) as e:
            self.o[g, e] = 0.0

    def _angles(self, position, rotary):
        position = f32(position) * rotary.scale.astype("float32")
        theta = rotary.theta.astype("float32")
        emit_angles(self.ib, self.cos, self.sin, position, self.d, theta, rotary.scaling)

    def _turn(self, put, row, rotary):
        neighbours = turns_neighbours(rotary.scaling)
        emit_turned(self.ib, put, row, self.cos, self.sin, self.d, neighbours)

    def turned_key(self, key_position, rotary):
        def key_of(j, place):
            self._angles(key_position(j), rotary)

            def put(e, value):
                self.key[e] = value

            self._turn(put, lambda e: f32(self.source.key(place, e)), rotary)
            return lambda e: self.key[e]

        return key_of

    def over_keys(self, key_of):
        """All keys, a block at a time; key_of(j, place) gives the elements of one."""
        count = self.source.count
        with self.loop(tir.ceildiv(count, i64(BLOCK)), "block") as block:
            first = self.ib.let("first", block * BLOCK)
            with self.loop(BLOCK, "b") as b:
                j = self.ib.let("j", tir.min(first + b, count - 1))
                place = self.ib.let("key_place", self.source.locate(j))
                self.places[b] = place
                self._score(b, j, first + b < count, key_of(j, place))
            with self.loop(self.group, "g") as g:
                self._accumulate(g)

    def _score(self, b, j, is_there, key):
        with self.loop(self.group, "g") as g:
            lanes, products = self.lanes, self.products
            with self.loop(lanes, "l", "vectorized") as l:
                products[l] = self.q[g, l] * key(l)
            for first in range(lanes, self.d, lanes):
                with self.loop(lanes, "l", "vectorized") as l:
                    products[l] = products[l] + self.q[g, first + l] * key(first + l)
            _reduce(self.ib, products, lanes, lambda x, y: x + y)
            seen = is_there
            if self.visible is not None:
                seen = tir.all(seen, self.visible(g, j))
            self.scores[g, b] = tir.Select(seen, products[0], f32(NOTHING))

    def _accumulate(self, g):
        """The values of a block, weighted by its scores."""
        ib, scores, reduced, largest, o = self.ib, self.scores, self.reduced, self.largest, self.o
        with self.loop(BLOCK, "b", "vectorized") as b:
            reduced[b] = scores[g, b]
        _reduce(ib, reduced, BLOCK, tir.max)
        now = ib.let("now", tir.max(largest[g], reduced[0]))
        shrink = ib.let("shrink", tir.exp2(largest[g] - now))
        largest[g] = now
        with self.loop(BLOCK, "b", "vectorized") as b:
            is_seen = scores[g, b] > f32(NOTHING / 2)
            scores[g, b] = tir.Select(is_seen, tir.exp2(scores[g, b] - now), f32(0.0))
        with self.loop(BLOCK, "b", "vectorized") as b:
            reduced[b] = scores[g, b]
        _reduce(ib, reduced, BLOCK, lambda x, y: x + y)
        self.total[g] = self.total[g] * shrink + reduced[0]
        with self.vector(self.d_v) as e:
            o[g, e] = o[g, e] * shrink
        with self.loop(BLOCK, "b") as b:
            place = ib.let("value_place", self.places[b])
            with self.vector(self.d_v) as e:
                o[g, e] = o[g, e] + scores[g, b] * f32(self.source.value(place, e))

    def end(self):
        """Without a key the result is 0, and counts for nothing when results are merged."""
        with self.loop(self.group, "g") as g:
            some, one, zero = self.total[g] > f32(0.0), f32(1.0), f32(0.0)
            inverse = self.ib.let("inverse", tir.Select(some, one / self.total[g], zero))
            sums = tir.log2(tir.max(self.total[g], f32(1e-30))) + self.largest[g]
            sums = tir.Select(some, sums, f32(NOTHING))
            self.store(g, lambda e, g=g: self.o[g, e] * inverse, sums)


class Pages(NamedTuple):
    """A cache's pages and the lists of a pass."""

    pages: object
    indptr: object
    values: object
    lengths: object
    page_size: int
    has_window: bool
    num_pages: object

    def count(self, b):
        """How many keys the sequence has."""
        pages = i64(self.indptr[b + 1]) - i64(self.indptr[b])
        last = self.lengths[0, b] if self.has_window else self.lengths[b]
        stored = (pages - 1) * self.page_size + i64(last)
        if self.has_window:
            stored = stored - i64(self.lengths[1, b]) + i64(self.lengths[2, b])
        return tir.Select(pages > 0, stored, i64(0))

    def source(self, kernel, b, head):
        """Keys and values of a sequence and a head, or of all where they are latent: then a key
        begins with the value. A place is page * page size + row."""
        ib, size = kernel.ib, self.page_size
        count = ib.let("count", self.count(b))
        begin = ib.let("begin", i64(self.indptr[b]))

        def locate(j):
            if self.has_window:
                sinks = i64(self.lengths[2, b])
                j = ib.let("at", tir.Select(j < sinks, j, j - sinks + i64(self.lengths[1, b])))
            page = ib.let("page", i64(self.values[begin + j // size]))
            with ib.if_scope(tir.any(page < 0, page >= self.num_pages)):
                kernel.raise_index_error("expected pages of the cache, got %lld", page)
            page = tir.max(tir.min(page, self.num_pages - 1), i64(0))
            return page * size + j % size

        def load(what):
            def at(place, e):
                # The page is inside: `locate` saw to it.
                page = tir.max(tir.min(place // size, self.num_pages - 1), i64(0))
                if head is None:
                    return self.pages[page, place % size, e]
                return self.pages[page, what, head, place % size, e]

            return at

        return Source(count, locate, load(0), load(1))


def emit_sequence_of(ib, indptr, batch, i):
    """The sequence that the row i belongs to."""
    found = ib.allocate("int64", 1, "sequence")
    found[0] = i64(0)
    with ib.for_range(0, batch - 1, "s", dtype="int64") as s:
        found[0] = found[0] + tir.Select(i64(indptr[s + 1]) <= i, i64(1), i64(0))
    return ib.let("b", tir.max(tir.min(found[0], batch - 1), i64(0)))
