# SPDX-License-Identifier: Apache-2.0
"""Loads and stores: contiguous, strided, gathered, masked, packed; temporary memory."""

import numpy as np
import pytest
from kernels import buffer, build, call, const, loop, module, pointer, run, size_var
from tvm import tir


def copy_kernel(index_in, index_out, n, dtype="float32", lanes=8, predicate=None):
    a, b = buffer("A", dtype, n), buffer("B", dtype, n)
    load = tir.BufferLoad(a, [index_in], predicate)
    return module(tir.BufferStore(b, load, [index_out], predicate), [a, b])


def ramp(base, stride, lanes=8):
    return tir.Ramp(const(base), const(stride), lanes)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "float64", "float16", "uint16"])
@pytest.mark.parametrize(
    "base,stride", [(0, 1), (3, 1), (7, -1), (0, 2), (1, 3), (2, 4), (0, 5), (60, -7), (5, 0)]
)
def test_load_of_ramp(base, stride, dtype):
    a = (np.arange(64) % 3 == 0) if dtype == "bool" else np.arange(64).astype(dtype)
    b = np.zeros(64, dtype)
    run(copy_kernel(ramp(base, stride), ramp(8, 1), 64, dtype), a, b)
    np.testing.assert_array_equal(b[8:16], a[[base + stride * i for i in range(8)]])
    assert not b[16:].any()


@pytest.mark.parametrize("stride", [1, 2, -1, 5])
def test_store_of_ramp(stride, target):
    a, b = np.arange(64, dtype="int32") + 1, np.zeros(64, "int32")
    run(copy_kernel(ramp(0, 1), ramp(20, stride), 64, "int32"), a, b, target=target)
    expected = np.zeros(64, "int32")
    expected[[20 + stride * i for i in range(8)]] = a[:8]
    np.testing.assert_array_equal(b, expected)


def test_gather_by_data(target):
    a, idx, b = buffer("A", "float32", 64), buffer("I", "int32", 16), buffer("B", "float32", 16)
    lanes = tir.Ramp(const(0), const(1), 16)
    gather = tir.BufferLoad(a, [tir.BufferLoad(idx, [lanes])])
    mod = module(tir.BufferStore(b, gather, [lanes]), [a, idx, b])
    x, i, y = (
        np.random.rand(64).astype("float32"),
        np.random.randint(0, 64, 16).astype("int32"),
        np.zeros(16, "float32"),
    )
    run(mod, x, i, y, target=target)
    np.testing.assert_array_equal(y, x[i])


@pytest.mark.parametrize("stride", [1, 3])
def test_predicated_access_touches_active_lanes_only(stride, target):
    n, active = 32, 5
    lanes = tir.Ramp(const(0), const(stride), 8)
    mask = tir.LT(tir.Ramp(const(0), const(1), 8), tir.Broadcast(const(active), 8))
    a, b = np.arange(n, dtype="float32") + 1, np.zeros(n, "float32")
    run(copy_kernel(lanes, lanes, n, predicate=mask), a, b, target=target)
    expected = np.zeros(n, "float32")
    expected[: active * stride : stride] = a[: active * stride : stride]
    np.testing.assert_array_equal(b, expected)


