# SPDX-License-Identifier: Apache-2.0
"""What primitives that change buffers, and tensorize, refuse."""

import pytest
from tvm import tir
from tvm.script import tir as T

from .checking import refused
from .programs import (
    ADD4,
    SCALE4,
    by_pointer,
    elementwise,
    intrinsic,
    matmul,
    two_stages,
)


def loops(sch, block="B"):
    return sch.get_loops(block)


@T.prim_func
def odd_accesses(
    A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32")
):
    """B reads two elements, C only says that it reads, D starts at 2, E reads under a condition."""
    C = T.alloc_buffer((8,))
    E = T.alloc_buffer((8,))
    for i in range(7):
        with T.block("B"):
            vi = T.axis.spatial(7, i)
            B[vi] = A[vi] + A[vi + 1]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi])
            T.writes(C[vi])
            C[vi] = 1.0
    for i in range(6):
        with T.block("D"):
            vi = T.axis.spatial((2, 8), i + 2)
            D[vi] = A[vi]
    for i in range(8):
        with T.block("E"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi - 1])
            T.writes(E[vi])
            E[vi] = T.if_then_else(vi > 0, A[vi - 1], T.float32(0))


@T.prim_func
def pairs(A: T.Buffer((8,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = T.Shuffle([A[vi * 2 : vi * 2 + 2]], [1])


@T.prim_func
def viewed(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
    for i in range(8):
        with T.block("outer"):
            vo = T.axis.spatial(8, i)
            V = T.match_buffer(B[vo, 0:4], (4,), offset_factor=1)
            for j in range(4):
                with T.block("B"):
                    vj = T.axis.spatial(4, j)
                    V[vj] = A[vo, vj]


@T.prim_func
def strided(a: T.handle, B: T.Buffer((8,), "float32")):
    A = T.match_buffer(a, (8,), strides=[2])
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]


@T.prim_func
def inplace(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), n: T.int32):
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = A[vi] + 1.0
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        if i < n:
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = B[vi] + 1.0


@T.prim_func
def loose_update(A: T.Buffer((8,), "float32")):
    A[0] = 1.0
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = A[vi] + 1.0


@T.prim_func
def declared_update(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 4):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(B[vi], A[vi, vk])
            T.writes(B[vi])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi, vk]


# ---- tensorize -----------------------------------------------------------------------------------
@T.prim_func
def doubles(A: T.Buffer((8,), "float64"), B: T.Buffer((8,), "float64")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * T.float64(2)


@T.prim_func
def transposed(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    for i, j in T.grid(4, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi] * 2.0


@T.prim_func
def sum_of_two(
    A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")
):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] + C[vi]


@T.prim_func
def _square(a: T.handle, b: T.handle):
    A, B = T.match_buffer(a, (2, 2), offset_factor=1), T.match_buffer(b, (2, 2), offset_factor=1)
    with T.block("root"):
        T.reads(A[0:2, 0:2])
        T.writes(B[0:2, 0:2])
        for i, j in T.grid(2, 2):
            with T.block(""):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2.0


@T.prim_func
def _bare(a: T.handle, b: T.handle):
    A, B = T.match_buffer(a, (4,), offset_factor=1), T.match_buffer(b, (4,), offset_factor=1)
    for i in range(4):
        B[i] = A[i] * 2.0


@T.prim_func
def _unused(a: T.handle, b: T.handle):
    T.match_buffer(a, (4,), offset_factor=1)
    B = T.match_buffer(b, (4,), offset_factor=1)
    with T.block("root"):
        T.writes(B[0:4])
        for i in range(4):
            with T.block(""):
                vi = T.axis.spatial(4, i)
                B[vi] = 1.0


@T.prim_func
def ones(B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = 1.0


def _registered(name, func):
    tir.TensorIntrin.register(name, func, func, override=True)
    return name


SQUARE, BARE = _registered("test.square", _square), _registered("test.bare", _bare)
UNUSED = _registered("test.unused", _unused)
DOUBLE4 = intrinsic("test.double4", lambda x: x + x)


def at_inner(name, block="B", size=4):
    """tensorize of the innermost loop, split to the size."""

    def primitives(sch):
        sch.tensorize(sch.split(loops(sch, block)[-1], [None, size])[1], name)

    return primitives


def in_local_memory(sch):
    sch.set_scope("B", 0, "local")
    at_inner(SCALE4)(sch)


@T.prim_func
def flat(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i, j, k in T.grid(2, 2, 2):
        with T.block("B"):
            vi = T.axis.spatial(8, i * 4 + j * 2 + k)
            B[vi] = A[vi] * 2.0


MISMATCH = "does not compute what intrinsic '.*' describes: "
CASES = [
    # ---- positions and regions
    (
        "annotate_buffer_access",
        elementwise,
        lambda s: s.annotate_buffer_access(s.get_block("B"), 0, "rw", lambda i, j: [(0, 1)] * 2),
        'expected "read" or "write" as buf_type, got "rw"',
    ),
    (
        "annotate_buffer_access",
        elementwise,
        lambda s: s.annotate_buffer_access(s.get_block("B"), 3, "read", lambda i, j: [(0, 1)] * 2),
        r"expected the index of a buffer in \[0, 1\), got 3",
    ),
    (
        "annotate_buffer_access",
        elementwise,
        lambda s: s.annotate_buffer_access(s.get_block("B"), 0, "read", lambda i, j: [(0, 1)]),
        "expected ranges of 2 iterators with 2 pairs .*, got 2 iterators and 2 values",
    ),
    (
        "unsafe_hide_buffer_access",
        elementwise,
        lambda s: s.unsafe_hide_buffer_access(s.get_block("B"), "write", [-1]),
        r"expected the index of a buffer in \[0, 1\), got -1",
    ),
    (
        "storage_align",
        two_stages,
        lambda s: s.storage_align("B", 0, 2, 8, 1),
        r"expected axis in \[-2, 2\) for buffer B, got 2",
    ),
    (
        "storage_align",
        two_stages,
        lambda s: s.storage_align("B", 0, 0, 0, 1),
        "expected a positive factor, got 0",
    ),
    (
        "storage_align",
        elementwise,
        lambda s: s.storage_align("B", 0, 0, 8, 1),
        "expected a buffer that the program allocates, got B",
    ),
    # ---- memory and type
    (
        "set_scope",
        two_stages,
        lambda s: s.set_scope("B", 0, "somewhere"),
        "expected a memory scope such as 'global', 'shared' or 'local', got 'somewhere'",
    ),
    (
        "unsafe_set_dtype",
        by_pointer,
        lambda s: s.unsafe_set_dtype("B", 0, "float64"),
        "expected buffer B to be used by loads and stores only",
    ),
    (
        "unsafe_set_dtype",
        two_stages,
        lambda s: s.unsafe_set_dtype("B", 0, "float32x4"),
        "expected a scalar type of numbers, got float32x4",
    ),
    # ---- layouts
    (
        "transform_layout",
        two_stages,
        lambda s: s.transform_layout("B", ("read", 4), lambda i, j: (j, i)),
        "expected the name of a buffer that block B reads or writes .*, got",
    ),
    (
        "transform_block_layout",
        elementwise,
        lambda s: s.transform_block_layout("B", lambda i, j: (i, "j")),
        "expected index_map to give integer expressions, got",
    ),
    (
        "transform_layout",
        viewed,
        lambda s: s.transform_layout("B", ("write", 0), lambda i: (i,)),
        "expected a buffer that is a parameter or allocated by a block, got V, a view",
    ),
    (
        "transform_layout",
        by_pointer,
        lambda s: s.transform_layout("B", ("write", 0), lambda i: (i // 4, i % 4)),
        "expected buffer B to be used by loads and stores alone",
    ),
    (
        "transform_layout",
        strided,
        lambda s: s.transform_layout("B", ("read", 0), lambda i: (i // 4, i % 4)),
        "expected a buffer without explicit strides, got buffer A",
    ),
    (
        "transform_layout",
        two_stages,
        lambda s: s.transform_layout(
            "B",
            ("write", 0),
            lambda i, j: (i // 3, i % 3, j),
            tir.IndexMap.from_func(lambda i: [i]),
        ),
        "expected pad_value to give one value for 3 indices",
    ),
    (
        "transform_layout",
        two_stages,
        lambda s: s.transform_layout(
            "B",
            ("write", 0),
            lambda i, j: (i // 3, i % 3, j),
            s.get(s.get_block("C")).body.value,
        ),
        "expected a pad_value that reads no buffer, got B",
    ),
    # ---- copies
    (
        "reindex",
        odd_accesses,
        lambda s: s.reindex("B", ("read", 0)),
        r"expected block B to access buffer A with the same indices everywhere, got vi and vi \+ 1",
    ),
    (
        "reindex",
        odd_accesses,
        lambda s: s.reindex("C", ("read", 0)),
        "expected loads or stores of buffer A",
    ),
    (
        "reindex",
        odd_accesses,
        lambda s: s.reindex("D", ("read", 0)),
        "expected iterators that start at 0, got vi",
    ),
    (
        "reindex",
        odd_accesses,
        lambda s: s.reindex("E", ("read", 0)),
        "cannot prove that index vi - 1 of buffer A is always inside",
    ),
    (
        "reindex",
        pairs,
        lambda s: s.reindex("B", ("read", 0)),
        "expected block B to access single elements of buffer A, got T.Ramp",
    ),
    (
        "reindex",
        inplace,
        lambda s: s.reindex("A", ("read", 0)),
        "expected a buffer that block A only reads, got A",
    ),
    (
        "reindex_cache_read",
        elementwise,
        lambda s: s.reindex_cache_read("B", 0, "local", lambda i, j: (-i, j)),
        "expected the indices of the copy (not to be negative|to be different)",
    ),
    (
        "reindex_cache_write",
        matmul,
        lambda s: s.reindex_cache_write("C", 0, "local", lambda i, j, k: (i, j, k)),
        "expected spatial iterators in the indices of what is written, got vk",
    ),
    (
        "cache_inplace",
        inplace,
        lambda s: s.cache_inplace("A", 0, "local"),
        "block C, which shares loops with it, also uses buffer A",
    ),
    (
        "cache_inplace",
        inplace,
        lambda s: s.cache_inplace("B", 0, "local"),
        "cannot tell exactly which part of buffer B the block writes",
    ),
    (
        "cache_inplace",
        loose_update,
        lambda s: s.cache_inplace("A", 0, "local"),
        "statements outside of blocks use buffer A",
    ),
    (
        "cache_read",
        declared_update,
        lambda s: s.cache_read("B", "B", "local"),
        "expected a block that reads buffer B from outside, got one that updates it",
    ),
    # ---- tensorize
    ("tensorize", elementwise, at_inner("test.nothing"), "'test.nothing'"),
    ("tensorize", doubles, at_inner(SCALE4), MISMATCH + "expected buffer B of type float32, got"),
    (
        "tensorize",
        two_stages,
        in_local_memory,
        MISMATCH + "expected buffer B_local in scope 'global', got 'local'",
    ),
    (
        "tensorize",
        flat,
        lambda s: s.tensorize(loops(s)[1], SQUARE),
        MISMATCH + "expected buffer B to have at least 2 dimensions, got 1",
    ),
    (
        "tensorize",
        transposed,
        at_inner(SCALE4),
        MISMATCH + r"expected index .* of buffer A \(from its beginning\), got",
    ),
    (
        "tensorize",
        sum_of_two,
        at_inner(DOUBLE4),
        MISMATCH
        + "expected buffer A of the description to be one part of one buffer, got parts of",
    ),
    ("tensorize", elementwise, at_inner(ADD4), MISMATCH + "expected"),
    ("tensorize", elementwise, at_inner(BARE), "expected the intrinsic's description to be one"),
    ("tensorize", ones, at_inner(UNUSED), "expected the description of the intrinsic to use its"),
]


@pytest.mark.parametrize(("name", "program", "primitives", "reason"), CASES)
def test_refuse(name, program, primitives, reason):
    text = refused(
        program,
        primitives,
        rf"(?s)primitive '{name.replace('_', '-')}'.*Error message: .*({reason})",
    )
    assert "@I.ir_module" in text
