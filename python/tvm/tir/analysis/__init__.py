# SPDX-License-Identifier: Apache-2.0
"""TIR analysis: names derive from the registry."""

import tvm.ir.transform  # noqa: F401  (some of them are passes, which are called)
from tvm._derive import fill

__getattr__, __dir__ = fill(__name__)
