# SPDX-License-Identifier: Apache-2.0
"""Random expressions whose value is defined and, for indices, bounded.

Four families, so that every correct way to run a program gives the same result:
- index: int32 or int64 over loop and shape variables, with an interval; never overflows.
- integer: data of any integer type; wraps, divides by zero, shifts too far, as defined.
- exact: floats that are multiples of a power of two and small enough never to round, so that the
  order of a sum and multiply-add contraction do not matter.
- approx: one mathematical function of an exact value; compared with a tolerance.
- wild: one operation on NaN, infinities and ordinary numbers; rounds once.
"""

import math

from tvm import tir
from tvm.ir import Op

from .numbers import (
    DIGITS,
    FLOATS,
    INDEX_LIMIT,
    INTEGERS,
    Value,
    int_range,
    stored_bound,
    with_lanes,
)

LANES = (2, 4, 8)


def const(value, dtype, lanes=1):
    if dtype in INTEGERS and dtype.startswith("u") and value >= 1 << 63:
        low, high = value & 0xFFFFFFFF, value >> 32
        node = call(dtype, "large_uint_imm", tir.const(low, "uint32"), tir.const(high, "uint32"))
    else:
        node = tir.const(value, dtype)
    return node if lanes == 1 else tir.Broadcast(node, lanes)


def call(dtype, name, *args):
    return tir.Call(dtype, Op.get("tir." + name), list(args))


# name: (what the argument is clamped to, a bound of the result)
_MATH = {
    "exp": (-3, 3, 21), "exp2": (-4, 4, 16), "exp10": (-1, 1, 10), "erf": (-4, 4, 1),
    "tanh": (-4, 4, 1), "sigmoid": (-8, 8, 1), "log": (1, 8, 3), "log2": (1, 8, 3),
    "log10": (1, 8, 1), "log1p": (1, 8, 3), "sin": (-8, 8, 1), "cos": (-8, 8, 1),
    "tan": (-1, 1, 2), "sinh": (-2, 2, 4), "cosh": (-2, 2, 4), "asin": (-1, 1, 2),
    "acos": (-1, 1, 4), "atan": (-8, 8, 2), "asinh": (-8, 8, 3), "acosh": (1, 8, 3),
    "atanh": (0, 0, 1), "sqrt": (0, 8, 3), "rsqrt": (1, 8, 1),
}  # fmt: skip
_MATH2 = {"atan2": (1, 8, 2), "hypot": (-8, 8, 12), "pow": (1, 3, 27)}
_COMPARE = [tir.EQ, tir.NE, tir.LT, tir.LE, tir.GT, tir.GE]


