# SPDX-License-Identifier: Apache-2.0
"""Entry points: from a program to code that runs."""

from tvm._aliases import no_attribute

from .build_module import build, compile

__all__ = ["build", "compile"]


def __getattr__(name):
    raise no_attribute(__name__, name, lambda: __all__)
