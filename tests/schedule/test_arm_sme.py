# SPDX-License-Identifier: Apache-2.0
"""Outer products by ARM's matrix extension: what is described, the assembly, and an emulator."""

import shutil
import subprocess

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import tir
from tvm.script import tir as T
from tvm.tir.tensor_intrin import arm_cpu

TARGET = "llvm -mtriple=aarch64-linux-gnu -mattr=+sme"
SIDE = T.vscale() * 8


def gemm_f32(M, N, K):
    @T.prim_func
    def main(
        A: T.Buffer((M, K), "float32"),
        B: T.Buffer((K, N), "float32"),
        C: T.Buffer((M, N), "float32"),
    ):
        A_t = T.alloc_buffer((K, M))
        for i, k in T.grid(M, K):
            with T.block("A_t"):
                vi, vk = T.axis.remap("SS", [i, k])
                A_t[vk, vi] = A[vi, vk]
        for i, j, k in T.grid(M, N, K):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + T.cast(A_t[vk, vi], "float32") * T.cast(
                    B[vk, vj], "float32"
                )

    return main


def gemm_f16(M, N, K):
    @T.prim_func
    def main(
        A: T.Buffer((M, K), "float16"),
        B: T.Buffer((N, K), "float16"),
        C: T.Buffer((M, N), "float32"),
    ):
        A_t = T.alloc_buffer((K // 2, M, 2), "float16")
        B_t = T.alloc_buffer((K // 2, N, 2), "float16")
        for i, k in T.grid(M, K):
            with T.block("A_t"):
                vi, vk = T.axis.remap("SS", [i, k])
                A_t[vk // 2, vi, vk % 2] = A[vi, vk]
        for i, k in T.grid(N, K):
            with T.block("B_t"):
                vi, vk = T.axis.remap("SS", [i, k])
                B_t[vk // 2, vi, vk % 2] = B[vi, vk]
        for i, j, k in T.grid(M, N, K):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + T.cast(A_t[vk // 2, vi, vk % 2], "float32") * T.cast(
                    B_t[vk // 2, vj, vk % 2], "float32"
                )

    return main


def tile(sch, block):
    """Loops over blocks of the two outer loops; the second and the first inside."""
    x, y = sch.get_loops(block)[:2]
    xo, xi = sch.split(x, [None, SIDE], disable_predication=True)
    yo, yi = sch.split(y, [None, SIDE], disable_predication=True)
    sch.reorder(xo, yo, xi, yi)
    return xo, xi


def scheduled(M, N, K, dtype, parallel=False):
    sch = tir.Schedule({"float32": gemm_f32, "float16": gemm_f16}[dtype](M, N, K))
    for block, rows in {"A_t": M, "B_t": N}.items():
        if tvm.tir.schedule.has_block(sch, block):
            _, inner = tile(sch, block)
            name = arm_cpu.get_transpose_interleave_intrin_name(dtype, "float32", K, rows)
            sch.tensorize(inner, name)
    outer, inner = tile(sch, "C")
    init = sch.decompose_reduction("C", inner)
    gemm = f"{arm_cpu.ARM_SME_2SVLx2SVL_GEMM_INTERLEAVED_MOPA}_{M}_{K}_{dtype}"
    for name, loop, intrin in [
        (f"{arm_cpu.ARM_SME_INIT}_{M}", sch.get_loops(init)[2], arm_cpu.get_sme_init_intrin(M=M)),
        (gemm, inner, arm_cpu.get_sme_gemm_interleaved_mopa_2svlx2svl_intrin(M, K, dtype)),
    ]:
        tir.TensorIntrin.register(name, *intrin, override=True)
        sch.tensorize(loop, name)
    if parallel:
        sch.parallel(outer)
    return sch.mod


def operands(M, N, K, dtype):
    rng = np.random.default_rng(0)
    a = rng.integers(-8, 8, (M, K)).astype(dtype)
    b = rng.integers(-8, 8, (K, N) if dtype == "float32" else (N, K)).astype(dtype)
    product = a.astype("float32") @ (b if dtype == "float32" else b.T).astype("float32")
    return a, b, product  # small numbers: exact in any order


@pytest.mark.parametrize("vscale", [1, 2])
def test_descriptions(vscale):
    side, K = 8 * vscale, 6

    def run(pair, *args):
        tir.interpret(pair[0], vscale=vscale)(*args)

    a, b, product = operands(side, side, K, "float32")
    c = np.ones((side, side), "float32")
    gemm = arm_cpu.get_sme_gemm_interleaved_mopa_2svlx2svl_intrin
    run(gemm(side, K, "float32"), np.ascontiguousarray(a.T), b, c)
    np.testing.assert_array_equal(c, product + 1)
    run(arm_cpu.get_sme_init_intrin(), c)
    assert not c.any()

    def interleaved(x):
        return np.ascontiguousarray(x.reshape(side, -1, 2).transpose(1, 0, 2))

    a, b, product = operands(side, side, K, "float16")
    run(gemm(side, K, "float16"), interleaved(a), interleaved(b), c)
    np.testing.assert_array_equal(c, product)

    x = np.arange(side * side, dtype="float32").reshape(side, side)
    y = np.zeros_like(x)
    run(arm_cpu.get_sme_transpose_interleave_2svlx2svl_fp32_intrin(side, side), x, y)
    np.testing.assert_array_equal(y, x.T)
    half = np.zeros((side // 2, side, 2), "float16")
    run(arm_cpu.get_sme_transpose_interleave_block2_2svl_fp16_intrin(), x.astype("float16"), half)
    np.testing.assert_array_equal(half, interleaved(x.astype("float16")))


@pytest.mark.parametrize("dtype, operand", [("float32", "s"), ("float16", "h")])
def test_assembly(dtype, operand):
    text = tvm.compile(scheduled(100, 70, 64, dtype), TARGET).mod.inspect_source("asm")
    products = [line for line in text.splitlines() if "\tfmopa\t" in line]
    assert len(products) == 4
    assert all(line.endswith(f".{operand}") for line in products)
    last = "st1w\t{za3v.s" if dtype == "float32" else "st1w\t{za1v.s"
    for instruction in ("smstart\tsm", "smstart\tza", "ld1w\t{za", last):
        assert instruction in text


DRIVER = """
#include <stdio.h>
#include <tvm/ffi/c_api.h>
enum { M = %d, N = %d, K = %d, BITS = %d };
int __tvm_ffi_main(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);
void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message) { puts(message); }
/* Of the C library of the machine: no block leaves anything in the tiles that another one needs. */
void __arm_tpidr2_save(void) {}
void __arm_tpidr2_restore(void* block) {}
static char a[M * K * BITS / 8], b[K * N * BITS / 8];
static float c[M * N + 64];
static int64_t shapes[3][2] = {{M, K}, {BITS == 32 ? K : N, BITS == 32 ? N : K}, {M, N}};
int main(void) {
  void* data[3] = {a, b, c};
  DLTensor tensors[3];
  TVMFFIAny args[3], result;
  if (fread(a, sizeof a, 1, stdin) != 1 || fread(b, sizeof b, 1, stdin) != 1) return 3;
  for (int i = 0; i < M * N + 64; ++i) c[i] = 77;
  for (int i = 0; i < 3; ++i) {
    DLTensor t = {data[i], {kDLCPU, 0}, 2, {kDLFloat, i == 2 ? 32 : BITS, 1}, shapes[i], NULL, 0};
    tensors[i] = t;
    args[i].type_index = kTVMFFIDLTensorPtr;
    args[i].v_ptr = &tensors[i];
  }
  if (__tvm_ffi_main(NULL, args, 3, &result) != 0) return 1;
  fwrite(c, sizeof(float), M * N + 64, stdout);
  return 0;
}
"""
TOOLS = ("aarch64-linux-gnu-gcc", "qemu-aarch64")


@pytest.mark.skipif(not all(map(shutil.which, TOOLS)), reason=f"needs {' and '.join(TOOLS)}")
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape, parallel", [((37, 45, 30), False), ((32, 64, 16), True)])
def test_runs_under_an_emulator(dtype, shape, parallel, tmp_path):
    mod = tvm.build(scheduled(*shape, dtype, parallel), target=TARGET)
    mod.write_to_file(str(tmp_path / "lib.o"), "o")
    (tmp_path / "main.c").write_text(DRIVER % (*shape, 32 if dtype == "float32" else 16))
    include = "-I" + tvm_ffi.libinfo.find_include_path()
    link = [TOOLS[0], "-static", include, "main.c", "lib.o", "-lm", "-o", "main"]
    subprocess.run(link, cwd=tmp_path, check=True, timeout=120)
    a, b, expected = operands(*shape, dtype)
    for bits in (128, 256, 512):  # of a vector
        command = [TOOLS[1], "-cpu", f"max,sme{bits}=on", "./main"]
        data = a.tobytes() + b.tobytes()
        run = subprocess.run(command, cwd=tmp_path, input=data, capture_output=True, timeout=120)
        assert run.returncode == 0, run.stderr
        got = np.frombuffer(run.stdout, "float32")
        np.testing.assert_array_equal(got[:-64].reshape(expected.shape), expected)
        assert (got[-64:] == 77).all()  # nothing is written beyond the end


def test_refusals():
    gemm = arm_cpu.get_sme_gemm_interleaved_mopa_2svlx2svl_intrin
    with pytest.raises(ValueError, match="expected an even extent of the reduction.*got 7"):
        gemm(8, 7, "float16")
    with pytest.raises(ValueError, match="expected float32 or float16, got int8"):
        gemm(8, 8, "int8")
    with pytest.raises(ValueError, match="expected the out_dtype float32, got float16"):
        arm_cpu.get_transpose_interleave_intrin_name("float16", "float16", 8, 8)


def test_attributes_of_functions():
    """pragma_llvm_attributes is not about ARM alone; a parallel loop is a function of its own."""

    @T.prim_func
    def func(A: T.Buffer((64,), "float32")):
        for i in T.parallel(64):
            with T.block("A"):
                v = T.axis.spatial(64, i)
                T.block_attr({"pragma_llvm_attributes": "one two=2"})
                A[v] = T.float32(1)

    text = tvm.compile(func, "llvm").mod.inspect_source("ll")
    marked = [line for line in text.splitlines() if '"one"' in line and '"two"="2"' in line]
    assert marked and all(line.startswith("attributes #") for line in marked)
