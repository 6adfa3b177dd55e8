# SPDX-License-Identifier: Apache-2.0
"""clang, emscripten, ROCm, the Android NDK and Xcode: real tools where they can exist here, fakes
that record the command word for word where they cannot."""

import os
import subprocess

import pytest
import tvm
from tvm import te
from tvm.support import cc, clang, emcc, ndk, rocm, tar, xcode

C_SOURCE = "int add(int a, int b) { return a + b; }\n"
WRITE_OUTPUT = 'open(sys.argv[sys.argv.index("-o") + 1], "wb").write(b"made")\n'


@pytest.fixture
def llvm():
    if tvm._libs.find("tvm_llvm") is None:
        pytest.skip("needs libtvm_llvm")


# clang


def test_find_clang_prefers_our_version(fake_tool):
    plain = fake_tool("clang")
    matching = fake_tool(f"clang-{clang.llvm_major()}")
    assert clang.find_clang()[:2] == [str(matching), str(plain)]


def test_find_clang_where_there_is_none(no_tools, monkeypatch):
    monkeypatch.setattr(clang, "llvm_major", lambda: None)
    assert clang.find_clang(required=False) == []
    with pytest.raises(RuntimeError, match="cannot find clang; install clang"):
        clang.find_clang()
    with pytest.raises(RuntimeError, match="install clang, or pass cc"):
        clang.create_llvm(C_SOURCE + "\n", cc="noclang")


def test_create_llvm(need, tmp_path):
    need("clang")
    (tmp_path / "add.c").write_text(C_SOURCE)
    text = clang.create_llvm(str(tmp_path / "add.c"), options=["-O2"])
    assert "define" in text and "@add(" in text
    both = [tmp_path / "add.c", 'extern "C" int twice(int x) { return 2 * x; }\n']
    text = clang.create_llvm(both, output=tmp_path / "both.ll", options="-O1", cc="clang")
    assert "@twice(" in text and (tmp_path / "both.ll").read_text() == text
    with pytest.raises(RuntimeError, match="undeclared identifier 'y'"):
        clang.create_llvm("int f(int x) {\n return y; }\n", output=tmp_path / "bad.ll")
    with pytest.raises(FileNotFoundError, match="create_llvm: .*nothing.c does not exist"):
        clang.create_llvm(tmp_path / "nothing.c")
    assert not (tmp_path / "bad.ll").exists()


def test_create_llvm_word_for_word(fake_tool):
    fake = fake_tool("clang", WRITE_OUTPUT)
    assert clang.create_llvm(["void f();\n"], options=["-O3", "-march=x"], cc=str(fake)) == "made"
    (call,) = fake.calls
    assert call[:5] == ["-S", "-emit-llvm", "-O3", "-march=x", "-o"]
    assert [os.path.basename(word) for word in call[5:]] == ["out.ll", "input0.cc"]


# emscripten

RUN_WASM = """
const bytes = require("fs").readFileSync(process.argv[1]);
const env = {outside: (x) => x * 100};
WebAssembly.instantiate(bytes, {env, wasi_snapshot_preview1: {}}).then(({instance}) => {
  instance.exports._initialize();
  console.log(instance.exports.add(40, 2), instance.exports.ask(3));
});
"""


