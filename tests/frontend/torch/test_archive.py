# SPDX-License-Identifier: Apache-2.0
"""Archives of torch.export.save: the same graphs without PyTorch, and what damaged ones say."""

import json
import random
import re
import subprocess
import sys
import zipfile

import pytest
import tvm

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.export import Dim, export, save  # noqa: E402
from tvm.relax.frontend.torch import from_archive, from_exported_program, inspect  # noqa: E402

from .models import GPT2, MLP, ResNet18  # noqa: E402
from .run import assert_same, compiled  # noqa: E402


def saved(program, path):
    save(program, path)
    return str(path)


@pytest.mark.parametrize(
    "model, args, shapes",
    [
        (MLP(), (torch.randn(2, 16),), {"x": {0: Dim("batch", min=1, max=8)}}),
        (ResNet18(4, 10), (torch.randn(1, 3, 32, 32),), None),
        (GPT2(), (torch.randint(0, 9, (2, 8)),), {"tokens": {1: Dim("n", min=2, max=64)}}),
        (nn.LSTM(3, 4), (torch.randn(2, 1, 3),), None),
    ],
    ids=["mlp", "resnet18", "gpt2", "lstm"],
)
def test_the_graph_is_that_of_the_program(model, args, shapes, tmp_path):
    program = export(model.eval(), args, dynamic_shapes=shapes)
    ours = from_archive(saved(program, tmp_path / "m.pt2"))
    theirs = from_exported_program(program, run_ep_decomposition=False)
    tvm.ir.assert_structural_equal(ours, theirs)


def test_it_runs_without_pytorch(tmp_path):
    model, x = MLP().eval(), torch.randn(2, 16)
    path = saved(export(model, (x,)), tmp_path / "m.pt2")
    assert_same(compiled(from_archive(path))(x), model(x))
    assert_same(compiled(path)(x), model(x))
    code = f"""
import sys
from tvm.relax.frontend.torch import from_archive
mod = from_archive({path!r})
assert "torch" not in sys.modules and "matmul" in mod.script()
sys.modules["torch"] = None  # as where it is not installed
try:
    from tvm.relax.frontend.torch import from_exported_program
except ImportError as error:
    assert "expected PyTorch to be installed" in str(error), error
else:
    raise AssertionError("from_exported_program was imported without PyTorch")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_strided_and_shared_weights(tmp_path):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.randn(3, 4).t())
            self.v = self.w
            self.register_buffer("b", torch.randn(8)[::2])

        def forward(self, x):
            return x @ self.w * self.b.sum() + self.v[0]

    model, x = Model().eval(), torch.randn(2, 4)
    path = saved(export(model, (x,)), tmp_path / "m.pt2")
    assert_same(compiled(from_archive(path))(x), model(x))


def test_changes_in_place(tmp_path):
    class Model(nn.Module):
        def forward(self, x):
            y = x.clone()
            z = y[1:]
            z[0].add_(1.0)
            y.mul_(2.0)
            return z + y[:-1]

    model, x = Model().eval(), torch.randn(3, 2)
    path = saved(export(model, (x,)), tmp_path / "m.pt2")
    assert_same(compiled(from_archive(path))(x), model(x))


def rewritten(source, path, member, change):
    """The archive with one member changed."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            new.writestr(info.filename, change(data) if info.filename.endswith(member) else data)
    return str(path)


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archive")
    return saved(export(MLP((4, 4)).eval(), (torch.randn(1, 4),)), folder / "m.pt2")


def edited(change):
    def edit(data):
        value = json.loads(data)
        change(value)
        return json.dumps(value).encode()

    return edit


def test_errors(archive, tmp_path):
    def fails(match, member, change):
        path = rewritten(archive, tmp_path / "bad.pt2", member, change)
        with pytest.raises(ValueError, match=match):
            from_archive(path)

    fails("expected schema version 8, got 99", "model.json",
          edited(lambda m: m["schema_version"].update(major=99)))  # fmt: skip
    fails("not read because it could run anything", "model_weights_config.json",
          edited(lambda m: m["config"]["layers.0.bias"].update(use_pickle=True)))  # fmt: skip
    fails("as many bytes as its sizes need", "weight_0", lambda data: data[:8])
    fails("expected a tensor 'layers.0.bias', got none", "model_weights_config.json",
          edited(lambda m: m["config"].pop("layers.0.bias")))  # fmt: skip
    fails("expected JSON", "model.json", lambda data: data[:-5])
    fails("expected less depth", "model.json", lambda data: b"[" * 100000)
    fails("archive_format: expected pt2", "archive_format", lambda data: b"other")
    other = tmp_path / "other.pt2"
    other.write_bytes(b"no archive at all, but long enough to look into")
    with pytest.raises(ValueError, match="expected a ZIP file, got one with no directory"):
        from_archive(str(other))
    with pytest.raises(FileNotFoundError):
        from_archive(str(tmp_path / "absent.pt2"))


