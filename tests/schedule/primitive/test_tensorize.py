# SPDX-License-Identifier: Apache-2.0
"""tensorize, with the intrinsics of processors."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir.schedule.transform import tile_with_tensor_intrin
from tvm.tir.tensor_intrin import arm_cpu, dot_product_common, riscv_cpu, x86

from tests.schedule.checking import apply, arrays, refused
from tests.schedule.programs import ADD4, SCALE4, elementwise, tiled, two, two_stages


@T.prim_func
def gemm_u8i8(
    A: T.Buffer((8, 16), "uint8"), B: T.Buffer((2, 4, 16, 4), "int8"), C: T.Buffer((8, 32), "int32")
):
    for i, j, k in T.grid(8, 32, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "int32") * T.cast(
                B[vj // 16, vk // 4, vj % 16, vk % 4], "int32"
            )


def use(intrin):
    def primitives(sch):
        i, j, k = sch.get_loops("C")
        (jo, ji), (ko, ki) = sch.split(j, [None, 16]), sch.split(k, [None, 4])
        sch.reorder(i, jo, ko, ji, ki)
        sch.decompose_reduction("C", ko)
        sch.tensorize(ji, intrin)

    return primitives


def run_compiled(func, reference, target="llvm"):
    rng = np.random.default_rng(0)
    a = rng.integers(0, 256, (8, 16), dtype="uint8")
    b = rng.integers(-128, 128, (2, 4, 16, 4), dtype="int8")
    got, expected = np.zeros((8, 32), "int32"), np.zeros((8, 32), "int32")
    tvm.compile(func, target)(a, b, got)
    tir.interpret(reference)(a, b, expected)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("intrin, feature", [
    (x86.VNNI_DOT_16x4_INTRIN, "avx512_vnni"), (x86.AVX512_DOT_16x4_INTRIN, "avx512bw"),
])  # fmt: skip
def test_x86(intrin, feature):
    sch = apply(gemm_u8i8, use(intrin), run=False)
    try:
        with open("/proc/cpuinfo") as f:
            has = feature in f.read()
    except OSError:
        has = False
    if not has:
        pytest.skip(f"this CPU has no {feature}")
    run_compiled(sch.mod["main"], gemm_u8i8)


def test_vnni_assembly():
    sch = apply(gemm_u8i8, use(x86.VNNI_DOT_16x4_INTRIN), run=False)
    target = "llvm -mtriple=x86_64-linux-gnu -mcpu=cascadelake"
    assert "vpdpbusd" in tvm.compile(sch.mod, target).mod.inspect_source("asm")


@pytest.mark.parametrize("intrin, in_dtype, out_dtype, mattr, instruction", [
    (arm_cpu.ARM_DOT_4x4_i8_NEON_INTRIN, "int8", "int32", "+neon", "smull"),
    (arm_cpu.ARM_DOT_4x4_i8_SDOT_INTRIN, "int8", "int32", "+neon,+dotprod", "sdot"),
    (arm_cpu.ARM_DOT_4x4_u8_UDOT_INTRIN, "uint8", "uint32", "+neon,+dotprod", "udot"),
    (arm_cpu.ARM_DOT_4x4_u8_HDOT_INTRIN, "uint8", "int32", "+neon,+dotprod", "udot"),
])  # fmt: skip
def test_arm(intrin, in_dtype, out_dtype, mattr, instruction):
    @T.prim_func
    def before(
        A: T.Buffer((4, 4), in_dtype), B: T.Buffer((4, 4), in_dtype), C: T.Buffer((4, 4), out_dtype)
    ):
        for i, j, k in T.grid(4, 4, 4):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.cast(0, out_dtype)
                C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], out_dtype) * T.cast(B[vj, vk], out_dtype)

    def primitives(sch):
        i, j, k = sch.get_loops("C")
        sch.decompose_reduction("C", j)
        sch.tensorize(j, intrin)

    sch = apply(before, primitives, run=False)
    target = f"llvm -mtriple=aarch64-linux-gnu -mattr={mattr}"
    assert instruction in tvm.compile(sch.mod, target).mod.inspect_source("asm")


def test_dp4a_is_described():
    for name in ("S8S8S32", "U8S8S32", "S8U8S32", "U8U8U32"):
        assert tir.TensorIntrin.get(getattr(dot_product_common, f"DP4A_{name}_INTRIN"))


def test_tile_with_tensor_intrin():
    @T.prim_func
    def before(
        A: T.Buffer((8, 16), "uint8"), B: T.Buffer((32, 16), "int8"), C: T.Buffer((8, 32), "int32")
    ):
        for i, j, k in T.grid(8, 32, 16):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0
                C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "int32") * T.cast(B[vj, vk], "int32")

    def primitives(sch):
        loop = tile_with_tensor_intrin(sch, sch.get_block("C"), x86.VNNI_DOT_16x4_INTRIN)
        assert [int(sch.get(x).extent) for x in sch.get_loops("C")] == [8, 2, 4, 16, 4]
        assert sch.get(loop).extent == 16

    apply(before, primitives, run=False)

    def strided(sch):
        loop = tile_with_tensor_intrin(sch, sch.get_block("C"), x86.VNNI_DOT_16x4_INTRIN)
        sch.decompose_reduction("C", sch.get_loops("C")[2])
        sch.tensorize(loop, x86.VNNI_DOT_16x4_INTRIN)

    refused(before, strided, "expected buffer B to be contiguous")


def test_refuse_tensorize():
    def wrong(sch):
        sch.tensorize(sch.get_loops("B")[2], x86.VNNI_DOT_16x4_INTRIN)

    refused(tiled, wrong, "does not compute what intrinsic 'dot_16x4_vnni' describes")
    refused(tiled, lambda sch: sch.tensorize(sch.get_loops("B")[2], "dot_16x4_vni"), "did you mean")


def test_refuse_blocks_under_different_conditions():
    def primitives(sch):
        i, j = sch.get_loops("C")
        sch.compute_at("B", sch.split(i, [None, 5])[0])
        sch.blockize([sch.get_block("B"), sch.get_block("C")])

    refused(two, primitives, "(cannot divide|under one condition)")


def test_views_are_defined_once():
    """A tensorized block that is copied defines its views again."""

    def primitives(sch):
        i, j = sch.get_loops("B")
        sch.tensorize(sch.split(j, [None, 4])[1], SCALE4)
        sch.loop_partition(sch.get_loops("B_o")[0], [6])

    apply(elementwise, primitives)
    assert "B_o_i0" in apply(elementwise, primitives).mod.script()


def test_refuse_inlining_into_an_intrinsic():
    def primitives(sch):
        sch.tensorize(sch.split(sch.get_loops("C")[1], [None, 4])[1], ADD4)
        sch.compute_inline("B")

    refused(two_stages, primitives, "uses buffer B in another way than by loads")


RISCV = "llvm -mtriple=riscv64-unknown-linux-gnu -mcpu=generic-rv64 -mattr=+m,+d"


def rvv_gemm(data, weight, out, n_elems, n_lanes):
    @T.prim_func
    def func(
        A: T.Buffer((2, n_elems), data),
        B: T.Buffer((n_lanes, n_elems), weight),
        C: T.Buffer((2, n_lanes), out),
    ):
        for i, j, k in T.grid(2, n_lanes, n_elems):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.cast(0, out)
                C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], out) * T.cast(B[vj, vk], out)

    return func


@pytest.mark.parametrize("types, instructions", [
    (("uint8", "int8", "int32"), ["vwmulsu", "vredsum"]), (("int8", "int8", "int32"), ["vwmul"]),
    (("float16", "float16", "float16"), ["vfmul", "vfredosum"]),
    (("float32", "float32", "float32"), ["vfmul", "vfredosum"]),
])  # fmt: skip
def test_riscv(types, instructions):
    target = f"{RISCV},+v,+zvl256b,+zvfh"
    found = riscv_cpu.register_rvv_isa_intrinsics(target)
    rows = {v[-1]: (k, v) for k, v in found.items() if v[:3] == types}
    assert sorted(rows) == [1, 2, 4, 8]
    name, (*_, n_elems, n_lanes, lmul) = rows[2]
    assert n_elems == riscv_cpu.get_max_elems(256, lmul, int(types[2][-2:]))

    def primitives(sch):
        i, j, k = sch.get_loops("C")
        sch.decompose_reduction("C", j)
        sch.tensorize(j, name)

    before = rvv_gemm(*types, n_elems, n_lanes)
    sch = apply(before, primitives, run=False)
    text = tvm.compile(sch.mod, target).mod.inspect_source("asm")
    for instruction in instructions:
        assert instruction in text
    # Reductions of vectors are there on every CPU: what is computed can be checked here.
    expected, got = arrays(before), arrays(before)
    tir.interpret(before)(*expected)
    tvm.compile(sch.mod, "llvm")(*got)
    np.testing.assert_allclose(got[2], expected[2], rtol=1e-2 if "float16" in types else 1e-5)


def test_riscv_inventory():
    names = riscv_cpu.register_rvv_isa_intrinsics(f"{RISCV},+v", inventory_only=True)
    assert "rvv_dot_4uint8_4x4int8_4int32" in names  # vectors of 128 bits are the least
    assert not any("float16" in name for name in names)
    assert tir.TensorIntrin.get("rvv_dot_4uint8_4x4int8_4int32", allow_missing=True) is None
    riscv_cpu.register_riscv_intrinsics(RISCV)
    with pytest.raises(ValueError, match="expected a target with the vector extension"):
        riscv_cpu.register_rvv_isa_intrinsics(RISCV)


@pytest.mark.parametrize("operand", ["int8x64", "int32x16"])
def test_operands_of_llvm_intrinsics_by_size(operand):
    """Versions of LLVM disagree on the elements of vpdpbusd's operands; either is accepted."""
    lanes = 64 if operand == "int8x64" else 16

    @T.prim_func
    def dot(a: T.handle, b: T.handle, c: T.handle):
        A = T.match_buffer(a, (lanes,), operand.split("x")[0])
        B = T.match_buffer(b, (lanes,), operand.split("x")[0])
        C = T.match_buffer(c, (16,), "int32")
        C[T.ramp(0, 1, 16)] = T.call_llvm_pure_intrin(
            "int32x16",
            "llvm.x86.avx512.vpdpbusd.512",
            C[T.ramp(0, 1, 16)],
            A[T.ramp(0, 1, lanes)],
            B[T.ramp(0, 1, lanes)],
        )

    target = "llvm -mtriple=x86_64-linux-gnu -mcpu=cascadelake"
    assert "vpdpbusd" in tvm.compile(dot, target).mod.inspect_source("asm")


