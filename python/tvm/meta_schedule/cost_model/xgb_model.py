# SPDX-License-Identifier: Apache-2.0
"""Gradient-boosted trees over the stores of a program.

The score of a program is the sum over its stores, so the trees learn what a store adds. Scores are
throughputs relative to the best program of the same task: 1 is the best one, 0 a failure.
"""

import json
from typing import Literal, NamedTuple

import numpy as np

from ..feature_extractor import FeatureExtractor
from ..logging import get_logger
from ..utils import cpu_count, num_cores, shash2hex, written_whole
from . import PyCostModel

logger = get_logger(__name__)


class XGBConfig(NamedTuple):
    """Parameters of the trees."""

    max_depth: int = 10
    gamma: float = 0.001
    min_child_weight: float = 0
    eta: float = 0.2
    seed: int = 43
    nthread: int | None = None
    tree_method: Literal["auto", "exact", "approx", "hist", "gpu_hist"] = "auto"

    def to_dict(self, rows=0):
        """What the library takes. Threads cost more than they give below thousands of rows."""
        threads = cpu_count() if self.nthread is None else self.nthread
        return {**self._asdict(), "nthread": threads if rows >= 4096 else 1}


_DEFAULT = XGBConfig()


class FeatureGroup:
    """Features and times of the candidates of one task."""

    def __init__(self, group_hash, features, costs):
        self.group_hash, self.features = group_hash, list(features)
        self.costs = np.asarray(costs, dtype="float64")

    @property
    def min_cost(self):
        """The best time; infinity while all failed."""
        return float(np.min(self.costs)) if len(self.costs) else np.inf

    def append(self, features, costs):
        """Adds candidates."""
        self.features.extend(features)
        self.costs = np.append(self.costs, costs)

    def scores(self):
        """Throughputs relative to the best."""
        best = self.min_cost
        return best / self.costs if np.isfinite(best) else np.zeros(len(self.costs))


class PackSum:
    """Programs as rows of stores: predictions of rows are summed up by program."""

    def __init__(self, xs, ys=None, nthread=1):
        import xgboost as xgb

        self.ids = np.repeat(np.arange(len(xs)), [len(x) for x in xs])
        self.count, self.ys = len(xs), ys
        self.dmatrix = xgb.DMatrix(np.concatenate(xs).astype("float32"), nthread=nthread)

    def predict_with_score(self, pred):
        """One number per program."""
        return np.bincount(self.ids, weights=pred, minlength=self.count)

    def obj_square_error(self, ys_pred):
        """Gradient and hessian of the weighted squared error: good programs count more. What one
        row says is added up with what the others of its program say, so that a step for all of
        them must be as many times smaller: else programs of many stores make the sum grow without
        bound."""
        error = (self.predict_with_score(ys_pred) - self.ys)[self.ids]
        weight = np.maximum(self.ys, 0.02)[self.ids]
        rows = np.bincount(self.ids, minlength=self.count)[self.ids]
        return error * weight, weight * rows

    def rmse(self, ys_pred):
        """Root of the mean squared error."""
        return "p-rmse", float(np.sqrt(np.mean((self.predict_with_score(ys_pred) - self.ys) ** 2)))

    def average_peak_score(self, ys_pred, n):
        """How good the best of the first 1 … n predictions are, on average."""
        from .metric import max_curve

        order = np.argsort(-self.predict_with_score(ys_pred))[:n]
        best = max(float(np.max(self.ys)), 1e-12)
        return f"a-peak@{n}", float(np.mean(max_curve(self.ys[order]) / best))


