# SPDX-License-Identifier: Apache-2.0
"""Random programs of blocks for random schedules: stages that read what earlier ones wrote."""

import numpy as np
from tvm import te, tir
from tvm.script import tir as T

SIZES = [1, 2, 3, 4, 4, 5, 6, 8, 8, 12]


# ---- tensor intrinsics ---------------------------------------------------------------------------
@T.prim_func
def _scale4_desc(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (4,), offset_factor=1)
    B = T.match_buffer(b, (4,), offset_factor=1)
    with T.block("root"):
        T.reads(A[0:4])
        T.writes(B[0:4])
        for i in range(4):
            with T.block(""):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * T.float32(2)


@T.prim_func
def _scale4_impl(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (4,), offset_factor=1)
    B = T.match_buffer(b, (4,), offset_factor=1)
    with T.block("root"):
        T.reads(A[0:4])
        T.writes(B[0:4])
        for i in T.vectorized(4):
            B[i] = A[i] + A[i]


@T.prim_func
def _dot2_desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (2,), offset_factor=1)
    B = T.match_buffer(b, (2,), offset_factor=1)
    C = T.match_buffer(c, (1,), offset_factor=1)
    with T.block("root"):
        T.reads(C[0], A[0:2], B[0:2])
        T.writes(C[0])
        for k in range(2):
            with T.block(""):
                vk = T.axis.reduce(2, k)
                C[0] = C[0] + A[vk] * B[vk]


@T.prim_func
def _dot2_impl(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (2,), offset_factor=1)
    B = T.match_buffer(b, (2,), offset_factor=1)
    C = T.match_buffer(c, (1,), offset_factor=1)
    with T.block("root"):
        T.reads(C[0], A[0:2], B[0:2])
        T.writes(C[0])
        C[0] = C[0] + A[0] * B[0] + A[1] * B[1]


SCALE4, DOT2 = "fuzz.scale4", "fuzz.dot2"
tir.TensorIntrin.register(SCALE4, _scale4_desc, _scale4_impl, override=True)
tir.TensorIntrin.register(DOT2, _dot2_desc, _dot2_impl, override=True)


# ---- stages: what comes after a tensor -----------------------------------------------------------
def _scale(rng, x):
    return lambda *i: x[i] * 2.0


def _shift(rng, x):
    c = rng.choice([-1.0, 0.5, 3.0])
    return lambda *i: te.max(x[i], 0.0) + c


def _exp(rng, x):
    return lambda *i: te.exp(te.min(x[i], 3.0))


def _choose(rng, x):
    return lambda *i: tir.if_then_else(i[-1] < 2, x[i], -x[i])


POINTWISE = [_scale, _scale, _shift, _exp, _choose]