@pytest.mark.parametrize("side", [2, 8, 16])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint16", "int64"])
def test_transpose(dtype, side):
    @T.prim_func
    def before(A: T.Buffer((48, 32), dtype), B: T.Buffer((32, 48), dtype)):
        for j, i in T.grid(32, 48):
            with T.block("B"):
                vj, vi = T.axis.remap("SS", [j, i])
                B[vj, vi] = A[vi, vj]

    def primitives(sch):
        j, i = sch.get_loops("B")
        (jo, ji), (io, ii) = sch.split(j, [None, side]), sch.split(i, [None, side])
        sch.reorder(jo, io, ii, ji)
        sch.tensorize(ii, f"transpose_{side}_{dtype}")

    sch = apply(before, primitives)
    a = np.arange(48 * 32).reshape(48, 32).astype(dtype)
    b = np.zeros((32, 48), dtype)
    tvm.compile(sch.mod, "llvm")(a, b)
    np.testing.assert_array_equal(b, a.T)


@pytest.mark.parametrize("name", ["3_float32", "128_float32", "16_float31", "16float32", "", "_"])
def test_transposes_that_do_not_exist(name):
    assert tir.TensorIntrin.get("transpose_" + name, allow_missing=True) is None
    with pytest.raises(ValueError, match="expected the name of a registered intrinsic"):
        tir.TensorIntrin.get("transpose_" + name)
