# SPDX-License-Identifier: Apache-2.0
"""A model that is prepared for training, and trained."""

import numpy as np
import pytest
import torch
import tvm
from tvm import relax
from tvm.relax.testing.evaluate import Evaluator, from_tvm, to_tvm
from tvm.relax.training import SetupTrainer, Trainer
from tvm.relax.training.loss import CrossEntropyLoss, MSELoss
from tvm.relax.training.optimizer import SGD, Adam
from tvm.script import ir as I
from tvm.script import relax as R

BATCH, INPUTS, HIDDEN, CLASSES = 16, 6, 8, 3


@I.ir_module
class Model:
    I.module_attrs({"param_num": 4, "state_num": 0})

    @R.function
    def backbone(
        x: R.Tensor((16, 6), "float32"),
        w1: R.Tensor((6, 8), "float32"),
        b1: R.Tensor((8,), "float32"),
        w2: R.Tensor((8, 3), "float32"),
        b2: R.Tensor((3,), "float32"),
    ):
        with R.dataflow():
            h = R.nn.relu(R.add(R.matmul(x, w1), b1))
            y = R.add(R.matmul(h, w2), b2)
            R.output(y)
        return y


class Machine:
    """Runs the functions of a module as a virtual machine does."""

    def __init__(self, mod):
        self.mod = mod

    def __getitem__(self, name):
        def call(*args):
            args = [tuple(a) if isinstance(a, list) else a for a in args]
            return to_tvm(Evaluator(self.mod).run(name, list(map(from_tvm, args))))

        return call


def _targets():
    return R.Tensor((BATCH,), "int64")


def test_what_is_made():
    mod = SetupTrainer(CrossEntropyLoss(), SGD(0.1), [_targets()], legalize=False)(Model)
    assert relax.analysis.well_formed(mod)
    assert {"backbone", "backbone_loss", "backbone_loss_adjoint", "optimizer"} == {
        v.name_hint for v in mod.get_global_vars()
    }
    assert mod.attrs["input_num"] == 1 and len(mod.attrs["optim_state"]) == 1
    assert len(mod["backbone_loss_adjoint"].ret_struct_info.fields[1].fields) == 4


def test_all_arguments_of_the_loss_may_be_given():
    predictions = Model["backbone"].ret_struct_info
    short = SetupTrainer(CrossEntropyLoss(), SGD(0.1), [_targets()], legalize=False)(Model)
    full = [predictions, _targets()]
    full = SetupTrainer(CrossEntropyLoss(), SGD(0.1), full, legalize=False)(Model)
    tvm.ir.assert_structural_equal(full["backbone_loss"], short["backbone_loss"])


def test_the_loss_follows_pytorch():
    rng = np.random.default_rng(0)
    shapes = [(INPUTS, HIDDEN), (HIDDEN,), (HIDDEN, CLASSES), (CLASSES,)]
    params = [rng.uniform(-0.5, 0.5, s).astype("float32") for s in shapes]
    tensors = [torch.nn.Parameter(torch.tensor(p)) for p in params]
    theirs = torch.optim.Adam(tensors, 0.05)
    mod = SetupTrainer(CrossEntropyLoss(), Adam(0.05), [_targets()], legalize=False)(Model)
    mod = relax.transform.LegalizeOps()(mod)
    trainer = Trainer(mod, Machine(mod), tvm.cpu())
    trainer.load_params(params)
    x = rng.uniform(-1, 1, (BATCH, INPUTS)).astype("float32")
    classes = (x.sum(1) > 0).astype("int64") + (x[:, 0] > 0.5)
    losses = []
    for _ in range(5):
        losses.append(float(trainer.update(x, classes).numpy()))
        w1, b1, w2, b2 = tensors
        loss = torch.nn.functional.cross_entropy(
            torch.relu(torch.tensor(x) @ w1 + b1) @ w2 + b2, torch.tensor(classes)
        )
        theirs.zero_grad()
        loss.backward()
        theirs.step()
        assert abs(losses[-1] - loss.item()) < 1e-3
    assert losses[-1] < losses[0]
    found = trainer.export_params()
    for name, tensor in zip(("w1", "b1", "w2", "b2"), tensors, strict=True):
        np.testing.assert_allclose(
            found[name].numpy(), tensor.detach().numpy(), rtol=1e-3, atol=1e-4
        )
    assert trainer.predict(x).shape == (BATCH, CLASSES)


def test_errors():
    with pytest.raises(ValueError, match="expected the attribute param_num of the module"):
        SetupTrainer(MSELoss(), SGD(0.1), [])(Model.without_attr("param_num"))
    with pytest.raises(ValueError, match="expected a module that SetupTrainer made, got no"):
        Trainer(Model, None, tvm.cpu())
    mod = SetupTrainer(CrossEntropyLoss(), SGD(0.1), [_targets()], legalize=False)(Model)
    trainer = Trainer(mod, Machine(mod), tvm.cpu(), zero_init_param_state=False)
    with pytest.raises(RuntimeError, match="expected parameters and states to be set"):
        trainer.predict(np.zeros((BATCH, INPUTS), "float32"))
    trainer.xaiver_uniform_init_params()
    with pytest.raises(ValueError, match="expected 4 parameters, got 1"):
        trainer.load_params([np.zeros(3)])
    with pytest.raises(ValueError, match=r"expected the parameters \['w1', 'b1', 'w2', 'b2'\]"):
        trainer.load_params({"w1": np.zeros(3)})
    with pytest.raises(ValueError, match="for 'w1', got float64"):
        trainer.load_params([np.zeros((INPUTS, HIDDEN))] * 4)
    with pytest.raises(ValueError, match="expected 1 inputs, got 2"):
        trainer.predict(np.zeros(1), np.zeros(1))


def test_a_trainer_goes_on_after_an_error():
    mod = SetupTrainer(CrossEntropyLoss(), SGD(0.1), [_targets()])(Model)
    vm = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    trainer = Trainer(mod, vm, tvm.cpu())
    trainer.xaiver_uniform_init_params()
    x, y = np.ones((BATCH, INPUTS), "float32"), np.zeros(BATCH, "int64")
    first = float(trainer.update(x, y).numpy())
    for wrong in ((x[:, 1:], y), (x, y.astype("float32")), (x.astype("float64"), y)):
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            trainer.update(*wrong)
    with pytest.raises(IndexError):  # a class that is not there
        trainer.update(x, y + CLASSES)
    assert float(trainer.update(x, y).numpy()) < first
