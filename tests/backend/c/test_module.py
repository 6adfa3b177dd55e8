# SPDX-License-Identifier: Apache-2.0
"""Modules of target c: their text, files, compilers, and what C cannot say."""

import os
import shutil
import subprocess
import tarfile

import numpy as np
import pytest
import tvm
import tvm.testing
import tvm_ffi
from kernels import buffer, build, call, const, loop, module, run
from tvm import te, tir

COMPILERS = [c for c in ("gcc", "clang", "g++") if shutil.which(c)]


def program(name="main"):
    n = te.size_var("n")
    A = te.placeholder((n, 16), name="A")
    B = te.compute((n, 16), lambda i, j: tir.tanh(A[i, j]) * 2 + 1, name="B")
    return te.create_prim_func([A, B]).with_attr("global_symbol", name)


def check(mod):
    a = np.random.default_rng(0).standard_normal((5, 16)).astype("float32")
    b = np.zeros_like(a)
    mod(a, b)
    np.testing.assert_allclose(b, np.tanh(a) * 2 + 1, rtol=1e-5, atol=1e-6)


def test_text(golden):
    """Loops and indices as one would write them; data arithmetic that cannot overflow in C."""
    a, b, i, j = (
        buffer("A", "int32", 64),
        buffer("B", "int32", 64),
        *map(tir.Var, "ij", ["int32"] * 2),
    )
    x = tir.BufferLoad(a, [i * 8 + j])
    value = tir.Select(x > const(3), x * x - const(1), tir.FloorDiv(x, x))
    body = loop(i, const(8), loop(j, const(8), tir.BufferStore(b, value, [i * 8 + j])))
    text = build(module(body, [a, b]), "c").inspect_source("c")
    golden("loops.c", text[text.rindex("static int32_t main_compute_(") :])


def test_header():
    mod = tvm.build(program(), target="c")
    header = mod.inspect_source("h")
    arguments = "void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result"
    assert f"int __tvm_ffi_main({arguments});" in header
    assert mod.get_source() == mod.get_source("c") and '"main: expected' in mod.get_source()
    message = "inspect_source: expected the format c, h, o or obj, got 'ptx'"
    with pytest.raises(ValueError, match=message):
        mod.inspect_source("ptx")


@pytest.mark.parametrize("compiler", COMPILERS)
def test_text_compiles_without_warnings(compiler, tmp_path):
    """As C99, and as C++ by a compiler that takes it for that; the header too."""
    tvm.build(program(), target="c").export_library(str(tmp_path / "lib.c"))
    (tmp_path / "user.c").write_text('#include "lib.h"\n#include "lib.c"\n')
    standard = [] if compiler == "g++" else ["-std=c99"]
    include = "-I" + tvm_ffi.libinfo.find_include_path()
    command = [compiler, *standard, "-Wall", "-Werror", "-fsyntax-only", include, "user.c"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)


@pytest.mark.parametrize("suffix", ["so", "o", "a", "tar"])
def test_export(suffix, tmp_path):
    path = tmp_path / f"lib.{suffix}"
    tvm.build(program(), target="c").export_library(str(path))
    check(tvm.runtime.load_module(str(path)))
    if suffix in ("o", "a"):
        assert "int __tvm_ffi_main(" in path.with_suffix(".h").read_text()
    if suffix == "tar":
        names = {name.split(".")[-1] for name in tarfile.open(path).getnames()}
        assert names == {"c", "h"}


def test_export_of_source_compiles_by_hand(tmp_path):
    tvm.build(program(), target="c").export_library(str(tmp_path / "lib.c"))
    include = "-I" + tvm_ffi.libinfo.find_include_path()
    command = [
        COMPILERS[0],
        "-std=c99",
        "-O1",
        "-shared",
        "-fPIC",
        include,
        "lib.c",
        "-o",
        "lib.so",
    ]
    subprocess.run([*command, "-lm"], cwd=tmp_path, check=True, timeout=60)
    check(tvm.runtime.load_module(str(tmp_path / "lib.so")))


