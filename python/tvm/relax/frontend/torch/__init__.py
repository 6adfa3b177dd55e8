# SPDX-License-Identifier: Apache-2.0
"""PyTorch models as graphs: exported programs, traced graphs, and torch.compile."""

from tvm._derive import fill

from .dynamo import dynamo_capture_subgraphs, relax_dynamo
from .exported_program_translator import from_exported_program, inspect
from .fx_translator import from_fx
from .verification import verify

__getattr__, __dir__ = fill(__name__)
