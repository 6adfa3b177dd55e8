# SPDX-License-Identifier: Apache-2.0
"""A sample of mutated executables of a compiled model."""

import struct

import pytest
import tvm
import tvm_ffi
from tvm import relax

from .executable_files import arguments, check, run, seeds


def test_executables_run_as_they_are():
    assert [run(data, kernels) for data, kernels in seeds()] == ["ran", "ran"]


def test_mutated_executables_fail_or_run():
    outcomes = []
    assert [c for c in (check(seed, outcomes) for seed in range(1500)) if c] == []
    for outcome in ("refused", "failed", "ran"):  # else little was tried
        assert outcomes.count(outcome) > 50


def _loaded(data, kernels):
    mod = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.relax.VMExecutable")(data)
    for kernel in kernels:
        mod.import_module(kernel)
    return relax.VirtualMachine(relax.VMExecutable(mod), tvm.cpu())


def test_machine_code_refuses_fewer_registers_than_it_uses():
    data, kernels = seeds()[1]
    name = struct.pack("<q4s", 4, b"main")
    at = data.index(name) + len(name) + 3 * 8  # kind, begin and end come first
    (registers,) = struct.unpack_from("<q", data, at)
    assert registers > 3  # else another number was found
    changed = data[:at] + struct.pack("<q", 2) + data[at + 8 :]
    main = _loaded(changed, kernels)["main"]
    with pytest.raises(ValueError, match="expected a list 'r' of at least [0-9]+ values, got 3"):
        main(*arguments(3, True))


def test_bytecode_cannot_call_machine_code_with_other_lists():
    data, kernels = seeds()[0]
    changed = data.replace(b"vm.builtin.", b"__vmtir__ma", 1)
    with pytest.raises(
        ValueError, match="function '__vmtir__ma.*' is the code of another function"
    ):
        _loaded(changed, kernels)


def test_types_that_do_not_exist_are_refused():
    float32 = bytes((2, 32, 1, 0))
    for data, kernels in seeds():
        places = [i for i in range(len(data)) if data.startswith(float32, i)]
        changed = (data[:i] + bytes((99, 0)) + data[i + 2 :] for i in places)
        outcomes = [run(file, kernels) for file in changed]
        assert outcomes.count("refused") >= 2  # of a tensor, and of what is checked
