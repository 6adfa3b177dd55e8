# SPDX-License-Identifier: Apache-2.0
"""Kernels and PyTorch in one process: tensors, streams, graphs, alignment."""

import pytest
import tvm

from tests.gpu.test_kernels import unary

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("PyTorch has no GPU here", allow_module_level=True)


def double(n, dtype="float32"):
    return tvm.compile(unary(lambda x: x * 2, (n,), dtype), "cuda")


def test_tensors_are_shared():
    x, y = torch.randn(1000, device="cuda"), torch.full((1000,), 7.0, device="cuda")
    double(1000)(x, y)
    assert torch.equal(y, x * 2)


def test_calls_run_on_the_current_stream():
    n = 1 << 24
    mod, side = double(n), torch.cuda.Stream()
    x, y = torch.zeros(n, device="cuda"), torch.zeros(n, device="cuda")
    mod(x, y)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        for _ in range(20):
            x.normal_()  # long work, which the kernel must wait for
        mod(x, y)
        z = y - x * 2
    side.synchronize()
    assert z.abs().max().item() == 0


def test_views_that_are_not_aligned():
    mod = double(1024, "float16")
    base = torch.randn(4096, device="cuda", dtype=torch.float16)
    for at in (0, 1, 3, 8):
        y = torch.full((1030,), 7, device="cuda", dtype=torch.float16)
        mod(base[at : at + 1024], y[at % 4 : at % 4 + 1024])
        assert torch.equal(y[at % 4 : at % 4 + 1024], base[at : at + 1024] * 2)
        assert (y[at % 4 + 1024 :] == 7).all()


def test_graphs_capture_calls():
    mod = double(1000)
    x, y = torch.randn(1000, device="cuda"), torch.zeros(1000, device="cuda")
    mod(x, y)  # loads the kernel
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        mod(x, y)
    x.normal_()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(y, x * 2)
