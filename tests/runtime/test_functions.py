# SPDX-License-Identifier: Apache-2.0
"""Functions, values and errors that cross between Python and C++."""

import builtins
import os
import signal
import subprocess
import sys
import threading
import time
import traceback

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import runtime
from tvm.error import DiagnosticError, InternalError, TVMError


@pytest.fixture
def echo():
    """A C++ function that calls a Python function and hands back its result."""
    call = tvm.get_global_func("runtime.testing.apply")
    return lambda f, *args: call(tvm_ffi.convert(f), *args)


def test_registry():
    @tvm.register_global_func("tests.plus_one")
    def plus_one(x):
        return x + 1

    assert tvm.get_global_func("tests.plus_one")(2) == 3
    assert "tests.plus_one" in tvm.list_global_func_names()
    with pytest.raises((ValueError, RuntimeError), match="tests.plus_one"):
        tvm.register_global_func("tests.plus_one", lambda: 0)
    tvm.register_func("tests.plus_one", lambda x: x + 2, override=True)
    assert tvm.get_global_func("tests.plus_one")(2) == 4
    tvm.remove_global_func("tests.plus_one")
    assert tvm.get_global_func("tests.plus_one", allow_missing=True) is None
    with pytest.raises(ValueError, match="tests.plus_one"):
        tvm.get_global_func("tests.plus_one")


@pytest.mark.parametrize(
    "value",
    [
        None, True, False, 0, -1, 1 << 62, -(1 << 63), 1.5, float("inf"), "", "text", "ü\n",
        "x" * 1000, b"bytes", (), (1, 2), [1, [2, [3, None]]], {"a": 1},
        {"k": [1, {"n": None}]}, {1: "one"},
    ],
)  # fmt: skip
def test_values_cross_both_ways(echo, value):
    def plain(x):
        if isinstance(x, (tvm_ffi.Array, list, tuple)):
            return [plain(v) for v in x]
        if isinstance(x, (tvm_ffi.Map, dict)):
            return {plain(k): plain(v) for k, v in x.items()}
        return x

    seen = []
    result = echo(lambda x: seen.append(x) or x, value)
    assert plain(seen[0]) == plain(value) and plain(result) == plain(value)
    assert isinstance(result, bool) == isinstance(value, bool)


def test_objects_functions_tensors_cross(echo):
    t = runtime.tensor(np.arange(3))
    assert echo(lambda x: x, t).same_as(t)
    assert echo(lambda x: x[0]["t"], [{"t": t}]).same_as(t)
    assert echo(lambda f: f(20) + 1, lambda x: x * 2) == 41
    assert echo(lambda: lambda x: x + 1)(1) == 2
    assert echo(lambda d, t: (d, t), tvm.cuda(1), tvm.DataType("float16"))[0] == tvm.cuda(1)
    assert str(echo(lambda d: d, tvm.DataType("float16x4"))) == "float16x4"
    assert echo(lambda a: float(a.numpy().sum()), np.ones(4)) == 4
    assert echo(lambda *a: len(a), *range(50)) == 50


BUILTIN = sorted(
    (
        c
        for n, c in vars(builtins).items()
        if isinstance(c, type) and issubclass(c, BaseException) and c.__name__ == n
    ),
    key=lambda c: c.__name__,
)
ARGUMENTS = {
    "UnicodeDecodeError": ("utf-8", b"x", 0, 1, "message"),
    "UnicodeEncodeError": ("utf-8", "x", 0, 1, "message"),
    "UnicodeTranslateError": ("x", 0, 1, "message"),
    "ExceptionGroup": ("message", [ValueError("inner")]),
    "BaseExceptionGroup": ("message", [KeyboardInterrupt()]),
}


@pytest.mark.parametrize(
    "cls", [*BUILTIN, TVMError, InternalError, DiagnosticError], ids=lambda c: c.__name__
)
def test_errors_keep_their_class_and_message(echo, cls):
    def fail():
        raise cls(*ARGUMENTS.get(cls.__name__, ("message",)))

    with pytest.raises(cls) as info:
        echo(fail)
    assert "message" in str(info.value)
    assert type(info.value).__name__ == cls.__name__


