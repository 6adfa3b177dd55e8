# SPDX-License-Identifier: Apache-2.0
"""Executables as bytes and in libraries: what is saved comes back, damage never crashes."""

import os
import random
import signal
import struct

import numpy as np
import pytest
import tvm_ffi
from tvm import runtime
from tvm.relax.exec_builder import ExecBuilder
from tvm.runtime.vm import VirtualMachine, VMExecutable

_load = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.relax.VMExecutable")
_save = tvm_ffi.get_global_func("runtime.ModuleSaveToBytes")


def save(executable):
    return bytes(_save(executable.mod))


def load(data):
    return VMExecutable(_load(data))


def program():
    """Every instruction, kind of argument and kind of constant."""
    ib = ExecBuilder()
    values = [np.arange(4, dtype="float32"), (2, 2), "text", [1, (2.5, None)], np.bool_(True)]
    constants = [ib.convert_constant(value) for value in (*values[:4], True, 2.5, None, 7)]
    constants.append(ib.convert_constant(tvm_ffi.dtype("float16")))
    with ib.function("main", num_inputs=2, param_names=["x", "flag"]):
        ib.emit_call("vm.builtin.make_tuple", args=constants, dst=ib.r(2))
        ib.emit_if(ib.r(1), 3)
        ib.emit_call("test.vm.add", args=[ib.r(0), constants[0]], dst=ib.r(3))
        ib.emit_goto(2)
        ib.emit_call("twice", args=[ib.r(0)], dst=ib.r(3))
        ib.emit_call("vm.builtin.alloc_shape_heap", args=[ib.vm_state(), ib.imm(3)], dst=ib.r(4))
        ib.emit_call("vm.builtin.make_tuple", args=[ib.r(2), ib.r(3)], dst=ib.r(5))
        ib.emit_ret(ib.r(5))
    with ib.function("twice", num_inputs=1, param_names=["v"]):
        ib.emit_call("vm.builtin.make_closure", args=[ib.f("test.vm.add"), ib.r(0)], dst=ib.r(1))
        ib.emit_call(
            "vm.builtin.invoke_closure", args=[ib.vm_state(), ib.r(1), ib.r(0)], dst=ib.r(2)
        )
        ib.emit_ret(ib.r(2))
    return ib.get()


def run(executable):
    vm = VirtualMachine(executable, runtime.cpu())
    return [vm["main"](np.ones(4, "float32"), flag) for flag in (True, False)]


def test_saved_program_comes_back():
    first = program()
    data = save(first)
    second = load(data)
    assert second.as_text() == first.as_text() and second.stats() == first.stats()
    assert save(second) == data
    for executable in (first, second):
        (constants, added), (_, doubled) = run(executable)
        np.testing.assert_array_equal(added.numpy(), [1, 2, 3, 4])
        np.testing.assert_array_equal(doubled.numpy(), [2, 2, 2, 2])
        np.testing.assert_array_equal(constants[0].numpy(), [0, 1, 2, 3])
        assert tuple(constants[1]) == (2, 2) and constants[2] == "text"
        assert constants[3][0] == 1 and list(constants[3][1]) == [2.5, None]
        assert list(constants)[4:8] == [True, 2.5, None, 7] and constants[8] == "float16"


def test_has_function():
    mod = program().mod
    assert mod["has_function"]("main") and mod["has_function"]("twice")
    assert not mod["has_function"]("test.vm.add") and not mod["has_function"]("nothing")
    assert mod.function_names() == ["main", "twice"]
    with pytest.raises(AttributeError, match="no function 'as_txt', did you mean|no function"):
        mod["as_txt"]


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda d: b"", "expected a saved executable"),
        (lambda d: b"\x7fELF" + d[4:], "expected a saved executable"),
        (lambda d: d[:8] + struct.pack("<Q", 99) + d[16:], "expected format version 2, got 99"),
        (lambda d: d[:-1], "truncated or damaged|more than the data holds"),
        (lambda d: d + b"\0", "bytes follow the code"),
        (lambda d: d[:16] + struct.pack("<Q", 2**60) + d[24:], "more than the data holds"),
    ],
)
def test_damaged_files_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        load(change(save(program())))


def test_every_truncation_is_refused():
    data = save(program())
    for size in range(len(data)):
        with pytest.raises(ValueError):
            load(data[:size])


