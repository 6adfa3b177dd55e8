# SPDX-License-Identifier: Apache-2.0
"""A Python function that a kernel calls gets its buffers as tensors without copies."""

import numpy as np
import pytest
import tvm
from tvm import te, tir

TARGETS = ["llvm", "c"]


def _extern(function, dtype="float32", target="llvm", n=6):
    """A kernel that leaves its work to a Python function of (source, target)."""
    tvm.register_global_func("test.lent", function, override=True)
    A = te.placeholder((n,), dtype, name="A")
    B = te.extern(
        (n,), [A], lambda ins, outs: tir.call_packed("test.lent", ins[0], outs[0]), dtype=dtype
    )
    return tvm.compile(te.create_prim_func([A, B]), target=target)


def _numpy(source, target):
    np.from_dlpack(target)[:] = np.from_dlpack(source) * 2


def _torch(source, target):
    torch = pytest.importorskip("torch")
    torch.from_dlpack(target).copy_(torch.from_dlpack(source) * 2)


def _copies(source, target):
    assert source.shape == (6,) and source.dtype == "float32" and len(source) == 6
    assert source.numpy().shape == (6,) and "shape=(6,)" in repr(source)
    target.copyfrom(source.numpy() * 2)


def _views(source, target):
    assert float(source[2].item()) == source.numpy()[2]
    target[...] = source
    target[1:5:2] = source[1:5:2].copyto(tvm.cpu()).numpy() * 2
    target[0:6:2] = np.asarray(source)[0:6:2] * 2
    target[5] = source[5].item() * 2


def _our_functions(source, target):
    scaled = tvm.runtime.tensor(source)
    scaled.copyfrom(scaled.numpy() * 2)
    scaled.copyto(target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("function", [_numpy, _torch, _copies, _views, _our_functions])
def test_a_lent_tensor_is_a_tensor(function, target):
    a, b = np.arange(6, dtype="float32"), np.zeros(6, "float32")
    _extern(function, target=target)(a, b)
    np.testing.assert_array_equal(b, a * 2)


def test_elements_below_a_byte():
    def negate(source, target):
        target.copyfrom(-source.numpy().astype("int8"))

    a = tvm.runtime.empty((5,), "int4").copyfrom(np.arange(5))
    b = tvm.runtime.empty((5,), "int4")
    _extern(negate, "int4", n=5)(a, b)
    np.testing.assert_array_equal(b.numpy().astype("int8"), -np.arange(5))


def test_an_error_of_the_function_arrives():
    def refuse(source, target):
        source[9]

    with pytest.raises(IndexError, match=r"expected an index in \[-6, 6\) on axis 0, got 9"):
        _extern(refuse)(np.zeros(6, "float32"), np.zeros(6, "float32"))