class Builder:
    """Grows a function stage by stage."""

    def __init__(self, rng):
        self.rng, self.inputs, self.tensors = rng, [], []

    def size(self):
        return self.rng.choice(SIZES)

    def name(self):
        return f"T{len(self.tensors)}"

    def input(self, shape, dtype="float32"):
        x = te.placeholder(tuple(shape), dtype, name=f"I{len(self.inputs)}")
        self.inputs.append(x)
        return x

    def add(self, tensor):
        self.tensors.append(tensor)
        return tensor

    def pointwise(self, x):
        f = self.rng.choice(POINTWISE)(self.rng, x)
        return self.add(te.compute(x.shape, f, name=self.name()))

    def join(self, x):
        """With an input, or an earlier stage, of the same shape."""
        same = [t for t in self.tensors if list(t.shape) == list(x.shape) and not t.same_as(x)]
        y = self.rng.choice(same) if same and self.rng.random() < 0.5 else self.input(x.shape)
        return self.add(te.compute(x.shape, lambda *i: x[i] + y[i], name=self.name()))

    def transpose(self, x):
        shape = list(x.shape)[::-1]
        return self.add(te.compute(shape, lambda *i: x[i[::-1]] + 1.0, name=self.name()))

    def window(self, x):
        """Padding, then the sum of a window along the last axis."""
        n = x.shape[-1]
        padded = te.compute(
            [*x.shape[:-1], n + 2],
            lambda *i: tir.if_then_else(
                tir.all(i[-1] >= 1, i[-1] < n + 1), x[(*i[:-1], i[-1] - 1)], 0.0
            ),
            name=self.name() + "_pad",
        )
        k = te.reduce_axis((0, 3), name="k")
        return self.add(
            te.compute(
                x.shape,
                lambda *i: te.sum(padded[(*i[:-1], i[-1] + k)], axis=k),
                name=self.name(),
            )
        )

    def reduce(self, x):
        """Over one axis; a tensor of at least one axis stays."""
        rank = len(x.shape)
        if rank < 2:
            return self.pointwise(x)
        axis = self.rng.randrange(rank)
        k = te.reduce_axis((0, x.shape[axis]), name="k")
        combine = self.rng.choice([te.sum, te.max, te.min])
        shape = [d for a, d in enumerate(x.shape) if a != axis]
        return self.add(
            te.compute(
                shape,
                lambda *i: combine(x[(*i[:axis], k, *i[axis:])], axis=k),
                name=self.name(),
            )
        )

    def taps(self, x):
        """Three neighbours along the last axis."""
        n = x.shape[-1]
        if not isinstance(n, tir.IntImm) or int(n) < 4:
            return self.pointwise(x)

        def at(i, offset):
            return x[(*i[:-1], i[-1] + offset)]

        shape = [*x.shape[:-1], int(n) - 2]
        f = lambda *i: at(i, 0) + at(i, 1) * 2.0 + at(i, 2)
        return self.add(te.compute(shape, f, name=self.name()))

    def biased(self, x):
        """The sum of each row, and an input."""
        k = te.reduce_axis((0, x.shape[-1]), name="k")
        shape = x.shape[:-1]
        if not shape:
            return self.pointwise(x)
        total = te.compute(
            shape, lambda *i: te.sum(x[(*i, k)], axis=k), name=self.name() + "_total"
        )
        y = self.input(shape)
        return self.add(te.compute(shape, lambda *i: total[i] + y[i], name=self.name()))

    def multiply(self, x):
        """Times a matrix, both read along the sum."""
        if len(x.shape) != 2:
            return self.pointwise(x)
        depth, width = x.shape[1], self.size()
        w = self.input([width, depth])
        k = te.reduce_axis((0, depth), name="k")
        return self.add(
            te.compute(
                (x.shape[0], width),
                lambda i, j: te.sum(x[i, k] * w[j, k], axis=k),
                name=self.name(),
            )
        )

    def multiply_small(self, x):
        """Two matrices of small numbers, and what came before."""
        if len(x.shape) != 2:
            return self.pointwise(x)
        types, total = self.rng.choice(
            [
                (("int8", "int8"), "int32"),
                (("uint8", "int8"), "int32"),
                (("int16", "int8"), "int32"),
                (("float16", "float16"), "float32"),
            ]
        )
        (n, m), depth = x.shape, self.size()
        k = te.reduce_axis((0, depth), name="k")
        a, b = self.input([n, depth], types[0]), self.input([m, depth], types[1])
        product = te.compute(
            (n, m),
            lambda i, j: te.sum(a[i, k].astype(total) * b[j, k].astype(total), axis=k),
            name=self.name() + "_product",
        )
        f = lambda i, j: x[i, j] + product[i, j].astype("float32")
        return self.add(te.compute((n, m), f, name=self.name()))

    def normalise(self, x):
        """Each row by its sum, as in softmax."""
        if len(x.shape) != 2:
            return self.pointwise(x)
        k = te.reduce_axis((0, x.shape[1]), name="k")
        total = te.compute(
            (x.shape[0],), lambda i: te.sum(te.abs(x[i, k]), axis=k), name=self.name() + "_sum"
        )
        return self.add(
            te.compute(x.shape, lambda i, j: x[i, j] / (total[i] + 1.0), name=self.name())
        )

    STEPS = ([pointwise] * 5 + [join] * 2 + [transpose] * 2 + [reduce] * 2 + [multiply] * 3) + [
        window,
        normalise,
        multiply_small,
    ]

    def build(self, count, symbolic, wanted):
        """As many stages, one of them the one that is wanted."""
        shape = [self.size() for _ in range(self.rng.choice([1, 2, 2, 2, 3]))]
        if symbolic:
            shape[0] = te.size_var("n")
        x = self.input(shape)
        steps = [self.rng.choice(self.STEPS) for _ in range(count)]
        if wanted:
            steps[self.rng.randrange(count)] = getattr(Builder, wanted)
        for step in steps:
            x = step(self, x)
        outputs = [x]
        unused = [t for t in self.tensors if t.op.name == "T0" and not t.same_as(x)]
        if unused and self.rng.random() < 0.2:
            outputs.append(unused[0])  # one that is an output and read by others
        return te.create_prim_func([*self.inputs, *outputs])