@pytest.mark.parametrize("dtype", ["int4", "uint4", "uint1", "int2", "uint2", "uint6", "int3"])
@pytest.mark.parametrize("lanes", [1, 8])
def test_elements_below_a_byte(dtype, lanes):
    """Copied element by element, with one changed by arithmetic of the type."""
    bits = int(dtype[-1])
    n = 32
    a, b = buffer("A", dtype, n), buffer("B", dtype, n)
    i = tir.Var("i", "int32")
    index = i if lanes == 1 else tir.Ramp(i * lanes, const(1), lanes)
    one = const(1, dtype) if lanes == 1 else tir.Broadcast(const(1, dtype), lanes)
    body = loop(
        i, const(n // lanes), tir.BufferStore(b, tir.Add(tir.BufferLoad(a, [index]), one), [index])
    )
    # The memory as bytes: the entry hands pointers on and looks at no type.
    mod = build(module(body, [a, b]))
    values = np.random.randint(0, 1 << bits, n).astype("uint8")
    pack = lambda v: np.packbits(
        ((v[:, None] >> np.arange(bits)) & 1).astype("uint8").ravel(), bitorder="little"
    )
    memory, out = pack(values), np.zeros(n * bits // 8, "uint8")
    run(mod, memory, out)
    np.testing.assert_array_equal(out, pack((values + 1) % (1 << bits)))


def alloc(size, body_of, dtype="float32"):
    data = pointer("T", dtype)
    temp = tir.Buffer(data, dtype, [size], [], const(0), "T", 64, 1, 1)
    return tir.Allocate(
        data, dtype, [size], tir.const(True, "bool"), tir.DeclBuffer(temp, body_of(temp))
    )


@pytest.mark.parametrize("size", [16, 1000, 100_000, "n"])
def test_temporary_memory(size):
    """On the stack when small, else from the runtime; also when only the run knows the size."""
    n = 1000
    scalars = []
    if size == "n":
        size = size_var("n", "int32")
        scalars = [size]
    a, b = buffer("A", "float32", n), buffer("B", "float32", n)
    count = min(n, size) if isinstance(size, int) else n
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")

    def body(t):
        first = loop(
            i,
            const(count),
            tir.BufferStore(t, tir.BufferLoad(a, [i]) + tir.const(1.0, "float32"), [i]),
        )
        return tir.SeqStmt(
            [first, loop(j, const(count), tir.BufferStore(b, tir.BufferLoad(t, [j]), [j]))]
        )

    x, y = np.random.rand(n).astype("float32"), np.zeros(n, "float32")
    run(module(alloc(size, body), [a, b], scalars), x, y, *([n] if scalars else []))
    np.testing.assert_array_equal(y[:count], x[:count] + 1)


def test_too_much_temporary_memory_is_a_memory_error():
    a = buffer("A", "float32", 16)
    size = size_var("n", "int64")
    body = alloc(size, lambda t: tir.BufferStore(t, tir.BufferLoad(a, [const(0)]), [const(0)]))
    with pytest.raises(MemoryError, match="allocate"):
        run(module(body, [a], [size]), np.zeros(16, "float32"), 1 << 58)


def test_constant_memory():
    import tvm

    values = np.random.rand(16).astype("float32")
    data = pointer("C", "float32")
    c, b = (
        tir.Buffer(data, "float32", [16], [], const(0), "C", 64, 1, 1),
        buffer("B", "float32", 16),
    )
    i = tir.Var("i", "int32")
    body = tir.DeclBuffer(c, loop(i, const(16), tir.BufferStore(b, tir.BufferLoad(c, [i]), [i])))
    body = tir.AllocateConst(data, "float32", [16], tvm.runtime.tensor(values), body)
    y = np.zeros(16, "float32")
    run(module(body, [b]), y)
    np.testing.assert_array_equal(y, values)


def test_shuffle():
    a, b = buffer("A", "float32", 16), buffer("B", "float32", 16)
    low = tir.BufferLoad(a, [tir.Ramp(const(0), const(1), 4)])
    high = tir.BufferLoad(a, [tir.Ramp(const(4), const(1), 4)])
    mixed = tir.Shuffle([low, high], [const(i) for i in (7, 0, 3, 4, 1, 1, 6, 2)])
    four = tir.Shuffle(
        [tir.BufferLoad(a, [const(i)]) for i in (9, 8, 11, 10)], [const(i) for i in range(4)]
    )
    twice = tir.Shuffle([four], [const(i % 4) for i in range(8)])
    body = tir.SeqStmt(
        [
            tir.BufferStore(b, mixed, [tir.Ramp(const(0), const(1), 8)]),
            tir.BufferStore(b, twice, [tir.Ramp(const(8), const(1), 8)]),
        ]
    )
    x, y = np.arange(16, dtype="float32"), np.zeros(16, "float32")
    run(module(body, [a, b]), x, y)
    np.testing.assert_array_equal(y, [7, 0, 3, 4, 1, 1, 6, 2, 9, 8, 11, 10, 9, 8, 11, 10])


def test_address_of():
    a, b = buffer("A", "float32", 16), buffer("B", "float32", 1)
    address = call("handle", "address_of", tir.BufferLoad(a, [const(5)]))
    view_data = pointer("V", "float32")
    view = tir.Buffer(view_data, "float32", [4], [], const(0), "V", 4, 1, 1)
    body = tir.LetStmt(
        view_data, address, tir.BufferStore(b, tir.BufferLoad(view, [const(2)]), [const(0)])
    )
    y = np.zeros(1, "float32")
    run(module(body, [a, b]), np.arange(16, dtype="float32"), y)
    assert y[0] == 7
