# SPDX-License-Identifier: Apache-2.0
"""Compiling and linking with the compilers of the system."""

import ctypes
import os
import shlex
import shutil
import subprocess
import sys

import pytest
from tvm.support import cc, tar

ADD = "int add(int a, int b) { return a + b; }\n"
SUB = 'extern "C" int sub(int a, int b) { return a - b; }\n'
MAIN = '#include <stdio.h>\nint add(int, int);\nint main() { printf("%d", add(40, 2)); }\n'

pytestmark = pytest.mark.skipif(cc.get_cc() is None, reason="needs a C++ compiler")


@pytest.fixture
def sources(tmp_path):
    for name, text in {"add.c": ADD, "sub.cc": SUB, "main.c": MAIN}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def compile_object(path):
    subprocess.run(["cc", "-c", "-fPIC", "-o", path.with_suffix(".o"), path], check=True)
    return path.with_suffix(".o")


def test_get_cc_follows_the_environment(monkeypatch, tmp_path, fake_tool):
    fake = fake_tool("mycc")
    monkeypatch.setenv("CXX", "mycc")
    assert cc.get_cc() == str(fake)
    monkeypatch.setenv("CXX", "ccache g++")
    assert cc.get_cc() == "ccache g++" or shutil.which("ccache") is None
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setenv("CC", str(fake))
    assert cc.get_cc() == str(fake)
    for name in ("CXX", "CC"):
        monkeypatch.delenv(name)
    assert os.path.isabs(cc.get_cc())


def test_get_cc_where_there_is_none(no_tools):
    assert cc.get_cc() is None


def inputs(kind, folder):
    if kind == "sources":
        return [folder / "add.c", str(folder / "sub.cc")]
    objects = [compile_object(folder / name) for name in ("add.c", "sub.cc")]
    if kind == "archive":
        subprocess.run(["ar", "rcs", folder / "both.a", *objects], check=True)
        return [folder / "both.a"]
    if kind == "tar":
        (folder / "sub.h").write_text("int sub(int, int);\n")
        tar.tar(folder / "both.tar", [objects[0], folder / "sub.cc", folder / "sub.h"])
        return str(folder / "both.tar")
    return objects


KINDS = ["sources", "objects", "archive", "tar"]


@pytest.mark.parametrize("kind", KINDS)
def test_create_shared(sources, kind):
    out = sources / "lib.so"
    cc.create_shared(str(out), inputs(kind, sources))
    lib = ctypes.CDLL(str(out))
    assert lib.add(2, 3) == 5 and lib.sub(2, 3) == -1


@pytest.mark.parametrize("kind", KINDS)
def test_create_staticlib_and_executable(sources, kind):
    cc.create_staticlib(sources / "lib.a", inputs(kind, sources))
    assert {"add", "sub"} <= cc.get_global_symbol_section_map(sources / "lib.a").keys()
    cc.create_executable(sources / "main", [sources / "main.c", sources / "lib.a"])
    assert subprocess.run([sources / "main"], capture_output=True).stdout == b"42"


def test_staticlib_keeps_files_of_one_name_and_replaces_the_old(sources):
    (sources / "below").mkdir()
    (sources / "below" / "add.c").write_text(ADD.replace("add", "other"))
    objects = [compile_object(sources / "add.c"), compile_object(sources / "below" / "add.c")]
    for files, expected in ((objects, {"add", "other"}), (objects[:1], {"add"})):
        cc.create_staticlib(sources / "lib.a", files, ar="ar")
        assert set(cc.get_global_symbol_section_map(sources / "lib.a")) == expected


def test_options_and_folder(sources):
    options = ["-DVALUE=7", "-s"]
    (sources / "v.c").write_text("int value() { return VALUE; }\n")
    cc.create_shared("v.so", "v.c", options, cwd=str(sources))
    assert ctypes.CDLL(str(sources / "v.so")).value() == 7
    assert cc.get_global_symbol_section_map(sources / "v.so")["value"] == "T"  # although stripped


def test_command_word_for_word(fake_tool):
    fake = fake_tool("odd cc")
    cc.create_shared("out.so", ["a.o", "b.a"], ["-Wl,-z,now", "-l m", ""], cc=str(fake))
    whole = ["-Wl,--whole-archive", "b.a", "-Wl,--no-whole-archive"]
    expected = ["-shared", "-fPIC", "-o", "out.so", "a.o", *whole, "-Wl,-z,now", "-l m", ""]
    assert fake.calls == [expected]
    cc.create_executable("out", ["a.o", "b.a"], "-lm", cc=f"{shlex.quote(str(fake))} --wrapped")
    assert fake.calls[1] == ["--wrapped", "-o", "out", "a.o", "b.a", "-lm"]