def test_export_with_own_compiler(tmp_path):
    """fcompile gets sources: it may be for another machine."""
    seen = []

    def fcompile(output, files, **_):
        seen.extend(files)
        tvm.support.cc.create_shared(output, files)

    path = str(tmp_path / "lib.so")
    tvm.build(program(), target="c").export_library(path, fcompile=fcompile)
    assert [os.path.basename(f) for f in seen] == ["lib0.c"]
    check(tvm.runtime.load_module(path))


def test_functions_of_a_module():
    mod = tvm.IRModule({"f": program("f"), "g": program("g")})
    built = tvm.build(mod, target="c")
    assert built.function_names() == ["f", "g"]
    check(built["f"])
    check(built["g"])


def test_no_compiler(monkeypatch, tmp_path):
    mod = tvm.build(program("without"), target="c")
    assert "__tvm_ffi_without" in mod.get_source()  # the text needs no compiler
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    message = (
        r"no C compiler found \(looked for CC, cc, gcc and clang\); install one \(Debian .*gcc"
    )
    with pytest.raises(RuntimeError, match=message):
        mod["without"]
    monkeypatch.setenv("CC", "no-such-cc -O1")
    with pytest.raises(
        RuntimeError, match="expected CC to name a C compiler, got 'no-such-cc -O1'"
    ):
        mod["without"]
    foreign = tvm.build(program(), target="c -mtriple=sparc64-linux-gnu")
    with pytest.raises(RuntimeError, match="no C compiler for sparc64-linux-gnu .*gcc-sparc64"):
        foreign["main"]


