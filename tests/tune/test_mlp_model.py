# SPDX-License-Identifier: Apache-2.0
"""The neural cost model: it learns to rank, is kept in a file, and only it needs PyTorch."""

import subprocess
import sys

import numpy as np
import pytest
import tvm  # noqa: F401  before torch
from tvm import meta_schedule as ms

from tests.tune import programs

torch = pytest.importorskip("torch")
from tvm.meta_schedule.cost_model import mlp_model as mlp  # noqa: E402


@pytest.fixture(autouse=True)
def seeds():
    torch.manual_seed(1)
    np.random.seed(1)


def programs_and_costs(count, width=8):
    """Random programs of one to three stores: the sum of the first number is their time."""
    rng = np.random.default_rng(0)
    features = [rng.random((rng.integers(1, 4), width), dtype="float32") for _ in range(count)]
    return features, np.array([0.1 + f[:, 0].sum() for f in features])


def trainer(width=8, **options):
    state = mlp.State(mlp.SegmentSumMLPConfig(input_dim=width, hidden_dim=32))
    return mlp.SegmentSumMLPTrainer(mlp.TrainerConfig(**options), state)


def test_it_learns_to_rank():
    features, costs = programs_and_costs(200)
    t = trainer(num_epoch_full=40)
    t.update(features[:150], costs[:150], "task")
    scores = t.predict_incremental(features[150:])
    assert np.corrcoef(scores, -costs[150:])[0, 1] > 0.5
    best = 1 / costs[150:]
    assert mlp.topk_score(torch.tensor(scores), torch.tensor(best), 5) > 0.8


def test_few_more_programs_are_learnt_from_alone():
    features, costs = programs_and_costs(120)
    t = trainer(num_epoch_full=1)
    t.update(features[:100], costs[:100], "task")
    before = t.predict_incremental(features)
    t.update(features[100:110], costs[100:110], "task")
    assert t.state.data_size == 110 and t.state.untrained_size == 10
    assert not np.array_equal(before, t.predict_incremental(features))


def test_a_frozen_model_stays_as_it_is():
    features, costs = programs_and_costs(20)
    t = trainer(frozen=True)
    before = t.predict_incremental(features)
    t.update(features, costs, "task")
    np.testing.assert_array_equal(before, t.predict_incremental(features))


def test_failures_rank_last():
    features, costs = programs_and_costs(64)
    costs[::2] = np.inf
    for f in features[::2]:
        f[:, 1] += 3
    t = trainer(num_epoch_full=20)
    t.update(features, costs, "task")
    scores = t.predict_incremental(features)
    assert scores[::2].mean() < scores[1::2].mean()


def test_it_is_kept_in_a_file(tmp_path):
    features, costs = programs_and_costs(30)
    model = mlp.MLPModel(trainer=trainer(num_epoch_full=2))
    model.trainer.update(features, costs, "task")
    model.save(tmp_path / "model.npz")
    again = mlp.MLPModel(trainer=trainer())
    again.load(tmp_path / "model.npz")
    assert again.trainer.state.data_size == 30
    np.testing.assert_array_equal(
        model.trainer.predict_incremental(features), again.trainer.predict_incremental(features)
    )


def test_the_loss_grows_with_wrong_orders():
    labels = torch.tensor([1.0, 0.5, 0.1])
    right, wrong = torch.tensor([3.0, 2.0, 1.0]), torch.tensor([1.0, 2.0, 3.0])
    assert mlp.lambda_rank_loss(right, labels) < mlp.lambda_rank_loss(wrong, labels)
    assert mlp.lambda_rank_loss(right, torch.ones(3)) == 0  # nothing to put in order


def test_batches():
    features, costs = programs_and_costs(10)
    loader = mlp.SegmentDataLoader(features, costs, batch_size=4, shuffle=False)
    batches = list(loader)
    assert len(loader) == len(batches) == 3
    assert [len(sizes) for sizes, _, _ in batches] == [4, 4, 2]
    assert sum(len(rows) for _, rows, _ in batches) == sum(len(f) for f in features)


def test_it_guides_a_run(tmp_path):
    database = ms.tune_tir(
        programs.sigmoid(), "llvm -num-cores=2", str(tmp_path), 12, num_trials_per_iter=6,
        cost_model="mlp", seed=1,
    )  # fmt: skip
    assert len(database) == 12
    model = ms.cost_model.MLPModel()
    model.load(tmp_path / "cost_model.npz")
    assert model.trainer.state.data_size == 12


def test_nothing_else_imports_torch():
    code = "import sys, tvm.meta_schedule; sys.exit('torch' in sys.modules)"
    hidden = "import sys; sys.modules['torch'] = None; " + (
        "from tvm.meta_schedule.cost_model import CostModel; CostModel.create('mlp')"
    )
    # Another package of the process may import it: tvm_ffi does where it is installed.
    probe = "import sys, tvm_ffi; sys.exit('torch' in sys.modules)"
    if subprocess.run([sys.executable, "-c", probe]).returncode == 0:
        assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True)
    assert "MLPModel: expected the package torch" in done.stderr
