# SPDX-License-Identifier: Apache-2.0
"""Tiles whose innermost part is a dot product of the processor."""

import numpy as np
import pytest
import tvm
from tvm import meta_schedule as ms
from tvm import te
from tvm.meta_schedule.postproc import RewriteTensorize
from tvm.meta_schedule.schedule_rule import MultiLevelTilingWithIntrin, ReuseType
from tvm.meta_schedule.space_generator import PostOrderApply
from tvm.tir.tensor_intrin import x86

CASES = [
    (x86.VNNI_DOT_16x4_INTRIN, "avx512_vnni", "vpdpbusd"),
    (x86.AVX512_DOT_16x4_INTRIN, "avx512bw", "vpmaddwd"),
]


def dense(n=32, m=64, k=128):
    """u8 * i8 with the weights packed as the instructions want them."""
    a = te.placeholder((n, k), "uint8", name="A")
    w = te.placeholder((m // 16, k // 4, 16, 4), "int8", name="W")
    r = te.reduce_axis((0, k), name="r")
    element = lambda i, j: te.sum(
        a[i, r].astype("int32") * w[j // 16, r // 4, j % 16, r % 4].astype("int32"), axis=r
    )
    return te.create_prim_func([a, w, te.compute((n, m), element, name="C")])


def spaces(intrin):
    rule = MultiLevelTilingWithIntrin(
        intrin,
        structure="SSRSRS",
        max_innermost_factor=64,
        reuse_write=ReuseType(req="may", levels=[1, 2], scope="global"),
    )
    return PostOrderApply(sch_rules=[rule], postprocs=[RewriteTensorize()], mutator_probs={})


def host_has(feature):
    try:
        with open("/proc/cpuinfo") as file:
            return feature in file.read()
    except OSError:
        return False


@pytest.mark.parametrize(("intrin", "feature", "instruction"), CASES)
def test_candidates_use_the_instruction(intrin, feature, instruction):
    target = "llvm -mtriple=x86_64-linux-gnu -mcpu=cascadelake -num-cores=2"
    ctx = ms.TuneContext(
        dense(), target=target, space_generator=spaces(intrin), search_strategy="replay-trace",
        rand_state=1,
    )  # fmt: skip
    designs = ctx.generate_design_space()
    assert len(designs) == 3  # no buffer for the result, or one below the first or second tile
    ctx.pre_tuning(4, 4, designs)
    found = [c for c in ctx.generate_measure_candidates() if len(c.sch.trace.insts)]
    assert found
    for candidate in found:
        assert instruction in tvm.compile(candidate.sch.mod, target).mod.inspect_source("asm")


@pytest.mark.parametrize(("intrin", "feature", "instruction"), CASES)
def test_they_compute_the_product(tmp_path, intrin, feature, instruction):
    if not host_has(feature):
        pytest.skip(f"this CPU has no {feature}")
    func = dense()
    database = ms.tune_tir(
        func, "llvm", str(tmp_path), 6, space=spaces(intrin), cost_model="random", seed=1
    )
    records = [r for r in database.get_all_tuning_records() if len(r.trace.insts)]
    assert records and all(r.error_msg is None for r in records)
    rng = np.random.default_rng(0)
    a, w = rng.integers(0, 16, (32, 128)), rng.integers(-8, 8, (64, 128))
    packed = w.reshape(4, 16, 32, 4).transpose(0, 2, 1, 3)
    got = np.zeros((32, 64), "int32")
    best = records[0].as_measure_candidate().sch.mod
    tvm.compile(best, "llvm")(a.astype("uint8"), np.ascontiguousarray(packed, "int8"), got)
    np.testing.assert_array_equal(got, a @ w.T)


def test_a_block_that_is_no_dot_product_is_left_alone():
    a = te.placeholder((64, 64), "int8", name="A")
    func = te.create_prim_func([a, te.compute((64, 64), lambda i, j: a[i, j] + a[j, i], name="C")])
    ctx = ms.TuneContext(
        func, target="llvm", space_generator=spaces(x86.VNNI_DOT_16x4_INTRIN),
        search_strategy="replay-trace",
    )  # fmt: skip
    (only,) = ctx.generate_design_space()
    tvm.ir.assert_structural_equal(only.mod, ctx.mod)
