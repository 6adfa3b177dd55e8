# SPDX-License-Identifier: Apache-2.0
"""A neural network over the stores of a program; the only part of tuning that needs PyTorch.

A small network turns each store into a vector, the vectors of a program are summed up, and a second
one turns the sum into a score. It learns to rank the programs of a task, not to predict times.
"""

import io
import json
from typing import NamedTuple

import numpy as np
import torch

from ..feature_extractor import PerStoreFeature
from ..logging import get_logger
from ..utils import shash2hex, written_whole
from . import PyCostModel
from .xgb_model import FeatureGroup

logger = get_logger(__name__)


class SegmentSumMLPConfig(NamedTuple):
    """The shape of the network."""

    input_dim: int = PerStoreFeature().feature_vector_length
    hidden_dim: int = 256
    output_dim: int = 1
    use_norm: bool = False
    use_sigmoid: bool = False

    def to_dict(self):
        """By name."""
        return self._asdict()


_DEFAULT = SegmentSumMLPConfig()


class TrainerConfig(NamedTuple):
    """How it is trained."""

    batch_size: int = 128
    learning_rate: float = 7e-4
    weight_decay: float = 1e-6
    num_epoch_full: int = 50
    num_epoch_incremental: int = 5
    grad_clip_norm: float = 0.5
    train_verbose: int = 1000
    test_interval: int = 1
    test_split: float = 0.2
    frozen: bool = False

    def to_dict(self):
        """By name."""
        return self._asdict()