def test_wasm_runs_in_node(need, tmp_path):
    need("emcc", "node")
    (tmp_path / "m.c").write_text(
        C_SOURCE + "extern int outside(int);\nint ask(int x) { return outside(x) + 1; }\n"
    )
    tar.tar(tmp_path / "m.tar", [tmp_path / "m.c"])
    emcc.create_tvmjs_wasm(tmp_path / "m.wasm", [tmp_path / "m.tar"])
    command = ["node", "-e", RUN_WASM, str(tmp_path / "m.wasm")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout == "42 301\n", done.stderr


def test_wasm_of_a_compiled_function(need, llvm, tmp_path):
    """Our own code for wasm32 becomes a module that exports its function."""
    need("emcc", "node")
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1, name="B")
    triple = "wasm32-unknown-unknown-wasm"
    mod = tvm.compile(te.create_prim_func([A, B]), target=f"llvm -mtriple={triple}")
    mod.export_library(tmp_path / "k.wasm", fcompile=emcc.create_tvmjs_wasm)
    names = (
        "const m = new WebAssembly.Module(require('fs').readFileSync(process.argv[1]));"
        "console.log(WebAssembly.Module.exports(m).map((e) => e.name).join(' '))"
    )
    command = ["node", "-e", names, str(tmp_path / "k.wasm")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert "__tvm_ffi_main" in done.stdout.split(), done.stderr


def test_emcc_word_for_word(fake_tool):
    fake = fake_tool("emcc")
    emcc.create_tvmjs_wasm("o.wasm", ["a.bc", "b.bc"], ["--extra"], libs=["run.bc"])
    assert fake.calls == [
        ["-O3", "--no-entry", "-Wl,--export-dynamic", "-s", "STANDALONE_WASM=1"]
        + ["-s", "ALLOW_MEMORY_GROWTH=1", "-s", "ERROR_ON_UNDEFINED_SYMBOLS=0"]
        + ["-o", "o.wasm", "a.bc", "b.bc", "run.bc", "--extra"]
    ]


def test_wasm_library(tmp_path, monkeypatch, fake_tool):
    with pytest.raises(RuntimeError, match="none of these exists(.|\n)*wasm_runtime.bc"):
        emcc.find_wasm_lib("wasm_runtime.bc")
    assert emcc.find_wasm_lib("wasm_runtime.bc", optional=True) is None
    (tmp_path / "wasm").mkdir()
    library = tmp_path / "wasm" / "wasm_runtime.bc"
    library.touch()
    monkeypatch.setenv("TVM_LIBRARY_PATH", str(tmp_path))
    assert emcc.find_wasm_lib("wasm_runtime.bc") == [str(library)]
    fake = fake_tool("emcc")
    emcc.create_tvmjs_wasm("o.wasm", "a.bc")
    assert fake.calls[0][-2:] == ["a.bc", str(library)]


def test_emcc_where_there_is_none(no_tools, tmp_path):
    with pytest.raises(RuntimeError, match="install emscripten, or pass cc"):
        emcc.create_tvmjs_wasm(tmp_path / "o.wasm", ["a.bc"])


# ROCm


def test_find_lld(fake_tool, tmp_path, monkeypatch):
    matching = fake_tool(f"ld.lld-{clang.llvm_major()}")
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "rocm"))
    assert rocm.find_lld()[0] == str(matching)
    monkeypatch.setattr(clang, "llvm_major", lambda: None)
    inside = tmp_path / "rocm/llvm/bin/ld.lld"
    inside.parent.mkdir(parents=True)
    inside.write_text("#!/bin/sh\n")
    inside.chmod(0o755)
    assert rocm.find_lld() == [str(inside)]


def test_find_lld_where_there_is_none(no_tools, monkeypatch):
    monkeypatch.setattr(clang, "llvm_major", lambda: None)
    assert rocm.find_lld(required=False) == []
    with pytest.raises(RuntimeError, match="cannot find ld.lld; install lld or ROCm"):
        rocm.find_lld()


def test_rocm_link_word_for_word(fake_tool):
    fake = fake_tool("ld.lld", WRITE_OUTPUT)
    rocm.rocm_link("in.o", os.devnull, lld=str(fake))
    assert fake.calls == [["-shared", "in.o", "-o", os.devnull]]


def test_rocm_link_of_an_object(need, tmp_path):
    need("clang", "readelf")
    rocm.find_lld(required=False) or pytest.skip("needs ld.lld")
    (tmp_path / "k.c").write_text("__attribute__((amdgpu_kernel)) void k(int *x) { *x = 1; }\n")
    flags = ["-target", "amdgcn-amd-amdhsa", "-mcpu=gfx906", "-nogpulib", "-O2", "-c"]
    subprocess.run(["clang", *flags, "-o", tmp_path / "k.o", tmp_path / "k.c"], check=True)
    linked = tvm.get_global_func("tvm_callback_rocm_link")((tmp_path / "k.o").read_bytes())
    (tmp_path / "k.co").write_bytes(linked)
    header = subprocess.run(
        ["readelf", "-h", tmp_path / "k.co"], capture_output=True, text=True
    ).stdout
    assert "DYN (Shared object file)" in header and "AMD" in header
    with pytest.raises(RuntimeError, match="cannot link"):
        rocm.callback_rocm_link(b"no object")


def test_rocm_paths(tmp_path, monkeypatch):
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "rocm"))
    with pytest.raises(
        RuntimeError, match="cannot find ROCm in .*; install ROCm, or set ROCM_PATH"
    ):
        rocm.find_rocm_path()
    folder = tmp_path / "rocm/amdgcn/bitcode"
    folder.mkdir(parents=True)
    assert rocm.find_rocm_path() == str(tmp_path / "rocm")
    with pytest.raises(RuntimeError, match="cannot find ROCm's device libraries in"):
        rocm.callback_rocm_bitcode_path()
    for name in ("ocml.bc", "ockl.amdgcn.bc", "other.bc"):
        (folder / name).touch()
    expected = [str(folder / "ocml.bc"), str(folder / "ockl.amdgcn.bc")]
    assert rocm.callback_rocm_bitcode_path() == expected
    assert list(tvm.get_global_func("tvm_callback_rocm_bitcode_path")(str(folder))) == expected