def test_compiler_that_fails(monkeypatch, tmp_path):
    broken = tmp_path / "broken-cc"
    broken.write_text("#!/bin/sh\necho it is broken\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    with pytest.raises(RuntimeError, match="broken-cc .*ended with 3:\nit is broken"):
        tvm.build(program("failing"), target="c")["failing"]


def test_undefined_symbol_is_an_error():
    a = buffer("A", "float32", 16)
    name = tir.StringImm("no_such_function_anywhere")
    value = call("float32", "call_pure_extern", name, tir.BufferLoad(a, [const(0)]))
    mod = build(module(tir.BufferStore(a, value, [const(0)]), [a]), "c")
    with pytest.raises(OSError, match="no_such_function_anywhere"):
        mod.get_function("main")
    check(tvm.build(program(), target="c"))  # the session goes on


def test_calls_of_functions_that_headers_declare():
    """With other types than the header's: no second declaration."""
    a, b = buffer("A", "float32", 16), buffer("B", "float32", 16)
    copy = call(
        "handle", "call_extern", tir.StringImm("memcpy"), b.data, a.data, const(64, "int32")
    )
    x, y = np.arange(16, dtype="float32"), np.zeros(16, "float32")
    run(module(tir.Evaluate(copy), [a, b]), x, y, target="c")
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("name", ["int", "for", "fmaf", "template", "memcpy", "tvm_raise", "1x y"])
def test_names_that_c_has_taken(name):
    a, i = buffer(name, "float32", 16), tir.Var(name, "int32")
    value = call("float32", "fma", *[tir.BufferLoad(a, [i])] * 3)
    x = np.arange(16, dtype="float32")
    run(module(loop(i, const(16), tir.BufferStore(a, value, [i])), [a]), x, target="c")
    np.testing.assert_array_equal(x, np.arange(16) ** 2 + np.arange(16))


def test_names_that_c_cannot_have():
    with pytest.raises(ValueError, match="expected the name of a function to be an identifier"):
        tvm.build(program("no-name"), target="c")


def test_text_constants():
    texts = ['"quoted" \\ back', "trigraph ??/ ", "line\nbreak\tand ümlaut", "%d"]
    for text in texts:
        fail = tir.AssertStmt(tir.const(False, "bool"), tir.StringImm(text), tir.Evaluate(const(0)))
        with pytest.raises(RuntimeError) as error:
            run(module(fail, [buffer("A", "float32", 1)]), np.zeros(1, "float32"), target="c")
        assert str(error.value) == text


def test_deep_expression():
    a = buffer("A", "int32", 1)
    value = tir.BufferLoad(a, [const(0)])
    for _ in range(10_000):
        value = tir.Add(value, const(1))
    x = np.zeros(1, "int32")
    run(module(tir.BufferStore(a, value, [const(0)]), [a]), x, target="c")
    assert x == [10_000]


def test_memory_of_two_types():
    """Bits written as float32 and read as int32: C forbids pointers of both types."""
    a = buffer("A", "float32", 16)
    b = tir.Buffer(a.data, "int32", [16], [], const(0), "B", 64, 1, 1)
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    first = loop(i, const(16), tir.BufferStore(a, tir.Cast("float32", i), [i]))
    second = loop(j, const(16), tir.BufferStore(b, tir.BufferLoad(b, [j]) + const(1 << 23), [j]))
    x = np.zeros(16, "float32")
    run(module(tir.SeqStmt([first, second]), [a]), x, target="c")
    np.testing.assert_array_equal(x[1:], np.arange(1, 16) * 2)


def test_unsupported():
    a = buffer("A", "float32", 64)
    scalable = tir.Ramp(const(0), const(1), 4 * tir.vscale())
    lanes = tir.Ramp(const(0), const(1), 8)

    def fails(value, index, message):
        with pytest.raises(NotImplementedError, match="C code generation: " + message):
            build(module(tir.BufferStore(a, value, [index]), [a]), "c")

    fails(tir.BufferLoad(a, [scalable]), scalable, "vectors of a length that only the run knows")
    vector = tir.BufferLoad(a, [lanes])
    extern = call("float32x8", "call_pure_extern", tir.StringImm("expf"), vector)
    fails(extern, lanes, "the call of tir.call_pure_extern on vectors")
    scalar = tir.BufferLoad(a, [const(0)])
    intrinsic = call("float32", "call_llvm_pure_intrin", const(1, "uint32"), scalar)
    fails(intrinsic, const(0), "an LLVM intrinsic, which only target llvm has")
    fails(
        call("float32", "exp", scalar), const(0), "expected LowerIntrin to have lowered .*tir.exp"
    )


@tvm.testing.requires_llvm
def test_float_results_are_those_of_llvm():
    """Within 2 units in the last place of each other: contraction of multiply-adds differs."""
    names = ["exp", "log", "tanh", "sin", "erf", "sigmoid", "atan", "sqrt", "rsqrt"]
    x = np.random.default_rng(0).uniform(0.01, 20, 4096).astype("float32")
    A = te.placeholder((4096,), name="A")
    outs = [te.compute((4096,), lambda i, f=f: getattr(tir, f)(A[i]), name=f) for f in names]
    func = te.create_prim_func([A, *outs])
    results = {}
    for target in ("llvm", "c"):
        results[target] = [np.zeros_like(x) for _ in names]
        tvm.build(func, target=target)(x, *results[target])
    for name, llvm, c in zip(names, results["llvm"], results["c"], strict=True):
        assert tvm.testing.ulp_distance(llvm, c).max() <= 2, name


def test_a_module_of_text():
    code = """
#include <tvm/ffi/c_api.h>
int __tvm_ffi_twice(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result) {
  result->type_index = kTVMFFIInt;
  result->zero_padding = 0;
  result->v_int64 = 2 * args[0].v_int64;
  return 0;
}
"""
    create = tvm.get_global_func("runtime.CSourceModuleCreate")
    module = create(code, "c", ["twice"], [])
    assert module["twice"](21) == 42 and module.inspect_source() == code
    with pytest.raises(ValueError, match="expected the format c without const_vars, got 'cu'"):
        create(code, "cu", ["twice"], [])
