# SPDX-License-Identifier: Apache-2.0
"""Passes for tests."""

from tvm._derive import fill
from tvm.ir.transform import Pass  # noqa: F401 (what makes passes callable)

__getattr__, __dir__ = fill(__name__)
