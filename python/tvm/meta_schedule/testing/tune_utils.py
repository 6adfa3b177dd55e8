# SPDX-License-Identifier: Apache-2.0
"""Inputs for programs that are tuned."""

import ml_dtypes  # noqa: F401  gives numpy the small types
import numpy as np


def generate_input_data(input_shape, input_dtype, *, low=None, high=None):
    """Random values, from `low` (0) to below `high` (1; 10 for integers, 2 for bool)."""
    try:
        dtype = np.dtype(input_dtype)
    except TypeError:
        raise ValueError(f"generate_input_data: expected a dtype, got {input_dtype!r}") from None
    whole = dtype.kind in "iub"
    low = 0 if low is None else low
    high = {"b": 2, "i": 10, "u": 10}.get(dtype.kind, 1) if high is None else high
    if not low < high:
        raise ValueError(f"generate_input_data: expected low < high, got {low} and {high}")
    rng = np.random.default_rng()
    values = rng.integers(low, high, input_shape) if whole else rng.uniform(low, high, input_shape)
    return values.astype(dtype)


def create_calculator(backend):
    """What runs a compiled model; models need an executor, which is not there yet."""
    raise NotImplementedError(
        f"create_calculator: running models ({backend!r}) is not available yet"
    )
