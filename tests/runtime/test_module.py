# SPDX-License-Identifier: Apache-2.0
"""Modules: functions, loading, exporting, timing, and files that must be refused."""

import ctypes
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import threading

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import runtime


def doubled(mod, name="double"):
    x = runtime.tensor(np.arange(5, dtype="float32"))
    y = runtime.empty((5,))
    mod[name](x, y)
    return y.numpy()


def test_old_names(compile_c, kernels):
    mod = runtime.load_module(compile_c(kernels["only"]))
    assert mod.type_key == mod.kind
    x, y = runtime.tensor(np.arange(5, dtype="float32")), runtime.empty((5,))
    assert (x.asnumpy() == x.numpy()).all()
    mod.time_evaluator(mod.entry_name, tvm.cpu(), number=1)(x, y)


def test_functions_of_a_loaded_library(compile_c, kernels):
    mod = runtime.load_module(compile_c(kernels["two"]))
    assert isinstance(mod, runtime.Module)
    assert mod.function_names() == ["double", "parallel_add_one"]
    np.testing.assert_array_equal(doubled(mod), [0, 2, 4, 6, 8])
    x, y = runtime.tensor(np.ones(3, "float32")), np.zeros(3, "float32")
    mod.double(x, y)  # as attribute, and with a NumPy array
    np.testing.assert_array_equal(y, [2, 2, 2])
    assert mod.implements_function("double") and not mod.implements_function("halve")


def test_missing_function_names_the_nearest(compile_c, kernels):
    mod = runtime.load_module(compile_c(kernels["two"]))
    with pytest.raises(
        AttributeError, match="no function 'duoble', did you mean 'double'.*its functions are: "
    ):
        mod["duoble"]
    with pytest.raises(AttributeError, match="no function 'nothing_like_it'"):
        mod.nothing_like_it()
    with pytest.raises(
        AttributeError, match="expected a function 'main' or only one.*double, parallel_add_one"
    ):
        mod(1)
    with pytest.raises(TypeError, match="expected a function's name, got int"):
        mod[0]


def test_calling_a_module_runs_its_only_function(compile_c, kernels):
    mod = runtime.load_module(compile_c(kernels["only"]))
    y = runtime.empty((2,))
    mod(runtime.tensor(np.ones(2, "float32")), y)
    np.testing.assert_array_equal(y.numpy(), [2, 2])


def test_load_from_bytes(compile_c, kernels):
    data = compile_c(kernels["two"]).read_bytes()
    np.testing.assert_array_equal(doubled(runtime.load_module(data)), [0, 2, 4, 6, 8])
    with pytest.raises(ValueError, match="truncated"):
        runtime.load_module(data[: len(data) // 2])


def test_a_file_exported_again_is_loaded_anew(compile_c, kernels):
    path = compile_c(kernels["two"], name="same.so")
    first = runtime.load_module(path)
    replacement = compile_c(kernels["two"].replace("= 2 *", "= 7 *"))
    os.replace(replacement, path)
    np.testing.assert_array_equal(doubled(runtime.load_module(path)), [0, 7, 14, 21, 28])
    np.testing.assert_array_equal(doubled(first), [0, 2, 4, 6, 8])


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9, 0.999])
def test_truncated_library(compile_c, kernels, keep):
    path = compile_c(kernels["two"])
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(ValueError, match=f"{path.name}: the file is truncated"):
        runtime.load_module(path)


def test_foreign_files(compile_c, kernels, tmp_path):
    path = tmp_path / "foreign.so"
    for data, what in (
        (b"", "an empty file"),
        (b"#!/bin/sh\n", "a script"),
        (b"MZ" + bytes(100), "a Windows library"),
        (b"!<arch>\n", "a static library"),
        (b"hello", "another kind of file"),
    ):
        path.write_bytes(data)
        with pytest.raises(ValueError, match=f"expected a shared library, got {what}"):
            runtime.load_module(path)
    shutil.copy(compile_c(kernels["two"], suffix=".o"), path)
    with pytest.raises(ValueError, match="got an object file"):
        runtime.load_module(path)
    with pytest.raises(FileNotFoundError, match="nowhere.so"):
        runtime.load_module(tmp_path / "nowhere.so")
    with pytest.raises(OSError, match="cannot read"):
        runtime.load_module(str(tmp_path) + "/.")