class XGBModel(PyCostModel):
    """Learns from every round; saved with the work directory.

    Parameters
    ----------
    num_warmup_samples : before as many candidates were measured, predictions are random.
    adaptive_training : train anew only when the data grew by a fifth since the last time.
    """

    ROUNDS = 60

    def __init__(
        self,
        *,
        extractor="per-store-feature",
        config=_DEFAULT,
        num_warmup_samples=100,
        early_stopping_rounds=50,
        verbose_eval=25,
        average_peak_n=32,
        adaptive_training=True,
        num_tuning_cores=None,
        tree_method=None,
    ):
        try:
            import xgboost  # noqa: F401
        except ImportError as error:
            raise ImportError(
                "XGBModel: expected the package xgboost-cpu (pip install xgboost-cpu); or use "
                "cost_model='random'"
            ) from error
        self.extractor = (
            FeatureExtractor.create(extractor) if isinstance(extractor, str) else extractor
        )
        if num_tuning_cores is not None:
            config = config._replace(nthread=num_cores(num_tuning_cores))
        if tree_method is not None:
            config = config._replace(tree_method=tree_method)
        self.config, self.num_warmup_samples = config, num_warmup_samples
        self.early_stopping_rounds, self.verbose_eval = early_stopping_rounds, verbose_eval
        self.average_peak_n, self.adaptive_training = average_peak_n, adaptive_training
        self.data, self.data_size, self.last_train_size, self.booster = {}, 0, 0, None
        self._rng = np.random.default_rng(config.seed)

    # ---- files ----
    def save(self, path):
        """Features, times and trees in one file without anything executable."""
        arrays = {}
        for i, group in enumerate(self.data.values()):
            arrays[f"features{i}"] = (
                np.concatenate([np.zeros((0, 1)), *group.features])
                if not group.features
                else np.concatenate(group.features)
            )
            arrays[f"rows{i}"] = np.array([len(f) for f in group.features])
            arrays[f"costs{i}"] = group.costs
        if self.booster is not None:
            arrays["booster"] = np.frombuffer(self.booster.save_raw("ubj"), dtype="uint8")
        head = json.dumps({"groups": list(self.data), "trained": self.last_train_size})
        with written_whole(path, "wb") as file:
            np.savez_compressed(file, head=np.array(head), **arrays)

    def load(self, path):
        """Reads what `save` wrote."""
        import xgboost as xgb

        with np.load(path, allow_pickle=False) as saved:
            head = json.loads(str(saved["head"]))
            self.data = {}
            for i, key in enumerate(head["groups"]):
                rows = saved[f"rows{i}"]
                features = np.split(saved[f"features{i}"], np.cumsum(rows)[:-1])
                self.data[key] = FeatureGroup(key, features, saved[f"costs{i}"])
            self.booster = None
            if "booster" in saved:
                self.booster = xgb.Booster(self.config.to_dict())
                self.booster.load_model(bytearray(saved["booster"].tobytes()))
        self.data_size = sum(len(g.costs) for g in self.data.values())
        self.last_train_size = head["trained"]

    # ---- learning ----
    def _features(self, context, candidates):
        rows = self.extractor.extract_from(context, candidates)
        return [np.asarray(r.numpy() if hasattr(r, "numpy") else r, dtype="float32") for r in rows]

    @staticmethod
    def _cost(result):
        secs = result.run_secs
        return float(np.median([float(s) for s in secs])) if secs else np.inf

    def update(self, context, candidates, results):
        if not candidates:
            return
        features = self._features(context, candidates)
        costs = [self._cost(result) for result in results]
        kept = [(f, c) for f, c in zip(features, costs, strict=True) if len(f)]
        key = shash2hex(context.mod)
        group = self.data.setdefault(key, FeatureGroup(key, [], []))
        group.append([f for f, _ in kept], [c for _, c in kept])
        self.data_size += len(kept)
        grown = self.data_size - self.last_train_size
        if self.adaptive_training and self.booster is not None and grown < self.last_train_size / 5:
            return
        self._train()
        self.last_train_size = self.data_size

    def _train(self):
        import xgboost as xgb

        xs = [f for g in self.data.values() for f in g.features]
        ys = np.concatenate([g.scores() for g in self.data.values()])
        pack = PackSum(xs, ys)
        self.booster = xgb.train(
            {**self.config.to_dict(len(pack.ids)), "verbosity": 0, "base_score": 0.0},
            pack.dmatrix,
            num_boost_round=self.ROUNDS,
            obj=lambda pred, _: pack.obj_square_error(pred),
        )
        pred = self.booster.predict(pack.dmatrix)
        logger.debug(
            "XGBModel: %d programs, %s, %s",
            len(xs),
            pack.rmse(pred),
            pack.average_peak_score(pred, self.average_peak_n),
        )

    def predict(self, context, candidates):
        if not candidates:
            return np.zeros(0)
        if self.booster is None or self.data_size < self.num_warmup_samples:
            return self._rng.random(len(candidates))
        features = self._features(context, candidates)
        pack = PackSum(features, nthread=self.config.to_dict(sum(map(len, features)))["nthread"])
        return pack.predict_with_score(self.booster.predict(pack.dmatrix))
