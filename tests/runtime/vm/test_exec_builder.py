# SPDX-License-Identifier: Apache-2.0
"""Building executables: registers, constants, text, and what is refused."""

import numpy as np
import pytest
from tvm import runtime
from tvm.relax.exec_builder import ExecBuilder, SpecialReg, VMFuncKind
from tvm.runtime.vm import VirtualMachine


def add_program():
    ib = ExecBuilder()
    with ib.function("main", num_inputs=2, param_names=["x", "y"]):
        ib.emit_call("test.vm.add", args=[ib.r(0), ib.r(1)], dst=ib.r(7))
        ib.emit_call("test.vm.mul", args=[ib.r(7), ib.r(0)], dst=ib.r(3))
        ib.emit_ret(ib.r(3))
    return ib


def test_registers_are_numbered_by_first_use():
    assert add_program().get().as_text().splitlines() == [
        "@main:",
        "  call  test.vm.add       in: %0, %1        dst: %2",
        "  call  test.vm.mul       in: %2, %0        dst: %3",
        "  ret   %3",
        "",
    ]


def test_python_text_builds_the_same_program():
    text = add_program().get().as_python()
    scope = {"relax": __import__("types").SimpleNamespace(ExecBuilder=ExecBuilder)}
    exec(text, scope)
    assert scope["ib"].get().as_text() == add_program().get().as_text()
    assert scope["ib"].get().as_python() == text


def test_all_kinds_of_arguments_are_shown():
    ib = ExecBuilder()
    with ib.function("main", num_inputs=1):
        constant = ib.convert_constant("text")
        ib.emit_call("f", args=[ib.vm_state(), ib.void_arg(), ib.imm(-3), constant, ib.f("g")])
        ib.emit_if(ib.r(0), 2)
        ib.emit_goto(1)
        ib.emit_ret(ib.r(0))
    text = ib.get().as_text()
    assert "in: %vm, %void, i(-3), c[0], f[g]  dst: %void" in text
    assert "if    %0  false: 2" in text and "goto  1" in text
    assert ib.vm_state() == SpecialReg.VM_STATE and ib.void_arg() == SpecialReg.VOID_ARG


def test_equal_constants_are_stored_once():
    ib = ExecBuilder()
    a = np.arange(6, dtype="float32").reshape(2, 3)
    first = ib.convert_constant(a)
    assert ib.convert_constant(runtime.tensor(a.copy())) == first
    assert ib.convert_constant(a.reshape(3, 2)) != first
    assert ib.convert_constant(a.view("int32")) != first
    assert ib.convert_constant((2, 3)) == ib.convert_constant((2, 3)) != ib.convert_constant((3, 2))
    assert ib.convert_constant("longer text") == ib.convert_constant("longer text")
    assert ib.convert_constant("x") == ib.convert_constant("x") != ib.convert_constant("y")
    assert ib.convert_constant(1) != ib.convert_constant(1.0) != ib.convert_constant(True)
    assert ib.convert_constant([a, "x"]) == ib.convert_constant([a.copy(), "x"])
    with ib.function("main"):
        ib.emit_call("test.vm.move", args=[a], dst=ib.r(0))
        ib.emit_ret(ib.r(0))
    executable = ib.get()
    assert executable.stats().startswith(
        "Relax VM executable statistics:\n  Constant shapes (#12): [[2, 3], [3, 2], [2, 3], "
    )
    assert "Globals (#1): [main]" in executable.stats()
    assert "Packed functions (#1): [test.vm.move]" in executable.stats()
    result = VirtualMachine(executable, runtime.cpu())["main"]()
    np.testing.assert_array_equal(result.numpy(), a)
    assert np.from_dlpack(result).ctypes.data % 64 == 0


def test_undefined_register_is_an_error():
    ib = ExecBuilder()
    with ib.function("main", num_inputs=1):
        ib.emit_call("test.vm.move", args=[ib.r(1)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))
    with pytest.raises(ValueError, match="register 1 of function 'main' is read"):
        ib.get()


@pytest.mark.parametrize(
    "emit, message",
    [
        (lambda ib: ib.emit_goto(5), "jumps out of the function"),
        (lambda ib: ib.emit_goto(-9), "jumps out of the function"),
        (lambda ib: ib.emit_if(ib.r(0), 0), "ends without a return"),
        (lambda ib: ib.emit_call("f", [ib.r(0)]), "ends without a return"),
        (lambda ib: ib.emit_ret(ib.imm(1)), "expected a register"),
        (lambda ib: ib.emit_call("f", [ib.c(3)]), "expected a constant below 0, got 3"),
        (lambda ib: ib.imm(2**60), "at most 56 bits"),
        (lambda ib: None, "has no instructions"),
    ],
)
def test_malformed_programs_are_refused(emit, message):
    ib = ExecBuilder()
    with pytest.raises(ValueError, match=message):
        with ib.function("main", num_inputs=1):
            emit(ib)
        ib.get()


def test_functions_are_defined_once_and_one_at_a_time():
    ib = add_program()
    with pytest.raises(ValueError, match="'main' is defined twice"):
        ib.function("main")
    with ib.function("other"), pytest.raises(ValueError, match="expected the end of function"):
        ib.function("third")
    with pytest.raises(ValueError, match="inside a function"):
        add_program().emit_goto(1)
    with pytest.raises(ValueError, match="at most 1 names of parameters, got 2"):
        ExecBuilder().function("f", 1, ["a", "b"])


def test_a_function_is_called_before_it_is_defined():
    ib = ExecBuilder()
    ib.declare_function("later", VMFuncKind.VM_FUNC)
    with ib.function("main", num_inputs=1):
        ib.emit_call("later", args=[ib.r(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    with ib.function("later", num_inputs=1):
        ib.emit_call("test.vm.add", args=[ib.r(0), ib.r(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    vm = VirtualMachine(ib.get(), runtime.cpu())
    np.testing.assert_array_equal(vm["main"](np.ones(3, "float32")).numpy(), [2, 2, 2])
