# SPDX-License-Identifier: Apache-2.0
"""Comparing a program with PyTorch."""

import pytest

torch = pytest.importorskip("torch")
from torch.export import Dim, export, load, save  # noqa: E402
from tvm.__main__ import main  # noqa: E402
from tvm.relax.frontend.torch import verification, verify  # noqa: E402

from .models import MLP  # noqa: E402


@pytest.fixture
def path(tmp_path):
    torch.manual_seed(0)
    batch = Dim("batch", min=2, max=8)
    program = export(MLP().eval(), (torch.randn(3, 16),), dynamic_shapes={"x": {0: batch}})
    save(program, tmp_path / "model.pt2")
    return tmp_path / "model.pt2"


def test_a_program_agrees(path, capsys):
    found = verify(path)
    assert found.agrees and found.first is None and len(found.outputs) == 1
    assert verify(load(path), inputs=[torch.randn(5, 16)]).agrees
    assert main(["verify", str(path), "--shape", "x=4,16"]) == 0
    assert "agrees with PyTorch" in capsys.readouterr().out


def test_the_first_value_that_differs_is_named(path, monkeypatch, capsys):
    class Other(verification._Recorder):
        def call_function(self, target, args, kwargs):
            value = super().call_function(target, args, kwargs)
            return 1.01 * value if target is torch.ops.aten.relu.default else value

    monkeypatch.setattr(verification, "_Recorder", Other)
    program = load(path)
    found = verify(program, tolerance=-1.0)  # nothing agrees
    assert not found.agrees
    assert found.first.name == next(
        n.name for n in program.run_decompositions({}).graph.nodes if n.op == "call_function"
    )
    first = verification._first_difference(program, [torch.randn(2, 16)], 1e-4, "llvm")
    assert first.name == "relu" and "aten.relu.default" in first.node
    assert "models.py" in first.node  # the line of the user's program
    assert main(["verify", str(path), "--tolerance", "-1"]) == 1
    assert "differs from PyTorch" in capsys.readouterr().out
