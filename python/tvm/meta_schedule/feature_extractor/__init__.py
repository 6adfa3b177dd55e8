# SPDX-License-Identifier: Apache-2.0
"""Feature extractors: candidates as rows of numbers for the cost model."""

from abc import abstractmethod
from typing import Literal

import numpy as np
import tvm_ffi

import tvm

from ..utils import Interface
from ..utils import create as _create

_extract = tvm_ffi.get_global_func("meta_schedule._extract_features")
_length = tvm_ffi.get_global_func("meta_schedule._feature_length")


class FeatureExtractor(Interface):
    """Gives each candidate a tensor of shape (rows, features)."""

    @abstractmethod
    def extract_from(self, context, candidates):
        """One tensor per candidate."""
        raise NotImplementedError

    @staticmethod
    def create(kind="per-store-feature", *args, **kwargs):
        """The extractor of a kind: "per-store-feature"."""
        kinds = {"per-store-feature": PerStoreFeature}
        return _create(kinds, kind, "feature extractor", args, kwargs)


FeatureExtractor.FeatureExtractorType = Literal["per-store-feature"] | FeatureExtractor
create = FeatureExtractor.create


class PyFeatureExtractor(FeatureExtractor):
    """Base of user-defined extractors."""


class PerStoreFeature(FeatureExtractor):
    """A row per store of the program: arithmetic, loops, memory it touches (src/tune/feature.cc
    lists the numbers)."""

    def __init__(
        self,
        buffers_per_store=5,
        arith_intensity_curve_num_samples=10,
        cache_line_bytes=64,
        extract_workload=False,
    ):
        self.buffers_per_store = buffers_per_store
        self.arith_intensity_curve_num_samples = arith_intensity_curve_num_samples
        self.cache_line_bytes = cache_line_bytes
        self.extract_workload = extract_workload
        length = _length(buffers_per_store, arith_intensity_curve_num_samples)
        self.feature_vector_length = length * (2 if extract_workload else 1)

    def extract_from(self, context, candidates):
        return list(
            _extract(
                [c.sch.mod for c in candidates],
                context.mod if self.extract_workload else None,
                self.buffers_per_store,
                self.arith_intensity_curve_num_samples,
                self.cache_line_bytes,
                context.num_threads,
            )
        )


class RandomFeatureExtractor(PyFeatureExtractor):
    """Random numbers: what a cost model without knowledge sees."""

    def __init__(self, *, feature_size=30, max_block_num=5, seed=0):
        self.feature_size, self.max_block_num = feature_size, max_block_num
        self.random_state = np.random.RandomState(seed).get_state()

    def extract_from(self, context, candidates):
        rng = np.random.RandomState()
        rng.set_state(self.random_state)
        rows = [
            tvm.runtime.tensor(rng.rand(rng.randint(1, self.max_block_num + 1), self.feature_size))
            for _ in candidates
        ]
        self.random_state = rng.get_state()
        return rows
