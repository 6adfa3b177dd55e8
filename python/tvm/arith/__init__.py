# SPDX-License-Identifier: Apache-2.0
"""Integer facts, simplification and proofs."""

from tvm._derive import fill

from .analyzer import Analyzer, ConstIntBound, Extension, ModularSet, ProofStrength
from .int_set import IntervalSet, IntSet

__getattr__, __dir__ = fill(__name__)