def test_compressed_members_are_refused(archive, tmp_path):
    path = tmp_path / "small.pt2"
    with zipfile.ZipFile(archive) as old:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
            for info in old.infolist():
                new.writestr(info.filename, old.read(info))
    with pytest.raises(ValueError, match="expected members without compression"):
        from_archive(str(path))


def test_what_other_files_of_pytorch_are(tmp_path):
    with pytest.warns():  # torch.jit is deprecated
        torch.jit.save(torch.jit.trace(MLP().eval(), torch.randn(2, 16)), tmp_path / "m.pt")
    with pytest.raises(ValueError, match="got TorchScript, as torch.jit.save .*export the model"):
        from_archive(str(tmp_path / "m.pt"))
    torch.save(MLP().state_dict(), tmp_path / "m.pt")
    with pytest.raises(ValueError, match="got pickled objects, as torch.save .*export that"):
        from_archive(str(tmp_path / "m.pt"))
    with zipfile.ZipFile(tmp_path / "m.pt", "w") as other:
        other.writestr("notes", "nothing")
    with pytest.raises(ValueError, match="got another ZIP file"):
        from_archive(str(tmp_path / "m.pt"))


@pytest.mark.parametrize("member", ["weight_0", "model.json"])
@pytest.mark.parametrize("at", [0, 5, -1])
def test_one_bit_of_a_member(archive, member, at, tmp_path):
    with zipfile.ZipFile(archive) as old:
        (info,) = (i for i in old.infolist() if i.filename.endswith(member))
        content = old.read(info)
    data = bytearray(open(archive, "rb").read())
    data[data.index(content) + at % len(content)] ^= 4
    path = tmp_path / "bit.pt2"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=f"{member}' to have the checksum .*the file is damaged"):
        from_archive(str(path))


def test_damaged_archives_raise(archive, tmp_path):
    """Bytes changed, removed and repeated at random: an exception, or the graph as it was."""
    expected = from_archive(archive)
    data, generator = open(archive, "rb").read(), random.Random(0)
    path = tmp_path / "damaged.pt2"
    for _ in range(300):
        bad = bytearray(data)
        for _ in range(generator.randrange(1, 4)):
            at = generator.randrange(len(bad))
            kind = generator.randrange(3)
            if kind == 0:
                bad[at] = generator.randrange(256)
            elif kind == 1:
                del bad[at : at + generator.randrange(1, 40)]
            else:
                bad[at:at] = bad[at : at + generator.randrange(1, 40)]
        path.write_bytes(bad)
        try:
            graph = from_archive(str(path))
        except ValueError:
            continue
        tvm.ir.assert_structural_equal(graph, expected)


def test_inspect(tmp_path):
    """The same of a program and of its file, with what no converter exists for."""

    @torch.library.custom_op("tests_inspect::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x + x

    @twice.register_fake
    def _(x):
        return torch.empty_like(x)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 4)

        def forward(self, x):
            return twice(self.linear(x)).relu()

    shapes = ({0: Dim("n", min=2, max=64)},)
    program = export(Network(), (torch.randn(2, 3),), dynamic_shapes=shapes)
    save(program, tmp_path / "net.pt2")
    text = inspect(tmp_path / "net.pt2")
    assert inspect(program) == text
    symbol = re.search(r"float32\[(\w+), 3\]", text)[1]
    assert text.splitlines() == [
        f"input  x: float32[{symbol}, 3]",
        f"output relu: float32[{symbol}, 4]",
        f"dimension {symbol}: from 2 to 64",
        "2 weights, 64 bytes",
        "1 x aten.linear.default",
        "1 x aten.relu.default",
        "1 x tests_inspect.twice.default (not supported: nodes twice)",
    ]
    with pytest.raises(TypeError):
        inspect(None)