def test_other_architecture(compile_c, kernels):
    path = compile_c(kernels["two"])
    data = bytearray(path.read_bytes())
    data[18:20] = struct.pack("<H", 183 if data[18] != 183 else 62)
    path.write_bytes(data)
    with pytest.raises(ValueError, match="made for .*, this process runs on"):
        runtime.load_module(path)


def test_corrupt_headers_never_crash(compile_c, kernels):
    """Flips bytes of the headers one after the other: an error or a module, but the process goes
    on."""
    path = compile_c(kernels["only"])
    data = path.read_bytes()
    script = (
        "import sys, tvm\n"
        "data = open(sys.argv[1], 'rb').read()\n"
        "names = tvm.get_global_func('runtime.ModuleFunctionNames')\n"
        "for i in [*range(4, 18), *range(20, 64)]:\n"
        "    for value in (0, 255):\n"
        "        bad = data[:i] + bytes([value]) + data[i + 1:]\n"
        "        try:\n"
        "            tvm.get_global_func('runtime.CheckLibrary')(bad)\n"
        "        except ValueError:\n"
        "            pass\n"
        "print('alive')\n"
    )
    assert len(data) > 64
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    out = subprocess.run(
        [sys.executable, "-c", script, str(path)], env=env, capture_output=True, text=True
    )
    assert out.stdout.strip() == "alive", out.stderr


def test_missing_dependency_is_an_error(compile_c):
    path = compile_c("extern int nowhere_defined(void); int (*f)(void) = &nowhere_defined;")
    with pytest.raises(OSError, match="cannot be loaded.*nowhere_defined"):
        runtime.load_module(path)


def test_missing_symbol_is_an_error_when_loading(tmp_path):
    """Not when it is called, which would end the process."""
    from tvm.script import tir as T

    @T.prim_func
    def func(A: T.Buffer((1,), "int32")):
        A[0] = T.call_extern("int32", "nobody_defines_this_function", A[0])

    path = str(tmp_path / "f.so")
    tvm.compile(func, target="llvm").export_library(path)
    with pytest.raises(OSError, match="cannot be loaded: undefined symbol: nobody_defines_this"):
        runtime.load_module(path)


@pytest.mark.parametrize("suffix", [".so", ".o", ".a", ".tar"])
def test_export_and_load(compile_c, kernels, tmp_path, suffix):
    static = runtime.load_static_library(
        compile_c(kernels["two"], ".o"), ["double", "parallel_add_one"]
    )
    assert static.kind == "static_library" and static.implements_function("double")
    out = tmp_path / f"out{suffix}"
    static.export_library(out)
    np.testing.assert_array_equal(doubled(runtime.load_module(out)), [0, 2, 4, 6, 8])
    assert [p.name for p in tmp_path.glob(".out*")] == []


def test_archive_members_stay_in_their_folder(compile_c, kernels, tmp_path):
    escape = tmp_path / "escape.o"
    with tarfile.open(tmp_path / "out.tar", "w") as tar:
        info = tar.gettarinfo(compile_c(kernels["two"], ".o"))
        info.name = str(escape)  # absolute, as only a hostile archive has it
        with open(compile_c(kernels["two"], ".o"), "rb") as file:
            tar.addfile(info, file)
    with pytest.raises(ValueError, match="out.tar: refused: .* leads out of the folder"):
        runtime.load_module(tmp_path / "out.tar")
    assert not escape.exists()


