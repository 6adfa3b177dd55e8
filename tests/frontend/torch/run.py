# SPDX-License-Identifier: Apache-2.0
"""Runs imported programs and compares with PyTorch."""

import numpy as np
import torch
import tvm
from torch.export import export
from tvm import relax
from tvm.relax.frontend.torch import from_exported_program


def compiled(mod):
    """`main` of a module on this machine's processor."""
    return relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())["main"]


def flat(value):
    """The tensors of a nested result, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)) or type(value).__name__ == "Array":
        return [item for v in value for item in flat(v)]
    return [value]


def to_numpy(value):
    if isinstance(value, torch.Tensor):
        value = value.detach()
        return (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    return value.numpy() if hasattr(value, "numpy") else value


def largest_of(values):
    """The largest finite size of an element."""
    arrays = [np.asarray(to_numpy(value)) for value in flat(values)]
    finite = [a[np.isfinite(a)] for a in arrays if a.dtype.kind in "fc"]
    return max((np.abs(a).max() for a in finite if a.size), default=0.0)


def assert_same(ours, theirs, tolerance=1e-4, scale=None):
    """max|a - b| <= tolerance * max|b|, result by result, or tolerance * scale."""
    ours, theirs = flat(ours), flat(theirs)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        a = np.asarray(to_numpy(a))
        # A number has no type of its own.
        b = np.asarray(to_numpy(b), a.dtype if isinstance(b, (int, float)) else None)
        assert a.shape == b.shape and a.dtype == b.dtype, (a.shape, a.dtype, b.shape, b.dtype)
        if b.dtype.kind not in "fc":
            np.testing.assert_array_equal(a, b)
            continue
        largest = largest_of(b) if scale is None else scale
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * largest)


def check(model, args, dynamic_shapes=None, others=(), tolerance=1e-4, **options):
    """The model through export and import, on its arguments and on others."""
    model = model.eval()
    program = export(model, args, dynamic_shapes=dynamic_shapes)
    main = compiled(from_exported_program(program, **options))
    for values in (args, *others):
        with torch.no_grad():
            assert_same(main(*values), model(*values), tolerance)
