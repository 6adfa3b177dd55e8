# SPDX-License-Identifier: Apache-2.0
"""ONNX models as programs of the graph language."""

from tvm._derive import fill

from .onnx_frontend import from_onnx, inspect
from .verification import Difference, Verification, verify

__getattr__, __dir__ = fill(__name__)
