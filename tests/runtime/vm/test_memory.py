# SPDX-License-Identifier: Apache-2.0
"""Storages and allocators: reuse, statistics, bounds."""

import gc

import numpy as np
import pytest
import tvm_ffi
from tvm import runtime

storage, stats = runtime.Storage, runtime.AllocatorStats
alloc_tensor = tvm_ffi.get_global_func("vm.builtin.alloc_tensor")
clear = tvm_ffi.get_global_func("vm.builtin.memory_manager.clear")
CPU, NAIVE, POOLED = runtime.cpu(), 1, 2


def usage(kind):
    return {str(key): value for key, value in stats(CPU, kind).items()}


def address(tensor):
    return np.from_dlpack(tensor).ctypes.data


def test_tensors_lie_inside_the_storage_and_keep_it():
    block = storage(CPU, 256, NAIVE)
    a = alloc_tensor(block, 0, (4, 4), "float32")
    b = alloc_tensor(block, 64, (16,), "float32")
    del block
    gc.collect()
    np.from_dlpack(b)[:] = np.arange(16)
    assert address(b) - address(a) == 64 and address(a) % 64 == 0
    assert b.numpy().tolist() == list(range(16))


@pytest.mark.parametrize(
    "offset, shape, dtype",
    [(0, (65,), "float32"), (4, (64,), "float32"), (-1, (1,), "int8"), (257, (0,), "int8")],
)
def test_tensor_outside_the_storage_is_refused(offset, shape, dtype):
    with pytest.raises(ValueError, match="do not fit into a storage of 256 bytes"):
        alloc_tensor(storage(CPU, 256, NAIVE), offset, shape, dtype)


def test_pooled_memory_is_reused_and_cleared():
    clear()
    assert usage(POOLED)["kept"] == 0
    block = storage(CPU, 100_000, POOLED)
    used, place = usage(POOLED)["used"], address(alloc_tensor(block, 0, (1,), "int8"))
    del block
    gc.collect()
    after = usage(POOLED)
    assert after["used"] < used and after["kept"] >= 100_000
    again = storage(CPU, 99_000, POOLED)  # of the same class of sizes
    assert address(alloc_tensor(again, 0, (1,), "int8")) == place
    assert usage(POOLED)["kept"] == after["kept"] - (used - after["used"])
    del again
    gc.collect()
    clear()
    assert usage(POOLED)["kept"] == 0


def test_naive_memory_is_given_back():
    before = usage(NAIVE)
    block = storage(CPU, 1000, NAIVE)
    assert usage(NAIVE)["used"] == before["used"] + 1000
    del block
    gc.collect()
    after = usage(NAIVE)
    assert after["used"] == before["used"] and after["kept"] == 0
    assert after["allocations"] == before["allocations"] + 1 and after["peak"] >= 1000


def test_bad_requests():
    with pytest.raises(MemoryError):
        storage(CPU, 2**62, POOLED)
    with pytest.raises(ValueError, match="at least 0 bytes, got -1"):
        storage(CPU, -1)
    with pytest.raises(ValueError, match=r"expected 1 \(naive\) or 2 \(pooled\), got 7"):
        storage(CPU, 1, 7)
    with pytest.raises(RuntimeError, match="no runtime for hexagon"):
        storage(runtime.hexagon(), 1)
    with pytest.raises(ValueError, match="memory scope"):
        storage(CPU, 1, NAIVE, "texture")
