# SPDX-License-Identifier: Apache-2.0
"""Models with any batch and length, compiled once: python -m tests.bench.symbolic [NAME...]

One executable serves several shapes, and gives what PyTorch gives.
"""

import sys
import time

import numpy as np
import torch
import tvm
from tvm import relax

from bench import model_ops
from bench.models import DIMS, MODELS, Model

SHAPES = (
    dict(DIMS),
    {"n": 2, "bert": 17, "prompt": 9, "before": 5},
    {"n": 3, "bert": 64, "prompt": 33, "before": 100},
)


def check(name, shapes=SHAPES):
    """AssertionError where a result is not PyTorch's."""
    torch_module = model_ops.torch_module(Model(name))
    module = model_ops.relax_module(Model(name, dims={}))
    main = relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())["main"]
    for dims in shapes:
        inputs = Model(name, dims={}).inputs(**dims)
        with torch.no_grad():
            want = torch_module(*map(torch.from_numpy, inputs))
        got = main(*inputs)
        got = [got] if hasattr(got, "numpy") else got
        for a, b in zip(got, want, strict=True):
            error = np.abs(a.numpy() - b.numpy()).max() / np.abs(b.numpy()).max()
            assert a.numpy().shape == tuple(b.shape) and error <= 1e-4, (name, dims, error)


if __name__ == "__main__":
    for name in sys.argv[1:] or MODELS:
        begin = time.time()
        check(name)
        print(f"{name}: {len(SHAPES)} shapes from one executable, {time.time() - begin:.1f} s")
