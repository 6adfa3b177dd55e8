# SPDX-License-Identifier: Apache-2.0
"""Checks of the program around passes."""

from tvm.ir import instrument
from tvm.relax.analysis import well_formed


@instrument.pass_instrument
class WellFormedInstrument:
    """RuntimeError where a pass gets, or leaves, a graph that is not well-formed. Passes that work
    on programs that are not yet so are left out."""

    def __init__(self, check_struct_info=True, validate_before_transform=True):
        self.skip_pass_name = ["Normalize", "NormalizeGlobalVar", "ResolveGlobals"]
        self.check_struct_info = check_struct_info
        self.validate_before_transform = validate_before_transform

    def run_before_pass(self, mod, pass_info):
        if self.validate_before_transform:
            self._check(mod, pass_info.name, "Before")

    def run_after_pass(self, mod, pass_info):
        self._check(mod, pass_info.name, "After")

    def _check(self, mod, name, when):
        if name in self.skip_pass_name:
            return
        if not well_formed(mod, self.check_struct_info):
            mod.show(name=f"{when}{name}")
            raise RuntimeError(f"{when} {name}: expected a well-formed program")
