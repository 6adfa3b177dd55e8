# SPDX-License-Identifier: Apache-2.0
"""Containers of the object layer."""

from tvm_ffi import Array, Map

__all__ = ["Array", "Map"]