def test_rocm_path_of_hipcc(fake_tool, monkeypatch):
    monkeypatch.delenv("ROCM_PATH", raising=False)
    fake = fake_tool("hipcc")
    assert rocm.find_rocm_path() == str(fake.path.resolve().parent.parent)


def test_rocm_architecture(tmp_path):
    program = tmp_path / "bin/rocminfo"
    program.parent.mkdir()

    def prints(text):
        program.write_text(f"#!/bin/sh\ncat <<END\n{text}\nEND\n")
        program.chmod(0o755)

    prints("  Name:                    AMD EPYC\n  Name:                    gfx90a\n")
    assert rocm.get_rocm_arch(str(tmp_path)) == "gfx90a"
    assert tvm.get_global_func("tvm_callback_rocm_get_arch")(str(tmp_path)) == "gfx90a"
    prints("  Name:                    AMD EPYC")
    with pytest.raises(RuntimeError, match="rocminfo lists no AMD GPU"):
        rocm.get_rocm_arch(str(tmp_path))
    with pytest.raises(RuntimeError, match="install ROCm"):
        rocm.get_rocm_arch(str(tmp_path / "no"))


@pytest.mark.parametrize(
    "version, expected",
    [("gfx906", False), ("gfx908", True), ("gfx90a", True), ("gfx942", True), ("gfx1030", False)]
    + [("gfx1100", True), ("9.0", True), ("8.0", False), ("10.3", False), ("11.0", True)],
)
def test_matrix_cores(version, expected):
    assert rocm.have_matrixcore(version) is expected


def test_matrix_cores_of_a_target():
    with tvm.target.Target("rocm -mcpu=gfx942"):
        assert rocm.have_matrixcore() is True
    if not tvm.rocm(0).exist:
        with pytest.warns(UserWarning, match="have_matrixcore: no version, target"):
            assert rocm.have_matrixcore() is False
    assert rocm.parse_compute_version("9.0") == (9, 0)
    with pytest.raises(ValueError):
        rocm.have_matrixcore("Vega")


# the Android NDK


def test_ndk_needs_its_variable(monkeypatch):
    monkeypatch.delenv("TVM_NDK_CC", raising=False)
    actions = (
        lambda: ndk.create_shared("o.so", ["a.o"]),
        lambda: ndk.create_staticlib("o.a", ["a.o"]),
        lambda: ndk.get_global_symbol_section_map("o.a"),
        lambda: ndk.create_shared.get_target_triple(),
    )
    for action in actions:
        with pytest.raises(RuntimeError, match="expected the variable TVM_NDK_CC to name the NDK"):
            action()


def test_ndk_word_for_word(fake_tool, monkeypatch):
    """The seven words of the NDK's own documentation: clang, -shared, what to make, out of what."""
    fake = fake_tool("aarch64-linux-android24-clang", "print('aarch64-unknown-linux-android24')")
    ar, nm = (
        fake_tool("llvm-ar", "open(sys.argv[2], 'w')"),
        fake_tool("llvm-nm", "print('f T 0 1')"),
    )
    monkeypatch.setenv("TVM_NDK_CC", str(fake))
    ndk.create_shared("o.so", ["a.o", "b.o"])
    assert fake.calls == [["-o", "o.so", "a.o", "b.o", "-shared", "-fPIC", "-lm"]]
    assert ndk.create_shared.get_target_triple() == "aarch64-unknown-linux-android24"
    assert fake.calls[1] == ["-dumpmachine"]
    ndk.create_staticlib(fake.path.parent / "o.a", ["a.o", "b.o"])
    assert [ar.calls[0][0], *ar.calls[0][2:]] == ["qcs", "a.o", "b.o"]
    assert ndk.get_global_symbol_section_map(os.devnull) == {"f": "T"}
    assert nm.calls == [["-g", "-P", os.devnull]]


def test_ndk_in_a_cross_compiler(fake_tool, llvm, monkeypatch, tmp_path):
    """Exporting with special options, as the documentation shows it."""
    fake = fake_tool("android-clang", WRITE_OUTPUT)
    monkeypatch.setenv("TVM_NDK_CC", str(fake))
    options = ["--sysroot=/path/to/sysroot", "-shared", "-fPIC", "-lm"]
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1, name="B")
    mod = tvm.compile(te.create_prim_func([A, B]), target="llvm -mtriple=aarch64-linux-android")
    path = tmp_path / "lib.so"
    mod.export_library(path, fcompile=cc.cross_compiler(ndk.create_shared, options))
    (call,) = fake.calls
    assert call[0] == "-o" and call[-4:] == options
    assert all(word.endswith(".o") for word in call[2:-4]) and path.read_bytes() == b"made"