class Expressions:
    """Makes expressions over `vars` (Values of scalar variables) and `stores`."""

    def __init__(self, rng):
        self.rng = rng
        self.vars = []
        self.stores = []
        self.functions = []  # (GlobalVar, parameter types, result type)
        # Few types per program, so that values meet.
        self.integers = ["int32", *rng.sample(INTEGERS, 2)]
        self.floats = ["float32", *rng.sample(FLOATS, 2)]
        self.repeatable = False  # the expression may occur twice: it defines no variable

    def chance(self, probability):
        return self.rng.random() < probability

    def choose(self, **weights):
        """Calls one of the methods named, by weight."""
        return self.rng.choices(list(weights), list(weights.values()))[0]

    def variables(self, dtype):
        return [v for v in self.vars if str(v.node.dtype) == dtype]

    def saved(self, **changes):
        """A scope in which fields differ."""
        return _Saved(self, changes)

    def within_let(self, make_value, make_body):
        """let x = value: body, where x is among the variables."""
        if self.repeatable:
            return lambda node: node, make_body()
        value = make_value()
        var = tir.Var(self.rng.choice("xyz"), value.node.dtype)
        self.vars.append(Value(var, value.low, value.high, value.fraction))
        body = make_body()
        self.vars.pop()
        return lambda node: tir.Let(var, value.node, node), body

    # ---- indices --------------------------------------------------------------------------------
    def index(self, dtype="int32", depth=2):
        rng = self.rng
        if depth <= 0 or self.chance(0.25):
            known = self.variables(dtype)
            if known and self.chance(0.8):
                return rng.choice(known)
            value = rng.randint(-3, 9)
            return Value(const(value, dtype), value, value)
        a = self.index(dtype, depth - 1)
        kind = self.choose(
            Add=4, Sub=2, Mul=3, FloorDiv=3, FloorMod=3, Div=1, Mod=1, Min=2, Max=2, select=1,
            choice=1, cast=1, let=0.5, load=1, mask=0.5, shift=0.5,
        )  # fmt: skip
        if kind in ("FloorDiv", "FloorMod", "Div", "Mod", "mask", "shift", "cast", "load", "let"):
            return getattr(self, "_index_" + kind.lower())(a, dtype, depth)
        b = self.index(dtype, depth - 1)
        corners = [f(x, y) for f, x, y in _corners(kind, a, b)]
        low, high = min(corners), max(corners)
        if max(abs(low), abs(high)) > INDEX_LIMIT:
            return a
        if kind == "select":
            node = tir.Select(self.condition(depth - 1), a.node, b.node)
        elif kind == "choice":
            node = call(dtype, "if_then_else", self.condition(depth - 1), a.node, b.node)
        else:
            node = getattr(tir, kind)(a.node, b.node)
        return Value(node, low, high)

    def _index_floordiv(self, a, dtype, depth):
        c = self.rng.randint(1, 5)
        return Value(tir.FloorDiv(a.node, const(c, dtype)), a.low // c, a.high // c)

    def _index_floormod(self, a, dtype, depth):
        c = self.rng.randint(1, 9)
        inside = 0 <= a.low and a.high < c
        node = tir.FloorMod(a.node, const(c, dtype))
        return Value(node, a.low if inside else 0, a.high if inside else c - 1)

    def _index_div(self, a, dtype, depth):
        c = self.rng.randint(1, 5)
        return Value(
            tir.Div(a.node, const(c, dtype)), math.trunc(a.low / c), math.trunc(a.high / c)
        )

    def _index_mod(self, a, dtype, depth):
        c = self.rng.randint(1, 9)
        low, high = (1 - c if a.low < 0 else 0), (c - 1 if a.high > 0 else 0)
        return Value(tir.Mod(a.node, const(c, dtype)), low, high)

    def _index_mask(self, a, dtype, depth):
        return Value(call(dtype, "bitwise_and", a.node, const(7, dtype)), 0, 7)

    def _index_shift(self, a, dtype, depth):
        return Value(call(dtype, "shift_right", a.node, const(1, dtype)), a.low >> 1, a.high >> 1)

    def _index_cast(self, a, dtype, depth):
        other = self.index("int64" if dtype == "int32" else "int32", depth - 1)
        return Value(tir.Cast(dtype, other.node), other.low, other.high)

    def _index_load(self, a, dtype, depth):
        c = self.rng.randint(1, 9)
        data = tir.Cast(dtype, self.integer(self.rng.choice(self.integers), 0))
        return Value(tir.FloorMod(data, const(c, dtype)), 0, c - 1)

    def _index_let(self, a, dtype, depth):
        wrap, body = self.within_let(lambda: a, lambda: self.index(dtype, depth - 1))
        return Value(wrap(body.node), body.low, body.high)

    def within(self, extent, dtype=None, room=1):
        """An index in [0, extent - room]."""
        dtype = dtype or str(extent.node.dtype)
        last = extent.high - room
        known = [v for v in self.variables(dtype) if v.low >= 0 and v.high <= last]
        if known and self.chance(0.55):
            return self.rng.choice(known).node
        if self.chance(0.15):
            return const(self.rng.randint(0, last), dtype)
        e = self.index(dtype)
        if 0 <= e.low and e.high <= last:
            return e.node
        if e.high - e.low <= last and self.chance(0.5):
            return tir.Add(e.node, const(self.rng.randint(-e.low, last - e.high), dtype))
        size = extent.node if str(extent.node.dtype) == dtype else tir.Cast(dtype, extent.node)
        if room > 1:
            size = tir.Sub(size, const(room - 1, dtype))
        if self.chance(0.5):
            return tir.FloorMod(e.node, size)
        limit = tir.Sub(size, const(1, dtype))
        return tir.Max(tir.Min(e.node, limit), const(0, dtype))

    # ---- loads ----------------------------------------------------------------------------------
    def indices(self, store, lanes=1):
        """In-bounds indices; the last one is a vector for several lanes, None where impossible."""
        result = []
        pinned = store.pinned or {}
        for axis, extent in enumerate(store.shape):
            is_vector = lanes > 1 and axis == len(store.shape) - 1
            if axis in pinned:
                if is_vector:
                    return None
                result.append(pinned[axis])
            elif is_vector:
                if extent.high < lanes:
                    return None
                result.append(self.ramp(extent, lanes))
            else:
                result.append(self.within(extent))
        return result if lanes == 1 or result else None

    def ramp(self, extent, lanes):
        dtype = str(extent.node.dtype)
        base = self.within(extent, room=lanes)
        if self.chance(0.15):
            base = tir.Add(base, const(lanes - 1, dtype))
            return tir.Ramp(base, const(-1, dtype), lanes)
        return tir.Ramp(base, const(1, dtype), lanes)

    def load(self, dtype, lanes=1, kind="data"):
        """A load of this type, or None where nothing can be read."""
        name = with_lanes(dtype, lanes)
        found = [
            s
            for s in self.stores
            if s.readable and s.kind == kind and (s.dtype == name or s.dtype == dtype)
        ]
        if not found:
            return None
        store = self.rng.choice(found)
        vector = lanes > 1 and store.dtype == dtype
        indices = self.indices(store, lanes if vector else 1)
        if indices is None:
            indices = self.indices(store)
            return tir.Broadcast(tir.BufferLoad(store.buffer, indices), lanes)
        predicate = self.condition(1, lanes) if vector and self.chance(0.15) else None
        return tir.BufferLoad(store.buffer, indices, predicate)

    def guarded_load(self, dtype):
        """A load behind a condition that keeps it in bounds, or None."""
        found = [
            s
            for s in self.stores
            if s.readable and s.kind == "data" and s.dtype == dtype and s.shape and not s.pinned
        ]
        if not found:
            return None
        store = self.rng.choice(found)
        indices = self.indices(store)
        axis = self.rng.randrange(len(indices))
        extent = store.shape[axis]
        with self.saved(repeatable=True):
            indices[axis] = self.index(str(extent.node.dtype)).node
        inside = tir.And(
            tir.LE(const(0, str(extent.node.dtype)), indices[axis]),
            tir.LT(indices[axis], extent.node),
        )
        other = const(0 if dtype != "bool" else False, dtype)
        return call(dtype, "if_then_else", inside, tir.BufferLoad(store.buffer, indices), other)

    # ---- conditions -----------------------------------------------------------------------------
    def condition(self, depth=2, lanes=1):
        rng = self.rng
        if depth <= 0 or self.chance(0.1):
            loaded = self.load("bool", lanes) if self.chance(0.5) else None
            return const(self.chance(0.5), "bool", lanes) if loaded is None else loaded
        kind = self.choose(index=5, integer=3, exact=2, wild=2, logic=3, same=0.5, likely=0.5)
        if kind == "logic":
            name = rng.choice(["And", "Or", "Not"])
            args = [self.condition(depth - 1, lanes) for _ in range(1 if name == "Not" else 2)]
            return getattr(tir, name)(*args)
        if kind == "likely":
            return call(with_lanes("bool", lanes), "likely", self.condition(depth - 1, lanes))
        compare = rng.choice(_COMPARE)
        if kind == "index" and lanes == 1:
            dtype = rng.choice(["int32", "int64"])
            return compare(self.index(dtype, depth - 1).node, self.index(dtype, depth - 1).node)
        if kind == "exact":
            dtype = rng.choice(self.floats)
            return compare(*(self.exact(dtype, depth - 1, lanes).node for _ in range(2)))
        if kind == "wild":
            dtype = rng.choice(self.floats)
            if self.chance(0.3):
                return call(with_lanes("bool", lanes), "isnan", self.wild_leaf(dtype, lanes))
            return compare(self.wild_leaf(dtype, lanes), self.wild_leaf(dtype, lanes))
        if kind == "same":
            return compare(*(self.condition(depth - 1, lanes) for _ in range(2)))
        dtype = rng.choice(self.integers)
        return compare(*(self.integer(dtype, depth - 1, lanes) for _ in range(2)))

    # ---- integers -------------------------------------------------------------------------------
    def integer_leaf(self, dtype, lanes):
        loaded = self.load(dtype, lanes) if self.chance(0.7) else None
        if loaded is not None:
            return loaded
        if dtype not in ("int32", "int64") and self.chance(
            0.4
        ):  # else it would be index arithmetic
            known = self.variables(dtype)
            node = self.rng.choice(known).node if known else tir.Cast(dtype, self.index().node)
            return node if lanes == 1 else tir.Broadcast(node, lanes)
        low, high = int_range(dtype)
        value = self.rng.choice([0, 1, 2, 3, 7, high, low, self.rng.randint(low, high)])
        return const(value, dtype, lanes)

    def integer(self, dtype, depth=2, lanes=1):
        rng, name = self.rng, with_lanes(dtype, lanes)
        if depth <= 0 or self.chance(0.15):
            return self.integer_leaf(dtype, lanes)
        kind = self.choose(
            binary=8, bits=3, unary=1.5, select=1.5, choice=1 if lanes == 1 else 0, cast=3, let=0.5,
            reinterpret=0.5, guarded=1 if lanes == 1 else 0, vector=6 if lanes > 1 else 0,
            call=1 if lanes == 1 else 0, q=0.5 if dtype == "int32" else 0,
        )  # fmt: skip

        def again(d=1, lanes=lanes):
            return self.integer(dtype, depth - d, lanes)

        if kind == "binary":
            node = rng.choice(
                ["Add", "Sub", "Mul", "FloorDiv", "FloorMod", "Div", "Mod", "Min", "Max"]
            )
            return getattr(tir, node)(again(), again())
        if kind == "bits":
            op = rng.choice(
                ["bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right"]
            )
            return call(name, op, again(), again())
        if kind == "unary":
            return call(name, rng.choice(["popcount", "clz", "bitwise_not"]), again())
        if kind == "select":
            return tir.Select(self.condition(depth - 1, lanes), again(), again())
        if kind == "choice":
            return call(name, "if_then_else", self.condition(depth - 1), again(), again())
        if kind == "let":
            value = again(lanes=1)
            low, high = int_range(dtype)
            wrap, body = self.within_let(lambda: Value(value, low, high), again)
            return wrap(body)
        if kind == "guarded":
            node = self.guarded_load(dtype)
            return again() if node is None else node
        if kind == "reinterpret":
            same = {"8": ["int8", "uint8"], "16": ["float16", "bfloat16"], "32": ["float32"]}
            source = rng.choice(same.get(dtype.lstrip("uint"), ["float64"]))
            value = (
                self.integer(source, depth - 1, lanes)
                if source in INTEGERS
                else self.exact(source, depth - 1, lanes).node
            )
            return call(name, "reinterpret", value)
        if kind == "q":
            return call(
                name, "q_multiply_shift", again(), again(), const(31, "int32", lanes),
                const(rng.randint(-3, 3), "int32", lanes),
            )  # fmt: skip
        if kind == "call":
            node = self.call_function(dtype, depth)
            return again() if node is None else node
        if kind == "vector":
            return self.vector(lambda n: self.integer(dtype, depth - 1, n), dtype, lanes)
        source = self.choose(integer=4, bool=1, wild=2, exact=1)
        if source == "bool":
            value = self.condition(depth - 1, lanes)
        elif source == "integer":
            value = self.integer(rng.choice(self.integers), depth - 1, lanes)
        elif source == "wild":
            value = self.wild_leaf(rng.choice(self.floats), lanes)
        else:
            value = self.exact(rng.choice(self.floats), depth - 1, lanes).node
        return tir.Cast(name, value)

    def vector(self, make, dtype, lanes):
        """Vectors made of other vectors; `make(lanes)` makes parts."""
        kind = self.choose(broadcast=2, shuffle=4, ramp=1, half=1, combine=1)
        name = with_lanes(dtype, lanes)
        if kind == "shuffle":
            parts = [make(lanes), make(lanes)]
            chosen = [self.rng.randrange(2 * lanes) for _ in range(lanes)]
            return tir.Shuffle(parts, [const(i, "int32") for i in chosen])
        if kind == "half" and lanes < 8:
            return call(name, self.rng.choice(["vectorlow", "vectorhigh"]), make(2 * lanes))
        if kind == "combine" and lanes > 2:
            return call(name, "vectorcombine", make(lanes // 2), make(lanes // 2))
        if kind == "ramp" and dtype in ("int32", "int64"):
            stride = const(self.rng.randint(-2, 3), dtype)
            return tir.Ramp(self.index(dtype).node, stride, lanes)
        return tir.Broadcast(make(1), lanes)

    def call_function(self, dtype, depth):
        found = [f for f in self.functions if f[2] == dtype]
        if not found:
            return None
        var, params, result = self.rng.choice(found)
        return tir.Call(result, var, [self.scalar(p, depth - 1) for p in params])

    def scalar(self, dtype, depth):
        """A value of the type: what a function's parameter takes."""
        if dtype in ("int32", "int64"):
            return tir.FloorMod(self.index(dtype, depth).node, const(8, dtype))
        if dtype in INTEGERS:
            return self.integer(dtype, depth)
        return self.condition(depth) if dtype == "bool" else self.stored(dtype, depth)

    # ---- floats ---------------------------------------------------------------------------------
    def exact_leaf(self, dtype, lanes):
        bound = stored_bound(dtype)
        loaded = self.load(dtype, lanes) if self.chance(0.7) else None
        if loaded is not None:
            return Value(loaded, -bound, bound)
        known = self.variables(dtype)
        if known and self.chance(0.4):
            v = self.rng.choice(known)
            return (
                Value(tir.Broadcast(v.node, lanes), v.low, v.high, v.fraction) if lanes > 1 else v
            )
        value = self.rng.randint(-4, 4)
        if DIGITS[dtype] > 5 and self.chance(0.3):
            return Value(const(value / 2, dtype, lanes), value / 2, value / 2, 1)
        return Value(const(value, dtype, lanes), value, value)

    def clamp(self, value, low, high, dtype, lanes=1):
        """min and max, where the value may be outside."""
        node = value.node
        if value.low < low:
            node = tir.Max(node, const(low, dtype, lanes))
        if value.high > high:
            node = tir.Min(node, const(high, dtype, lanes))
        limits = max(value.low, low), min(value.high, high)
        return Value(node, min(*limits), max(*limits), value.fraction)

    def fit(self, value, dtype, bound=None, lanes=1):
        """The value made exact in the type, and an integer up to `bound` where it is given."""
        whole = bound is not None and value.fraction > 0
        if whole or value.fraction >= DIGITS[dtype] - 1:
            node = call(with_lanes(dtype, lanes), "floor", value.node)
            value = Value(node, math.floor(value.low), math.ceil(value.high))
        limit = 2 ** (DIGITS[dtype] - value.fraction)
        limit = limit if bound is None else min(limit, bound)
        return self.clamp(value, -limit, limit, dtype, lanes)

    def exact(self, dtype, depth=2, lanes=1):
        rng, name = self.rng, with_lanes(dtype, lanes)
        if depth <= 0 or self.chance(0.15):
            return self.exact_leaf(dtype, lanes)
        kind = self.choose(
            Add=4, Sub=2, Mul=4, Min=1.5, Max=1.5, select=1.5, choice=1 if lanes == 1 else 0,
            rounding=1.5, fabs=1, halve=1, cast=2, count=1, let=0.5, fma=0.7,
            guarded=1 if lanes == 1 else 0, vector=5 if lanes > 1 else 0,
            call=1 if lanes == 1 else 0,
        )  # fmt: skip
        if kind in ("guarded", "call"):
            made = (
                self.guarded_load if kind == "guarded" else lambda t: self.call_function(t, depth)
            )
            node, bound = made(dtype), stored_bound(dtype)
            return self.exact_leaf(dtype, lanes) if node is None else Value(node, -bound, bound)
        if kind == "cast":
            source = rng.choice(self.floats)
            value = self.fit(self.exact(source, depth - 1, lanes), source, 4, lanes)
            return Value(tir.Cast(name, value.node), value.low, value.high)
        if kind == "count":
            value = tir.Cast(name, self.condition(depth - 1, lanes))
            return Value(value, 0, 1)
        if kind == "vector":
            parts = []
            node = self.vector(lambda n: self._part(parts, dtype, depth, n), dtype, lanes)
            return Value(
                node, min(p.low for p in parts), max(p.high for p in parts),
                max(p.fraction for p in parts),
            )  # fmt: skip
        a = self.exact(dtype, depth - 1, lanes)
        if kind == "let":
            a = self.exact(dtype, depth - 1)
            wrap, body = self.within_let(lambda: a, lambda: self.exact(dtype, depth - 1, lanes))
            return Value(wrap(body.node), body.low, body.high, body.fraction)
        if kind == "rounding":
            op = rng.choice(["floor", "ceil", "trunc", "round", "nearbyint"])
            limits = math.floor(a.low), math.ceil(a.high)
            return self.fit(Value(call(name, op, a.node), *limits), dtype, lanes=lanes)
        if kind == "fabs":
            return Value(call(name, "fabs", a.node), 0, a.bound, a.fraction)
        if kind == "halve":
            divided = Value(
                tir.Div(a.node, const(2, dtype, lanes)), a.low / 2, a.high / 2, a.fraction + 1
            )
            return divided if divided.fits(dtype) and DIGITS[dtype] > 5 else a
        b = self.exact(dtype, depth - 1, lanes)
        if kind == "fma":
            c = self.exact(dtype, depth - 1, lanes)
            bound = a.bound * b.bound + c.bound
            made = Value(None, -bound, bound, max(a.fraction + b.fraction, c.fraction))
            if not made.fits(dtype):
                return a
            return Value(call(name, "fma", a.node, b.node, c.node), -bound, bound, made.fraction)
        corners = [f(x, y) for f, x, y in _corners(kind, a, b)]
        fraction = a.fraction + b.fraction if kind == "Mul" else max(a.fraction, b.fraction)
        if not Value(None, min(corners), max(corners), fraction).fits(dtype):
            return a
        if kind == "select":
            node = tir.Select(self.condition(depth - 1, lanes), a.node, b.node)
        elif kind == "choice":
            node = call(name, "if_then_else", self.condition(depth - 1), a.node, b.node)
        else:
            node = getattr(tir, kind)(a.node, b.node)
        return Value(node, min(corners), max(corners), fraction)

    def _part(self, parts, dtype, depth, lanes):
        parts.append(self.exact(dtype, depth - 1, lanes))
        return parts[-1].node

    def stored(self, dtype, depth=2, lanes=1, bound=None):
        """An exact value that a buffer of the type may hold."""
        value = self.exact(dtype, depth, lanes)
        return self.fit(value, dtype, bound or stored_bound(dtype), lanes).node

    def wild_leaf(self, dtype, lanes=1):
        loaded = self.load(dtype, lanes, "wild") if self.chance(0.8) else None
        if loaded is not None:
            return loaded
        return const(self.rng.choice([0.1, -3.7, 1e5, 0.0]), dtype, lanes)

    def wild(self, dtype, lanes=1):
        """One operation on values of any kind."""
        name = with_lanes(dtype, lanes)
        kind = self.choose(binary=5, unary=2, select=1, cast=2, copysign=1)
        a = self.wild_leaf(dtype, lanes)
        if kind == "cast":
            source = self.rng.choice([t for t in self.floats if t != dtype] or FLOATS)
            return tir.Cast(name, self.wild_leaf(source, lanes))
        if kind == "unary":
            ops = ["floor", "ceil", "trunc", "round", "nearbyint", "fabs"]
            return call(name, self.rng.choice(ops), a)
        b = self.wild_leaf(dtype, lanes)
        if kind == "select":
            return tir.Select(self.condition(1, lanes), a, b)
        if kind == "copysign":
            return call(name, "copysign", a, b)
        return getattr(tir, self.rng.choice(["Add", "Sub", "Mul", "Div", "Min", "Max"]))(a, b)

    def approx(self, dtype, depth=2, lanes=1):
        """A mathematical function of an exact value."""
        name, rng = with_lanes(dtype, lanes), self.rng
        op = rng.choice([*_MATH, *_MATH2])
        low, high, bound = _MATH.get(op) or _MATH2.get(op)
        with self.saved(repeatable=True):
            a = self.clamp(self.exact(dtype, depth - 1, lanes), low, high, dtype, lanes).node
        if op in _MATH2:
            b = self.clamp(self.exact(dtype, depth - 1, lanes), 1, 3, dtype, lanes).node
            return Value(call(name, op, a, b), -bound, bound)
        if self.chance(0.3):
            c = rng.randint(-3, 3)
            scaled = tir.Add(tir.Mul(call(name, op, a), const(c, dtype, lanes)), a)
            return Value(scaled, -abs(c) * bound - 8, abs(c) * bound + 8)
        return Value(call(name, op, a), -bound, bound)


class _Saved:
    def __init__(self, owner, changes):
        self.owner, self.changes = owner, changes

    def __enter__(self):
        self.before = {k: getattr(self.owner, k) for k in self.changes}
        self.owner.__dict__.update(self.changes)

    def __exit__(self, *_):
        self.owner.__dict__.update(self.before)


def _corners(kind, a, b):
    """The combinations of bounds among which the bounds of the result are."""
    function = {
        "Add": lambda x, y: x + y,
        "Sub": lambda x, y: x - y,
        "Mul": lambda x, y: x * y,
        "Min": min,
        "Max": max,
    }.get(kind)
    if function is None:  # one of the two
        return [(lambda x, y: x, v, v) for v in (a.low, a.high, b.low, b.high)]
    return [(function, x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
