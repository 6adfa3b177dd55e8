# SPDX-License-Identifier: Apache-2.0
"""CUDA text: what kernels look like, and that NVIDIA's compiler takes them for every
architecture."""

import re

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import te, tir
from tvm.script import tir as T

ARCHS = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120"]


def has_nvrtc():
    try:
        tvm_ffi.get_global_func("cuda.nvrtc_version")()
    except RuntimeError:
        return False
    return True


needs_nvrtc = pytest.mark.skipif(not has_nvrtc(), reason="no NVRTC here")


@pytest.fixture
def text_only():
    """Kernels are written, and not compiled."""
    name = "tvm_callback_cuda_compile"
    tvm.register_global_func(name, lambda code: b"\x7fELF" + code.encode())
    yield
    tvm_ffi.registry.remove_global_func(name)


def text_of(func, arch="sm_90a"):
    mod = tvm.compile(func, tvm.target.Target({"kind": "cuda", "arch": arch}, host="c"))
    return mod.imports[0].inspect_source()


def elementwise(dtype, n=4096, f=lambda x: x * x):
    A = te.placeholder((n,), dtype, name="A")
    B = te.compute((n,), lambda i: f(A[i]), name="B")
    return te.create_prim_func([A, B])


def kernels_of(text):
    """Each with its body, where it is there twice: for aligned pointers and for others."""
    body = r"(?:static __device__ __forceinline__ void \w+_body\(.*?\n}\n)?"
    return re.findall(body + 'extern "C" __global__.*?\n}\n', text, re.S)


def kernel_of(text):
    return kernels_of(text)[0]


def test_elements_are_moved_in_vectors(text_only):
    text = text_of(elementwise("float32"))
    assert (
        "__launch_bounds__(256) main_kernel(float* __restrict__ B, float* __restrict__ A)" in text
    )
    # With pointers that are aligned and with others; asked once.
    assert "if ((((uint64_t)A | (uint64_t)B) & 15) == 0)\n    main_kernel_body(true, B, A);" in text
    assert re.search(r"\(\(uint4\*\)&A_1\[0\]\)\[0\] = \(\(const uint4\*\)&A\[", text)
    assert "#pragma unroll" in text


@pytest.mark.parametrize("n, piece", [(4096, "uint4"), (4098, "uint32_t"), (4097, None)])
def test_pieces_fit_the_size(text_only, n, piece):
    text = kernel_of(text_of(elementwise("float16", n)))
    assert ("(const uint4*)" in text) == (piece == "uint4")
    assert ("(const uint32_t*)" in text) == (piece == "uint32_t")


def test_small_floats_are_their_bits(text_only):
    for dtype in ("bfloat16", "float8_e4m3fn"):
        text = kernel_of(text_of(elementwise(dtype)))
        width = {"bfloat16": 16, "float8_e4m3fn": 8}[dtype]
        assert f"uint{width}_t* __restrict__ A" in text and "f32" in text


