# SPDX-License-Identifier: Apache-2.0
"""Cost models: which candidates are worth measuring."""

from abc import abstractmethod
from typing import Literal

import numpy as np
import tvm_ffi

import tvm

from ..utils import Interface, registered
from ..utils import create as _create


class CostModel(Interface):
    """Predicts how good candidates are: larger is faster."""

    def load(self, path):
        """Reads what `save` wrote."""
        raise NotImplementedError(f"{type(self).__name__}: expected a method 'load'")

    def save(self, path):
        """Writes what was learnt; without it every run learns anew."""
        raise NotImplementedError(f"{type(self).__name__}: expected a method 'save'")

    @abstractmethod
    def update(self, context, candidates, results):
        """Learns from measured candidates."""
        raise NotImplementedError

    @abstractmethod
    def predict(self, context, candidates):
        """One number per candidate."""
        raise NotImplementedError

    @staticmethod
    def create(kind="xgb", *args, **kwargs):
        """The model of a kind: "xgb", "random", "mlp", or "none" for None."""
        mlp = lambda *args, **kwargs: __getattr__("MLPModel")(*args, **kwargs)
        kinds = {"xgb": XGBModel, "random": RandomModel, "mlp": mlp, "none": lambda: None}
        return _create(kinds, kind, "cost model", args, kwargs)


CostModel.CostModelType = CostModel | Literal["xgb", "mlp", "random"]
create = CostModel.create


def __getattr__(name):
    if name != "MLPModel":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from .mlp_model import MLPModel  # imports torch, which nothing else needs
    except ImportError as error:
        raise ImportError("MLPModel: expected the package torch (pip install torch)") from error
    return MLPModel


class PyCostModel(CostModel):
    """Base of user-defined models."""


@registered("meta_schedule.predict")
def _predict(model, context, candidates):
    """What the search asks: a model that fails costs guidance, not the run."""
    from ..logging import get_logger

    try:
        scores = np.asarray(model.predict(context, list(candidates)), dtype="float64")
        if scores.shape != (len(candidates),):
            raise ValueError(f"expected {len(candidates)} numbers, got shape {scores.shape}")
    except Exception as error:
        get_logger(__name__).warning(
            "cost model %s.predict: %s: %s; candidates are chosen at random",
            type(model).__name__,
            type(error).__name__,
            error,
        )
        scores = np.random.default_rng(0).random(len(candidates))
    return tvm.runtime.tensor(np.nan_to_num(scores))


from .random_model import RandomModel  # noqa: E402
from .xgb_model import XGBModel  # noqa: E402
