# SPDX-License-Identifier: Apache-2.0
"""ONNX models as programs of the graph language."""

from tvm._derive import fill

from ..comparison import Difference, Verification
from .onnx_frontend import from_onnx, inspect
from .verification import verify

__getattr__, __dir__ = fill(__name__)