def test_both_tracebacks(echo):
    def innermost():
        raise ValueError("deep")

    with pytest.raises(ValueError) as info:
        echo(lambda: echo(innermost))
    names = [frame.name for frame in traceback.extract_tb(info.value.__traceback__)]
    assert "innermost" in names and "test_both_tracebacks" in names


@pytest.mark.parametrize("full", [False, True])
def test_frames_of_cpp(full):
    """Where an error was raised is shown; frames without a place only to those who ask."""
    code = """
import sys, traceback
sys.modules["torch"] = None  # tvm_ffi would import it, for seconds
import tvm
try:
    tvm.get_global_func("runtime.testing.sleep_ms")()
except TypeError:
    traceback.print_exc()
"""
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(p for p in sys.path if p))
    env |= {"TVM_FULL_BACKTRACE": "1"} if full else {}
    shown = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert "TypeError: runtime.testing.sleep_ms: expected" in shown.stderr
    assert "def.cc" in shown.stderr and ("<unknown>" in shown.stderr) == full


@pytest.mark.parametrize("name", ["tvm", "tvm_llvm"])
def test_errors_do_not_read_the_symbols_of_all_libraries(name):
    """0.8 s for the first error of a process that has PyTorch loaded."""
    from tvm import _libs

    library = _libs.find(name)
    if library is None:
        pytest.skip(f"no {name}")
    with open(library, "rb") as file:
        symbols = file.read()
    assert b"\0TVMFFIBacktrace\0" not in symbols and b"\0__wrap_TVMFFIBacktrace\0" in symbols


def test_details_that_survive(echo):
    with pytest.raises(KeyError) as info:
        echo(lambda: {}["missing"])
    assert info.value.args == ("missing",)
    for code in (0, 3, "text"):
        with pytest.raises(SystemExit) as info:
            echo(lambda code=code: sys.exit(code))
        assert info.value.code == code


def test_unknown_classes_arrive_as_runtime_error(echo):
    class Mine(Exception):
        pass

    def fail():
        raise Mine("what happened")

    with pytest.raises(RuntimeError, match="what happened") as info:
        echo(fail)
    assert any(frame.name == "fail" for frame in traceback.extract_tb(info.value.__traceback__))


def test_registered_classes_survive(echo):
    class Known(Exception):
        pass

    tvm.register_error("tests.Known", Known)

    def fail():
        raise Known("what happened")

    with pytest.raises(Known, match="what happened"):
        echo(fail)


def test_wrong_arguments_of_cpp_functions():
    function = tvm.get_global_func("runtime.set_num_threads")
    with pytest.raises(TypeError, match="set_num_threads: expected 1 arguments, got 2"):
        function(1, 2)
    with pytest.raises(TypeError, match="set_num_threads: parameter 'n': expected int, got str"):
        function("two")
    with pytest.raises(TypeError, match="unexpected keyword"):
        runtime.set_num_threads(threads=2)


def test_calls_release_the_gil():
    """With an interpreter that switches threads only when it must, another one gets its turn."""
    nap = tvm.get_global_func("runtime.testing.sleep_ms")
    go, done = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: (go.wait(), done.set()))
    thread.start()
    interval = sys.getswitchinterval()
    try:
        sys.setswitchinterval(1000)
        go.set()
        for _ in range(100):
            nap(50)
            if done.is_set():
                break
        assert done.is_set()
    finally:
        sys.setswitchinterval(interval)
        thread.join()


def test_callbacks_from_many_cpp_threads():
    total = []
    tvm.get_global_func("runtime.testing.parallel_apply")(
        tvm_ffi.convert(lambda i: total.append(i)), 64
    )
    assert sorted(total) == list(range(64))

    def fail(i):
        if i == 11:
            raise LookupError("eleven")

    with pytest.raises(LookupError, match="eleven"):
        tvm.get_global_func("runtime.testing.parallel_apply")(tvm_ffi.convert(fail), 64)


def test_ctrl_c_stops_a_long_call():
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begin = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        tvm.get_global_func("runtime.testing.busy_ms")(20_000)
    assert time.perf_counter() - begin < 10


def run_python(script, **env):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **env}
    return subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=60
    )


