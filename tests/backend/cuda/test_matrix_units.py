# SPDX-License-Identifier: Apache-2.0
"""Products on matrix units: what their kernels look like, and that NVIDIA's compiler takes them."""

import numpy as np
import pytest
import tvm
from tvm import relax, te

from tests.backend.cuda.products import product, wmma_product
from tests.backend.cuda.test_codegen import (  # noqa: F401
    kernels_of,
    needs_nvrtc,
    text_of,
    text_only,
)


@pytest.fixture(autouse=True)
def by_warps():
    """What warpgroups do is looked at in test_hopper.py."""
    with tvm.transform.PassContext(config={"tir.warpgroup_products": False}):
        yield


@pytest.mark.parametrize("dtype, name", [("float16", "f16"), ("bfloat16", "bf16")])
def test_tiles_go_through_a_ring_in_shared_memory(text_only, dtype, name):  # noqa: F811
    fast, plain = kernels_of(text_of(product(4096, 4096, 4096, dtype, dtype)))
    assert f"mma.sync.aligned.m16n8k16.row.col.f32.{name}.{name}.f32" in fast
    assert "cp.async.cg.shared.global" in fast and "__launch_bounds__(256)" in fast
    assert "ldmatrix.sync.aligned.m8n8.x4.shared" in fast  # rows of the left one, as they lie
    assert "ldmatrix.sync.aligned.m8n8.x4.trans.shared" in fast  # columns of the right one
    assert "cp.async.cg" not in plain and "mma.sync" in plain  # for what is not aligned


def test_transposed_factors_are_not_transposed_again(text_only):  # noqa: F811
    fast = kernels_of(text_of(product(512, 512, 512, "float16", trans_b=True)))[0]
    assert ".x4.shared" in fast and ".x4.trans" not in fast


def test_bytes_are_multiplied_along_the_depth(text_only):  # noqa: F811
    along = product(256, 256, 256, "int8", "int32", trans_b=True)
    assert "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32" in text_of(along)
    across = product(256, 256, 256, "int8", "int32")
    assert "mma.sync" not in text_of(across)


def test_the_last_step_is_part_of_the_kernel(text_only):  # noqa: F811
    text = text_of(product(512, 512, 512, "float16", "float16", last="bias"))
    assert len(kernels_of(text)) == 2  # the fast one and the plain one
    assert "D[" in kernels_of(text)[0]


def test_long_sums_of_few_tiles_go_in_parts(text_only):  # noqa: F811
    text = text_of(product(128, 256, 4096, "float16", "float16", last="bias"))
    parts, total = kernels_of(text)[:2]
    assert "mma.sync" in parts and "float* __restrict__ partial" in parts and "D[" not in parts
    assert "partial[" in total and "D[" in total and "mma.sync" not in total
    assert "partial" not in text_of(product(4096, 4096, 4096, "float16", "float16"))


def test_convolutions_of_small_floats_have_their_channels_last(text_only):  # noqa: F811
    x = relax.Var("x", relax.TensorStructInfo((1, 64, 14, 14), "float16"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = x
            for name in "ab":
                weight = relax.const(np.ones((64, 64, 3, 3), "float16"))
                y = builder.emit(relax.op.nn.relu(relax.op.nn.conv2d(y, weight, padding=1)), name)
            out = builder.emit_output(y)
        builder.emit_func_output(out)
    executable = tvm.compile(
        builder.get(), tvm.target.Target({"kind": "cuda", "arch": "sm_90a"}, host="c")
    )
    (host,) = executable.mod.imports
    text = host.imports[0].inspect_source()
    assert "cp.async.cg.shared.global" in text, "channels are copied in vectors, also at margins"


def test_last_steps_may_read_what_is_not_side_by_side(text_only):  # noqa: F811
    A, B = (te.placeholder((64, 64), name=n) for n in "AB")
    D, r = te.placeholder((22,), name="D"), te.reduce_axis((0, 64), name="r")
    C = te.compute((64, 64), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    E = te.compute((64, 64), lambda i, j: C[i, j] + D[j // 3], name="E")
    fast = kernels_of(text_of(te.create_prim_func([A, B, D, E])))[0]
    assert "D[" in fast and "*)&D[" not in fast


def test_barriers_are_those_of_the_ring(text_only):  # noqa: F811
    fast = kernels_of(text_of(product(4096, 4096, 4096, "float16")))[0]
    assert fast.count("__syncthreads();") == 2  # before the loop, and once in it


@pytest.mark.parametrize(
    "m, n, k, piece",
    [
        (100, 200, 72, "16"),
        (100, 200, 76, "8"),
        (100, 202, 74, "4"),
    ],
)
def test_pieces_are_those_that_fit_the_rows(text_only, m, n, k, piece):  # noqa: F811
    fast = kernels_of(text_of(product(m, n, k, "float16", trans_b=True)))[0]
    assert f"[%1], {piece}" in fast


def test_odd_rows_are_copied_by_elements(text_only):  # noqa: F811
    text = text_of(product(33, 65, 17, "float16"))
    assert "mma.sync" in text and "shared.global [%0]" not in text
    assert len(kernels_of(text)) == 1


def test_sizes_that_are_not_known(text_only):  # noqa: F811
    m, n, k = te.size_var("m"), te.size_var("n"), te.size_var("k")
    fast, plain = kernels_of(text_of(product(m, n, k, "float16")))
    assert "mma.sync" in fast and "cp.async.cg" in fast
    assert "mma.sync" in plain and "cp.async.cg" not in plain


def test_old_and_narrow_things_stay_on_plain_cores(text_only):  # noqa: F811
    assert "mma.sync" not in text_of(product(256, 256, 256, "float16"), "sm_75")
    assert "mma.sync" not in text_of(product(1, 256, 256, "float16"))
    assert "mma.sync" not in text_of(product(256, 256, 256, "float32"))


@pytest.mark.parametrize(
    "dtype, out, trans_b, instruction",
    [
        ("float16", "float32", False, "row.row.m16n16k16.f32.f32"),
        ("float16", "float32", True, "row.col.m16n16k16.f32.f32"),
        ("int8", "int32", False, "row.row.m16n16k16.s32.s8.s8.s32"),
    ],
)
def test_fragments_of_wmma(text_only, dtype, out, trans_b, instruction):  # noqa: F811
    (kernel,) = kernels_of(text_of(wmma_product(128, dtype, out, trans_b)))
    assert f"wmma.mma.sync.aligned.{instruction}" in kernel
    assert "wmma.load.a.sync.aligned.row" in kernel and "wmma.store.d.sync" in kernel


@needs_nvrtc
@pytest.mark.parametrize("dtype, out", [("float16", "float32"), ("int8", "int32")])
def test_fragments_compile(dtype, out):
    assert "wmma.mma" in text_of(wmma_product(64, dtype, out), "sm_75")


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120"])
@pytest.mark.parametrize("dtype, out", [("float16", "float16"), ("bfloat16", "float32")])
def test_every_architecture_compiles(arch, dtype, out):
    for shape in [(1024, 1024, 1024), (100, 130, 70), (5, 64, 33)]:
        assert "mma.sync" in text_of(product(*shape, dtype, out, last="bias"), arch)