class SegmentDataLoader:
    """Batches of (rows per program, rows, labels or None)."""

    def __init__(self, features, results=None, batch_size=128, shuffle=True):
        self.features, self.results = features, results
        self.batch_size, self.shuffle = batch_size, shuffle

    def __len__(self):
        return -(-len(self.features) // self.batch_size)

    def __iter__(self):
        count = len(self.features)
        order = np.random.permutation(count) if self.shuffle else np.arange(count)
        for begin in range(0, count, self.batch_size):
            chosen = order[begin : begin + self.batch_size]
            rows = [np.asarray(self.features[i], dtype="float32") for i in chosen]
            sizes = torch.tensor([len(r) for r in rows])
            labels = None
            if self.results is not None:
                labels = torch.tensor(np.asarray(self.results)[chosen], dtype=torch.float32)
            yield sizes, torch.from_numpy(np.concatenate(rows)), labels


def lambda_rank_loss(preds, labels, k=None, eps=1e-10, sigma=1.0):
    """What wrong orders of pairs cost, each weighted by what swapping the two changes in the
    normalised gain of the first `k`."""
    order = torch.argsort(preds, descending=True)
    preds, labels = preds[order], labels[order]
    places = torch.arange(1, len(preds) + 1, dtype=preds.dtype)
    discounts = 1 / torch.log2(places + 1)
    gains = 2**labels - 1
    ideal = (torch.sort(gains, descending=True).values[:k] * discounts[:k]).sum().clamp(min=eps)
    better = labels[:, None] > labels[None, :]
    if k is not None:
        better = better & ((places <= k)[:, None] | (places <= k)[None, :])
    change = (gains[:, None] - gains[None, :]).abs() * (
        discounts[:, None] - discounts[None, :]
    ).abs()
    likely = torch.sigmoid(sigma * (preds[:, None] - preds[None, :])).clamp(min=eps)
    losses = -torch.log2(likely) * change / ideal
    return losses[better].sum() if bool(better.any()) else 0 * preds.sum()


def topk_score(pred_results, gt_results, k):
    """The best of the `k` programs predicted best, relative to the best of all."""
    k = min(k, len(pred_results))
    chosen = gt_results[torch.topk(pred_results, k).indices]
    return float(chosen.max() / gt_results.max().clamp(min=1e-12))


class SegmentSumMLP(torch.nn.Module):
    """The network."""

    def __init__(
        self,
        input_dim=_DEFAULT.input_dim,
        hidden_dim=256,
        output_dim=1,
        use_norm=False,
        use_sigmoid=False,
    ):
        super().__init__()
        self.input_dim, self.hidden_dim, self.output_dim = input_dim, hidden_dim, output_dim
        self.use_norm, self.use_sigmoid = use_norm, use_sigmoid
        nn = torch.nn
        self.encoder = nn.Sequential(
            nn.Linear(input_dim, hidden_dim),
            nn.ReLU(),
            nn.Linear(hidden_dim, hidden_dim),
            nn.ReLU(),
        )
        self.norm = nn.BatchNorm1d(hidden_dim) if use_norm else nn.Identity()
        self.inner = nn.ModuleList(
            nn.Sequential(nn.Linear(hidden_dim, hidden_dim), nn.ReLU()) for _ in range(2)
        )
        self.decoder = nn.Linear(hidden_dim, output_dim)

    def forward(self, segment_sizes, features):
        """A score for each program."""
        programs = torch.repeat_interleave(torch.arange(len(segment_sizes)), segment_sizes)
        sums = torch.zeros(len(segment_sizes), self.hidden_dim)
        hidden = self.norm(sums.index_add(0, programs, self.encoder(features)))
        for layer in self.inner:
            hidden = hidden + layer(hidden)
        out = self.decoder(hidden).squeeze(-1)
        return torch.sigmoid(out) if self.use_sigmoid else out


def extract_features(context, candidates, results=None, extractor=None):
    """(features, mean seconds or None) of candidates; failures take for ever."""
    extractor = PerStoreFeature() if extractor is None else extractor
    features = [
        np.asarray(rows.numpy() if hasattr(rows, "numpy") else rows, dtype="float32")
        for rows in extractor.extract_from(context, candidates)
    ]
    if results is None:
        return features, None
    costs = [np.mean([float(s) for s in r.run_secs]) if r.run_secs else np.inf for r in results]
    return features, np.array(costs)


class State:
    """The network and what it has seen."""

    def __init__(self, model_config=None, extractor=None):
        self.extractor = PerStoreFeature() if extractor is None else extractor
        if model_config is None:
            model_config = SegmentSumMLPConfig(self.extractor.feature_vector_length)
        self.model_config = model_config
        self.model = SegmentSumMLP(**model_config.to_dict())
        self.data, self.data_size, self.untrained_size = {}, 0, 0

    def save(self, path):
        """Weights, features and times in one file without anything executable."""
        head = {"config": self.model_config.to_dict(), "groups": list(self.data)}
        arrays = {f"model.{k}": v.numpy() for k, v in self.model.state_dict().items()}
        for i, group in enumerate(self.data.values()):
            arrays[f"features{i}"] = np.concatenate(group.features)
            arrays[f"rows{i}"] = np.array([len(f) for f in group.features])
            arrays[f"costs{i}"] = group.costs
        buffer = io.BytesIO()
        np.savez_compressed(buffer, head=np.array(json.dumps(head)), **arrays)
        with written_whole(path, "wb") as file:
            file.write(buffer.getvalue())

    def load(self, path):
        """Reads what `save` wrote."""
        with np.load(path, allow_pickle=False) as saved:
            head = json.loads(str(saved["head"]))
            self.model_config = SegmentSumMLPConfig(**head["config"])
            self.model = SegmentSumMLP(**head["config"])
            weights = {
                k.removeprefix("model."): torch.from_numpy(saved[k])
                for k in saved.files
                if k.startswith("model.")
            }
            self.model.load_state_dict(weights)
            self.data = {}
            for i, key in enumerate(head["groups"]):
                features = np.split(saved[f"features{i}"], np.cumsum(saved[f"rows{i}"])[:-1])
                self.data[key] = FeatureGroup(key, features, saved[f"costs{i}"])
        self.data_size = sum(len(g.costs) for g in self.data.values())
        self.untrained_size = 0

    def add_to_group(self, features, costs, group_hash):
        """Adds programs of a task."""
        group = self.data.setdefault(group_hash, FeatureGroup(group_hash, [], []))
        group.append(features, costs)
        self.data_size += len(features)
        self.untrained_size += len(features)


class SegmentSumMLPTrainer:
    """Trains the network."""

    def __init__(self, train_config=None, state=None):
        self.config = TrainerConfig() if train_config is None else train_config
        for name, value in self.config.to_dict().items():
            setattr(self, name, value)
        self.state = State() if state is None else state
        self._start()

    def _start(self):
        self.optimizer = torch.optim.Adam(
            self.state.model.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay
        )
        self.scheduler = torch.optim.lr_scheduler.StepLR(
            self.optimizer, step_size=max(1, self.num_epoch_full // 10), gamma=0.8
        )

    def train_step(self, data, batch=0, train_loss=None):
        """One step; the loss, smoothed over steps. `batch`, its number, has no effect."""
        sizes, features, labels = data
        self.state.model.train()
        loss = lambda_rank_loss(self.state.model(sizes, features), labels)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.state.model.parameters(), self.grad_clip_norm)
        self.optimizer.step()
        value = float(loss.detach())
        return value if train_loss is None else 0.95 * train_loss + 0.05 * value

    def predict_step(self, data):
        """(scores, labels or None) of a batch."""
        sizes, features, labels = data
        self.state.model.eval()
        with torch.no_grad():
            return self.state.model(sizes, features), labels

    def _epoch(self, groups, loss):
        for features, labels in groups:
            for batch, data in enumerate(SegmentDataLoader(features, labels, self.batch_size)):
                loss = self.train_step(data, batch, loss)
        return loss

    def train_full(self):
        """Trains on all tasks; a part of each is held back to see how well it ranks."""
        groups, held_back, loss = [], [], None
        for group in self.state.data.values():
            cut = len(group.features) - int(self.test_split * len(group.features))
            order, labels = np.random.permutation(len(group.features)), group.scores()
            for part, to in ((order[:cut], groups), (order[cut:], held_back)):
                if len(part) > 1:
                    to.append(([group.features[i] for i in part], labels[part]))
        for epoch in range(self.num_epoch_full):
            loss = self._epoch(groups, loss)
            self.scheduler.step()
            if held_back and epoch % max(1, self.train_verbose) == 0:
                logger.debug("MLPModel: epoch %d, loss %s", epoch, loss)
        scores = []
        for features, labels in held_back:
            pred = torch.from_numpy(self.predict_incremental(features))
            scores.append(topk_score(pred, torch.from_numpy(labels), 1))
        logger.debug("MLPModel: best of the programs held back: %s", scores)
        self.state.untrained_size = 0

    def train_incremental(self, features, results):
        """A few epochs on the newest programs; `results` are throughputs relative to the best."""
        loss = None
        for _ in range(self.num_epoch_incremental):
            loss = self._epoch([(features, results)], loss)

    def predict_incremental(self, features, results=None):
        """Scores of programs."""
        loader = SegmentDataLoader(features, results, self.batch_size, shuffle=False)
        parts = [self.predict_step(data)[0] for data in loader]
        return torch.cat(parts).numpy().astype("float64")

    def update(self, features, costs, group_hash):
        """Learns from programs of a task: from all there are when they have grown by a fifth."""
        self.state.add_to_group(features, costs, group_hash)
        if self.frozen:
            return
        if self.state.untrained_size * 5 >= self.state.data_size:
            self.train_full()
        elif len(features) > 1:
            best = self.state.data[group_hash].min_cost
            self.train_incremental(features, best / costs if np.isfinite(best) else 0 * costs)


class MLPModel(PyCostModel):
    """Ranks candidates by a neural network; needs the package torch."""

    def __init__(self, *, trainer=None):
        self.trainer = SegmentSumMLPTrainer() if trainer is None else trainer

    def load(self, path):
        self.trainer.state.load(path)
        self.trainer._start()

    def save(self, path):
        self.trainer.state.save(path)

    def update(self, context, candidates, results):
        extractor = self.trainer.state.extractor
        features, costs = extract_features(context, candidates, results, extractor)
        kept = [i for i, f in enumerate(features) if len(f)]
        if kept:
            self.trainer.update([features[i] for i in kept], costs[kept], shash2hex(context.mod))

    def predict(self, context, candidates):
        state = self.trainer.state
        features, _ = extract_features(context, candidates, extractor=state.extractor)
        known = [i for i, f in enumerate(features) if len(f)]
        scores = np.zeros(len(candidates))
        if known:
            scores[known] = self.trainer.predict_incremental([features[i] for i in known])
        return scores
