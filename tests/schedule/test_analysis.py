# SPDX-License-Identifier: Apache-2.0
"""Questions about schedules"""

import pytest
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir.schedule.analysis import (
    BlockView,
    get_auto_tensorize_mapping_info,
    get_tensorize_loop_mapping,
    has_block,
    is_output_block,
    suggest_index_map,
)
from tvm.tir.schedule.transform import tile_with_tensor_intrin
from tvm.tir.tensor_intrin import x86

from .checking import apply
from .programs import elementwise, matmul, shared_loop, two_stages

ALWAYS = tir.const(True)


def test_has_block():
    sch = tir.Schedule(two_stages)
    assert has_block(sch, "B") and has_block(sch, "C") and not has_block(sch, "D")


def test_is_output_block():
    sch = tir.Schedule(two_stages)
    assert not is_output_block(sch, sch.get_block("B"))
    assert is_output_block(sch, sch.get_block("C"))


def test_the_view_of_a_product():
    view = BlockView(sch := tir.Schedule(matmul), sch.get_block("C"))
    assert [var.name for var in view.loop_vars] == ["i", "j", "k"]
    assert view.uses == ["S", "S", "R"]
    steps = {access.buffer.name: [int(s) for s in access.steps] for access in view.accesses}
    assert steps == {"A": [12, 0, 1], "B": [0, 1, 8], "C": [8, 1, 0]}
    assert [load.buffer.name for load in view.loads] == ["A", "B"]
    assert [load.moves(1) for load in view.loads] == [False, True]


def test_the_view_of_a_split_loop_and_of_indices_from_data():
    @T.prim_func
    def gather(
        x: T.Buffer((64,), "float32"), at: T.Buffer((64,), "int32"), y: T.Buffer((64,), "float32")
    ):
        for i in range(64):
            with T.block("y"):
                vi = T.axis.spatial(64, i)
                y[vi] = x[at[vi]]

    sch = tir.Schedule(gather)
    block = sch.get_block("y")
    sch.split(sch.get_loops(block)[0], [None, 8])
    view = BlockView(sch, block)
    assert view.uses == ["S", "S"]
    by_name = {access.buffer.name: access for access in view.accesses}
    assert by_name["x"].steps is None and by_name["x"].moves(0)
    assert [int(step) for step in by_name["y"].steps] == [8, 1]
    assert by_name["y"].is_store and not by_name["at"].is_store


