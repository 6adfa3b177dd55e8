# SPDX-License-Identifier: Apache-2.0
"""Entry points: from a program to code that runs."""

from .build_module import build, compile

__all__ = ["build", "compile"]
