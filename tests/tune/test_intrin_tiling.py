# SPDX-License-Identifier: Apache-2.0
"""Tiles whose innermost part is a dot product of the processor."""

import numpy as np
import pytest
import tvm
from tvm import meta_schedule as ms
from tvm import te, tir
from tvm.meta_schedule.postproc import RewriteTensorize
from tvm.meta_schedule.schedule_rule import (
    MultiLevelTilingTensorCore,
    MultiLevelTilingWithIntrin,
    ReuseType,
)
from tvm.meta_schedule.space_generator import PostOrderApply
from tvm.tir.tensor_intrin import x86

from tests.tune import programs

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


@pytest.mark.parametrize(
    ("cpu", "kind", "intrin"),
    [
        ("x86_64-linux-gnu -mcpu=cascadelake", "vnni", "dot_16x4_vnni"),
        ("x86_64-linux-gnu -mcpu=skylake-avx512", "avx512", "dot_16x4_avx512"),
        ("aarch64-linux-gnu -mattr=+v8.2a,+dotprod", "dotprod", "dot_4x4_i8i8s32_sdot"),
        ("aarch64-linux-gnu -mattr=+neon", "asimd", "dot_4x4_i8i8s32_neon"),
    ],
)
def test_dot_products_of_a_cpu_are_found_by_its_features(cpu, kind, intrin):
    def used(target):
        ctx = ms.TuneContext(programs.matmul(), target=target, space_generator="post-order-apply")
        rules = ctx.space_generator.sch_rules
        return [str(r.intrin_name) for r in rules if isinstance(r, MultiLevelTilingWithIntrin)]

    assert used(f"llvm -mtriple={cpu}")[0] == intrin
    assert used("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64") == []
    rules = ms.ScheduleRule.create(kind)
    assert any(isinstance(r, MultiLevelTilingWithIntrin) for r in rules)


def test_the_default_space_uses_dot_products_where_they_fit():
    target = "llvm -mtriple=x86_64-linux-gnu -mcpu=cascadelake -num-cores=2"
    for func, fits in ((dense(), True), (programs.matmul(64, 64, 64), False)):
        ctx = ms.TuneContext(func, target=target, space_generator="post-order-apply")
        texts = [s.mod.script() for s in ctx.generate_design_space()]
        assert fits == any("dot_16x4_vnni" in t for t in texts)


# ---- matrix units -------------------------------------------------------------------------------
SIDE, A, B, C = 4, "wmma.matrix_a", "wmma.matrix_b", "wmma.accumulator"


def intrinsic(name, buffers, reads, loops, body):
    """Registers an intrinsic whose description is loops with a block, and which is plain loops."""
    from tvm.script import from_source

    params = ", ".join(f"{b}: T.handle" for b in buffers)
    matches = "\n".join(
        f"    {b.upper()} = T.match_buffer({b}, ({SIDE}, {SIDE}), 'float32', "
        f"scope={scope!r}, offset_factor=1)"
        for b, scope in buffers.items()
    )
    whole = lambda names: ", ".join(f"{n}[0:{SIDE}, 0:{SIDE}]" for n in names)
    result = list(buffers)[-1].upper()
    axes, kinds = ", ".join(loops), "".join("R" if i == "k" else "S" for i in loops)
    described = f"""            with T.block(""):
                {axes} = T.axis.remap("{kinds}", [{", ".join("l" + i for i in loops)}])
                {body}"""
    plain = f"            {body}"
    texts = [
        f"""@T.prim_func
def {which}({params}):
{matches}
    with T.block("root"):
        T.reads({whole(reads)})
        T.writes({whole([result])})
        for {", ".join(prefix + i for i in loops)} in T.grid({", ".join([str(SIDE)] * len(loops))}):
{inside}
"""
        for which, prefix, inside in (("desc", "l", described), ("impl", "", plain))
    ]
    tir.TensorIntrin.register(name, *(from_source(t) for t in texts), override=True)
    return name