def test_fork_and_exit_with_the_pool_in_use():
    script = (
        "import os, tvm, tvm_ffi\n"
        "f = tvm.get_global_func('runtime.testing.parallel_apply')\n"
        "tvm.runtime.set_num_threads(4)\n"
        "noop = tvm_ffi.convert(lambda i: None)\n"
        "f(noop, 8)\n"
        "pid = os.fork()\n"
        "f(noop, 8)\n"
        "if pid == 0: os._exit(7)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7\n"
        "print('fine')\n"
    )
    done = run_python(script)
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr


def test_number_of_threads_from_the_environment():
    script = "import tvm; print(tvm.runtime.num_threads())"
    assert run_python(script, TVM_NUM_THREADS="3").stdout == "3\n"
    done = run_python(script, TVM_NUM_THREADS="three")
    assert (
        "ValueError: TVM_NUM_THREADS: expected a number from 1 to 1024, got 'three'" in done.stderr
    )


def test_missing_library_says_where_it_looked(tmp_path):
    script = (
        "import shutil, sys, pathlib, importlib.util\n"
        "source = pathlib.Path(importlib.util.find_spec('tvm').origin).parent\n"
        f"target = pathlib.Path({str(tmp_path)!r})\n"
        "skip = shutil.ignore_patterns('lib', '__pycache__')\n"
        "shutil.copytree(source, target / 'tvm', ignore=skip)\n"
        "sys.path.insert(0, str(target))\n"
        "import tvm\n"
    )
    done = run_python(script, TVM_LIBRARY_PATH=str(tmp_path / "elsewhere"))
    assert "ImportError: library libtvm_runtime" in done.stderr
    assert f"{tmp_path}/elsewhere" in done.stderr and f"{tmp_path}/tvm/lib" in done.stderr
    assert "TVM_LIBRARY_PATH" in done.stderr


def test_runtime_without_the_compiler(tmp_path):
    library = tvm._libs.find("tvm_runtime")
    (tmp_path / library.name).symlink_to(library)
    # Loads _libs by itself first, to narrow where it looks.
    script = (
        "import importlib.util, pathlib, sys, types\n"
        "spec = importlib.util.find_spec('tvm')\n"
        "package = pathlib.Path(spec.origin).parent\n"
        "stub = sys.modules['tvm'] = types.ModuleType('tvm')\n"
        "stub.__path__ = [str(package)]\n"
        "from tvm import _libs\n"
        f"_libs.search_path = lambda: [pathlib.Path({str(tmp_path)!r})]\n"
        "del sys.modules['tvm']\n"
        "import tvm\n"
        "assert _libs.find('tvm') is None\n"
        "print(tvm.runtime.tensor([1, 2]).numpy().tolist())\n"
    )
    done = run_python(script)
    assert done.stdout == "[1, 2]\n", done.stderr


def test_alias_table_leads_somewhere():
    """Every alias whose target part exists resolves; every alias module imports."""
    import importlib

    parts = {"tvm_ffi", "tvm.runtime", "tvm.error", "tvm.nd"}
    checked = 0
    for module, names in tvm._aliases.NAMES.items():
        for name, target in names.items():
            if target.rsplit(".", 1)[0] in parts:
                assert tvm._aliases.resolve(f"{module}.{name}") is not None
                assert getattr(importlib.import_module(module), name) is not None
                checked += 1
    assert checked > 40
    assert tvm.runtime.container.ShapeTuple is tvm_ffi.Shape
    assert {"num_threads", "NDArray"} <= set(dir(runtime)) and "device" in dir(tvm)


def test_alias_modules_are_the_module_itself():
    import tvm.ir.transform
    import tvm.transform

    assert tvm.transform is tvm.ir.transform
    assert tvm.transform.__name__ == tvm.transform.__spec__.name == "tvm.ir.transform"
    with pytest.raises(ModuleNotFoundError):
        import tvm.no_such_module


def test_libinfo():
    from tvm import libinfo

    assert any("libtvm_runtime" in path for path in libinfo.find_lib_path())
    assert any(os.path.exists(os.path.join(p, "tvm/ffi")) for p in libinfo.find_include_path())
    assert libinfo.find_lib_path("no_such_library.so", optional=True) is None
    with pytest.raises(RuntimeError, match="none of these exists"):
        libinfo.find_lib_path("no_such_library.so")