def test_ndk_with_a_real_clang(need, monkeypatch, tmp_path):
    need("clang", "nm")
    monkeypatch.setenv("TVM_NDK_CC", "clang")
    (tmp_path / "add.c").write_text(C_SOURCE)
    ndk.create_shared(tmp_path / "o.so", [tmp_path / "add.c"])
    assert ndk.get_global_symbol_section_map(tmp_path / "o.so", nm="nm")["add"] == "T"


# Xcode

XCRUN = """
if "-find" in sys.argv:
    print("/Xcode/bin/clang")
elif "--show-sdk-path" in sys.argv:
    print("/Xcode/SDKs/sdk")
elif "coremlc" in sys.argv:
    name = os.path.basename(sys.argv[-2]).replace("mlmodel", "mlmodelc")
    os.mkdir(os.path.join(sys.argv[-1], name))
elif "-o" in sys.argv:
    open(sys.argv[sys.argv.index("-o") + 1], "wb").write(b"made")
"""


def test_xcrun(fake_tool):
    fake = fake_tool("xcrun", "print(' out ')")
    assert xcode.xcrun(["-sdk", "macosx", "-find", "clang"]) == "out"
    assert fake.calls == [["-sdk", "macosx", "-find", "clang"]]


def test_xcode_where_there_is_none(no_tools):
    actions = (
        lambda: xcode.xcrun(["--version"]),
        lambda: xcode.create_dylib("o.dylib", ["a.o"], "arm64"),
        lambda: xcode.compile_metal("kernel"),
    )
    for action in actions:
        with pytest.raises(RuntimeError, match="install Xcode and its command line tools"):
            action()


def test_dylib_word_for_word(fake_tool, monkeypatch):
    xcrun = fake_tool("xcrun", XCRUN.replace("/Xcode/bin/clang", "fake-clang"))
    clang_tool = fake_tool("fake-clang")
    xcode.create_dylib("o.dylib", ["a.o", "b.o"], "arm64", "iphoneos", min_os_version="15.0")
    assert xcrun.calls == [
        ["-sdk", "iphoneos", "-find", "clang"],
        ["-sdk", "iphoneos", "--show-sdk-path"],
    ]
    assert clang_tool.calls == [
        ["-dynamiclib", "-arch", "arm64", "-isysroot", "/Xcode/SDKs/sdk"]
        + ["-miphoneos-version-min=15.0", "-undefined", "dynamic_lookup"]
        + ["-o", "o.dylib", "a.o", "b.o"]
    ]


def test_metal_word_for_word(fake_tool, tmp_path):
    fake = fake_tool("xcrun", XCRUN)
    path = tmp_path / "lib.metallib"
    assert xcode.compile_metal("kernel", path, min_os_version="13.0") == bytearray(b"made")
    assert path.read_bytes() == b"made"
    calls = [[os.path.basename(word) for word in call] for call in fake.calls]
    assert calls == [
        ["-sdk", "macosx", "metal", "-O3", "-mmacosx-version-min=13.0"]
        + ["-c", "kernel.metal", "-o", "kernel.air"],
        ["-sdk", "macosx", "metallib", "kernel.air", "-o", "kernel.metallib"],
    ]


def test_core_ml_word_for_word(fake_tool, tmp_path):
    class Model:
        def save(self, path):
            with open(path, "w") as file:
                file.write("model")

    fake = fake_tool("xcrun", XCRUN)
    assert xcode.compile_coreml(Model(), "net", str(tmp_path)) == str(tmp_path / "net.mlmodelc")
    (call,) = fake.calls
    assert call[:2] == ["coremlc", "compile"] and call[3] == str(tmp_path)
    assert os.path.basename(call[2]) == "net.mlmodel" and not os.path.exists(call[2])


def test_core_ml_that_writes_nothing(fake_tool, tmp_path):
    class Model:
        def save(self, path):
            pass

    fake_tool("xcrun")
    with pytest.raises(RuntimeError, match="did not write .*main.mlmodelc"):
        xcode.compile_coreml(Model(), out_dir=str(tmp_path))


def test_unknown_sdk():
    with pytest.raises(
        ValueError, match="expected an sdk out of macosx.*got 'iphoneo', did you me"
    ):
        xcode.compile_metal("kernel", sdk="iphoneo")
