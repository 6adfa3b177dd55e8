# SPDX-License-Identifier: Apache-2.0
"""The tensor intrinsics of NVIDIA's GPUs: registered by name, each fits its own description."""

import pytest
import tvm
from tvm import tir
from tvm.tir.tensor_intrin import cuda

NAMES = """
mma_ldmatrix_f16_a mma_ldmatrix_f16_b mma_ldmatrix_f16_a_trans mma_ldmatrix_f16_b_trans
mma_ldmatrix_f16_a_dyn mma_ldmatrix_f16_b_dyn mma_ldmatrix_f16_a_trans_dyn
mma_ldmatrix_f16_b_trans_dyn mma_ldmatrix_i8_a mma_ldmatrix_i8_b mma_ldmatrix_i8_b_trans
mma_ldmatrix_e4m3_a mma_ldmatrix_e4m3_b mma_ldmatrix_e4m3_b_trans mma_ldmatrix_e5m2_a
mma_ldmatrix_e5m2_b mma_ldmatrix_e5m2_b_trans
mma_f16f16f32 mma_f16f16f32_trans_b mma_f16f16f32_trans_a mma_f16f16f32_trans_a_trans_b
mma_f16f16f16 mma_f16f16f16_trans_b mma_f16f16f16_trans_a mma_f16f16f16_trans_a_trans_b
mma_i8i8i32 mma_i8i8i32_trans_b mma_e5m2e5m2f32 mma_e5m2e5m2f32_trans_b mma_e4m3e4m3f32
mma_e4m3e4m3f32_trans_b
mma_fill_16x16_f32 mma_fill_16x16_f16 mma_fill_16x16_i32
mma_store_16x16_f32_global_ mma_store_16x16_f32_shared_dyn_ mma_store_16x16_f32_shared_dyn_simple_
mma_store_16x16_f16_shared_dyn_simple_ mma_store_16x16_f16_global_ mma_store_16x16_i32_global_
wmma_sync_16x16x16_f16f16f32 wmma_sync_16x16x16_f16f16f32_trans wmma_sync_16x16x16_f16f16f16
wmma_sync_16x16x16_f16f16f16_trans wmma_sync_16x16x16_s8s8s32 wmma_sync_16x16x16_s8s8s32_trans
wmma_sync_8x8x32_s4s4s32_trans
wmma_load_16x16x16_f16_a_shared wmma_load_16x16x16_f16_a_shared_dyn wmma_load_16x16x16_f16_b_shared
wmma_load_16x16x16_f16_b_shared_dyn wmma_load_16x16x16_f16_a_trans_shared
wmma_load_16x16x16_f16_a_trans_shared_dyn wmma_load_16x16x16_f16_b_trans_shared
wmma_load_16x16x16_f16_b_trans_shared_dyn wmma_load_16x16x16_s8_a_shared
wmma_load_16x16x16_s8_a_shared_dyn wmma_load_16x16x16_s8_b_shared wmma_load_16x16x16_s8_b_shared_dyn
wmma_load_16x16x16_s8_a_trans_shared wmma_load_16x16x16_s8_a_trans_shared_dyn
wmma_load_16x16x16_s8_b_trans_shared wmma_load_16x16x16_s8_b_trans_shared_dyn
wmma_load_8x8x32_s4_a_shared wmma_load_8x8x32_s4_a_shared_dyn wmma_load_8x8x32_s4_b_trans_shared
wmma_load_8x8x32_s4_b_trans_shared_dyn
wmma_fill_16x16x16_f32 wmma_fill_16x16x16_f16 wmma_fill_16x16x16_s32 wmma_fill_8x8x32_s32
wmma_store_16x16x16_f32_shared wmma_store_16x16x16_f32_shared_dyn wmma_store_16x16x16_f16_shared
wmma_store_16x16x16_f16_shared_dyn wmma_store_16x16x16_s32_shared wmma_store_16x16x16_s32_shared_dyn
wmma_store_8x8x32_s32_shared wmma_store_8x8x32_s32_shared_dyn wmma_store_16x16x16_f32_global
wmma_store_16x16x16_f16_global wmma_store_16x16x16_s32_global wmma_store_8x8x32_s32_global
mma_init_m16n8k8_f16 mma_init_m16n8k8_f32 mma_load_m16n8k8_f16_A_shared_dyn
mma_load_m16n8k8_f16_B_shared_dyn mma_sync_m16n8k8_f16f16f16 mma_sync_m16n8k8_f16f16f32
mma_store_m16n8k8_f16_global mma_store_m16n8k8_f32_global
""".split()


