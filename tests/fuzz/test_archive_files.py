# SPDX-License-Identifier: Apache-2.0
"""A sample of mutated PyTorch archives."""

import pytest

pytest.importorskip("torch")
from tvm.relax.frontend.torch import from_archive

from .archive_files import check, seeds


def test_mutated_files_are_refused_or_imported(tmp_path):
    files, path = seeds(), tmp_path / "model.pt2"
    for data in files:
        path.write_bytes(data)
        from_archive(str(path))
    assert [c for c in (check(seed, files, path) for seed in range(300)) if c] == []
