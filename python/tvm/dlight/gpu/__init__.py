# SPDX-License-Identifier: Apache-2.0
"""Rules for GPUs, to be given to ApplyDefaultSchedule from the most special to Fallback."""

from .base import GPUScheduleRule
from .fallback import Fallback
from .gemv import GEMV
from .general_reduction import GeneralReduction
from .matmul import Matmul
from .reduction import Reduction
from .transpose import Transpose

__all__ = [
    "GEMV",
    "Fallback",
    "GPUScheduleRule",
    "GeneralReduction",
    "Matmul",
    "Reduction",
    "Transpose",
]
