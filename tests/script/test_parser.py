# SPDX-License-Identifier: Apache-2.0
"""What scripts may hold beyond what the printer writes."""

import numpy as np
import tvm
import tvm.testing
from tvm import tir
from tvm.script import from_source
from tvm.script import ir as I
from tvm.script import tir as T


def equal(a, b):
    tvm.ir.assert_structural_equal(a, b, map_free_vars=True)


@T.prim_func
def matmul(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"),
           C: T.Buffer((128, 128), "float32")):  # fmt: skip
    T.func_attr({"tir.noalias": True})
    for i, j, k in T.grid(128, 128, 128):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] += A[vi, vk] * B[vk, vj]


def test_matmul_is_complete():
    root = matmul.body.block
    assert root.name_hint == "root" and matmul.attrs["global_symbol"] == "matmul"
    block = root.body.body.body.body.block
    assert [str(r) for r in block.writes] == ["C[vi, vj]"]
    assert {str(r.buffer.name) for r in block.reads} >= {"A", "B"}
    assert str(block.init).strip() == "C[vi, vj] = T.float32(0.0)"


def test_closure_and_meta_programming():
    n, dtype, scales = 8, "float16", [1, 2, 3]

    def offset(value, by):
        return value + by

    @T.prim_func
    def func(A: T.Buffer((n,), dtype), B: T.Buffer((n * 2,), dtype)):
        for i in range(n):
            for s in scales:
                if s == 2:
                    B[offset(i, s)] = A[i] * T.cast(s, dtype)
                else:
                    B[i] = A[i]

    @T.prim_func
    def expected(A: T.Buffer((8,), "float16"), B: T.Buffer((16,), "float16")):
        T.func_attr({"global_symbol": "func"})
        for i in range(8):
            B[i] = A[i]
            B[i + 2] = A[i] * T.float16(2)
            B[i] = A[i]

    equal(func, expected)


def test_both_block_spellings():
    text = """
@T.prim_func
def main(A: T.Buffer((4,), "float32")):
    for i in T.serial(4):
        with T.{}("b"):
            v = T.axis.spatial(4, i)
            T.reads()
            T.writes(A[v])
            A[v] = 1.0
"""
    equal(from_source(text.format("block")), from_source(text.format("sblock")))


def test_symbolic_shapes():
    @T.prim_func
    def func(a: T.handle, n: T.int64, b: T.handle):
        m = T.int64(is_size_var=True)
        A = T.match_buffer(a, (n, m), "int32")
        B = T.match_buffer(b, (m,), "int32", offset_factor=4)
        for i, j in T.grid(n, m):
            A[i, j] = B[j]

    buffers = list(func.buffer_map.values())
    assert isinstance(buffers[0].shape[1], tir.SizeVar)
    assert isinstance(buffers[1].elem_offset, tir.Var) and buffers[1].offset_factor == 4
    equal(from_source(func.script()), func)


def test_macro_hygienic_and_not():
    x_value = 128

    @T.macro(hygienic=True)
    def store_closure(A, i):
        A[i] = x_value

    @T.macro(hygienic=False)
    def store_local(A, i, *, by=1):
        A[i] = x_value + by

    @T.prim_func(private=True)
    def use(A: T.Buffer((8,), "int32")):
        for x_value in T.serial(8):  # noqa: B007
            store_closure(A, 1)
            store_local(A, 2)

    @T.prim_func(private=True)
    def expected(A: T.Buffer((8,), "int32")):
        for x in range(8):
            A[1] = 128
            A[2] = x + 1

    equal(use, expected)


def test_lets_and_meta_var():
    @T.prim_func(private=True)
    def func(A: T.Buffer((8,), "float32"), n: T.int32):
        m = n * 2
        k = T.meta_var(n * 3)
        y: T.float32 = A[m]
        A[k] = y

    text = func.script()
    assert "m: T.int32 = n * 2" in text and "A[n * 3] = y" in text


def test_statements():
    """Each statement of the language, read and printed."""

    @T.prim_func
    def func(A: T.Buffer((8,), "float32"), p: T.handle("float32", "shared"), n: T.int32) -> T.int32:
        T.attr(p, "volatile_scope", 1)
        assert n > 0, "n must be positive"
        buf = T.allocate([8], "float32", "global")
        B = T.decl_buffer((8,), data=buf)
        C = T.decl_buffer((4,), "int32")
        tx = T.launch_thread("threadIdx.x", 8)
        while n < 3:
            T.evaluate(0)
            break
        for i in T.unroll(0, 8, annotations={"k": 1}):
            if i == 2:
                continue
            elif i == 3 or n > 2 and not (i < 1):
                B[i] = T.Select(i > 2, A[i], T.float32(2))
            else:
                C[0] = T.Cast("int32", A[i])
        for i in T.thread_binding(8, thread="blockIdx.x"):
            B[i] = A[i] if i < 4 else T.float32(0)
        with T.attr(0, "k", "v"), T.LetStmt(n + tx) as m:
            T.call_extern("int32", "f", m, B.data)
        A[0:4] = B[0:4] + T.Broadcast(T.float32(1), 4)
        T.evaluate(T.call_packed("g", n))
        return n

    text = func.script()
    equal(from_source(text, check_well_formed=False), func)
    for line in ("while n < 3:", "break", "continue", "return n",
                 'assert n > 0, "n must be positive"',
                 'C = T.decl_buffer((4,), "int32")', 'tx = T.launch_thread("threadIdx.x", 8)',
                 "A[0:4] = B[0:4] + T.Broadcast(T.float32(1.0), 4)",
                 "elif i == 3 or n > 2 and not i < 1:"):  # fmt: skip
        assert line in text, line


