# SPDX-License-Identifier: Apache-2.0
"""Importing tvm is quick beside PyTorch: who wants torch imports it, before or after us."""

import subprocess
import sys

import pytest

pytest.importorskip("torch")

EXCHANGE = """
import torch
from tvm import te

A = te.placeholder((8,), torch.float32, name="A")
mod = tvm.compile(te.create_prim_func([A, te.compute((8,), lambda i: A[i] + 1.0)]), "c")
x, y = torch.arange(8.0), torch.empty(8)
mod(x, y)
assert torch.equal(y, x + 1)
assert hasattr(torch.Tensor, "__dlpack_c_exchange_api__")  # tensors cross without Python code
empty = tvm.runtime.empty((2, 3), torch.int64)
assert empty.dtype == "int64" and torch.from_dlpack(empty).dtype is torch.int64
import tvm_ffi
assert tvm_ffi.convert(torch.bfloat16) == "bfloat16"
try:
    tvm_ffi.use_torch_stream()
except ImportError:
    raise AssertionError("streams were set up without torch")
"""


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_tvm_does_not_import_torch():
    run("import tvm, sys; assert 'torch' not in sys.modules, 'torch was imported'")


@pytest.mark.parametrize("first", ["import tvm", "import torch, tvm", "import tvm_ffi, tvm"])
def test_tensors_are_exchanged(first):
    run(f"{first}\n{EXCHANGE}")


def test_failing_torch_is_imported_again():
    run("""
import sys, tvm, types, pathlib, tempfile
folder = pathlib.Path(tempfile.mkdtemp())
(folder / "torch").mkdir()
(folder / "torch/__init__.py").write_text("raise RuntimeError('broken')")
sys.path.insert(0, str(folder))
for _ in range(2):
    try:
        import torch
    except RuntimeError as error:
        assert "broken" in str(error)
    else:
        raise AssertionError
sys.path.pop(0)
sys.path_importer_cache.clear()
import torch
assert torch.Tensor
""")
