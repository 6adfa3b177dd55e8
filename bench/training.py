# SPDX-License-Identifier: Apache-2.0
"""One step of training, ours compiled and PyTorch's eager: a perceptron and a small convolutional
net, batches of 64."""

import numpy as np
import tvm
from tvm import relax
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op
from tvm.relax.training import SetupTrainer, Trainer
from tvm.relax.training.loss import CrossEntropyLoss
from tvm.relax.training.optimizer import SGD

BATCH, CLASSES = 64, 10


class Perceptron(nn.Module):
    def __init__(self):
        self.layers = nn.ModuleList(
            [nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU()]
        )
        self.head = nn.Linear(256, CLASSES)

    def backbone(self, x):
        return self.head(self.layers(x))


class Net(nn.Module):
    def __init__(self):
        conv = [nn.Conv2D(1, 16, 3, 2, 1), nn.ReLU(), nn.Conv2D(16, 32, 3, 2, 1), nn.ReLU()]
        self.layers = nn.ModuleList(conv)
        self.head = nn.Linear(32 * 7 * 7, CLASSES)

    def backbone(self, x):
        return self.head(op.reshape(self.layers(x), [BATCH, 32 * 7 * 7]))


def twin(name):
    import torch

    T = torch.nn
    if name == "perceptron":
        layers = [T.Linear(784, 256), T.ReLU(), T.Linear(256, 256), T.ReLU()]
        head = T.Linear(256, CLASSES)
    else:
        layers = [T.Conv2d(1, 16, 3, 2, 1), T.ReLU(), T.Conv2d(16, 32, 3, 2, 1), T.ReLU()]
        head = T.Linear(32 * 7 * 7, CLASSES)

    class Model(T.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.head = T.Sequential(*layers), head

        def forward(self, x):
            return self.head(self.layers(x).flatten(1))

    return Model()


MODELS = {"perceptron": (Perceptron, (BATCH, 784)), "net": (Net, (BATCH, 1, 28, 28))}


def steps(name):
    """(our step, PyTorch's): each gives the loss."""
    import torch

    make, shape = MODELS[name]
    torch.manual_seed(0)
    theirs = twin(name)
    mod, params = make().export_tvm({"backbone": {"x": nn.spec.Tensor(shape, "float32")}})
    mod = mod.with_attr("param_num", len(params)).with_attr("state_num", 0)
    targets = relax.TensorStructInfo((BATCH,), "int64")
    mod = SetupTrainer(CrossEntropyLoss(), SGD(0.01), [targets])(mod)
    trainer = Trainer(mod, relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu()), tvm.cpu())
    state = theirs.state_dict()
    trainer.load_params([state[n].numpy() for n, _ in params])
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(shape).astype("float32"), rng.integers(0, CLASSES, BATCH)
    inputs = [tvm.runtime.tensor(x), tvm.runtime.tensor(y)]
    optimizer = torch.optim.SGD(theirs.parameters(), 0.01)
    torch_x, torch_y = torch.from_numpy(x), torch.from_numpy(y)

    def step():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(theirs(torch_x), torch_y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return lambda: float(trainer.update(*inputs).numpy()), step
