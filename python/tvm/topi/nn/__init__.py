# SPDX-License-Identifier: Apache-2.0
"""Operators of neural networks."""

from tvm import te
from tvm._derive import fill

__getattr__, __dir__ = fill(__name__)