def test_there_are_as_many_as_in_the_reference():
    assert len(NAMES) == len(set(NAMES)) == 91


def program_of(desc):
    """A kernel that does once what an intrinsic is described to do."""
    func = desc.with_attr("global_symbol", "main")
    buffers = [func.buffer_map[p] for p in func.params]
    inner = func.body.block.body  # of the root
    made = [tir.decl_buffer(b.shape, b.dtype, b.name, scope=b.scope()) for b in buffers]
    moved = {b: m for b, m in zip(buffers, made, strict=True)}

    def replace(node):
        if isinstance(node, tir.BufferLoad) and node.buffer in moved:
            return tir.BufferLoad(moved[node.buffer], node.indices)
        if isinstance(node, tir.BufferStore) and node.buffer in moved:
            return tir.BufferStore(moved[node.buffer], node.value, node.indices)
        if isinstance(node, tir.BlockRealize):
            block = node.block
            regions = [
                [tir.BufferRegion(moved.get(r.buffer, r.buffer), r.region) for r in rs]
                for rs in (block.reads, block.writes)
            ]
            block = tir.Block(block.iter_vars, *regions, block.name_hint, block.body, block.init,
                              block.alloc_buffers)  # fmt: skip
            return tir.BlockRealize(node.iter_values, node.predicate, block)
        return None

    body = tir.stmt_functor.ir_transform(inner, None, replace)
    root = tir.Block([], [], [], "root", body, alloc_buffers=made)
    return tir.PrimFunc([], tir.BlockRealize([], True, root)).with_attr("global_symbol", "main")


@pytest.mark.parametrize("name", NAMES)
def test_each_tensorizes_its_own_description(name):
    intrin = tir.TensorIntrin.get(name)
    sch = tvm.tir.Schedule(program_of(intrin.desc))
    (block,) = sch.get_child_blocks(sch.get_block("root"))
    sch.tensorize(sch.get_loops(block)[0], name)
    text = sch.mod.script()
    calls = ("ptx_", "mma_fill", "mma_store", "matrix_sync", "mma_sync", "fill_fragment")
    is_plain = "simple" in name or "store_m16n8k8" in name or name in (
        "mma_ldmatrix_i8_b", "mma_ldmatrix_e4m3_b", "mma_ldmatrix_e5m2_b"
    )  # fmt: skip
    assert is_plain or any(call in text for call in calls)
    assert "grid(16" not in text and "grid(32" not in text


def test_the_names_of_a_product():
    names = cuda.get_mma_intrin_group("shared.dyn", "global", "int8", "int32", False, True)
    assert names == {
        "init": "mma_fill_16x16_i32",
        "load_a": "mma_ldmatrix_i8_a_dyn",
        "load_b": "mma_ldmatrix_i8_b_trans_dyn",
        "compute": "mma_i8i8i32_trans_b",
        "store": "mma_store_16x16_i32_global_simple_",
    }
    assert all(tir.TensorIntrin.get(name) for name in names.values())
    names = cuda.get_mma_intrin_group(
        "shared", "shared.dyn", "float16", "float32", True, False,
        not_use_mma_store_intrinic=False, store_to_smem_dtype="float16",
    )  # fmt: skip
    assert names["store"] == "mma_store_16x16_f16_shared_dyn_"
    assert names["compute"] == cuda.MMA_f16f16f32_TRANS_A_INTRIN


def test_products_that_there_are_not():
    with pytest.raises(ValueError, match="get_mma_intrin_group: expected one of the products"):
        cuda.get_mma_intrin_group("shared", "global", "float16", "int32", False, False)
    with pytest.raises(ValueError, match="expected trans_a for float16 only"):
        cuda.get_mma_intrin_group("shared", "global", "int8", "int32", True, False)
    with pytest.raises(ValueError, match="expected the factor A or B, of 16 columns or 32"):
        cuda.get_ldmatrix_intrin(16, "float16", "C", False)
