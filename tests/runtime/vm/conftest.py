# SPDX-License-Identifier: Apache-2.0
"""Programs for the tests of the virtual machine."""

import pytest
from tvm import runtime
from tvm.relax.exec_builder import ExecBuilder
from tvm.runtime.vm import VirtualMachine


@pytest.fixture
def machine():
    """A virtual machine for what `build(ib)` emits."""

    def make(build, **options):
        ib = ExecBuilder()
        build(ib)
        return VirtualMachine(ib.get(), runtime.cpu(), **options)

    return make
