# SPDX-License-Identifier: Apache-2.0
"""Modules as files and texts, other architectures, targets and errors."""

import multiprocessing
import platform
import re
import struct
import subprocess
import sys
import tarfile

import numpy as np
import pytest
import tvm
import tvm_ffi
from kernels import buffer, build, call, const, loop, module, run
from tvm import tir

FOREIGN = {
    "aarch64-linux-gnu": ("EM_AARCH64", 183, 64),
    "armv7a-linux-gnueabihf": ("EM_ARM", 40, 32),
    "riscv64-unknown-linux-gnu": ("EM_RISCV", 243, 64),
    "riscv32-unknown-linux-gnu": ("EM_RISCV", 243, 32),
    "i686-linux-gnu": ("EM_386", 3, 32),
}


def add_one(kind=0):
    a, b, i = buffer("A", "float32", 1024), buffer("B", "float32", 1024), tir.Var("i", "int32")
    value = tir.BufferLoad(a, [i]) + tir.const(1.0, "float32")
    return module(loop(i, const(1024), tir.BufferStore(b, value, [i]), kind), [a, b])


def check(mod):
    x, y = np.random.rand(1024).astype("float32"), np.zeros(1024, "float32")
    run(mod, x, y)
    np.testing.assert_array_equal(y, x + 1)


def test_sources():
    mod = build(add_one())
    assert "define" in mod.inspect_source("ll") and mod.inspect_source() == mod.inspect_source("ll")
    asm = mod.inspect_source("asm")
    assert "__tvm_ffi_main" in asm and "vaddps" in asm or "addps" in asm
    with pytest.raises(
        ValueError, match="inspect_source: expected the format ll, asm, s, bc, o or obj, got 'ptx'"
    ):
        mod.inspect_source("ptx")


@pytest.mark.parametrize("cpu, lanes", [("x86-64", 4), ("haswell", 8), ("skylake-avx512", 16)])
def test_noalias_loops_vectorise_without_checks(cpu, lanes):
    """One version of the loop: the buffers do not overlap, and no test for that is left."""
    target = f"llvm -mtriple=x86_64-linux-gnu -mcpu={cpu}"
    text = build(add_one(), target).inspect_source("ll")
    assert f"<{lanes} x float>" in text and "memcheck" not in text
    assert len([line for line in text.splitlines() if " br " in line and "!llvm.loop" in line]) <= 2


@pytest.mark.parametrize("kind", ["ll", "bc"])
def test_ir_is_loaded(kind, tmp_path):
    path = tmp_path / f"lib.{kind}"
    build(add_one()).write_to_file(str(path), kind)
    check(tvm.runtime.load_module(path))


FOREIGN_IR = 'target triple = "riscv64-unknown-linux-gnu"'
BAD_IR = {
    "text": ("ll", b"something else", "error: expected top-level entity"),
    "type": ("ll", b"define i32 @f() { ret i64 0 }", "doesn't match function result type"),
    "machine": ("ll", FOREIGN_IR.encode(), "expected IR for .*, got IR for riscv64"),
    "no text": ("ll", b"define \xff\xfe\xc3\x28 junk", "expected IR of LLVM"),
    "bits": ("bc", b"BC\xc0\xde" + bytes(range(200)), "expected IR of LLVM"),
}


@pytest.mark.parametrize("kind, content, message", BAD_IR.values(), ids=BAD_IR)
def test_ir_that_is_none(kind, content, message, tmp_path):
    path = tmp_path / f"lib.{kind}"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        tvm.runtime.load_module(path)
    with pytest.raises(FileNotFoundError, match="no such file"):
        tvm.runtime.load_module(tmp_path / f"none.{kind}")


@pytest.mark.parametrize("kind", ["o", "ll", "s", "bc"])
def test_files(kind, tmp_path):
    path = tmp_path / f"lib.{kind}"
    build(add_one()).write_to_file(str(path), kind)
    start = {"o": b"\x7fELF", "ll": b"; ModuleID", "s": b"\t", "bc": b"BC"}[kind]
    assert path.read_bytes().startswith(start)
    build(add_one()).save(tmp_path / f"old.{kind}")
    assert (tmp_path / f"old.{kind}").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("kind", [0, 1])
