# SPDX-License-Identifier: Apache-2.0
"""Operators as tensor expressions. What has no Python behaviour derives from the registry."""

from tvm import te
from tvm._derive import fill

from .utils import (
    InvalidShapeError,
    binary_search,
    const_vector,
    get_const_tuple,
    make_idx,
    within_index,
)

__getattr__, __dir__ = fill(__name__)
