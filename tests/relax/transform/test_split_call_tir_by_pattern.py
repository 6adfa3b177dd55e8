# SPDX-License-Identifier: Apache-2.0
"""Kernels whose first blocks a library computes."""

import numpy as np
import pytest
import tvm
from tvm import ir, relax
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@T.prim_func
def product(a: T.handle, b: T.handle, c: T.handle):
    M, N, K = T.int64(), T.int64(), T.int64()
    A = T.match_buffer(a, (M, K))
    B = T.match_buffer(b, (K, N))
    C = T.match_buffer(c, (M, N))
    for i, j, k in T.grid(M, N, K):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@I.ir_module
class Before:
    @T.prim_func(private=True)
    def matmul_relu(
        A: T.Buffer((T.int64(4), T.int64(6))),
        B: T.Buffer((T.int64(6), T.int64(8))),
        C: T.Buffer((T.int64(4), T.int64(8))),
    ):
        D = T.alloc_buffer((T.int64(4), T.int64(8)))
        for i, j, k in T.grid(T.int64(4), T.int64(8), T.int64(6)):
            with T.block("matmul"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    D[vi, vj] = T.float32(0)
                D[vi, vj] = D[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(T.int64(4), T.int64(8)):
            with T.block("relu"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(D[vi, vj], T.float32(0))

    @R.function
    def main(a: R.Tensor((4, 6), "float32"), b: R.Tensor((6, 8), "float32")):
        cls = Before
        with R.dataflow():
            c = R.call_tir(cls.matmul_relu, (a, b), out_sinfo=R.Tensor((4, 8), "float32"))
            R.output(c)
        return c


@I.ir_module
class Expected:
    @T.prim_func(private=True)
    def unfused_epilogue(
        D: T.Buffer((T.int64(4), T.int64(8))), C: T.Buffer((T.int64(4), T.int64(8)))
    ):
        T.func_attr({"tir.noalias": True})
        for i, j in T.grid(T.int64(4), T.int64(8)):
            with T.block("relu"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(D[vi, vj], T.float32(0))

    @R.function
    def main(a: R.Tensor((4, 6), "float32"), b: R.Tensor((6, 8), "float32")):
        cls = Expected
        with R.dataflow():
            t = R.call_dps_packed(
                "matmul_relu_library", (a, b), out_sinfo=R.Tensor((4, 8), "float32")
            )
            c = R.call_tir(cls.unfused_epilogue, (t,), out_sinfo=R.Tensor((4, 8), "float32"))
            R.output(c)
        return c


def library(matches):
    return ["// a product", 1, matches[0].matched_buffers]


def test_the_first_block_goes_to_a_library():
    seen = []

    def codegen(matches):
        seen.extend(matches)
        return library(matches)

    after = transform.SplitCallTIRByPattern([product], codegen)(Before)
    assert relax.analysis.well_formed(after)
    (match,) = seen
    assert match.pattern.same_as(product) and [b.name for b in match.matched_buffers] == list("ABD")
    assert sorted(map(int, match.symbol_values)) == [4, 6, 8]
    call = after["main"].body.blocks[0].bindings[0].value
    assert call.args[0].global_symbol == "matmul_relu_library"
    assert call.args[0].attrs["c_source"] == "// a product"
    after = transform.DeadCodeElimination()(after)
    ir.assert_structural_equal(after["unfused_epilogue"], Expected["unfused_epilogue"])
    ran = []

    @tvm.register_global_func("matmul_relu_library", override=True)
    def run(a, b, out):
        ran.append(True)
        out.copyfrom(a.numpy() @ b.numpy())

    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-1, 1, s).astype("float32") for s in ((4, 6), (6, 8)))
    vm = relax.VirtualMachine(tvm.compile(after, "llvm"), tvm.cpu())
    np.testing.assert_allclose(vm["main"](a, b).numpy(), np.maximum(a @ b, 0), rtol=1e-5)
    assert ran


def test_what_no_pattern_matches_stays():
    @T.prim_func
    def sums(a: T.handle, c: T.handle):
        M, K = T.int64(), T.int64()
        A = T.match_buffer(a, (M, K))
        C = T.match_buffer(c, (M,))
        for i, k in T.grid(M, K):
            with T.block("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]

    def unasked(matches):
        raise AssertionError("no block matches")

    ir.assert_structural_equal(transform.SplitCallTIRByPattern([sums], unasked)(Before), Before)
    refused = transform.SplitCallTIRByPattern([product], lambda m: ["", 0, []])(Before)
    ir.assert_structural_equal(refused, Before)


@pytest.mark.parametrize(
    "answer, error, text",
    [
        (lambda m: None, TypeError, "expected fcodegen to return"),
        (lambda m: ["", 2, m[0].matched_buffers], ValueError, "at most the 1 matched blocks"),
        (lambda m: ["", 1, m[0].matched_buffers[:2]], ValueError, "one that the matched blocks"),
        (lambda m: ["", 1, [m[0].matched_buffers[2]] * 2], ValueError, "expected inputs of"),
    ],
)
def test_bad_answers(answer, error, text):
    with pytest.raises(error, match=text):
        transform.SplitCallTIRByPattern([product], answer)(Before)


def test_errors_of_the_code_generator_reach_the_caller():
    def codegen(matches):
        raise KeyError("no such kernel")

    with pytest.raises(KeyError, match="no such kernel"):
        transform.SplitCallTIRByPattern([product], codegen)(Before)