def test_shared_library(kind, tmp_path):
    """Linked by LLD; loads in tvm_ffi, in this process and in one without our runtime."""
    obj, lib = tmp_path / "lib.o", tmp_path / "lib.so"
    build(add_one(kind)).write_to_file(str(obj), "o")
    tvm_ffi.get_global_func("codegen.link_shared")([str(obj)], str(lib), [])
    check(tvm_ffi.load_module(str(lib)))
    program = f"""
import numpy as np, tvm_ffi
x, y = (np.zeros(2048, "float32")[: 1024] for _ in "xy")
def aligned():
    raw = np.zeros(1024 + 16, "float32")
    return raw[-raw.ctypes.data // 4 % 16 :][:1024]
x, y = aligned(), aligned()
x[:] = np.arange(1024)
f = tvm_ffi.load_module({str(lib)!r})["main"]
f(tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(y))
assert (y == x + 1).all()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize("suffix", ["o", "a", "tar"])
def test_static_library(suffix, tmp_path):
    """What the library needs of the machine is linked into the object, which loads again."""
    path = str(tmp_path / f"lib.{suffix}")
    build(add_one()).export_library(path)
    check(tvm.runtime.load_module(path))


def test_link_errors():
    link = tvm_ffi.get_global_func("codegen.link_shared")
    for _ in range(2):  # and again: the linker keeps no broken state
        with pytest.raises(ValueError, match="link: .*no_such_file.o"):
            link(["/no_such_file.o"], "/tmp/never.so", [])


@pytest.mark.parametrize("triple", FOREIGN)
@pytest.mark.parametrize("kind", [0, 1])
def test_object_for_other_machine(triple, kind, tmp_path):
    mod = build(add_one(kind), f"llvm -mtriple={triple}")
    path = tmp_path / "lib.o"
    mod.write_to_file(str(path), "o")
    data = path.read_bytes()
    _, machine, bits = FOREIGN[triple]
    assert data[:4] == b"\x7fELF" and data[4] == bits // 32
    assert int.from_bytes(data[18:20], "little") == machine
    with pytest.raises(ValueError, match="cannot run code for .* on this machine"):
        mod.get_function("main")


def test_object_for_webassembly(tmp_path):
    path = tmp_path / "lib.o"
    build(add_one(1), "llvm -mtriple=wasm32-unknown-unknown -mattr=+simd128").write_to_file(
        str(path), "o"
    )
    assert path.read_bytes()[:4] == b"\0asm"


def test_structure_offsets_follow_the_target():
    """DLTensor.shape is at byte 24 with pointers of 8 bytes, at 20 with pointers of 4."""
    handle = tir.Var("t", "handle")
    shape = call("handle", "tvm_struct_get", handle, const(0), const(2))
    func = tir.PrimFunc(
        [handle],
        tir.Evaluate(call("handle", "ret", shape)),
        tvm.ir.PointerType(tvm.ir.PrimType("void")),
        {},
        tvm.ir.DictAttrs({"global_symbol": "f"}),
    )
    mod = tvm.ir.IRModule({tvm.ir.GlobalVar("f"): func})
    assert "i64 24" in build(mod).inspect_source("ll")
    assert "i32 20" in build(mod, "llvm -mtriple=armv7a-linux-gnueabihf").inspect_source("ll")


def test_wrong_targets():
    def fails(target, text):
        with pytest.raises(ValueError, match=text):
            build(add_one(), target)

    fails(
        "llvm -mcpu=skylak", "expected a CPU that LLVM knows .*got 'skylak', did you mean 'skylake'"
    )
    fails("llvm -mattr=+avx51f", "in mattr, got '\\+avx51f', did you mean 'avx512?f'")
    fails("llvm -mattr=avx2", "expected '\\+' or '-' and a feature of x86_64 in mattr, got 'avx2'")
    fails(
        "llvm -mtriple=nonsense-unknown-none",
        "expected a triple LLVM generates code for as mtriple",
    )
    fails("llvm -opt-level=7", "expected opt-level from 0 to 3, got 7")


def test_names():
    mod = build(add_one())
    assert list(mod.get_function("__tvm_function_names")()) == ["main"]
    info = mod.get_function("__tvm_library_info")()
    assert "llvm" in info["target"] and "sse2" in info["cpu_features"].split(",")
    assert not mod.implements_function("other")


def test_undefined_symbol_is_an_error():
    a = buffer("A", "float32", 16)
    value = call(
        "float32",
        "call_pure_extern",
        tir.StringImm("no_such_function_anywhere"),
        tir.BufferLoad(a, [const(0)]),
    )
    mod = build(module(tir.BufferStore(a, value, [const(0)]), [a]))
    with pytest.raises(RuntimeError, match="no_such_function_anywhere"):
        mod.get_function("main")
    check(build(add_one()))  # the session goes on


def test_not_lowered():
    a, i = buffer("A", "float32", 16), tir.Var("i", "int32")
    with pytest.raises(
        NotImplementedError, match="expected LowerIntrin to have lowered the call of tir.exp"
    ):
        build(
            module(
                tir.BufferStore(a, call("float32", "exp", tir.BufferLoad(a, [i])), [i]), [a], [i]
            )
        )
    with pytest.raises(
        NotImplementedError, match="expected VectorizeLoop to have lowered the loop over i"
    ):
        build(
            module(loop(i, const(16), tir.BufferStore(a, tir.const(0.0, "float32"), [i]), 2), [a])
        )
    with pytest.raises(
        ValueError, match="the variable i is used but not defined in tvm.main_compute_"
    ):
        build(module(tir.BufferStore(a, tir.const(0.0, "float32"), [i]), [a]))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="features of x86")
def test_features_that_running_needs():
    """Of what no processor has any more, only instructions that LLVM may choose are missed."""
    check(build(add_one(), "llvm -mattr=+lwp,+sgx,+pku,+xsaves"))
    with pytest.raises(ValueError, match="on this machine, which lacks (?!.*lwp).*xop"):
        check(build(add_one(), "llvm -mattr=+xop,+lwp"))


def test_llvm_failure_is_an_error():
    """An instruction that the target lacks stops LLVM's selection, not the process."""
    a = buffer("A", "float32", 64)
    lanes = tir.Ramp(const(0), const(1), 16)
    lookup = tvm.target.codegen.llvm_lookup_intrinsic_id("llvm.x86.avx512.rcp14.ps.512")
    zero = tir.BufferLoad(a, [lanes])
    value = call(
        "float32x16",
        "call_llvm_pure_intrin",
        const(lookup, "uint32"),
        zero,
        zero,
        tir.const(-1, "int16"),
    )
    mod = module(tir.BufferStore(a, value, [lanes]), [a])
    with pytest.raises(RuntimeError, match="LLVM: "):
        build(mod, "llvm -mcpu=x86-64")
    check(build(add_one()))


