# SPDX-License-Identifier: Apache-2.0
"""Default schedules for GPUs: what kernels of rows, reductions and transposes look like."""

import re

import pytest
from tvm import te, topi

from tests.backend.cuda.products import product
from tests.backend.cuda.test_codegen import kernels_of, text_of, text_only  # noqa: F401


def kernels(func):
    return kernels_of(text_of(func))


def matrix(dtype="float32", rows=8192, columns=8192):
    return te.placeholder((rows, columns), dtype, name="A")


def test_a_row_is_read_once(text_only):  # noqa: F811
    A = matrix("bfloat16")
    (kernel,) = kernels(te.create_prim_func([A, topi.nn.softmax(A, axis=1)]))
    assert "__launch_bounds__(256)" in kernel and "uint16_t A_local[32];" in kernel
    aligned = re.findall(r"\(const uint4\*\)&A\[", kernel)
    assert len(aligned) == 4, "all vectors of a thread, and nowhere else"


def test_long_sums_of_few_results_go_in_parts(text_only):  # noqa: F811
    A = matrix()
    assert len(kernels(te.create_prim_func([A, topi.sum(A, axis=(0, 1))]))) == 2
    assert len(kernels(te.create_prim_func([A, topi.sum(A, axis=1)]))) == 1


def test_many_sums_have_a_warp_each(text_only):  # noqa: F811
    A = matrix()
    (kernel,) = kernels(te.create_prim_func([A, topi.sum(A, axis=1)]))
    assert "__syncthreads" not in kernel and "__shfl_down_sync" in kernel
    assert "(const uint4*)&A[" in kernel


def test_sums_of_small_floats_are_sums_of_float32(text_only):  # noqa: F811
    A = matrix("float16")
    for axis in (0, 1):
        text = "".join(kernels(te.create_prim_func([A, topi.sum(A, axis=axis)])))
        assert not re.search(r"(\w+)\[0\] = tvm_f16_from_f32\(tvm_f32_from_f16\(\1\[0\]\) \+", text)
        assert "tvm_f16_from_f32(" in text


def test_transposes_go_through_squares(text_only):  # noqa: F811
    A = matrix()
    (kernel,) = kernels(te.create_prim_func([A, topi.transpose(A)]))
    assert "A_shared[1056]" in kernel or "A_shared[1055]" in kernel  # lines of 33


def test_joined_rows_are_moved_in_vectors(text_only):  # noqa: F811
    A = matrix()
    (kernel,) = kernels(te.create_prim_func([A, topi.concatenate([A, A], 1)]))
    assert kernel.count("(const uint4*)&A[") == 2, "a vector is on one side of the seam"
    odd = te.placeholder((64, 62), name="odd")
    (kernel,) = kernels(te.create_prim_func([odd, topi.concatenate([odd, odd], 1)]))
    assert "uint4" not in kernel


def test_sums_over_warps_take_one_barrier(text_only):  # noqa: F811
    A = matrix("float32", 64, 8192)
    (kernel,) = kernels(te.create_prim_func([A, topi.nn.softmax(A, axis=1)]))
    assert "__shfl_down_sync" in kernel and kernel.count("__syncthreads();") <= 6


def test_gathered_rows_are_moved_in_vectors(text_only):  # noqa: F811
    A, index = matrix(), te.placeholder((8192,), "int32", name="index")
    B = te.compute((8192, 8192), lambda i, j: A[index[i], j], name="B")
    (kernel,) = kernels(te.create_prim_func([A, index, B]))
    assert "(const uint4*)&A[" in kernel and "tvm_fail(" in kernel


@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("n", [4096, 1000])
def test_a_vector_times_a_matrix_reads_vectors(text_only, n, trans_b):  # noqa: F811
    first = kernels(product(1, n, 4096, "bfloat16", "bfloat16", trans_b=trans_b))[0]
    assert "(const uint4*)&B[" in first and "mma.sync" not in first


def test_a_vector_times_a_matrix_is_one_kernel(text_only):  # noqa: F811
    (kernel,) = kernels(product(1, 14336, 4096, "bfloat16", "bfloat16", last="bias"))
    assert "__launch_bounds__(512)" in kernel and "__shared__" in kernel
    # Few columns: parts of them are read in blocks of their own.
    assert len(kernels(product(1, 4096, 4096, "bfloat16", "bfloat16", last="bias"))) == 2


@pytest.mark.parametrize("axis, rows, columns", [(1, 8192, 8192), (1, 512, 4096), (0, 4096, 64)])
def test_means_are_one_kernel(text_only, axis, rows, columns):  # noqa: F811
    A = matrix("float32", rows, columns)
    sums = topi.sum(A, axis=axis)
    mean = te.compute(sums.shape, lambda i: sums[i] / 7, name="mean")
    assert len(kernels(te.create_prim_func([A, mean]))) == (2 if axis == 0 else 1)