def test_the_view_of_a_reshaped_buffer():
    """Its indices are divided; the place in memory is not."""

    @T.prim_func
    def reshape(x: T.Buffer((8, 6), "float32"), y: T.Buffer((2, 8, 3), "float32")):
        for i, j, k in T.grid(2, 8, 3):
            with T.block("y"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                y[vi, vj, vk] = x[(vi * 24 + vj * 3 + vk) // 6, (vj * 3 + vk) % 6]

    @T.prim_func
    def wrap(x: T.Buffer((8, 6), "float32"), y: T.Buffer((8, 6), "float32")):
        for i, j in T.grid(8, 6):
            with T.block("y"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, (vj + 1) % 6]

    view = BlockView(sch := tir.Schedule(reshape), sch.get_block("y"))
    assert [int(step) for step in view.loads[0].steps] == [24, 3, 1]
    assert BlockView(sch := tir.Schedule(wrap), sch.get_block("y")).loads[0].steps is None


def test_a_view_is_no_step_of_the_trace():
    sch = tir.Schedule(matmul)
    block = sch.get_block("C")
    steps = len(sch.trace.insts)
    BlockView(sch, block)
    assert len(sch.trace.insts) == steps


def flags(func, block):
    sch = tir.Schedule(func)
    return sch.state._get_cached_flags(sch.get_sref(sch.get_block(block)))


def test_flags():
    assert flags(two_stages, "C") == (True, True, True)
    assert flags(two_stages, "root").stage_pipeline
    assert not flags(shared_loop, "C").region_cover
    assert not flags(shared_loop, "root").stage_pipeline

    @T.prim_func
    def not_affine(A: T.Buffer((16,), "float32")):
        for i, j in T.grid(4, 4):
            with T.block("A"):
                vi = T.axis.spatial(16, i * j)
                A[vi] = 1.0

    assert not flags(not_affine, "A").affine_binding
    sch = tir.Schedule(two_stages)
    loop = sch.get_sref(sch.get_loops("B")[0])
    with pytest.raises(ValueError, match="expected a block of this state"):
        sch.state._get_cached_flags(loop)


def test_suggest_index_map():
    def suggest(indices, predicate=ALWAYS):
        i, j, k = loops
        return suggest_index_map(A, indices(i.loop_var, j.loop_var, k.loop_var), loops, predicate)

    A = tir.decl_buffer((8, 16), "float32")
    loops = [
        tir.For(tir.Var(name, "int32"), 0, extent, tir.ForKind.SERIAL, tir.Evaluate(0))
        for name, extent in (("j0", 4), ("i", 8), ("j1", 4))
    ]
    expected = tir.IndexMap.from_func(lambda i, j: (j // 4, i, j % 4), index_dtype="int32")
    tvm.ir.assert_structural_equal(suggest(lambda j0, i, j1: [i, j0 * 4 + j1]), expected)
    assert suggest(lambda j0, i, j1: [i, j0 + j1]) is None
    assert suggest(lambda j0, i, j1: [i, j0 * j1]) is None
    less = loops[1].loop_var < 3
    assert suggest(lambda j0, i, j1: [i, j0 * 4 + j1], less) is None


# ---- tensorisation -------------------------------------------------------------------------------
def int8_gemm(m, n, k):
    @T.prim_func
    def func(
        A: T.Buffer((m, k), "uint8"), B: T.Buffer((n, k), "int8"), C: T.Buffer((m, n), "int32")
    ):
        for i, j, l in T.grid(m, n, k):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, l])
                with T.init():
                    C[vi, vj] = 0
                C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "int32") * T.cast(B[vj, vk], "int32")

    return func


def mapping(func, allow_padding=False):
    sch = tir.Schedule(func)
    desc = tir.TensorIntrin.get(x86.VNNI_DOT_16x4_INTRIN).desc
    return get_tensorize_loop_mapping(sch, sch.get_block("C"), desc, allow_padding)


def test_tensorize_loop_mapping():
    info = mapping(int8_gemm(4, 32, 16))
    found = {sref.stmt.loop_var.name: int(loop.extent) for sref, loop in info.loop_map.items()}
    assert found == {"j": 16, "l": 4}
    assert sorted(int(i) for i in info.desc_loop_indexer.values()) == [0, 1]
    assert info.block_iter_paddings is None
    assert mapping(int8_gemm(4, 30, 16)) is None
    assert list(mapping(int8_gemm(4, 30, 16), True).block_iter_paddings) == [1, 16, 1]
    assert mapping(matmul) is None


def test_tile_with_padding():
    def primitives(sch):
        name = x86.VNNI_DOT_16x4_INTRIN
        assert tile_with_tensor_intrin(sch, sch.get_block("C"), name) is None
        loop = tile_with_tensor_intrin(sch, sch.get_block("C"), name, allow_padding=True)
        assert int(sch.get(loop).extent) == 16
        assert [int(sch.get(x).extent) for x in sch.get_loops("C")] == [3, 2, 2, 16, 4]

    apply(int8_gemm(3, 30, 7), primitives)


@T.prim_func
def gemm_desc(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4, 4), offset_factor=1)
    B = T.match_buffer(b, (4, 4), offset_factor=1)
    C = T.match_buffer(c, (4, 4), offset_factor=1)
    with T.block("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        for i, j, k in T.grid(4, 4, 4):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def conv2d(
    X: T.Buffer((2, 4, 4, 2), "float32"),
    W: T.Buffer((3, 3, 2, 3), "float32"),
    Y: T.Buffer((2, 2, 2, 3), "float32"),
):
    for n, h, w, o, p, q, c in T.grid(2, 2, 2, 3, 3, 3, 2):
        with T.block("Y"):
            vn, vh, vw, vo, vp, vq, vc = T.axis.remap("SSSSRRR", [n, h, w, o, p, q, c])
            with T.init():
                Y[vn, vh, vw, vo] = 0.0
            Y[vn, vh, vw, vo] = Y[vn, vh, vw, vo] + X[vn, vh + vp, vw + vq, vc] * W[vp, vq, vc, vo]


def test_auto_tensorize_convolution():
    """Fused as the intrinsic has it, it is a matrix product that the intrinsic's tiles fit."""

    def primitives(sch):
        info = get_auto_tensorize_mapping_info(sch, sch.get_block("Y"), gemm_desc)
        (index_map,) = info.mappings
        assert [str(v) for v in info.lhs_iters[0:1]] and len(info.rhs_iters) == 3
        assert {b.name: d.name for b, d in info.lhs_buffer_map.items()} == {
            "Y": "C", "X": "A", "W": "B",
        }  # fmt: skip
        for buffer in (("read", 0), ("read", 1), ("write", 0)):
            sch.reindex("Y", buffer)
        sch.transform_block_layout("Y", index_map)
        assert [int(sch.get(x).extent) for x in sch.get_loops("Y")] == [8, 3, 18]

    apply(conv2d, primitives)


def test_auto_tensorize_batch():
    @T.prim_func
    def batch(A: T.Buffer((2, 4, 8)), B: T.Buffer((2, 8, 4)), C: T.Buffer((2, 4, 4))):
        for b, i, j, k in T.grid(2, 4, 4, 8):
            with T.block("C"):
                vb, vi, vj, vk = T.axis.remap("SSSR", [b, i, j, k])
                with T.init():
                    C[vb, vi, vj] = 0.0
                C[vb, vi, vj] = C[vb, vi, vj] + A[vb, vi, vk] * B[vb, vk, vj]

    sch = tir.Schedule(batch)
    (index_map,) = get_auto_tensorize_mapping_info(sch, sch.get_block("C"), gemm_desc).mappings
    assert len(index_map.final_indices) == 4


def test_auto_tensorize_nothing_alike():
    for func in (elementwise, int8_gemm(4, 4, 4)):
        sch = tir.Schedule(func)
        block = sch.get_block("B" if func is elementwise else "C")
        assert get_auto_tensorize_mapping_info(sch, block, gemm_desc) is None