def test_queries():
    codegen = tvm.target.codegen
    assert codegen.llvm_version_major() >= 19
    assert "x86-64" in codegen.llvm_get_targets() and "aarch64" in codegen.llvm_get_targets()
    assert "znver4" in codegen.llvm_get_cpu_archlist("llvm -mcpu=x86-64-v3")
    assert codegen.llvm_get_vector_width("llvm -mcpu=x86-64-v3") == 256
    assert codegen.llvm_get_vector_width("llvm -mcpu=x86-64-v4") == 512
    assert codegen.llvm_cpu_has_features("avx2", "llvm -mcpu=x86-64-v3")
    assert not codegen.llvm_cpu_has_features(["avx2", "avx512f"], "llvm -mcpu=x86-64-v3")
    number = codegen.llvm_lookup_intrinsic_id("llvm.sqrt")
    assert number > 0 and codegen.llvm_get_intrinsic_name(number) == "llvm.sqrt"
    assert codegen.llvm_lookup_intrinsic_id("llvm.no.such") == 0


@pytest.mark.parametrize("kind, option", [(0, "llvm.debug_info"), (1, "tir.enable_debug")])
def test_debug_information(kind, option):
    """Instructions name the lines of the spans they come from, also in parallel loops."""
    a, b, i = buffer("A", "float32", 64), buffer("B", "float32", 64), tir.Var("i", "int32")
    span = tvm.ir.Span(tvm.ir.SourceName("folder/program.py"), 7, 7, 3, 9)
    store = tir.BufferStore(b, tir.BufferLoad(a, [i]) + tir.const(1.0, "float32"), [i], None, span)
    mod = module(loop(i, const(64), store, kind), [a, b])
    with tvm.transform.PassContext(config={option: True}):
        asm = build(mod).inspect_source("asm")
    assert '"folder" "program.py"' in asm and re.search(r"\.loc\s+\d+ 7 3", asm)
    assert ".loc" not in build(mod).inspect_source("asm")


def test_call_of_llvm_intrinsic():
    a, i = buffer("A", "int32", 64), tir.Var("i", "int32")
    swap = tvm.target.codegen.llvm_lookup_intrinsic_id("llvm.bswap")
    value = call("int32", "call_llvm_pure_intrin", const(swap, "uint32"), tir.BufferLoad(a, [i]))
    x = np.arange(64, dtype="int32")
    expected = x.byteswap()
    run(module(loop(i, const(64), tir.BufferStore(a, value, [i])), [a]), x)
    np.testing.assert_array_equal(x, expected)
    wrong = call("float32", "call_llvm_pure_intrin", const(swap, "uint32"), tir.BufferLoad(a, [i]))
    with pytest.raises(TypeError, match="expected arguments and result that fit llvm.bswap"):
        build(module(loop(i, const(64), tir.Evaluate(wrong)), [a]))


