# SPDX-License-Identifier: Apache-2.0
"""Measures of how well a model ranks."""

import numpy as np


def max_curve(trial_scores):
    """The best score among the first 1, 2, … trials."""
    return np.maximum.accumulate(np.asarray(trial_scores, dtype="float64"))
