# SPDX-License-Identifier: Apache-2.0
"""Passes for tests."""

from tvm._derive import fill

__getattr__, __dir__ = fill(__name__)
