# SPDX-License-Identifier: Apache-2.0
"""What primitives on loops and blocks refuse: the primitive's name, the reason, the program with
what it is about underlined, and a schedule that is as it was. Others: test_refusals_of_*.py."""

import re

import pytest
import tvm
from tvm import tir
from tvm.script import tir as T

from .checking import refused
from .programs import (
    conditional,
    dynamic,
    elementwise,
    from_two,
    let_around,
    mixed_predicate,
    nested,
    shared_loop,
    stepped,
    three_stages,
    two_stages,
)


def loops(sch, block="B"):
    return sch.get_loops(block)


@T.prim_func
def two_in_a_loop(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32")):
    """The sum of B runs over k; C is in its loops, too."""
    C = T.alloc_buffer((8, 4))
    for i, k in T.grid(8, 4):
        with T.block("C"):
            vi, vk = T.axis.remap("SS", [i, k])
            C[vi, vk] = A[vi, vk]
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + C[vi, vk]


@T.prim_func
def one_conditional(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    C = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi]
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            T.where(i < 5)
            B[vi] = C[vi]


@T.prim_func
def branch_between(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
    C = T.alloc_buffer((8, 4))
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi, 0] = A[vi, 0]
        for j in range(2):
            if j < 1:
                for k in range(2):
                    with T.block("B"):
                        vi = T.axis.spatial(8, i)
                        vj = T.axis.spatial(4, j * 2 + k)
                        B[vi, vj] = A[vi, vj]


def in_two_functions(sch):
    sch.merge(sch.get_loops(sch.get_block("B", "f"))[0], sch.get_loops(sch.get_block("B", "g"))[0])


@T.prim_func
def every_value_twice(A: T.Buffer((4,), "float32"), B: T.Buffer((1,), "float32")):
    for k in range(8):
        with T.block("B"):
            v = T.axis.spatial(1, 0)
            vk = T.axis.reduce(4, k // 2)
            with T.init():
                B[v] = 0.0
            B[v] = B[v] + A[vk]


def at_the_root(sch):
    where = sch.sample_compute_location("B", decision=-1)
    sch.unroll(where)


def both_kinds_of_stages(sch):
    sch.blockize([sch.get_block("C"), sch.get_block("B")])


NOWHERE = {"sample_categorical", "get_block"}  # about no statement of the program
TWO = tvm.IRModule({"f": elementwise, "g": elementwise})

CASES = [
    # ---- loops
    ("split", stepped, lambda s: s.split(loops(s)[0], [2, None]), "a loop with steps of 1, got"),
    ("bind", stepped, lambda s: s.bind(loops(s)[0], "threadIdx.x"), "a loop with steps of 1, got"),
    ("parallel", stepped, lambda s: s.parallel(loops(s)[0]), "a loop with steps of 1, got i"),
    (
        "fuse",
        branch_between,
        lambda s: s.fuse(*loops(s)[:2]),
        "expected loop j to be the only statement in loop i",
    ),
    ("unroll", two_stages, at_the_root, "expected loop to be a loop, got the location 'root'"),
    (
        "add_unit_loop",
        elementwise,
        lambda s: s.add_unit_loop("root"),
        "expected a loop or a block within another one, got a root block",
    ),
    (
        "unannotate",
        elementwise,
        lambda s: s.unannotate("B", "nothing"),
        "expected an annotation that is there, got 'nothing'",
    ),
    (
        "loop_partition",
        elementwise,
        lambda s: s.loop_partition(loops(s)[1], [4, 4]),
        "expected factors with a sum below 8, got 8",
    ),
    (
        "loop_partition",
        elementwise,
        lambda s: s.loop_partition(loops(s)[1], [None]),
        "expected at least two parts",
    ),
    (
        "loop_partition",
        every_value_twice,
        lambda s: s.loop_partition(loops(s)[0], [1]),
        "expected the reduction of block B to begin in the first part, which cannot be shown",
    ),
    (
        "merge",
        elementwise,
        lambda s: s.merge(loops(s)[0]),
        "expected at least two loops",
    ),
    (
        "merge",
        elementwise,
        lambda s: s.merge(*loops(s)),
        "expected loops of different nests, got one around another",
    ),
    (
        "merge",
        nested,
        lambda s: s.merge(loops(s)[0], loops(s, "C")[0]),
        "expected loops of one scope",
    ),
    (
        "merge",
        two_stages,
        lambda s: s.merge(loops(s, "C")[0], loops(s, "B")[0]),
        "expected nests that follow each other with nothing in between, in the order given",
    ),
    (
        "merge",
        two_stages,
        lambda s: s.merge(loops(s, "B")[0], loops(s, "C")[1]),
        "expected loops of one depth, got j at 2 and i at 1",
    ),
    (
        "merge",
        from_two,
        lambda s: s.merge(loops(s, "B")[0], loops(s, "C")[0]),
        "expected loops over one range, got i over 6 and i over 8",
    ),
    ("merge", TWO, in_two_functions, "expected loops of one function"),
    # ---- blockize
    ("blockize", elementwise, lambda s: s.blockize([]), "expected at least one block, got none"),
    (
        "blockize",
        nested,
        lambda s: s.blockize([s.get_block("C"), s.get_block("B")]),
        "expected blocks of one scope",
    ),
    (
        "blockize",
        three_stages,
        lambda s: s.blockize([s.get_block("B"), s.get_block("D")]),
        "expected blocks one after the other, but block C is among them",
    ),
    (
        "blockize",
        shared_loop,
        lambda s: s.blockize(loops(s)[0]),
        "expected a loop with one block below it, got 2",
    ),
    (
        "blockize",
        branch_between,
        lambda s: s.blockize(loops(s)[1]),
        "expected only loops between loop j and block B",
    ),
    (
        "blockize",
        branch_between,
        both_kinds_of_stages,
        "expected only loops between block B and what surrounds all blocks",
    ),
    (
        "blockize",
        one_conditional,
        both_kinds_of_stages,
        "expected blocks that run under one condition on the loops outside, got i < 5 for block B",
    ),
    (
        "blockize",
        two_in_a_loop,
        both_kinds_of_stages,
        "expected all of the reduction of block B inside",
    ),
    (
        "blockize",
        mixed_predicate,
        lambda s: s.blockize(loops(s)[1]),
        "cannot divide the (predicate|bindings)",
    ),
    # ---- blocks
    (
        "reorder_block_iter_var",
        elementwise,
        lambda s: s.reorder_block_iter_var(s.get_block("B"), [0, 2]),
        r"expected a permutation of 0 to 1 as new_order, got \(0, 2\)",
    ),
    (
        "get_block",
        tvm.IRModule({"main": elementwise, "bare": tir.PrimFunc([], tir.Evaluate(0))}),
        lambda s: s.get_block("B", "bare"),
        "expected a function with a root block, got 'bare'",
    ),
    (
        "decompose_reduction",
        conditional,
        lambda s: s.decompose_reduction("C", loops(s, "C")[0]),
        "block C has no init",
    ),
    # ---- sampling
    (
        "sample_categorical",
        elementwise,
        lambda s: s.sample_categorical([1, 2], [1.0]),
        "expected as many probabilities as candidates, and some, got 1 and 2",
    ),
    (
        "sample_categorical",
        elementwise,
        lambda s: s.sample_categorical([1, 2], [1.0, -0.5]),
        "expected probabilities that are not negative, got -0.5",
    ),
    (
        "sample_categorical",
        elementwise,
        lambda s: s.sample_categorical([1, 2], [0.0, 0.0]),
        "expected probabilities that are not all 0",
    ),
    (
        "sample_categorical",
        elementwise,
        lambda s: s.sample_categorical([1, 2], [0.5, 0.5], decision=2),
        r"expected a decision in \[0, 2\), got 2",
    ),
    (
        "sample_partitioned_tile",
        dynamic,
        lambda s: s.sample_partitioned_tile(loops(s)[0], 2, 1, 1),
        "expected a loop with a constant, positive extent, got n",
    ),
    (
        "sample_perfect_tile",
        elementwise,
        lambda s: s.sample_perfect_tile(loops(s)[0], 2, decision=[3, 5]),
        r"expected a decision of 2 factors with the product 16, got \(3, 5\)",
    ),
    (
        "sample_perfect_tile",
        elementwise,
        lambda s: s.sample_perfect_tile(loops(s)[0], 2, 0),
        "expected max_innermost_factor to be at least 1, or -1 for no limit, got 0",
    ),
    (
        "sample_partitioned_tile",
        elementwise,
        lambda s: s.sample_partitioned_tile(loops(s)[0], 2, 3, 4),
        r"expected n of at least 1 and partition_pos in \[0, n\], got 2 and 3",
    ),
    (
        "sample_partitioned_tile",
        elementwise,
        lambda s: s.sample_partitioned_tile(loops(s)[0], 2, 1, 3),
        "expected innerpart_factor to divide 16, got 3",
    ),
    (
        "sample_compute_location",
        two_stages,
        lambda s: s.sample_compute_location("B", decision=-3),
        "expected a decision from -2 on, got -3",
    ),
    # ---- moving
    (
        "compute_at",
        let_around,
        lambda s: s.compute_at("B", loops(s, "C")[0]),
        "block B uses variable x of the statements around it",
    ),
    (
        "compute_at",
        nested,
        lambda s: s.compute_at("C", loops(s)[0]),
        "expected a loop of the same block scope as block C, got loop",
    ),
]


@pytest.mark.parametrize(("name", "program", "primitives", "reason"), CASES)
def test_refuse(name, program, primitives, reason):
    text = refused(
        program,
        primitives,
        rf"(?s)primitive '{name.replace('_', '-')}'.*Error message: .*({reason})",
    )
    assert "@I.ir_module" in text
    assert "^^^" in text or name in NOWHERE or re.search("got none|the location|root block", text)
