# SPDX-License-Identifier: Apache-2.0
"""Libraries for other machines: exported with a cross compiler, run in an emulator."""

import subprocess

import pytest
import tvm
import tvm_ffi
from tvm import te
from tvm.support import cc

MACHINES = {
    "arm-linux-gnueabihf": ("qemu-arm", "-mcpu=cortex-a7 -mfloat-abi=hard", "ARM"),
    "aarch64-linux-gnu": ("qemu-aarch64", "-mcpu=cortex-a53", "AArch64"),
}

# Loads a library as a program without any of our runtime does, and calls its function.
RUNNER = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <tvm/ffi/c_api.h>

void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message) {
  printf("%s: %s\n", kind, message);
}
int main(int argc, char** argv) {
  void* lib = dlopen(argv[1], RTLD_NOW);
  if (!lib) return printf("%s\n", dlerror()), 1;
  int (*f)(void*, const TVMFFIAny*, int32_t, TVMFFIAny*) = dlsym(lib, "__tvm_ffi_main");
  static float __attribute__((aligned(64))) in[100], out[100];
  for (int i = 0; i < 100; ++i) in[i] = (float)i;
  int64_t shape[1] = {100}, stride[1] = {1};
  DLTensor tensors[2];
  TVMFFIAny args[2], result;
  memset(tensors, 0, sizeof tensors);
  memset(args, 0, sizeof args);
  for (int i = 0; i < 2; ++i) {
    tensors[i].data = i ? out : in;
    tensors[i].device.device_type = kDLCPU;
    tensors[i].ndim = 1;
    tensors[i].dtype = (DLDataType){kDLFloat, 32, 1};
    tensors[i].shape = shape;
    tensors[i].strides = stride;
    args[i].type_index = kTVMFFIDLTensorPtr;
    args[i].v_ptr = &tensors[i];
  }
  if (f(0, args, 2, &result)) return 2;
  printf("%g %g %g\n", out[0], out[1], out[99]);
  shape[0] = 99;
  return f(0, args, 2, &result) == -1 ? 0 : 3;
}
"""


@pytest.fixture(params=MACHINES)
def machine(request, need):
    need(f"{request.param}-gcc", MACHINES[request.param][0], "readelf")
    return request.param


@pytest.fixture
def run(machine, tmp_path):
    """Runs a library's function in the emulator; returns what the runner prints."""
    source = tmp_path / "runner.c"
    source.write_text(RUNNER)
    runner = tmp_path / "runner"
    include = [f"-I{tvm_ffi.libinfo.find_include_path()}"]
    include += [f"-I{tvm_ffi.libinfo.find_dlpack_include_path()}"]
    options = ["-rdynamic", "-ldl", *include]
    cc.create_executable(runner, [source], options, cc=f"{machine}-gcc")

    def run(library):
        command = [MACHINES[machine][0], "-L", f"/usr/{machine}", runner, library]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def machine_of(library):
    header = subprocess.run(["readelf", "-h", library], capture_output=True, text=True).stdout
    return header.split("Machine:")[1].split("\n")[0].strip()


@pytest.fixture(params=["llvm", "c"])
def target(request, machine, need):
    """Objects of our own, or C that the cross compiler compiles."""
    if request.param == "c":
        return "c"
    if tvm._libs.find("tvm_llvm") is None:
        pytest.skip("needs libtvm_llvm")
    return f"llvm -mtriple={machine} {MACHINES[machine][1]}"


def test_export_with_a_cross_compiler(machine, target, run, tmp_path):
    A = te.placeholder((100,), name="A")
    B = te.compute((100,), lambda i: A[i] * 2 + 1, name="B")
    mod = tvm.compile(te.create_prim_func([A, B]), target=target)
    fcompile = cc.cross_compiler(f"{machine}-gcc")
    assert fcompile.get_target_triple() == machine
    path = tmp_path / "lib.so"
    mod.export_library(path, fcompile=fcompile)
    assert machine_of(path) == MACHINES[machine][2]
    first, error = run(path).splitlines()
    assert first == "1 3 199"
    assert error.startswith("ValueError: main: expected") and "99" in error


def test_export_through_a_tar(machine, target, run, tmp_path):
    """As it travels to a machine that has the cross compiler."""
    A = te.placeholder((100,), name="A")
    B = te.compute((100,), lambda i: te.exp(A[i] * 0), name="B")
    mod = tvm.compile(te.create_prim_func([A, B]), target=target)
    mod.export_library(tmp_path / "lib.tar")
    cc.create_shared(tmp_path / "lib.so", tmp_path / "lib.tar", "-lm", cc=f"{machine}-gcc")
    assert run(tmp_path / "lib.so").splitlines()[0] == "1 1 1"


def test_library_of_another_machine_is_refused_here(machine, tmp_path):
    source = tmp_path / "x.c"
    source.write_text("int x;")
    cc.create_shared(tmp_path / "x.so", source, cc=f"{machine}-gcc")
    with pytest.raises(ValueError, match="made for .*, this process runs on"):
        tvm.runtime.load_module(tmp_path / "x.so")