def test_ccache_is_used_for_sources(sources, need, monkeypatch):
    need("ccache")
    monkeypatch.delenv("CCACHE_DISABLE", raising=False)
    env = {"CCACHE_DIR": str(sources / "cache")}

    def hits():
        text = subprocess.run(
            ["ccache", "--print-stats"], env={**os.environ, **env}, capture_output=True, text=True
        ).stdout
        counts = dict(line.split("\t") for line in text.splitlines() if "\t" in line)
        return int(counts["direct_cache_hit"]) + int(counts["preprocessed_cache_hit"])

    for expected in (0, 2):
        cc.create_shared(sources / "lib.so", inputs("sources", sources), ccache_env=env)
        assert ctypes.CDLL(str(sources / "lib.so")).add(1, 1) == 2
        assert hits() == expected
    cc.create_executable(sources / "main", [sources / "main.c", sources / "add.c"], ccache_env=env)
    assert hits() == 2 or hits() == 3  # add.c is known; an executable's objects are the same


def test_error_holds_the_message_of_the_compiler(sources):
    (sources / "bad.c").write_text("int f() { return missing_name; }\n")
    message = r"(?s)cannot link .*bad\.so: `.*` ended with status 1:\n.*missing_name.*undeclared"
    with pytest.raises(RuntimeError, match=message):
        cc.create_shared(sources / "bad.so", sources / "bad.c")
    assert not (sources / "bad.so").exists()
    with pytest.raises(RuntimeError, match=r"(?s)cannot compile .*bad\.c.*missing_name"):
        cc.create_staticlib(sources / "bad.a", sources / "bad.c")
    assert sorted(p.name for p in sources.glob("*bad*")) == ["bad.c"]


def test_missing_tools_say_what_to_install(sources, no_tools):
    with pytest.raises(RuntimeError, match="no C\\+\\+ compiler found .*install one .*set CXX"):
        cc.create_shared(sources / "x.so", sources / "add.c")
    with pytest.raises(RuntimeError, match="cannot link .*x: nocc .*No such file.*install one"):
        cc.create_executable(sources / "x", sources / "add.c", cc="nocc")
    with pytest.raises(RuntimeError, match="cannot archive .*install binutils, or pass ar"):
        cc.create_staticlib(sources / "x.a", sources / "x.o")
    with pytest.raises(
        RuntimeError, match="cannot list the symbols of .*install binutils, or pass"
    ):
        cc.get_global_symbol_section_map(sources / "x.a")
    with pytest.raises(RuntimeError, match="install ccache, or leave ccache_env out"):
        cc.create_shared(sources / "x.so", sources / "add.c", cc=sys.executable, ccache_env={})
    with pytest.raises(RuntimeError, match="cannot get the target triple: nocc -dumpmachine"):
        cc.get_target_by_dump_machine("nocc")()


def test_outputs_that_cannot_be_written(sources):
    objects = [compile_object(sources / "add.c")]
    with pytest.raises(RuntimeError, match="cannot link"):
        cc.create_shared(sources / "nowhere" / "x.so", objects)
    with pytest.raises(FileNotFoundError, match="the folder does not exist"):
        cc.create_staticlib(sources / "nowhere" / "x.a", objects)
    with pytest.raises(RuntimeError, match="cannot link.*nowhere"):
        cc.create_shared("x.so", objects, cwd=str(sources / "nowhere"))


def test_symbols_of_what_is_no_object(sources):
    with pytest.raises(RuntimeError, match="add.c"):
        cc.get_global_symbol_section_map(sources / "add.c")


def test_sections(sources):
    (sources / "s.c").write_text(
        "int data = 1; int zero; const int ro = 3; int f() { return 0; }\n"
        "static int hidden = 4; extern int other; int g() { return other; }\n"
    )
    found = cc.get_global_symbol_section_map(compile_object(sources / "s.c"), nm="nm")
    assert found == {"data": "D", "zero": "B", "ro": "R", "f": "T", "g": "T"}


def test_target_triple():
    triple = cc.get_target_by_dump_machine("cc")()
    assert triple.count("-") >= 2
    assert cc.get_target_by_dump_machine(None)() is None
    assert cc.create_shared.get_target_triple().count("-") >= 2


def test_cross_compiler_of_a_name(sources):
    fcompile = cc.cross_compiler("cc", ["-DONE"], add_files=[sources / "sub.cc"])
    assert fcompile.output_format == "so"
    assert fcompile.get_target_triple() == cc.get_target_by_dump_machine("cc")()
    (sources / "n.c").write_text("#if ONE && TWO\nint n() { return 12; }\n#endif\n")
    fcompile(str(sources / "x.so"), [sources / "n.c"], options=["-DTWO"])
    lib = ctypes.CDLL(str(sources / "x.so"))
    assert lib.n() == 12 and lib.sub(3, 1) == 2


def test_cross_compiler_of_a_function():
    calls = []

    def compile_func(output, objects, options=None, flavour=None):
        calls.append((output, objects, options, flavour))

    compile_func.output_format = "dylib"
    fcompile = cc.cross_compiler(compile_func, "-a", get_target_triple=lambda: "x", add_files="z.o")
    fcompile("o", ["i"], options=["-b"], flavour="sweet")
    assert calls == [("o", ["i", "z.o"], ["-a", "-b"], "sweet")]
    assert fcompile.output_format == "dylib" and fcompile.get_target_triple() == "x"
    assert cc.cross_compiler(compile_func, output_format="tar").output_format == "tar"
