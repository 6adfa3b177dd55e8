# SPDX-License-Identifier: Apache-2.0
"""A model that guesses."""

import numpy as np

from ..utils import written_whole
from . import PyCostModel


class RandomModel(PyCostModel):
    """Random scores below `max_range`; the state of the generator can be saved."""

    def __init__(self, *, seed=None, path=None, max_range=100):
        self.path, self.max_range = path, max_range
        self.random_state = np.random.RandomState(seed).get_state()
        if path is not None:
            self.load(path)

    def load(self, path):
        with np.load(path, allow_pickle=False) as saved:
            self.random_state = (
                str(saved["kind"]),
                saved["keys"],
                int(saved["pos"]),
                int(saved["has_gauss"]),
                float(saved["gauss"]),
            )

    def save(self, path):
        kind, keys, pos, has_gauss, gauss = self.random_state
        with written_whole(path, "wb") as file:
            np.savez(file, kind=kind, keys=keys, pos=pos, has_gauss=has_gauss, gauss=gauss)

    def update(self, context, candidates, results):
        pass

    def predict(self, context, candidates):
        rng = np.random.RandomState()
        rng.set_state(self.random_state)
        scores = rng.rand(len(candidates)) * self.max_range
        self.random_state = rng.get_state()
        return scores
