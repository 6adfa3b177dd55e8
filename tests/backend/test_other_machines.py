# SPDX-License-Identifier: Apache-2.0
"""Code for other processors: objects linked by a cross compiler and run by an emulator."""

import shutil
import subprocess

import numpy as np
import pytest
import tvm
import tvm.testing
import tvm_ffi
from tvm import te, tir

N = 37
# The name of the compiler's triple, LLVM's triple and the emulator.
MACHINES = {
    "aarch64": ("aarch64-linux-gnu", "aarch64-linux-gnu", "qemu-aarch64"),
    "arm": ("arm-linux-gnueabihf", "armv7a-linux-gnueabihf", "qemu-arm"),
}

DRIVER = """
#include <stdio.h>
#include <string.h>
#include <tvm/ffi/c_api.h>
#define N %d
int __tvm_ffi_main(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);
void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message) {
  printf("%%s: %%s\\n", kind, message);
}
static float a[N], b[N];
static int32_t d[N], e[N];
static int8_t c[N];
static int64_t shape[1] = {N};
static DLTensor tensors[5];
static TVMFFIAny args[5], result;
static void fill(int i, void* data, int code, int bits) {
  DLDataType type = {(uint8_t)code, (uint8_t)bits, 1};
  DLDevice cpu = {kDLCPU, 0};
  DLTensor t = {data, cpu, 1, type, shape, NULL, 0};
  tensors[i] = t;
  args[i].type_index = kTVMFFIDLTensorPtr;
  args[i].v_ptr = &tensors[i];
}
int main(void) {
  int i;
  for (i = 0; i < N; ++i) a[i] = (i - 18) * 0.75f, d[i] = i * 1000003 - 17000000;
  fill(0, a, kDLFloat, 32), fill(1, d, kDLInt, 32), fill(2, b, kDLFloat, 32);
  fill(3, e, kDLInt, 32), fill(4, c, kDLInt, 8);
  if (__tvm_ffi_main(NULL, args, 5, &result) != 0) return 1;
  for (i = 0; i < N; ++i) printf("%%.9g %%d %%d\\n", b[i], (int)e[i], (int)c[i]);
  shape[0] = N - 1; /* of all: the sizes still agree */
  if (__tvm_ffi_main(NULL, args, 5, &result) != 0) return 1;
  tensors[2].dtype.bits = 64;
  return __tvm_ffi_main(NULL, args, 5, &result) == -1 ? 0 : 2;
}
"""


def program():
    n = te.size_var("n")
    A, D = te.placeholder((n,), name="A"), te.placeholder((n,), "int32", name="D")
    B = te.compute((n,), lambda i: tir.sigmoid(A[i]) * tir.exp(A[i] / 4), name="B")
    E = te.compute((n,), lambda i: tir.floordiv(D[i], tir.floormod(D[i], 7) - 3), name="E")
    C = te.compute((n,), lambda i: A[i] * 30.0, name="scaled")
    C = te.compute((n,), lambda i: tir.Cast("int8", C[i]), name="C")
    return te.create_prim_func([A, D, B, E, C])


def expected():
    a = ((np.arange(N) - 18) * 0.75).astype("float32")
    d = np.arange(N, dtype="int32") * 1000003 - 17000000
    divisor = d % 7 - 3
    quotient = np.where(divisor == 0, 0, d // np.where(divisor == 0, 1, divisor))
    x = a.astype("float64")
    return 1 / (1 + np.exp(-x)) * np.exp(x / 4), quotient, np.clip(np.trunc(a * 30), -128, 127)


def missing(machine):
    compiler, _, emulator = MACHINES[machine]
    return [name for name in (compiler + "-gcc", emulator) if not shutil.which(name)]


@pytest.mark.parametrize("host", ["llvm", "c"])
@pytest.mark.parametrize("machine", MACHINES)
def test_runs_under_an_emulator(machine, host, tmp_path):
    if lacking := missing(machine):
        pytest.skip(f"needs {', '.join(lacking)} (Debian: gcc-{MACHINES[machine][0]}, qemu-user)")
    if not tvm.testing.device_enabled(host):
        pytest.skip(f"no code generator for {host} here")
    compiler, triple, emulator = MACHINES[machine]
    mod = tvm.build(program(), target=f"{host} -mtriple={triple if host == 'llvm' else compiler}")
    mod.write_to_file(str(tmp_path / "lib.o"), "o")
    (tmp_path / "main.c").write_text(DRIVER % N)
    include = "-I" + tvm_ffi.libinfo.find_include_path()
    link = [compiler + "-gcc", "-static", include, "main.c", "lib.o", "-lm", "-o", "main"]
    subprocess.run(link, cwd=tmp_path, check=True, timeout=120)
    run = subprocess.run([emulator, "./main"], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    lines = run.stdout.splitlines()
    got = np.array([[float(word) for word in line.split()] for line in lines[:N]])
    reals, quotients, casts = expected()
    np.testing.assert_allclose(got[:, 0], reals, rtol=1e-6)
    np.testing.assert_array_equal(got[:, 1], quotients)
    np.testing.assert_array_equal(got[:, 2], casts)
    assert lines[N] == "TypeError: main: expected argument B of type float32, got float64"


@tvm.testing.requires_llvm
@pytest.mark.parametrize(
    "triple,start",
    [
        ("riscv64-unknown-linux-gnu", b"\x7fELF\x02\x01"),
        ("riscv32-unknown-linux-gnu", b"\x7fELF\x01\x01"),
        ("wasm32-unknown-unknown", b"\0asm"),
    ],
)
def test_objects_are_written(triple, start, tmp_path):
    tvm.build(program(), target=f"llvm -mtriple={triple}").write_to_file(str(tmp_path / "f.o"), "o")
    assert (tmp_path / "f.o").read_bytes().startswith(start)
