# SPDX-License-Identifier: Apache-2.0
"""Another spelling of the virtual machine and of relax.build."""

from tvm.runtime.vm import *  # noqa: F403

from .vm_build import build  # noqa: F401