@pytest.fixture(scope="module")
def group():
    add = "C[i, j] = C[i, j] + A[i, k] * B[k, j]"
    return {
        "init": intrinsic("unit_init", {"c": C}, [], "ij", "C[i, j] = T.float32(0)"),
        "load_a": intrinsic("unit_a", {"x": "shared", "a": A}, "X", "ij", "A[i, j] = X[i, j]"),
        "load_b": intrinsic("unit_b", {"x": "shared", "b": B}, "X", "ij", "B[i, j] = X[i, j]"),
        "compute": intrinsic("unit_add", {"a": A, "b": B, "c": C}, "CAB", "ijk", add),
        "store": intrinsic("unit_store", {"c": C, "y": "shared"}, "C", "ij", "Y[i, j] = C[i, j]"),
    }


def unit_rule(group, **options):
    given = {
        "structure": "SSSRRSRS",
        "reuse_read": ReuseType("must", [4], "shared"),
        "reuse_write": ReuseType("must", [2], "shared"),
        **options,
    }
    return MultiLevelTilingTensorCore([group], **given)


@pytest.mark.parametrize("pipelined", [False, True])
def test_matrix_units_compute_the_product(group, pipelined):
    rule = unit_rule(group, use_software_pipeline=pipelined)
    space = PostOrderApply(sch_rules=[rule], postprocs=[RewriteTensorize()], mutator_probs={})
    func = programs.matmul(32, 48, 64)
    ctx = ms.TuneContext(
        func, target="llvm", space_generator=space, search_strategy="replay-trace", rand_state=1
    )
    (design,) = ctx.generate_design_space()
    text = design.mod.script()
    for name in group.values():
        assert f'"{name}"' in text
    ctx.pre_tuning(4, 4, [design])
    found = [c for c in ctx.generate_measure_candidates() if len(c.sch.trace.insts)]
    assert found
    rng = np.random.default_rng(0)
    a, b = rng.random((32, 64), dtype="float32"), rng.random((64, 48), dtype="float32")
    for candidate in found:
        text = candidate.sch.mod.script()
        assert "auto_tensorize" not in text
        assert ("software_pipeline_stage" in text) == pipelined
        for scope in (A, B, C):
            assert f'scope="{scope}"' in text
        got = np.zeros((32, 48), "float32")
        tvm.compile(candidate.sch.mod, "llvm")(a, b, got)
        np.testing.assert_allclose(got, a @ b, rtol=1e-4)


def test_blocks_of_a_gpu_share_copies(group):
    out = intrinsic("unit_out", {"c": C, "y": "global"}, "C", "ij", "Y[i, j] = C[i, j]")
    for store, copies in ((group["store"], 3), (out, 2)):  # the operands, and the result as well
        rule = unit_rule(
            {**group, "store": store},
            tile_binds=["blockIdx.y", "blockIdx.x", "threadIdx.y"],
            vector_load_lens=[1, 2, 4],
            reuse_write=ReuseType("may", [2], "shared"),
        )
        space = PostOrderApply(sch_rules=[rule], postprocs=[], mutator_probs={})
        ctx = ms.TuneContext(programs.matmul(32, 32, 32), target="cuda", space_generator=space)
        (text,) = (s.mod.script() for s in ctx.generate_design_space())
        assert "T.thread_binding" in text and 'thread="threadIdx.y"' in text
        assert text.count("meta_schedule.cooperative_fetch") == copies


def test_what_does_not_fit_a_matrix_unit_is_left_alone(group):
    space = PostOrderApply(sch_rules=[unit_rule(group)], postprocs=[], mutator_probs={})
    for func in (programs.matmul(30, 32, 32), programs.sigmoid(32, 32)):
        ctx = ms.TuneContext(func, target="llvm", space_generator=space)
        (only,) = ctx.generate_design_space()
        tvm.ir.assert_structural_equal(only.mod, ctx.mod)


def test_bad_groups_and_structures(group):
    with pytest.raises(ValueError, match="expected the names of init, .* got none for 'store'"):
        unit_rule({k: v for k, v in group.items() if k != "store"})
    with pytest.raises(ValueError, match="expected a structure with a reduction below"):
        unit_rule(group, structure="SSS")
    with pytest.raises(ValueError, match="reuse_read: expected a ReuseType, or req, levels and"):
        unit_rule(group, reuse_read={"req": "must"})
    with pytest.raises(ValueError, match="expected req 'no', 'may' or 'must', got 'maybe'"):
        unit_rule(group, reuse_read=ReuseType("maybe", [4], "shared"))