def test_export_links_imports_and_addons(compile_c, kernels, tmp_path):
    one = runtime.load_static_library(compile_c(kernels["only"], ".o"), ["double"])
    two = kernels["only"].replace("__tvm_ffi_double", "__tvm_ffi_triple").replace("= 2 *", "= 3 *")
    two = two.replace("int (*__TVMBackendParallelLaunch)", "static int (*unused)")
    one.import_module(runtime.load_static_library(compile_c(two, ".o"), ["triple"]))
    addon = compile_c(two.replace("triple", "quadruple").replace("= 3 *", "= 4 *"), ".o")
    one.export_library(tmp_path / "out.so", addons=[addon])
    mod = runtime.load_module(tmp_path / "out.so")
    assert mod.function_names() == ["double", "quadruple", "triple"]
    np.testing.assert_array_equal(doubled(mod, "triple"), [0, 3, 6, 9, 12])
    np.testing.assert_array_equal(doubled(mod, "quadruple"), [0, 4, 8, 12, 16])


def test_export_with_fcompile(compile_c, kernels, tmp_path):
    static = runtime.load_static_library(compile_c(kernels["two"], ".o"), ["double"])
    calls = []

    def fcompile(output, files, options=None):
        calls.append((files, options))
        subprocess.run(["cc", "-shared", "-o", output, *files], check=True)

    static.export_library(tmp_path / "out.so", fcompile=fcompile, options=["-s"])
    assert len(calls) == 1 and calls[0][1] == ["-s"]
    np.testing.assert_array_equal(
        doubled(runtime.load_module(tmp_path / "out.so")), [0, 2, 4, 6, 8]
    )


def test_export_errors(compile_c, kernels, tmp_path):
    static = runtime.load_static_library(compile_c(kernels["two"], ".o"), ["double"])
    with pytest.raises(FileNotFoundError, match="workspace_dir=.*does not exist"):
        static.export_library(tmp_path / "out.so", workspace_dir=str(tmp_path / "gone"))
    with pytest.raises(FileNotFoundError, match="folder of"):
        static.export_library(tmp_path / "gone" / "out.so")
    with pytest.raises(RuntimeError, match="did not write"):
        static.export_library(tmp_path / "out.so", fcompile=lambda *args: None)
    with pytest.raises(RuntimeError, match="cannot link"):
        static.export_library(tmp_path / "out.so", cc="cc", options=["-no-such-option"])
    loaded = runtime.load_module(compile_c(kernels["only"]))
    with pytest.raises(ValueError, match="holds no code to export"):
        loaded.export_library(tmp_path / "out.so")
    with pytest.raises(ValueError, match="expected an object file or a static library"):
        (tmp_path / "text.o").write_text("text")
        runtime.load_static_library(tmp_path / "text.o", [])
    with pytest.raises(ValueError, match="expected a tar archive"):
        (tmp_path / "bad.tar").write_bytes(b"garbage")
        runtime.load_module(tmp_path / "bad.tar")
    with pytest.raises(ValueError, match="damaged at byte 8"):
        (tmp_path / "bad.a").write_bytes(b"!<arch>\n" + bytes(200))
        runtime.load_module(tmp_path / "bad.a")


def test_static_library_links_into_a_c_program(compile_c, kernels, tmp_path):
    """The archive has an index: a linker that takes only what is asked for finds the function."""
    static = runtime.load_static_library(compile_c(kernels["only"], ".o"), ["double"])
    static.export_library(tmp_path / "libout.a")
    (tmp_path / "main.c").write_text(
        "int __tvm_ffi_double(); int main() { return __tvm_ffi_double == 0; }"
    )
    program = tmp_path / "program"
    command = ["cc", tmp_path / "main.c", tmp_path / "libout.a", "-o", program]
    subprocess.run(command, check=True)
    subprocess.run([program], check=True)


