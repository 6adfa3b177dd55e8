# SPDX-License-Identifier: Apache-2.0
"""The classes of the syntax tree."""

from .doc import __dir__, __getattr__

__all__ = ["__dir__", "__getattr__"]