# ---- programs that te cannot say -----------------------------------------------------------------
@T.prim_func
def inplace(A: T.Buffer((8, 6), "float32"), B: T.Buffer((8, 6), "float32")):
    for i, j in T.grid(8, 6):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(8, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1.0


@T.prim_func
def shared(A: T.Buffer((12,), "float32"), B: T.Buffer((12,), "float32")):
    C = T.alloc_buffer((12,))
    for i in range(12):
        with T.block("C"):
            vi = T.axis.spatial(12, i)
            C[vi] = A[vi] + 1.0
        with T.block("B"):
            vi = T.axis.spatial(12, i)
            B[vi] = C[vi] * 2.0


@T.prim_func
def argmax(
    A: T.Buffer((6, 8), "int32"),
    V: T.Buffer((6, 8), "float32"),
    BI: T.Buffer((6,), "int32"),
    BV: T.Buffer((6,), "float32"),
):
    for i, k in T.grid(6, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                BI[vi] = -1
                BV[vi] = T.min_value("float32")
            v_i: T.int32 = T.Select(BV[vi] >= V[vi, vk], BI[vi], A[vi, vk])
            v_v: T.float32 = T.Select(BV[vi] >= V[vi, vk], BV[vi], V[vi, vk])
            BI[vi] = v_i
            BV[vi] = v_v


@T.prim_func
def nested(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for io, jo in T.grid(2, 4):
        with T.block("outer"):
            vio, vjo = T.axis.remap("SS", [io, jo])
            for ii, ji in T.grid(4, 2):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [ii, ji])
                    B[vio * 4 + vi, vjo * 2 + vj] = A[vio * 4 + vi, vjo * 2 + vj] * 2.0


WRITTEN = [inplace, shared, argmax, nested]


# Stages on which a primitive applies that applies to few others.
WANTED_BY = {
    "decompose_padding": "window",
    "fuse_reduction_epilogue": "biased",
    "pack_products": "multiply_small",
    "rfactor": "reduce",
    "rolling_buffer": "taps",
    "tensorize": "multiply",
}


def program(rng, wanted=None):
    """A random function, with a stage that is wanted."""
    if rng.random() < 0.15:
        return rng.choice(WRITTEN).with_attr("global_symbol", "main")
    symbolic = rng.random() < 0.15 and not wanted
    return Builder(rng).build(rng.randrange(1, 5), symbolic, wanted)


def arguments(func, rng):
    """Random arrays for a function; what is symbolic becomes a small number."""
    sizes, numbers = {}, np.random.default_rng(rng.randrange(1 << 30))
    made = []
    for param in func.params:
        shape = []
        for dim in func.buffer_map[param].shape:
            if isinstance(dim, tir.Var):
                shape.append(sizes.setdefault(dim, rng.choice([1, 3, 7])))
            else:
                shape.append(int(dim))
        dtype = str(func.buffer_map[param].dtype)
        if dtype == "int32":
            made.append(numbers.integers(0, 50, shape).astype(dtype))
        elif "int" in dtype:
            made.append(numbers.integers(-300, 300, shape).astype(dtype))
        else:
            made.append(numbers.uniform(-1, 1, shape).astype(dtype))
    return made