@pytest.mark.parametrize("lanes, pieces", [(16, 1), (64, 4), (24, 0)])
def test_vectors_wider_than_an_instruction_are_cut(lanes, pieces):
    a, all_lanes = buffer("A", "float32", 64), tir.Ramp(const(0), const(1), lanes)
    whole = tir.BufferLoad(a, [all_lanes])
    arguments = [whole, whole, whole, tir.const(-1, "int16"), tir.const(4, "int32")]
    name = tir.StringImm("llvm.x86.avx512.mask.scalef.ps.512")
    value = call(f"float32x{lanes}", "call_llvm_pure_intrin", name, *arguments)
    mod = module(tir.BufferStore(a, value, [all_lanes]), [a])
    target = "llvm -mcpu=skylake-avx512"
    if pieces:
        assert build(mod, target).inspect_source("asm").count("\tvscalefps\t") == pieces
    else:
        with pytest.raises(TypeError, match="expected arguments and result that fit llvm.x86.avx5"):
            build(mod, target)


def test_command_line_options_hold_for_one_compilation():
    before = build(add_one()).inspect_source("ll")
    narrow = build(add_one(), "llvm -cl-opt=-force-vector-width:uint=2").inspect_source("ll")
    assert "<2 x float>" in narrow and "<2 x float>" not in before
    assert build(add_one()).inspect_source("ll") == before
    with pytest.raises(
        ValueError, match="option of LLVM in cl-opt, got 'force-vector-widt', did you"
    ):
        build(add_one(), "llvm -cl-opt=-force-vector-widt=2")
    with pytest.raises(ValueError, match="takes for force-vector-width in cl-opt, got 'many'"):
        build(add_one(), "llvm -cl-opt=-force-vector-width=many")


@pytest.mark.parametrize("cpu,lanes", [("x86-64-v3", 8), ("x86-64-v4", 16)])
def test_rare_branches_stay_out_of_vector_loops(cpu, lanes):
    """The sine of huge numbers is a call under a test of the vector, not a part of the loop."""
    from tvm import te

    A = te.placeholder((1024,), name="A")
    B = te.compute((1024,), lambda i: tir.sin(A[i]), name="B")
    with tvm.transform.PassContext(config={"tir.disable_vectorize": True}):
        mod = tvm.build(te.create_prim_func([A, B]), target=f"llvm -mcpu={cpu}")
    text = mod.inspect_source("ll")
    assert re.search(rf"call .*<{lanes} x float> @tvm.rare.v{lanes}.slow", text)
    assert "llvm.compiler.used" not in text and f"@tvm.rare.v{lanes}(" not in text
    assert "@tvm.rare.v2" not in text  # forms that no loop uses are gone


def test_rare_branches_are_right():
    from tvm import te

    n = 1000
    x = np.random.default_rng(0).uniform(-100, 100, n).astype("float32")
    x[::7] *= 1e20
    x[5], x[6] = np.inf, np.nan
    A = te.placeholder((n,), name="A")
    for name in ("sin", "cos", "tan"):
        B = te.compute((n,), lambda i, f=name: getattr(tir, f)(A[i]), name="B")
        y = np.zeros(n, "float32")
        with tvm.transform.PassContext(config={"tir.disable_vectorize": True}):
            tvm.build(te.create_prim_func([A, B]), target="llvm")(x, y)
        with np.errstate(invalid="ignore"):
            expected = getattr(np, name)(x.astype("float64"))
        np.testing.assert_allclose(y, expected, rtol=3e-7, err_msg=name)


@pytest.mark.parametrize("kind", ["o", "tar"])
def test_damaged_objects_are_refused(kind, tmp_path):
    """The linker calls that fatal, and would end the process."""
    good, bad = tmp_path / "good.o", tmp_path / "bad.o"
    build(add_one()).write_to_file(str(good))
    data = good.read_bytes()
    (sections,) = struct.unpack_from("<Q", data, 40)
    size = sections + 64 + 32  # of the first section: that of its bytes is beyond the file
    huge = data[:size] + b"\xff" * 8 + data[size + 8 :]
    for damaged in (data[:100], data[:-80], data[:40] + b"\xff" * 8 + data[48:], huge):
        bad.write_bytes(damaged)
        path = bad
        if kind == "tar":
            path = tmp_path / "bad.tar"
            with tarfile.open(path, "w") as file:
                file.add(bad, "bad.o")
        with pytest.raises(ValueError, match="link: "):
            tvm.runtime.load_module(str(path))
    check(tvm.runtime.load_module(str(good)))


def test_a_process_that_was_forked_links(tmp_path):
    """It has none of the threads that the linker made before."""
    path = tmp_path / "a.o"
    build(add_one()).write_to_file(str(path))
    check(tvm.runtime.load_module(str(path)))
    child = multiprocessing.get_context("fork").Process(
        target=lambda: check(tvm.runtime.load_module(str(path)))
    )
    child.start()
    child.join(60)
    late = child.is_alive()
    child.kill()
    assert not late and child.exitcode == 0
