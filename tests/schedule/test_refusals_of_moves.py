# SPDX-License-Identifier: Apache-2.0
"""What primitives that move, copy and combine computation refuse."""

import pytest
from tvm.script import tir as T

from .checking import apply, refused
from .programs import (
    conditional,
    mixed_predicate,
    without_blocks,
)


def loops(sch, block="B"):
    return sch.get_loops(block)


# ---- stages --------------------------------------------------------------------------------------
@T.prim_func
def odd_iterators(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,))
    D = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("D"):
            vi = T.axis.scan(8, i)
            D[vi] = A[vi]
    for i in range(8):
        with T.block("B"):
            vi = T.axis.reduce(8, i)
            B[vi] = D[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]


@T.prim_func
def updated(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = B[vi] + A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]


@T.prim_func
def backwards(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    """C reads B before it is written, and D is written and never read."""
    B = T.alloc_buffer((8,))
    D = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = A[vi]


@T.prim_func
def read_by_two(
    A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32")
):
    B = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = B[vi // 2]


@T.prim_func
def scattered(
    A: T.Buffer((8,), "float32"),
    I: T.Buffer((8,), "int32"),
    C: T.Buffer((8,), "float32"),
    F: T.Buffer((8,), "float32"),
):
    """C stores where I says; D declares a read that it does not do."""
    B = T.alloc_buffer((8,))
    D = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            T.reads(B[vi], I[vi])
            T.writes(C[0:8])
            C[I[vi]] = B[vi]
    for i in range(8):
        with T.block("E"):
            vi = T.axis.spatial(8, i)
            D[vi] = A[vi]
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            T.reads(D[vi])
            T.writes(F[vi])
            F[vi] = 1.0


@T.prim_func
def two_halves(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 8), "float32")):
    B = T.alloc_buffer((4, 8))
    for i in range(4):
        for j in range(4):
            with T.block("B0"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
        for j in range(4):
            with T.block("B1"):
                vi = T.axis.spatial(4, i)
                vj = T.axis.spatial(8, j + 4)
                B[vi, vj] = A[vi, vj]
    for i, j in T.grid(4, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj]


@T.prim_func
def sum_of_repeated(A: T.Buffer((8,), "float32"), C: T.Buffer((1,), "float32")):
    """B is computed twice."""
    B = T.alloc_buffer((8,))
    for k, _ in T.grid(8, 2):
        with T.block("B"):
            vk = T.axis.spatial(8, k)
            B[vk] = A[vk]
    for k in range(8):
        with T.block("C"):
            v = T.axis.spatial(1, 0)
            vk = T.axis.reduce(8, k)
            with T.init():
                C[v] = 0.0
            C[v] = C[v] + B[vk]


@T.prim_func
def sum_of_stage(A: T.Buffer((8,), "float32"), C: T.Buffer((1,), "float32")):
    B = T.alloc_buffer((8,))
    for k in range(8):
        with T.block("B"):
            vk = T.axis.spatial(8, k)
            B[vk] = A[vk]
    for k in range(8):
        with T.block("C"):
            v = T.axis.spatial(1, 0)
            vk = T.axis.reduce(8, k)
            with T.init():
                C[v] = 0.0
            C[v] = C[v] + B[vk]


def at_a_parallel_loop(sch):
    (k,) = loops(sch)
    sch.parallel(k)
    sch.reverse_compute_at("C", k)


# ---- reductions ----------------------------------------------------------------------------------
@T.prim_func
def runs_again(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32")):
    """The same reduction twice: each time it starts anew."""
    for i, _, k in T.grid(8, 2, 4):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func
def scanned(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for k in range(8):
        with T.block("B"):
            vk = T.axis.scan(8, k)
            with T.init():
                B[0] = 0.0
            B[0] = B[0] + A[vk]


@T.prim_func
def outer_company(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
    C = T.alloc_buffer((4,))
    for ko in range(4):
        with T.block("C"):
            vo = T.axis.spatial(4, ko)
            C[vo] = 1.0
        for ki in range(2):
            with T.block("B"):
                v = T.axis.spatial(1, 0)
                vk = T.axis.reduce(8, ko * 2 + ki)
                with T.init():
                    B[v] = 0.0
                B[v] = B[v] + A[vk]


@T.prim_func
def spread(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    """The reduction iterator is in the indices of the result."""
    for k in range(8):
        with T.block("B"):
            vk = T.axis.reduce(8, k)
            with T.init():
                B[vk] = 0.0
            B[vk] = B[vk] + A[vk]


@T.prim_func
def in_company(
    A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")
):
    """The reduction has company in its loops; its init reads what another block writes."""
    D = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = 1.0
        for k in range(4):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.reads(A[vi, vk], D[vi])
                T.writes(B[vi])
                with T.init():
                    B[vi] = D[vi]
                B[vi] = B[vi] + A[vi, vk]
            with T.block("C"):
                vi, vk = T.axis.remap("SS", [i, k])
                T.reads(B[vi])
                T.writes(C[vi])
                C[vi] = B[vi]


@T.prim_func
def read_early(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32")):
    """C reads the result before the reduction of the iteration starts."""
    C = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]
        for k in range(4):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi, vk]


@T.prim_func
def below_a_branch(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32"), n: T.int32):
    for i in range(8):
        if n > 3:
            for k in range(4):
                with T.block("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = 0.0
                    B[vi] = B[vi] + A[vi, vk]


@T.prim_func
def from_two_on(A: T.Buffer((8, 6), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        for k in range(2, 6):
            with T.block("B"):
                vi, vk = T.axis.spatial(8, i), T.axis.reduce((2, 6), k)
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi, vk]


def reduction(init, update, index="vi"):
    """A reduction of two buffers with another init and body."""
    text = f"""
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"),
         D: T.Buffer((8, 1), "float32")):
    for i, k in T.grid(8, 4):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(B[0:8], C[0:8], D[0:8, 0])
            with T.init():
                {init}
            {update}
"""
    from tvm.script import from_source

    return from_source(text)


ADD_B = "B[vi] = B[vi] + A[vi, vk]"
REDUCTIONS = [
    ("B[vi] = 0.0", f"if vk > 2:\n                {ADD_B}", "only stores in its body and its init"),
    (
        "B[vi] = 0.0; C[vi] = 0.0",
        f"{ADD_B}; C[vi] = C[vi] + B[vi]",
        "all values to be computed before the first is stored",
    ),
    ("C[vi] = 0.0", ADD_B, "its init and its body to store to the same buffers"),
    ("B[7 - vi] = 0.0", ADD_B, "its init and its body to store to the same elements"),
    (
        "B[vi] = 0.0; D[vi, 0] = 0.0",
        f"{ADD_B}; D[vi, 0] = D[vi, 0] + A[vi, vk]",
        "buffers of one rank",
    ),
    (
        "B[vi] = 0.0; C[7 - vi] = 0.0",
        f"{ADD_B}; C[7 - vi] = C[7 - vi] + A[vi, vk]",
        "all stores to have the same indices",
    ),
    ("B[vi] = 0.0", "B[vi] = B[vi] + A[vi, vk] * B[0]", "what is combined not to read the result"),
]


@pytest.mark.parametrize(("init", "update", "reason"), REDUCTIONS)
def test_refuse_reducer(init, update, reason):
    init, update = init.replace("; ", "\n" + " " * 16), update.replace("; ", "\n" + " " * 12)
    func = reduction(init, update)
    refused(func, lambda s: s.rfactor(loops(s)[1], 0), f"Error message: block B: expected {reason}")


CASES = [
    # ---- what a stage is
    ("compute_inline", conditional, lambda s: s.compute_inline("B"), "block B runs only where a"),
    (
        "compute_inline",
        without_blocks,
        lambda s: s.compute_inline("B"),
        "expected a complete block whose body is one store, got block B",
    ),
    (
        "compute_at",
        without_blocks,
        lambda s: s.compute_at("B", loops(s, "C")[0]),
        "buffer A, which block B reads, is used by statements outside of blocks",
    ),
    (
        "compute_at",
        odd_iterators,
        lambda s: s.compute_at("D", loops(s)[0]),
        "block D has the iterator vi, which is not spatial",
    ),
    (
        "compute_inline",
        odd_iterators,
        lambda s: s.compute_inline("B"),
        "block B has the iterator vi, which is not spatial",
    ),
    (
        "compute_inline",
        updated,
        lambda s: s.compute_inline("B"),
        "block B reads buffer B, which it also writes",
    ),
    (
        "decompose_reduction",
        spread,
        lambda s: s.decompose_reduction("B", loops(s)[0]),
        "block B uses a reduction iterator in the indices of buffer B, which it writes",
    ),
    (
        "decompose_reduction",
        scanned,
        lambda s: s.decompose_reduction("B", loops(s)[0]),
        "block B has the iterator vk, which is neither spatial nor a reduction",
    ),
    # ---- moving and inlining
    (
        "reverse_compute_at",
        sum_of_stage,
        at_a_parallel_loop,
        "block C would reduce over loop k, whose iterations run at once",
    ),
    (
        "compute_at",
        backwards,
        lambda s: s.compute_at("B", loops(s, "C")[0]),
        "block C reads before block B writes",
    ),
    (
        "compute_at",
        backwards,
        lambda s: s.compute_at("D", loops(s, "C")[0]),
        "expected blocks that read what block D writes",
    ),
    (
        "compute_inline",
        backwards,
        lambda s: s.compute_inline("B"),
        "block C reads buffer B before it is written",
    ),
    (
        "reverse_compute_inline",
        backwards,
        lambda s: s.reverse_compute_inline("C"),
        "expected the producer of block C before it",
    ),
    (
        "reverse_compute_inline",
        read_by_two,
        lambda s: s.reverse_compute_inline("C"),
        "expected block C to be the only reader of buffer B",
    ),
    (
        "reverse_compute_inline",
        scattered,
        lambda s: s.reverse_compute_inline("C"),
        "expected indices without loads, got I",
    ),
    (
        "reverse_compute_inline",
        scattered,
        lambda s: s.reverse_compute_inline("D"),
        "expected block D to load from buffer D",
    ),
    (
        "reverse_compute_at",
        two_halves,
        lambda s: s.reverse_compute_at("C", loops(s, "B0")[0]),
        "cannot tell which part of buffer B block B1 writes in one iteration of the loop",
    ),
    (
        "reverse_compute_at",
        read_by_two,
        lambda s: s.reverse_compute_at("D", loops(s)[0]),
        "cannot tell which iterations of block D read only what the loop just wrote of buffer B",
    ),
    (
        "reverse_compute_at",
        sum_of_repeated,
        lambda s: s.reverse_compute_at("C", loops(s)[1]),
        "block C would run several times inside loop k, over which it reduces",
    ),
    # ---- copies
    (
        "cache_read",
        without_blocks,
        lambda s: s.cache_read("B", 0, "local"),
        "statements outside of blocks use buffer A",
    ),
    (
        "cache_write",
        backwards,
        lambda s: s.cache_write("B", 0, "local", [s.get_block("C")]),
        "expected consumers after block B, got block C",
    ),
    # ---- reductions
    (
        "decompose_reduction",
        mixed_predicate,
        lambda s: s.decompose_reduction("B", loops(s)[0]),
        "block B has bindings that are not affine in the loops around it",
    ),
    (
        "decompose_reduction",
        runs_again,
        lambda s: s.decompose_reduction("B", loops(s)[0]),
        "expected a loop inside of loop _, in which the reduction runs again",
    ),
    (
        "blockize",
        runs_again,
        lambda s: s.blockize(loops(s)[1]),
        "expected loop _, in which the reduction of block B runs again, outside",
    ),
    (
        "decompose_reduction",
        in_company,
        lambda s: s.decompose_reduction("B", loops(s)[0]),
        "block D in the loop writes buffer D, which the init reads",
    ),
    (
        "decompose_reduction",
        read_early,
        lambda s: s.decompose_reduction("B", loops(s)[0]),
        "block C in the loop may read buffer B before the reduction starts",
    ),
    (
        "decompose_reduction",
        below_a_branch,
        lambda s: s.decompose_reduction("B", loops(s)[0]),
        "expected only loops between loop i and block B",
    ),
    (
        "rfactor",
        in_company,
        lambda s: s.rfactor(loops(s)[1], 0),
        "expected a loop with one block below it, got 2",
    ),
    (
        "rfactor",
        mixed_predicate,
        lambda s: s.rfactor(loops(s)[1], 0),
        "block B has bindings that are not affine in the loops around it",
    ),
    (
        "rfactor",
        outer_company,
        lambda s: s.rfactor(loops(s)[1], 0),
        "expected the loops of the reduction to contain only block B, but loop ko contains others",
    ),
    ("rfactor", from_two_on, lambda s: s.rfactor(loops(s)[1], 0), "expected a loop from 0, got"),
]


@pytest.mark.parametrize(("name", "program", "primitives", "reason"), CASES)
def test_refuse(name, program, primitives, reason):
    text = refused(
        program,
        primitives,
        rf"(?s)primitive '{name.replace('_', '-')}'.*Error message: .*({reason})",
    )
    assert "@I.ir_module" in text
    assert "^^^" in text or "outside of blocks" in text


def test_reductions_that_run_again():
    apply(runs_again, lambda s: s.decompose_reduction("B", loops(s)[2]))
    apply(runs_again, lambda s: s.blockize(loops(s)[2]))
    apply(runs_again, lambda s: s.rfactor(loops(s)[2], 0))
