# SPDX-License-Identifier: Apache-2.0
"""Mutated PyTorch archives: python -m tests.fuzz.archive_files --seconds 3600

Every file must be imported or refused with an exception that names a cause; a crash ends the
process, and the last seeds printed are near the one that did it.
"""

import io
import random
import tempfile
import zipfile
from pathlib import Path

import torch
import tvm
from tvm.relax.frontend.torch import from_archive

from .onnx_files import main, mutate

# What bad files may raise; operators that a mutation names are asserted to have converters.
EXPECTED = (
    ValueError, TypeError, IndexError, RecursionError, MemoryError, OSError, NotImplementedError,
    AssertionError, tvm.TVMError,
)  # fmt: skip


class _Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.register_buffer("scale", torch.randn(6, 4).T)

    def forward(self, x):
        y = torch.relu(self.conv(x))
        y = torch.cat([y[:, 1:], y.mean(1, keepdim=True)], 1)
        return (
            y.flatten(1),
            torch.split(y, 2, 1),
            y.shape[0] * self.scale.sum(0, dtype=torch.float64),
        )


class _Branches(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x * 2, (x,))


def seeds():
    """Archives that use most kinds of entries."""
    x = torch.randn(2, 3, 8, 8)
    batch = torch.export.Dim("batch", min=1, max=8)
    programs = [
        torch.export.export(_Layers().eval(), (x,), dynamic_shapes={"x": {0: batch}}),
        torch.export.export(_Branches(), (x,)),
    ]
    files = []
    for program in programs:
        file = io.BytesIO()
        torch.export.save(program, file)
        files.append(file.getvalue())
    return files


def _repacked(rng, data):
    """The archive with one member mutated: most bytes of the file are its frame."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(sorted(name for name, member in members.items() if member))
    members[name] = mutate(rng, members[name], list(members.values()))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return file.getvalue()


def check(seed, files, path):
    """None, or what is wrong with the answer to a mutated file."""
    rng = random.Random(seed)
    data = rng.choice(files)
    Path(path).write_bytes(mutate(rng, data, files) if rng.random() < 0.2 else _repacked(rng, data))
    try:
        from_archive(str(path))
    except EXPECTED as error:
        return None if str(error) else f"seed {seed}: no message"
    except Exception as error:
        return f"seed {seed}: {type(error).__name__}: {error}"
    return None


if __name__ == "__main__":
    files = seeds()
    with tempfile.TemporaryDirectory() as folder:
        main(__doc__, lambda seed: check(seed, files, Path(folder) / "model.pt2"))