def test_threads_share_memory(text_only):
    @T.prim_func
    def reverse(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
        S = T.alloc_buffer((256,), scope="shared")
        for _ in T.thread_binding(1, "blockIdx.x"):
            for t in T.thread_binding(256, "threadIdx.x"):
                with T.block("S"):
                    v = T.axis.spatial(256, t)
                    S[v] = A[v]
            for t in T.thread_binding(256, "threadIdx.x"):
                with T.block("B"):
                    v = T.axis.spatial(256, t)
                    B[v] = S[255 - v]

    text = kernel_of(text_of(reverse))
    assert "__shared__ __align__(128) float S[256];" in text and "__syncthreads();" in text


def test_indices_beyond_31_bits(text_only):
    text = kernel_of(text_of(elementwise("int8", 1 << 32)))
    assert "(int64_t)blockIdx.x" in text


def test_an_architecture_is_needed_without_a_gpu():
    if tvm.cuda(0).exist:
        pytest.skip("this machine has a GPU, which says it")
    with pytest.raises(ValueError, match="expected -arch .such as sm_90a. in target"):
        tvm.compile(elementwise("float32"), tvm.target.Target("cuda", host="c"))


def test_the_users_hooks_see_the_text(text_only):
    seen = []
    name = "tvm_callback_cuda_postproc"

    def postproc(code, target):
        seen.append(str(target.kind))
        return code + "// mine\n"

    tvm.register_global_func(name, postproc)
    try:
        assert text_of(elementwise("float32")).endswith("// mine\n") and seen == ["cuda"]
    finally:
        tvm_ffi.registry.remove_global_func(name)


def test_kernels_are_saved_in_a_library(text_only, tmp_path):
    mod = tvm.compile(elementwise("float32"), tvm.target.Target("cuda -arch=sm_90", host="c"))
    mod.export_library(str(tmp_path / "k.so"))
    loaded = tvm.runtime.load_module(str(tmp_path / "k.so"))
    kernels = loaded.imports[0]
    assert kernels.kind == "cuda" and "main_kernel" in kernels.inspect_source()
    kernels.write_to_file(str(tmp_path / "k.cubin"), "cubin")
    assert (tmp_path / "k.cubin").read_bytes().startswith(b"\x7fELF")
    with pytest.raises(ValueError, match="expected the format cu or ptx, got 'cubin'; write_to_fi"):
        kernels.inspect_source("cubin")
    with pytest.raises(
        ValueError, match="write_to_file: expected the format cu, ptx or cubin, got"
    ):
        kernels.write_to_file(str(tmp_path / "k.exe"), "exe")


def softmax(n, m, dtype="float32"):
    A = te.placeholder((n, m), dtype, name="A")
    k = te.reduce_axis((0, m), name="k")
    high = te.compute((n,), lambda i: te.max(A[i, k], axis=k), name="high")
    e = te.compute((n, m), lambda i, j: te.exp(A[i, j] - high[i]), name="e")
    k2 = te.reduce_axis((0, m), name="k2")
    total = te.compute((n,), lambda i: te.sum(e[i, k2], axis=k2), name="total")
    return te.create_prim_func([A, te.compute((n, m), lambda i, j: e[i, j] / total[i], name="B")])


def matmul(n, dtype="float32"):
    A, B = te.placeholder((n, n), dtype, name="A"), te.placeholder((n, n), dtype, name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return te.create_prim_func([A, B, C])


def row_sum(n, m):
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    return te.create_prim_func([A, te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")])


def test_a_softmax_is_one_kernel(text_only):
    text = text_of(softmax(128, 1024))
    assert text.count("__global__") == 1 and "__syncthreads()" in text


def test_products_have_tiles_in_shared_memory(text_only):
    text = text_of(matmul(256))
    assert text.count("__shared__") == 2 and "__launch_bounds__(256)" in text


@needs_nvrtc
def test_many_kernels_are_one_binary(tmp_path):
    funcs = {f"f{i}": elementwise("float32").with_attr("global_symbol", f"f{i}") for i in range(6)}
    target = tvm.target.Target({"kind": "cuda", "arch": "sm_90"}, host="c")
    kernels = tvm.compile(tvm.IRModule(funcs), target).imports[0]
    kernels.write_to_file(str(tmp_path / "k.cubin"), "cubin")
    binary = (tmp_path / "k.cubin").read_bytes()
    assert all(f"f{i}_kernel".encode() in binary for i in range(6))
    assert ".entry f5_kernel" in kernels.inspect_source("ptx")


@needs_nvrtc
@pytest.mark.parametrize("arch", ARCHS)
def test_every_architecture_compiles(arch, tmp_path):
    if arch in ("sm_100a", "sm_120") and tvm_ffi.get_global_func("cuda.nvrtc_version")() < "12.8":
        pytest.skip("too new for this compiler")
    for func in [
        elementwise("float16", f=tir.exp),
        softmax(64, 512),
        matmul(128),
        row_sum(64, 4096),
    ]:
        mod = tvm.compile(func, tvm.target.Target({"kind": "cuda", "arch": arch}, host="c"))
        mod.imports[0].write_to_file(str(tmp_path / "k.cubin"), "cubin")
        assert (tmp_path / "k.cubin").read_bytes().startswith(b"\x7fELF")


@needs_nvrtc
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int16", "int32", "int64", "uint64", "float16", "bfloat16",
              "float32", "float64", "float8_e4m3fn", "float8_e5m2"]
)  # fmt: skip
def test_every_type_compiles(dtype):
    func = elementwise(dtype, f=lambda x: tir.Not(x) if dtype == "bool" else x + x)
    assert "main_kernel" in text_of(func)


@needs_nvrtc
def test_errors_of_the_compiler_show_the_text():
    compile_it = tvm_ffi.get_global_func("cuda.nvrtc_compile")
    with pytest.raises(RuntimeError, match=r"(?s)cannot compile for sm_90.*> 2 \| int x = y;"):
        compile_it("// first\nint x = y;\n", "cubin", "sm_90", [])
    with pytest.raises(ValueError, match="expected the format cubin or ptx, got 'exe'"):
        compile_it("", "exe", "sm_90", [])
    assert b".target sm_80" in compile_it('extern "C" __global__ void f() {}', "ptx", "sm_80", [])


def test_without_a_driver():
    if tvm.cuda(0).exist:
        pytest.skip("this machine has one")
    assert tvm.cuda(0).exist is False and tvm.cuda(0).device_name is None
    with pytest.raises(RuntimeError, match="cuda: expected a device below 0, got 0; "):
        tvm.runtime.tensor(np.zeros(4, "float32"), tvm.cuda(0))


def test_indices_from_data_are_checked(text_only):
    A, index = te.placeholder((100,), name="A"), te.placeholder((50,), "int32", name="index")
    B = te.compute((50,), lambda i: A[index[i]], name="B")
    text = kernel_of(text_of(te.create_prim_func([A, index, B])))
    assert re.search(r'tvm_fail\("IndexError", "main_kernel: expected index 0 of buffer A', text)
    inside = te.compute((50,), lambda i: A[tir.max(tir.min(index[i], 99), 0)], name="B")
    assert "tvm_fail" not in text_of(te.create_prim_func([A, index, inside]))


@pytest.mark.parametrize("arch, is_one", [("sm_80", True), ("sm_75", False)])
def test_rounding_to_bfloat16_is_an_instruction(text_only, arch, is_one):
    text = text_of(elementwise("bfloat16"), arch)
    assert ("cvt.rn.bf16.f32" in text) == is_one
