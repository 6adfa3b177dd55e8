# SPDX-License-Identifier: Apache-2.0
"""Rules for Adreno GPUs, whose threads work on vectors of four elements."""

from .base import AdrenoScheduleRule
from .convolution import Conv2d
from .fallback import Fallback
from .layout_transform import LayoutTransform
from .pool import Pool2D

__all__ = ["AdrenoScheduleRule", "Conv2d", "Fallback", "LayoutTransform", "Pool2D"]