def test_header_for_system_library_linking(compile_c, kernels, tmp_path):
    static = runtime.load_static_library(
        compile_c(kernels["two"].replace("__tvm_ffi_double", "__tvm_ffi_header_test"), ".o"), []
    )
    static.export_library(tmp_path / "my-model.a")
    program = f"""#include "{tmp_path}/my-model.h"
    __attribute__((constructor)) static void Start(void) {{ my_model_register(); }}"""
    shared = compile_c(program, extra=[tmp_path / "my-model.a"])
    ctypes.CDLL(str(shared))
    mod = runtime.system_lib("")
    np.testing.assert_array_equal(doubled(mod, "header_test"), [0, 2, 4, 6, 8])
    x = runtime.tensor(np.zeros(9, "float32"))
    mod["parallel_add_one"](x, 3, -1)
    assert (x.numpy() == 1).all()
    with pytest.raises(IndexError, match="task failed"):  # on the pool: the pointer was filled
        mod["parallel_add_one"](x, 8, 5)


def test_archives_are_unpacked_into_archives(compile_c, kernels, tmp_path):
    first = runtime.load_static_library(compile_c(kernels["only"], ".o"), ["double"])
    first.export_library(tmp_path / "first.a")
    again = runtime.load_static_library(tmp_path / "first.a", ["double"])
    again.export_library(tmp_path / "second.a")
    np.testing.assert_array_equal(
        doubled(runtime.load_module(tmp_path / "second.a")), [0, 2, 4, 6, 8]
    )


def test_failed_export_leaves_the_old_file(compile_c, kernels, tmp_path):
    out = compile_c(kernels["two"], name="out.so")
    before = out.read_bytes()
    static = runtime.load_static_library(compile_c(kernels["two"], ".o"), ["double"])
    with pytest.raises(RuntimeError):
        static.export_library(out, cc="cc", options=["-no-such-option"])
    assert out.read_bytes() == before


