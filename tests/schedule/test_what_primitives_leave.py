# SPDX-License-Identifier: Apache-2.0
"""What the next line of a script looks up after a primitive: names, order, bindings, texts."""

import pytest
from tvm import tir
from tvm.meta_schedule.search_strategy import SearchStrategy
from tvm.script import tir as T

from tests.schedule.programs import two_stages


@T.prim_func
def rows(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128,), "float32")):
    for i, k in T.grid(128, 128):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func
def product(
    A: T.Buffer((64, 64), "float32"),
    B: T.Buffer((64, 64), "float32"),
    C: T.Buffer((64, 64), "float32"),
):
    for i, j, k in T.grid(64, 64, 64):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def realize(sch, name):
    found = []

    def visit(node):
        if isinstance(node, tir.BlockRealize) and node.block.name_hint == name:
            found.append(node)

    tir.stmt_functor.post_order_visit(sch.mod["main"].body, visit)
    return found[0]


def names(block):
    return [str(v.var.name) for v in block.iter_vars]


# ---- loops and bindings -------------------------------------------------------------------------
def test_predicates_of_splits_are_nested():
    sch = tir.Schedule(rows)
    sch.split(sch.get_loops("B")[0], [None, 3, 7])
    assert str(realize(sch, "B").predicate) == "(i_0 * 3 + i_1) * 7 + i_2 < 128"


def test_loops_that_are_not_affine_are_bound():
    @T.prim_func
    def func(A: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("A"):
                v = T.axis.spatial(16, i * 3 % 16)
                A[v] = 1.0

    sch = tir.Schedule(func)
    sch.bind(sch.get_loops("A")[0], "threadIdx.x")


def test_unit_loops_are_in_the_binding():
    sch = tir.Schedule(two_stages)
    sch.compute_at("B", sch.get_loops("C")[0], preserve_unit_loops=True)
    assert str(realize(sch, "B").iter_values[0]) == "i + ax0"


def test_the_iterator_of_rfactor_comes_first():
    sch = tir.Schedule(product)
    _, inner = sch.split(sch.get_loops("C")[2], [None, 4])
    part = sch.get(sch.rfactor(inner, 0))
    assert names(part) == ["vk_1", "vi", "vj", "vk_0"]
    assert part.iter_vars[0].iter_type == tir.IterVar.DataPar
    whole = sch.get(sch.get_block("C"))
    assert names(whole) == ["vk_1", "vi", "vj"]
    assert whole.iter_vars[0].iter_type == tir.IterVar.CommReduce


# ---- blocks -------------------------------------------------------------------------------------
def test_blockize_names_iterators_of_one_value():
    @T.prim_func
    def func(A: T.Buffer((1, 128), "float32"), B: T.Buffer((1, 128), "float32")):
        for i, j in T.grid(1, 128):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]

    sch = tir.Schedule(func)
    _, inner = sch.split(sch.get_loops("B")[1], [None, 16])
    outer = sch.get(sch.blockize(inner))
    assert outer.name_hint == "B_o" and names(outer) == ["vi_o", "vj_o"]
    assert names(sch.get(sch.get_block("B"))) == ["vj_i"]


def test_several_blocks_have_one_name_together():
    sch = tir.Schedule(two_stages)
    sch.compute_at("B", sch.get_loops("C")[0])
    outer = sch.blockize([sch.get_block("B"), sch.get_block("C")])
    assert sch.get(outer).name_hint == "outer_B_C_"


def test_reindexed_buffers_have_the_iterators_they_use():
    sch = tir.Schedule(product)
    buffer = sch.get(sch.reindex("C", ("read", 0))).writes[0].buffer
    assert buffer.name == "A_reindex" and len(buffer.shape) == 2


def test_a_written_cache_goes_back_at_the_end():
    sch = tir.Schedule(two_stages)
    sch.cache_write("C", 0, "local")
    blocks = [str(sch.get(b).name_hint) for b in sch.get_child_blocks("root")]
    assert blocks == ["B", "C", "C_local"]


def test_copies_of_read_at_are_marked():
    sch = tir.Schedule(product)
    copy = sch.read_at(sch.get_loops("C")[2], "C", 0, "shared")
    assert sch.get(copy).annotations["auto_copy"] is True


@pytest.mark.parametrize("bound", [False, True])
def test_stages_of_decomposed_and_bound_blocks(bound):
    sch = tir.Schedule(rows)
    outer, inner = sch.get_loops("B")
    if bound:
        sch.bind(outer, "threadIdx.x")
    else:
        sch.decompose_reduction("B", inner)
    root = sch.get_sref(sch.get_block("root"))
    assert sch.state._get_cached_flags(root).stage_pipeline


def test_predicated_tiles_are_affine():
    sch = tir.Schedule(rows)
    sch.split(sch.get_loops("B")[0], [None, 7])
    block = sch.get_sref(sch.get_block("B"))
    assert sch.state._get_cached_flags(block).affine_binding


# ---- texts --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("step", "text"),
    [
        (lambda s: s.compute_at("C", s.get_loops("B")[0]), "output block"),
        (lambda s: s.compute_at("B", s.get_loops("B")[0]), "ancestor of block"),
        (
            lambda s: s.split(s.get_loops("B")[0], [2, 2]),
            "product of factors is not larger than or equal to the extent",
        ),
        (lambda s: s.get_block("D"), "Cannot find a block with the name: D"),
        (lambda s: s.get_block("D"), "schedule primitive 'get-block'"),
        (lambda s: s.cache_read("B", 0, "nowhere"), "expected a memory scope"),
    ],
)
def test_words_that_scripts_match(step, text):
    with pytest.raises(tir.ScheduleError, match=text):
        step(tir.Schedule(two_stages))


def test_reductions_are_no_complete_blocks():
    with pytest.raises(tir.ScheduleError, match="complete block"):
        tir.Schedule(rows).compute_inline("B")


@pytest.mark.parametrize(
    ("level", "text"), [("fast", "with the specified name"), ("none", "not rendered")]
)
def test_short_errors(level, text):
    with pytest.raises(tir.ScheduleError, match=text):
        tir.Schedule(two_stages, error_render_level=level).get_block("D")


def test_abstract_strategies_say_so():
    with pytest.raises(TypeError, match="Cannot instantiate abstract class SearchStrategy"):
        SearchStrategy()
