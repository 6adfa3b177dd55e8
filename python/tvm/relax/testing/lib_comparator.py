# SPDX-License-Identifier: Apache-2.0
"""Calls of a program compared with a reference while it runs."""

import numpy as np

from tvm.runtime import Tensor, tensor
from tvm.runtime.vm import VMInstrumentReturnKind


class LibCompareVMInstrument:
    """For VirtualMachine.set_instrument: after each call of a function that `mod` has as well, that
    one gets the same arguments, and what both wrote is compared."""

    def __init__(self, mod, device, verbose=True, rtol=1e-5, atol=1e-5):
        self.mod, self.device, self.verbose = mod, device, verbose
        self.rtol, self.atol, self.counter = rtol, atol, 0
        self._before = None

    def compare(self, name, ref_args, new_args, ret_indices):
        """Compares the arguments with these indices; AssertionError where they differ."""
        for i in ret_indices:
            np.testing.assert_allclose(
                new_args[i].numpy(), ref_args[i].numpy(), self.rtol, self.atol, err_msg=name
            )
        if self.verbose:
            print(f"[LibCompare] call {self.counter}: {name} agrees")

    def skip_instrument(self, func, name, before_run, ret_val, *args):
        """Whether a call is not compared: to be overridden."""
        return False

    def __call__(self, func, name, before_run, ret_val, *args):
        if name.startswith("vm.builtin.") or self.skip_instrument(
            func, name, before_run, ret_val, *args
        ):
            return VMInstrumentReturnKind.NO_OP
        reference = self.mod.get_function(name, query_imports=True)
        if reference is None or not all(isinstance(arg, Tensor) for arg in args):
            return VMInstrumentReturnKind.NO_OP
        if before_run:  # some arguments are overwritten
            self._before = [tensor(arg.numpy(), self.device) for arg in args]
            return VMInstrumentReturnKind.NO_OP
        reference(*self._before)
        self.compare(name, self._before, args, [len(args) - 1])
        self.counter += 1
        return VMInstrumentReturnKind.NO_OP
