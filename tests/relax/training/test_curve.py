# SPDX-License-Identifier: Apache-2.0
"""A model written in nn and trained by compiled steps follows PyTorch's loss."""

import numpy as np
import torch
import tvm
from tvm import relax
from tvm.relax.frontend import nn
from tvm.relax.training import SetupTrainer, Trainer
from tvm.relax.training.loss import CrossEntropyLoss
from tvm.relax.training.optimizer import MomentumSGD

BATCH, INPUTS, CLASSES = 64, 12, 4


class Model(nn.Module):
    def __init__(self):
        self.first, self.norm = nn.Linear(INPUTS, 32), nn.LayerNorm(32)
        self.second = nn.Linear(32, CLASSES)

    def backbone(self, x):
        return self.second(nn.op.relu(self.norm(self.first(x))))


class Theirs(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = torch.nn.Linear(INPUTS, 32), torch.nn.LayerNorm(32)
        self.second = torch.nn.Linear(32, CLASSES)

    def forward(self, x):
        return self.second(torch.relu(self.norm(self.first(x))))


def test_200_steps():
    torch.manual_seed(0)
    theirs = Theirs()
    mod, params = Model().export_tvm(
        {"backbone": {"x": nn.spec.Tensor((BATCH, INPUTS), "float32")}}
    )
    mod = mod.with_attr("param_num", len(params)).with_attr("state_num", 0)
    targets = relax.TensorStructInfo((BATCH,), "int64")
    mod = SetupTrainer(CrossEntropyLoss(), MomentumSGD(0.05, 0.9), [targets])(mod)
    vm = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    trainer = Trainer(mod, vm, tvm.cpu())
    state = theirs.state_dict()
    trainer.load_params([state[name].numpy() for name, _ in params])
    optimizer = torch.optim.SGD(theirs.parameters(), 0.05, 0.9)
    rng = np.random.default_rng(0)
    data = rng.standard_normal((8, BATCH, INPUTS)).astype("float32")
    classes = data[..., :CLASSES].argmax(-1).astype("int64")
    for step in range(200):
        x, y = data[step % 8], classes[step % 8]
        loss = torch.nn.functional.cross_entropy(theirs(torch.from_numpy(x)), torch.from_numpy(y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert abs(float(trainer.update(x, y).numpy()) - loss.item()) < 1e-3
    with torch.no_grad():
        accuracy = [
            (trainer.predict(x).numpy().argmax(1) == y).mean()
            for x, y in zip(data, classes, strict=True)
        ]
        expected = [
            (theirs(torch.from_numpy(x)).numpy().argmax(1) == y).mean()
            for x, y in zip(data, classes, strict=True)
        ]
    assert accuracy == expected and np.mean(accuracy) > 0.9


def test_a_convolutional_net_follows():
    from bench.training import steps

    ours, theirs = steps("net")
    for _ in range(5):
        assert abs(ours() - theirs()) < 1e-3
