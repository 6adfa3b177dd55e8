# SPDX-License-Identifier: Apache-2.0
"""What is not there, does not fit or is damaged: an error or a rebuild that says what to do."""

import os
import shutil
import subprocess
import sys

import pytest
import tvm
import tvm_ffi
from tvm.support import nvcc

from tests.backend.cuda.test_codegen import elementwise, has_nvrtc, needs_nvrtc, text_of

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc here")


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_20", "sm_999", "sm_1234567", "gfx90a"])
def test_architectures_that_the_compiler_does_not_know(arch):
    compile_it = tvm_ffi.get_global_func("cuda.nvrtc_compile")
    message = rf"expected an architecture that NVRTC .* knows, from sm_\d+ to sm_\d+, got {arch}; "
    with pytest.raises(ValueError, match=message + "give another -arch, or install another"):
        compile_it('extern "C" __global__ void f() {}', "cubin", arch, [])


def python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True,
        text=True, timeout=300,
    )  # fmt: skip


COMPILE = """
import tvm
from tests.backend.cuda.test_codegen import elementwise, text_of
print(len(text_of(elementwise("float32"), "sm_80")))
"""


@pytest.mark.skipif(has_nvrtc(), reason="this machine has NVRTC")
def test_without_a_compiler():
    message = "cannot load NVRTC: .*; install the wheel nvidia-cuda-nvrtc or a CUDA toolkit"
    with pytest.raises(RuntimeError, match=message):
        text_of(elementwise("float32"))


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")
def test_a_compiler_that_is_too_old(tmp_path):
    """A library of that name without the functions; it is found first."""
    (tmp_path / "lib64").mkdir()
    (tmp_path / "old.c").write_text("int nvrtcVersion(int* a, int* b) { return 0; }\n")
    library = str(tmp_path / "lib64" / "libnvrtc.so.11")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, str(tmp_path / "old.c")], check=True)
    found = python(COMPILE, CUDA_HOME=str(tmp_path), TVM_CACHE_DIR=str(tmp_path / "cache"))
    assert found.returncode != 0
    assert "target cuda: expected NVRTC with nvrtcGetErrorString, got an older one" in found.stderr


@needs_nvrtc
def test_a_damaged_cache_is_made_anew(tmp_path):
    cache = tmp_path / "cache"
    first = python(COMPILE, TVM_CACHE_DIR=str(cache))
    assert first.returncode == 0, first.stderr
    files = [f for f in cache.rglob("*") if f.is_file()]
    assert files
    for damage in (lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b[:-1] + b"\x00"):
        for file in files:
            file.write_bytes(damage(file.read_bytes()))
        again = python(COMPILE, TVM_CACHE_DIR=str(cache))
        assert (again.returncode, again.stdout) == (0, first.stdout), again.stderr


def test_a_library_that_is_cut_off():
    load = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.cuda")
    for size in (0, 7, 8, 40):
        with pytest.raises(ValueError, match="expected a whole module of kernels, got a truncated"):
            load(b"\x01" + bytes(size))


@needs_nvcc
def test_several_architectures_in_one_library(tmp_path):
    name = "tvm_callback_cuda_compile"
    archs = ["sm_80", "sm_90"]
    tvm.register_global_func(name, lambda code: nvcc.compile_cuda(code, "fatbin", archs))
    try:
        target = tvm.target.Target("cuda -arch=sm_80", host="c")
        mod = tvm.compile(elementwise("float32"), target)
    finally:
        tvm_ffi.registry.remove_global_func(name)
    mod.export_library(str(tmp_path / "k.so"))
    kernels = tvm.runtime.load_module(str(tmp_path / "k.so")).imports[0]
    kernels.write_to_file(str(tmp_path / "k.fatbin"))
    binary = (tmp_path / "k.fatbin").read_bytes()
    assert binary.startswith(b"\x50\xed\x55\xba") and binary.count(b"\x7fELF") == len(archs)


@needs_nvcc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_nvcc_takes_the_same_text(arch):
    name = "tvm_callback_cuda_compile"
    tvm.register_global_func(name, lambda code: nvcc.compile_cuda(code, "cubin", arch))
    try:
        for dtype in ("float32", "float16", "bfloat16"):
            assert "__global__" in text_of(elementwise(dtype), arch)
    finally:
        tvm_ffi.registry.remove_global_func(name)
