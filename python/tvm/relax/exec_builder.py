# SPDX-License-Identifier: Apache-2.0
"""Building executables of the virtual machine, instruction by instruction."""

from enum import IntEnum

import tvm_ffi

from tvm.runtime.vm import VMExecutable


def _api(name):
    return tvm_ffi.get_global_func("runtime.vm.ExecBuilder" + name)


_REGISTER, _IMMEDIATE, _CONSTANT = 0, 1, 2


class SpecialReg(IntEnum):
    """Registers that stand for something else."""

    VOID_ARG = (1 << 54) + 0
    VM_STATE = (1 << 54) + 1


class VMFuncKind(IntEnum):
    """How a function is called."""

    PACKED_FUNC = 0
    VM_FUNC = 1
    VMTIR_FUNC = 2


class VMFuncScope:
    """The body of a function: instructions emitted inside belong to it."""

    stack: list["VMFuncScope"] = []

    def __init__(self, exit_callback):
        self.exit_callback = exit_callback

    def __enter__(self):
        VMFuncScope.stack.append(self)
        return self

    def __exit__(self, ptype, value, trace):
        VMFuncScope.stack.pop()
        self.exit_callback()


@tvm_ffi.register_object("relax.ExecBuilder")
class ExecBuilder(tvm_ffi.Object):
    """Makes a VMExecutable:

    ib = relax.ExecBuilder()
    with ib.function("main", num_inputs=2):
        ib.emit_call("test.vm.add", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))
    executable = ib.get()
    """

    def __init__(self):
        self.__init_handle_by_constructor__(_api(""))

    def r(self, idx):
        """A register as an argument; the first ones are the parameters."""
        return _api("Arg")(_REGISTER, idx)

    def imm(self, value):
        """An integer as an argument."""
        return _api("Arg")(_IMMEDIATE, value)

    def c(self, idx):
        """A constant, by its index, as an argument."""
        return _api("Arg")(_CONSTANT, idx)

    def f(self, name):
        """A function as an argument."""
        return _api("Declare")(self, name, VMFuncKind.PACKED_FUNC)

    def void_arg(self):
        """No value as an argument."""
        return self.r(SpecialReg.VOID_ARG)

    def vm_state(self):
        """The virtual machine as an argument."""
        return self.r(SpecialReg.VM_STATE)

    def declare_function(self, func_name, kind=VMFuncKind.PACKED_FUNC):
        """Says that a function exists, before it is defined."""
        _api("Declare")(self, func_name, kind)

    def function(self, func_name, num_inputs=0, param_names=None):
        """The scope of a new function."""
        _api("Begin")(self, func_name, num_inputs or 0, param_names)
        return VMFuncScope(lambda: _api("End")(self))

    def convert_constant(self, const):
        """A constant as an argument; equal ones are stored once."""
        if hasattr(const, "__dlpack__") and not isinstance(const, tvm_ffi.Tensor):
            from tvm.runtime import tensor

            const = tensor(const)
        elif isinstance(const, tuple) and all(type(extent) is int for extent in const):
            const = tvm_ffi.Shape(const)
        return _api("Constant")(self, const)

    def emit_call(self, name, args=None, dst=None):
        """A call.

        Integers are what r, imm, c and f made; everything else is a constant.
        """
        words = [arg if isinstance(arg, int) else self.convert_constant(arg) for arg in args or ()]
        _api("Call")(self, name, words, SpecialReg.VOID_ARG if dst is None else dst)

    def emit_ret(self, result):
        """Returns a register."""
        _api("Ret")(self, result)

    def emit_goto(self, pc_offset):
        """Jumps by a number of instructions."""
        _api("Goto")(self, pc_offset)

    def emit_if(self, cond, false_offset):
        """Jumps by a number of instructions where the register holds False."""
        _api("If")(self, cond, false_offset)

    def get(self):
        """The executable."""
        return VMExecutable(_api("Get")(self))
