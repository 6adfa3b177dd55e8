# SPDX-License-Identifier: Apache-2.0
"""Rules for GPUs, to be given to ApplyDefaultSchedule from the most special to Fallback."""

from .base import GPUScheduleRule
from .fallback import Fallback
from .gemv import GEMV
from .general_reduction import GeneralReduction
from .low_batch_gemv import LowBatchGEMV
from .matmul import Matmul
from .reduction import Reduction
from .rmsnorm import RMSNorm
from .transpose import Transpose

__all__ = [
    "GEMV",
    "Fallback",
    "GPUScheduleRule",
    "GeneralReduction",
    "LowBatchGEMV",
    "Matmul",
    "RMSNorm",
    "Reduction",
    "Transpose",
]
