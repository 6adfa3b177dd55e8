# SPDX-License-Identifier: Apache-2.0
"""Walks over statements and expressions: names derive from the registry."""

from tvm._derive import fill

__getattr__, __dir__ = fill(__name__)
