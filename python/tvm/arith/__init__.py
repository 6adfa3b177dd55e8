# SPDX-License-Identifier: Apache-2.0
"""Integer facts, simplification and proofs."""
# ruff: noqa: F401

from tvm._derive import fill

from .analyzer import Analyzer, ConstIntBound, ConstraintScope, Extension, ModularSet, ProofStrength
from .int_set import IntervalSet, IntSet, PresburgerSet
from .int_solver import (
    IntConstraints,
    IntGroupBounds,
    solve_linear_equations,
    solve_linear_inequalities,
)
from .iter_affine_map import IterMapLevel

__getattr__, __dir__ = fill(__name__)