def test_exported_library_in_plain_tvm_ffi(compile_c, kernels, tmp_path):
    static = runtime.load_static_library(compile_c(kernels["two"], ".o"), ["double"])
    static.export_library(tmp_path / "out.so")
    script = (
        "import sys, numpy as np, tvm_ffi\n"
        "mod = tvm_ffi.load_module(sys.argv[1])\n"
        "x = np.zeros(7, 'float32')\n"
        "mod['parallel_add_one'](tvm_ffi.from_dlpack(x), 0, -1)\n"
        "assert (x == 1).all() and 'tvm' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "out.so")], check=True)


def test_parallel_kernel_uses_the_pool(compile_c, kernels):
    mod = runtime.load_module(compile_c(kernels["two"]))
    x = runtime.tensor(np.zeros(1001, "float32"))
    for num_task in (0, 1, 2, 3, 17, 500):
        mod["parallel_add_one"](x, num_task, -1)
    assert (x.numpy() == 6).all()
    with pytest.raises(IndexError, match="task failed"):
        mod["parallel_add_one"](x, 8, 5)


def test_one_module_from_many_threads(compile_c, kernels):
    mod = runtime.load_module(compile_c(kernels["two"]))
    tensors = [runtime.tensor(np.zeros(333, "float32")) for _ in range(4)]

    def work(x):
        for _ in range(100):
            mod["parallel_add_one"](x, 4, -1)

    threads = [threading.Thread(target=work, args=(x,)) for x in tensors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((x.numpy() == 100).all() for x in tensors)


def test_requirements_of_a_library_are_checked(compile_c, kernels):
    info = 'const char __tvm_library_info[] = "format=%s\\ncpu_features=%s\\n'
    info += 'target=llvm -mcpu=future\\n";'
    features = tvm.get_global_func("runtime.cpu_features")()
    have = ",".join(str(k) for k, v in features.items() if v)
    doubled(runtime.load_module(compile_c(kernels["two"] + info % (1, have))))
    with pytest.raises(ValueError, match="newer version: expected format 1 or lower, got 2"):
        runtime.load_module(compile_c(kernels["two"] + info % (2, have)))
    lacking = [str(k) for k, v in features.items() if not v]
    if lacking:
        with pytest.raises(
            ValueError, match=f"made for a CPU with {lacking[0]}.*llvm -mcpu=future"
        ):
            runtime.load_module(compile_c(kernels["two"] + info % (1, have + "," + lacking[0])))


def test_time_evaluator(compile_c, kernels):
    mod = runtime.load_module(compile_c(kernels["two"]))
    x, y = runtime.tensor(np.ones(1000, "float32")), runtime.empty((1000,))
    result = mod.time_evaluator("double", tvm.cpu(), number=3, repeat=4)(x, y)
    assert len(result.results) == 4
    assert 0 < result.min <= result.median <= result.max < 1
    assert result.min <= result.mean <= result.max and result.std >= 0
    assert "median" in str(result) and "BenchmarkResult(min=" in repr(result)
    long = mod.time_evaluator("double", "cpu", number=1, repeat=1, min_repeat_ms=5)(x, y)
    assert long.mean < 0.005
    mod.time_evaluator(
        "double",
        tvm.cpu(),
        number=1,
        cache_flush_bytes=1 << 16,
        f_preproc="cache_flush_cpu_non_first_arg",
    )(x, y)
    with pytest.raises(ValueError, match="at least 1, got 0 and 1"):
        mod.time_evaluator("double", tvm.cpu(), number=0)
    with pytest.raises(ValueError, match="f_preproc to name a global function, got 'nothing'"):
        mod.time_evaluator("double", tvm.cpu(), f_preproc="nothing")
    with pytest.raises(AttributeError, match="did you mean 'double'"):
        mod.time_evaluator("duble", tvm.cpu())


def test_benchmark_result_picks_the_unit():
    assert "(us)" in str(runtime.BenchmarkResult([3e-6, 5e-6]))
    assert "(ns)" in str(runtime.BenchmarkResult([3e-9]))
    assert "(s)" in str(runtime.BenchmarkResult([2.5]))
    assert runtime.BenchmarkResult([1.0, 3.0]).mean == 2


def test_executable_compiles_what_is_not_runnable(compile_c, kernels, tmp_path):
    static = runtime.load_static_library(compile_c(kernels["only"], ".o"), ["double"])
    executable = runtime.Executable(static)
    np.testing.assert_array_equal(doubled(executable), [0, 2, 4, 6, 8])
    y = runtime.empty((1,))
    executable(runtime.tensor(np.ones(1, "float32")), y)
    assert y.numpy()[0] == 2
    assert executable.jit() is executable.jit()
    assert not executable.jit(force_recompile=True).same_as(static)
    executable.export_library(tmp_path / "out.so")
    loaded = runtime.Executable(runtime.load_module(tmp_path / "out.so"))
    assert loaded.jit() is loaded.mod


def test_imports_and_cycles(compile_c, kernels):
    a, b = (runtime.load_module(compile_c(kernels[k])) for k in ("two", "triple"))
    a.import_module(b)
    assert [m.function_names() for m in a.imports] == [["parallel_add_one", "triple"]]
    np.testing.assert_array_equal(
        doubled({"triple": a.get_function("triple", True)}, "triple"), [0, 3, 6, 9, 12]
    )
    with pytest.raises(AttributeError):
        a.get_function("triple")
    a.clear_imports()
    assert len(a.imports) == 0


def test_system_lib_and_enabled():
    assert runtime.system_lib("nothing.").kind == "library"
    assert runtime.enabled("cpu") and runtime.enabled("c")
    assert runtime.enabled("llvm") == (tvm._libs.find("tvm_llvm") is not None)
    assert runtime.enabled("cuda") == runtime.device("cuda").exist
    assert not runtime.enabled("no such target")


def test_library_pointers_stay_null_without_a_runtime(compile_c, kernels):
    """The symbol is a variable of the library: tvm-ffi fills it only where a runtime registered
    it."""
    assert tvm_ffi.load_module(str(compile_c(kernels["two"])))["parallel_add_one"] is not None
