# SPDX-License-Identifier: Apache-2.0
"""The text of programs: golden files for whole ones, options, underlines."""

import pytest
import tvm
from tvm import tir
from tvm.script import from_source
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.tir import Var
from tvm_ffi.access_path import AccessPath

PROGRAMS = {}


def program(func):
    PROGRAMS[func.__name__] = func
    return func


@program
def matmul():
    @T.prim_func
    def matmul(a: T.handle, b: T.handle, C: T.Buffer((128, 128), "float32")):
        T.func_attr({"tir.noalias": True, "k": {"x": [1, "y"]}})
        n = T.int32(is_size_var=True)
        A = T.match_buffer(a, (128, n))
        B = T.match_buffer(b, (n, 128), strides=(128, 1), align=128)
        D = T.alloc_buffer((128, 128), "float16", scope="shared")
        for i, j in T.grid(128, 128):
            for k in T.serial(n, annotations={"pragma": 1}):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    vk = T.axis.reduce(n, k)
                    T.where(k < 100)
                    T.reads(A[vi, vk], B[vk, vj])
                    T.writes(C[vi, vj])
                    T.block_attr({"tile": 4})
                    with T.init():
                        C[vi, vj] = T.float32(0)
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(128, 128):
            with T.block("cast"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(C[vi, vj])
                T.writes(D[vi, vj])
                D[vi, vj] = T.Cast("float16", C[vi, vj])

    return matmul


@program
def lowered():
    @T.prim_func(private=True, check_well_formed=False)
    def lowered(p: T.handle("float32"), q: T.handle("float32"), n: T.int32) -> T.int32:
        A = T.decl_buffer((16,), data=p)
        B = T.Buffer((16,), data=q)
        T.attr("default", "device_id", 0)
        assert n > 0, "positive"
        with T.LetStmt(n + 1) as m:
            T.evaluate(m)
        buf = T.allocate([n], "float32", "shared", annotations={"x": 1})
        C = T.decl_buffer((n,), data=buf, scope="shared")
        D = T.decl_buffer((4,), "int8")
        for i in T.parallel(2, n):
            for j in T.vectorized(4):
                C[i * 4 + j] = T.max(A[j] * T.float32(0.5) - B[j], T.float32(0))
            for j in T.unroll(4):
                D[j] = T.int8(1)
            C[0:4] = T.exp(A[0:4]) / T.Broadcast(T.float32(3), 4)
        tx = T.launch_thread("threadIdx.x", 32)
        if tx < 4 and (n > 3 or n == 1):
            T.tvm_storage_sync("shared")
        elif not n % 2 == 0:
            C[tx] = T.if_then_else(tx < 2, T.float32("inf"), T.float32(-1))
        while n < 4:
            T.call_extern("int32", "f", A.data, n // 2 - (n - 1))
        return n

    return lowered


@program
def module():
    @I.ir_module
    class Module:
        I.module_attrs({"runtime": "x"})

        @T.prim_func(private=True)
        def helper(x: T.int64) -> T.int64:
            return x * T.int64(2)

        @T.prim_func
        def main(A: T.Buffer((4,), "int64")):
            T.func_attr({"target": T.target({"kind": "c", "keys": ["cpu"], "tag": ""})})
            for i in range(T.int64(4)):
                A[i] = Module.helper(A[i])

    return Module


@pytest.mark.parametrize("name", PROGRAMS)
def test_golden(name, golden):
    func = PROGRAMS[name]()
    text = func.script()
    golden(f"{name}.txt", text + "\n")
    golden(f"{name}_plain.txt", func.script(syntax_sugar=False) + "\n")
    for printed in (text, func.script(syntax_sugar=False)):
        tvm.ir.assert_structural_equal(from_source(printed, check_well_formed=False), func)


def test_fragments_are_bare():
    i, n = Var("i", "int32"), Var("n", "int32")
    assert str(i + 1) == "i + 1"
    assert repr((i + n) * (i - (n - 1))) == "(i + n) * (i - (n - 1))"
    assert str(tir.Not(i < n)) == "not i < n"
    assert str(tir.const(1, "int32")) == "1" and str(tir.const(1, "int8")) == "T.int8(1)"
    buffer = tir.decl_buffer((4, n), "float32", "A")
    assert str(buffer) == 'A = T.Buffer((4, n), "float32")'.replace("A = ", "n = T.int32()\nA = ")
    loop = tir.For(i, 0, 4, 0, tir.BufferStore(buffer, tir.const(0, "float32"), [i, 0]))
    assert str(loop) == "for i in range(4):\n    A[i, 0] = T.float32(0.0)"
    assert str(tvm.ir.Range(0, 4)) == "I.Range(0, 4)"
    assert loop.script(verbose_expr=True).splitlines() == [
        "n = T.int32()",
        'A = T.Buffer((4, n), "float32")',
        "for i in range(4):",
        "    A[i, 0] = T.float32(0.0)",
    ]


def test_options():
    @T.prim_func
    def func(A: T.Buffer((4,), "float32"), x: T.int64):
        for i in range(4):
            A[i] = A[i] + T.float32(2) * T.Cast("float32", x + T.int64(1))

    text = func.script(
        name="other", tir_prefix="tir", indent_spaces=2, int_dtype="int64", float_dtype="float32"
    )
    assert text.splitlines() == [
        "# from tvm.script import tir as tir",
        "",
        "@tir.prim_func",
        'def other(A: tir.Buffer((tir.int32(4),), "float32"), x: tir.int64):',
        '  tir.func_attr({"global_symbol": "func"})',
        "  for i in range(tir.int32(4)):",
        '    A[i] = A[i] + 2.0 * tir.Cast("float32", x + 1)',
    ]
    assert func.script(print_line_numbers=True).splitlines()[2] == "3 @T.prim_func"


@pytest.fixture
def simple():
    @T.prim_func
    def func(A: T.Buffer((4, 4), "float32")):
        for i, j in T.grid(4, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(A[vi, vj])
                A[vi, vj] = A[vi, vj] + A[vi, vj]

    return func


def underlined(text):
    """The texts above ^^^."""
    lines = text.splitlines()
    found = []
    for above, line in zip(lines, lines[1:], strict=False):
        if line.strip() and set(line) <= {" ", "^"}:
            begin, end = line.index("^"), line.rindex("^") + 1
            found.append(above[begin:end])
    return found


def test_underline_objects(simple):
    block = simple.body.block.body.body.body.block
    assert underlined(simple.script(obj_to_underline=[block])) == ['with T.block("B"):']
    value = block.body.value
    assert underlined(simple.script(obj_to_underline=[value])) == ["A[vi, vj] + A[vi, vj]"]
    loop = simple.body.block.body
    assert underlined(simple.script(obj_to_underline=[loop.body])) == ["for i, j in T.grid(4, 4):"]
    assert underlined(simple.script(obj_to_underline=[simple])) == [
        'def func(A: T.Buffer((4, 4), "float32")):'
    ]


def test_underline_paths(simple):
    root = AccessPath.root()
    value = root.attr("body").attr("block").attr("body").attr("body").attr("body").attr("block")
    value = value.attr("body").attr("value")
    text = simple.script(path_to_underline=[value.attr("b")])
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if "^" in line)
    assert lines[at - 1][lines[at].index("^") :] == "A[vi, vj]"
    assert underlined(text) == ["A[vi, vj]"]
    index = value.attr("a").attr("indices").array_item(1)
    text = simple.script(path_to_underline=[index])
    assert underlined(text) == ["vj"]


def test_notes_and_context(simple):
    block = simple.body.block.body.body.body.block
    assert 'with T.block("B"):  # here' in simple.script(obj_to_annotate={block: "here"})
    text = simple.script(obj_to_underline=[block], num_context_lines=1)
    assert text.splitlines() == [
        "(... 5 lines skipped ...)",
        "    for i, j in T.grid(4, 4):",
        '        with T.block("B"):',
        "        ^^^^^^^^^^^^^^^^^^",
        '            vi, vj = T.axis.remap("SS", [i, j])',
        "(... 3 lines skipped ...)",
    ]


def test_show(simple, capsys):
    simple.show()
    assert capsys.readouterr().out.strip() == simple.script()
    pytest.importorskip("pygments")
    simple.show(style="dark")
    assert "\x1b[" in capsys.readouterr().out


def test_sharing_is_bounded():
    """A small program whose text would never end is an error, not an exhausted machine."""
    x = Var("x", "int32")
    for _ in range(64):
        x = x + x
    with pytest.raises(ValueError, match="256 MiB"):
        str(x)


def test_names_of_siblings_are_reused():
    i, j = Var("i", "int32"), Var("i", "int32")
    loops = tir.SeqStmt([tir.For(v, 0, 4, 0, tir.Evaluate(v)) for v in (i, j)])
    assert str(loops).count("for i in range(4):") == 2
    nested = tir.For(i, 0, 4, 0, tir.For(j, 0, i, 0, tir.Evaluate(i + j)))
    assert str(nested).splitlines()[1].strip() == "for i_1 in range(i):"
