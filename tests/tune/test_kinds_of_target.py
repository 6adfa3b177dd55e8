# SPDX-License-Identifier: Apache-2.0
"""Default spaces for processors that are not here: matrix units of GPUs, vectors of RISC-V. Their
candidates are scheduled, lowered or cross-compiled, and looked at."""

import re

import pytest
import tvm
from tvm import meta_schedule as ms
from tvm import te, tir
from tvm.target import Target
from tvm.tir.tensor_intrin import cuda

A100 = Target("nvidia/nvidia-a100", host="llvm")
RISCV = Target(
    "llvm -mtriple=riscv64-unknown-linux-gnu -mcpu=generic-rv64 -mabi=lp64d -num-cores=2 "
    "-mattr=+64bit,+a,+c,+d,+f,+m,+v,+zvl256b"
)


def product(n, dtype, out_dtype, trans_b):
    A, B = (te.placeholder((n, n), dtype, name=name) for name in "AB")
    k = te.reduce_axis((0, n), name="k")
    wide = lambda x: x if dtype == out_dtype else x.astype(out_dtype)
    at = (lambda j, k: B[j, k]) if trans_b else (lambda j, k: B[k, j])
    C = te.compute((n, n), lambda i, j: te.sum(wide(A[i, k]) * wide(at(j, k)), axis=k), name="C")
    return te.create_prim_func([A, B, C])


def candidates(func, target, spaces=lambda found: found, count=3):
    context = ms.TuneContext(
        func,
        target=target,
        space_generator="post-order-apply",
        search_strategy="replay-trace",
        rand_state=1,
        num_threads=1,
    )
    found = spaces(context.generate_design_space())
    context.pre_tuning(count, count, found)
    return found, [c for c in context.generate_measure_candidates() if len(c.sch.trace.insts)]


PRODUCTS = [
    ("float16", "float32", False),
    ("float16", "float32", True),
    ("float16", "float16", False),
    ("int8", "int32", False),
    ("int8", "int32", True),
]


@pytest.mark.parametrize("types", PRODUCTS, ids=lambda types: "-".join(map(str, types)))
def test_products_go_to_the_matrix_units(types):
    spaces, found = candidates(product(128, *types), A100)
    group = cuda.get_wmma_intrin_group("shared", "shared", *types)
    assert len(spaces) == 1  # the intrinsics of other types do not fit
    assert all(f'"{name}"' in spaces[0].mod.script() for name in group.values())
    assert found
    for candidate in found:
        mod = tir.transform.BindTarget(A100)(candidate.sch.mod)
        kernel = tir.get_tir_pipeline("default")(mod)["main_kernel"].script()
        for call in ("tvm_fill_fragment", "tvm_mma_sync", "tvm_store_matrix_sync"):
            assert kernel.count(f"T.{call}(") == 1
        assert kernel.count("T.tvm_load_matrix_sync(") == 2
        assert ("col_major" in kernel) == types[2]
        # A warp for each index of the other threads.
        assert re.search(r'launch_thread\("threadIdx.x", 32\)', kernel)


def test_what_no_matrix_unit_computes_is_tiled_as_on_other_gpus():
    for func in (product(128, "float32", "float32", False), product(120, "float16", "float32", 0)):
        spaces, found = candidates(func, A100)
        assert found and not any("wmma" in s.mod.script() for s in spaces)


def test_older_gpus_have_no_matrix_units():
    spaces, _ = candidates(product(128, "float16", "float32", False), Target("cuda -arch=sm_60"))
    assert not any("wmma" in s.mod.script() for s in spaces)
    assert ms.ScheduleRule.create("cuda-tensorcore") and ms.Mutator.create("cuda-tensorcore")
    assert ms.Postproc.create("cuda-tensorcore")


def test_groups_of_intrinsics():
    group = cuda.get_wmma_intrin_group("shared.dyn", "global", "int4", "int32", True)
    assert group["load_a"] == cuda.WMMA_LOAD_8x8x32_S4_A_DYN_INTRIN
    assert group["store"] == cuda.WMMA_STORE_8x8x32_S32_GLOBAL_INTRIN
    for name in group.values():
        tir.TensorIntrin.get(name)
    with pytest.raises(ValueError, match="expected one of the products .* got float64 to float64"):
        cuda.get_wmma_intrin_group("shared", "shared", "float64", "float64", False)


@pytest.mark.parametrize(
    ("types", "instruction"),
    [(("int8", "int32", True), "vredsum.vs"), (("float32", "float32", True), "vfredosum.vs")],
    ids=["int8", "float32"],
)
def test_dot_products_of_riscv_vectors(types, instruction):
    chosen = lambda found: [s for s in found if "rvv_dot" in s.mod.script()]
    spaces, found = candidates(product(64, *types), RISCV, chosen)
    assert spaces and found
    # Eight registers of 256 bits hold 64 elements: the longest one that fits is taken.
    assert all(f"rvv_dot_64{types[0]}_8x64{types[0]}_8{types[1]}" in s.mod.script() for s in spaces)
    for candidate in found:
        text = candidate.sch.mod.script()
        assert "auto_tensorize" not in text and "llvm.vector.reduce" in text
        assert instruction in tvm.compile(candidate.sch.mod, RISCV).inspect_source("asm")


def test_rules_of_riscv_vectors_are_as_long_as_those_of_the_target():
    with RISCV:
        names = [str(r.intrin_name) for r in ms.ScheduleRule.create("rvv") if "Intrin" in str(r)]
    assert "rvv_dot_64int8_8x64int8_8int32" in names
    with pytest.raises(ValueError, match="expected a target for the rules 'rvv'"):
        ms.ScheduleRule.create("rvv")


# ---- the lists that scripts build on -------------------------------------------------------------
def names_of(kind):
    return [type(rule).__name__ for rule in ms.ScheduleRule.create(kind)]


def test_documented_rules():
    assert names_of("llvm") == [
        "ApplyCustomRule", "InlineConstantScalars", "AutoInline", "AddRFactor", "MultiLevelTiling",
        "ParallelizeVectorizeUnroll", "RandomComputeLocation",
    ]  # fmt: skip
    assert names_of("cuda") == [
        "ApplyCustomRule", "MultiLevelTiling", "InlineConstantScalars", "AutoInline",
        "CrossThreadReduction", "ParallelizeVectorizeUnroll", "AutoBind",
    ]  # fmt: skip
    *_, unroll, _ = ms.ScheduleRule.create("llvm")
    assert list(unroll.unroll_max_steps) == [0, 16, 64, 512]
    _, tiling, _, _, threads, unroll, bind = ms.ScheduleRule.create("cuda")
    assert list(tiling.vector_load_lens) == [1, 2, 3, 4, 8, 16]
    assert list(threads.thread_extents) == [4, 8, 16, 32, 64, 128, 256, 512]
    assert list(unroll.unroll_max_steps) == [0, 16, 64, 512, 1024]
    assert list(bind.thread_extents) == [32, 64, 128, 256, 512, 1024]


def test_tuning_has_rules_of_its_own():
    own = [type(rule).__name__ for rule in ms.schedule_rule.tuning_rules("llvm")]
    assert {"AroundDefault", "RegisterTiling", "SpatialTiling"} <= set(own)