def test_comparisons_keep_their_sides():
    @T.prim_func(private=True)
    def func(n: T.int32):
        if 1 < n:
            T.evaluate(1)
        if 1 < n < 5:
            T.evaluate(2)

    first, second = func.body
    assert isinstance(first.condition, tir.LT) and int(first.condition.a) == 1
    assert isinstance(second.condition, tir.And)


def test_module():
    @I.ir_module
    class Module:
        I.module_attrs({"k": 1})

        @T.prim_func(private=True)
        def helper(x: T.int32) -> T.int32:
            return x + 1

        @T.prim_func
        def main(A: T.Buffer((1,), "int32")):
            A[0] = Module.helper(A[0]) + cls.helper(2)  # noqa: F821

    assert Module.attrs["k"] == 1
    assert "global_symbol" not in Module["helper"].attrs
    assert str(Module["main"].body.value.a.op.name_hint) == "helper"
    equal(from_source(Module.script()), Module)


def test_from_source_names():
    text = "@T.prim_func\ndef f(A: T.Buffer((n,), dtype)):\n    A[0] = value"
    func = from_source(text, {"n": 4, "dtype": "int32", "value": 7})
    assert str(func.body).strip() == "A[0] = 7"


def test_functions_that_run():
    """The program does what it says."""
    a = np.random.rand(128, 128).astype("float32")
    c = np.zeros((128, 128), "float32")
    tvm.compile(matmul, target=tvm.testing.host_target())(a, a, c)
    np.testing.assert_allclose(c, a @ a, rtol=1e-4)


def test_builder_by_hand():
    from tvm.script.ir_builder import IRBuilder
    from tvm.script.ir_builder import tir as B

    with IRBuilder() as builder:
        with B.prim_func():
            B.func_name("main")
            B.func_attr({"tir.noalias": True})
            A = B.arg("A", B.Buffer((16,), "float32"))
            with B.serial(16) as i:
                IRBuilder.name("i", i)
                with B.If(i < 4):
                    with B.Then():
                        B.buffer_store(A, 0.0, [i])
                    with B.Else():
                        B.evaluate(0)
    assert builder.get().script().splitlines()[2:] == [
        "@T.prim_func",
        'def main(A: T.Buffer((16,), "float32")):',
        '    T.func_attr({"tir.noalias": True})',
        "    for i in range(16):",
        "        if i < 4:",
        "            A[i] = T.float32(0.0)",
        "        else:",
        "            T.evaluate(0)",
    ]


def test_slices_are_vectors_wherever_values_are_expected():
    """Also in the arguments of nodes, of lists in them and of methods of buffers."""

    @T.prim_func
    def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "bool")):
        A[0:4] = T.Cast("int32x4", B[0:4])
        A[0:4] = T.Select(B[0:4], A[4:8], T.Broadcast(0, 4))
        A[0:4] = T.Shuffle([A[0:4], A[4:8]], [0, 2, 4, 6])
        A.vstore([T.Ramp(3, -1, 4)], A[0:4], predicate=B[0:4])

    stores = list(main.body.seq)
    assert all(isinstance(s, tir.BufferStore) for s in stores)
    assert isinstance(stores[2].value.vectors[1], tir.BufferLoad)
    assert stores[3].indices[0].stride == -1
    tvm.ir.assert_structural_equal(from_source(main.script()), main)


def test_call_kernel_adds_its_module():
    from tvm.script.ir_builder.tir.external_kernel import BaseKernel

    class Kernel(BaseKernel):
        def compile_to_device_module(self, launch_args, *args, **kwargs):
            return "kernel_name", "a device module", [*args, *launch_args]

    kernel = Kernel()

    @I.ir_module
    class Module:
        @T.prim_func
        def main(A: T.Buffer((8,), "float32")):
            T.call_kernel(kernel, [1, 32], A.data)

    assert list(Module.attrs["external_mods"]) == ["a device module"]
    assert 'T.tvm_call_packed("kernel_name", A.data, 1, 32)' in Module.script()


def test_nodes_remember_their_place():
    @T.prim_func
    def main(A: T.Buffer((8,), "float32")):
        for i in range(8):
            x: T.float32 = A[i] * T.float32(2)
            A[i] = x + T.exp(A[i])

    line = main.body.span.line
    let = main.body.body
    store = let.body
    assert main.body.span.source_name.name.endswith("test_parser.py")
    assert (let.span.line, store.span.line) == (line + 1, line + 2)
    assert store.span.end_line == store.value.span.line == line + 2
    assert let.value.a.span.line == line + 1
    text = tvm.script.from_source("@T.prim_func\ndef main(x: T.int32):\n    T.evaluate(x + 1)")
    span = text.body.span
    assert (span.line, span.column, span.source_name.name) == (3, 5, "<string>")