class Stopped(Exception):
    pass


def _stop(*_):
    raise Stopped


MUTATIONS = int(os.environ.get("TVM_TEST_MUTATIONS", 4000))


def test_mutated_programs_fail_or_run():
    """A program that was changed anywhere loads with an error or runs, with any result."""
    data, rng, loaded = save(program()), random.Random(1), 0
    x = np.ones(4, "float32")
    words = [i for i in range(0, len(data) - 8)]
    old = signal.signal(signal.SIGALRM, _stop)
    try:
        for _ in range(MUTATIONS):
            changed = bytearray(data)
            for _ in range(rng.choice((1, 1, 2, 5))):
                at = rng.choice(words)
                if rng.random() < 0.5:
                    changed[at] = rng.randrange(256)
                else:
                    value = rng.choice((-1, 0, 1, 2, 3, 4, 5, 8, 1 << 54, (1 << 54) + 1, 1 << 62))
                    changed[at : at + 8] = struct.pack("<q", value)
            try:
                executable = load(bytes(changed))
            except (ValueError, MemoryError):
                continue
            loaded += 1
            try:
                executable.as_text()
                executable.as_python()
                vm = VirtualMachine(executable, runtime.cpu())
                signal.setitimer(signal.ITIMER_REAL, 0.2)  # a jump may have become a loop
                for flag in (True, False):
                    vm["main"](x, flag)
            except Exception:
                pass
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, old)
    assert loaded > MUTATIONS // 20  # else nothing was tried


def test_executable_in_a_library(compile_c, kernels, tmp_path):
    ib = ExecBuilder()
    with ib.function("main", num_inputs=2):
        ib.emit_call("double", args=[ib.r(0), ib.r(1)])
        ib.emit_ret(ib.r(1))
    executable = ib.get()
    library = runtime.load_static_library(compile_c(kernels["two"], ".o"), ["double"])
    executable.mod.import_module(library)
    path = tmp_path / "model.so"
    executable.export_library(path)
    loaded = runtime.load_module(path)
    assert loaded.kind == "relax.VMExecutable"
    x, y = np.arange(3, dtype="float32"), np.zeros(3, "float32")
    for source in (loaded, executable):  # the second one is linked when it is first used
        y[:] = 0
        VirtualMachine(source, runtime.cpu())["main"](x, y)
        np.testing.assert_array_equal(y, [0, 2, 4])


def test_missing_function_is_named():
    ib = ExecBuilder()
    with ib.function("main", num_inputs=1):
        ib.emit_call("no_such_kernel", args=[ib.r(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    with pytest.raises(ValueError, match="cannot find the function 'no_such_kernel'"):
        VirtualMachine(ib.get(), runtime.cpu())


COMPILED = r"""
#include <tvm/ffi/c_api.h>

/* main(x): returns the constant 0 where x is true, else the constant 1 */
int __tvm_ffi___vmtir__main(void* self, const TVMFFIAny* args, int32_t n, TVMFFIAny* ret) {
  TVMFFIAny *registers = args[1].v_ptr, *constants = args[2].v_ptr;
  if (n != 4 || registers[1].type_index != kTVMFFINone) {
    TVMFFIErrorSetRaisedFromCStr("ValueError", "expected four lists and an empty register");
    return -1;
  }
  registers[1] = constants[registers[0].v_int64 ? 0 : 1];
  return 0;
}
"""


def test_compiled_functions_work_on_the_registers(compile_c):
    ib = ExecBuilder()
    for constant in (10, 20):
        ib.convert_constant(constant)
    tvm_ffi.get_global_func("runtime.vm.ExecBuilderCompiled")(ib, "main", 1, 2)
    with ib.function("twice", num_inputs=1):
        ib.emit_call("main", args=[ib.r(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    executable = ib.get()
    assert "@main num_inputs=1 vmtir" in executable.as_text()
    executable.mod.import_module(runtime.load_module(compile_c(COMPILED)))
    vm = VirtualMachine(executable, runtime.cpu())
    assert [vm["main"](flag) for flag in (True, False)] == [10, 20]
    assert vm["twice"](True) == 10
    with pytest.raises(TypeError, match=r"main: expected 1 arguments \(arg0\), got 2"):
        vm["main"](1, 2)
