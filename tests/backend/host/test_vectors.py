# SPDX-License-Identifier: Apache-2.0
"""Vector values: bound to names, taken apart, put together, stored over what they come from."""

import numpy as np
import pytest
import tvm_ffi
from kernels import buffer, call, const, module, pointer, run
from tvm import tir


def ramp(base, stride=1, lanes=8):
    return tir.Ramp(const(base), const(stride), lanes)


def load(b, base, stride=1, lanes=8):
    return tir.BufferLoad(b, [ramp(base, stride, lanes)])


@pytest.mark.parametrize(
    "source,target_at", [((0, 1), (1, 1)), ((1, 1), (0, 1)), ((7, -1), (0, 1))]
)
def test_all_lanes_are_read_before_one_is_stored(source, target_at):
    a = buffer("A", "int32", 16)
    x = np.arange(16, dtype="int32") * 3
    expected = x.copy()
    expected[[target_at[0] + i for i in range(8)]] = x[
        [source[0] + source[1] * i for i in range(8)]
    ]
    run(module(tir.BufferStore(a, load(a, *source), [ramp(*target_at)]), [a]), x)
    np.testing.assert_array_equal(x, expected)


def test_indices_are_read_before_they_are_changed():
    a = buffer("A", "int32", 8)
    x = np.array([1, 0, 3, 2, 5, 4, 7, 6], "int32")
    store = tir.BufferStore(a, tir.Broadcast(const(9), 8) + ramp(0), [load(a, 0)])
    expected = np.zeros(8, "int32")
    expected[x] = 9 + np.arange(8)
    run(module(store, [a]), x)
    np.testing.assert_array_equal(x, expected)


def test_update_in_place():
    a = buffer("A", "float32", 16)
    two = tir.Broadcast(tir.const(2.0, "float32"), 8)
    x = np.arange(16, dtype="float32")
    run(module(tir.BufferStore(a, load(a, 4) * two + load(a, 4), [ramp(4)]), [a]), x)
    np.testing.assert_array_equal(x[4:12], np.arange(4, 12) * 3)


def test_vectors_with_names():
    a, b = buffer("A", "float32", 16), buffer("B", "float32", 16)
    v, w = tir.Var("v", "float32x8"), tir.Var("w", "float32x8")
    value = tir.Let(w, v + v, w * w)
    body = tir.SeqStmt(
        [
            tir.BufferStore(a, tir.Broadcast(tir.const(0.0, "float32"), 8), [ramp(0)]),
            tir.BufferStore(b, value, [ramp(0)]),
        ]
    )
    x, y = np.arange(16, dtype="float32"), np.zeros(16, "float32")
    run(module(tir.LetStmt(v, load(a, 0), body), [a, b]), x, y)
    np.testing.assert_array_equal(y[:8], (2 * np.arange(8)) ** 2)
    assert not x[:8].any()


def test_parts_of_vectors():
    a, b = buffer("A", "int32", 16), buffer("B", "int32", 16)
    v = load(a, 0)
    low, high = call("int32x4", "vectorlow", v), call("int32x4", "vectorhigh", v)
    turned = call("int32x8", "vectorcombine", high, low)
    one = tir.Shuffle([v], [const(5)])
    body = tir.SeqStmt(
        [
            tir.BufferStore(b, turned, [ramp(0)]),
            tir.BufferStore(b, one * const(100), [const(8)]),
        ]
    )
    x, y = np.arange(16, dtype="int32"), np.zeros(16, "int32")
    run(module(body, [a, b]), x, y)
    np.testing.assert_array_equal(y[:9], [4, 5, 6, 7, 0, 1, 2, 3, 500])


def test_shuffled_name():
    a, b = buffer("A", "int32", 8), buffer("B", "int32", 8)
    v = tir.Var("v", "int32x8")
    turned = tir.Shuffle([v], [const(7 - i) for i in range(8)])
    value = tir.Let(v, load(a, 0) * tir.Broadcast(const(2), 8), turned + v)
    x, y = np.arange(8, dtype="int32"), np.zeros(8, "int32")
    run(module(tir.BufferStore(b, value, [ramp(0)]), [a, b]), x, y)
    np.testing.assert_array_equal(y, np.full(8, 14))


def test_bits_in_other_groups():
    a, b, c = buffer("A", "uint8", 16), buffer("B", "uint32", 4), buffer("C", "int16", 8)
    quarter = call("uint32x4", "reinterpret", load(a, 0, 1, 16))
    halves = call("int16x8", "reinterpret", load(b, 0, 1, 4))
    body = tir.SeqStmt(
        [
            tir.BufferStore(b, quarter, [ramp(0, 1, 4)]),
            tir.BufferStore(c, halves, [ramp(0)]),
        ]
    )
    x = np.random.default_rng(0).integers(0, 256, 16).astype("uint8")
    y, z = np.zeros(4, "uint32"), np.zeros(8, "int16")
    run(module(body, [a, b, c]), x, y, z)
    np.testing.assert_array_equal(y, x.view("uint32"))
    np.testing.assert_array_equal(z, x.view("int16"))


@pytest.mark.parametrize("base", [0, 2, -3])
@pytest.mark.parametrize("limit", [0, 3, 8, 100, -1, -100])
def test_lane_mask(base, limit):
    a = buffer("A", "int32", 8)
    mask = call("boolx8", "get_active_lane_mask", const(base), const(limit))
    ones = tir.Broadcast(const(1), 8)
    x = np.zeros(8, "int32")
    run(module(tir.BufferStore(a, ones, [ramp(0)], mask), [a]), x)
    np.testing.assert_array_equal(x, base + np.arange(8) < limit)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_lane_mask_at_the_ends_of_its_type(dtype):
    """base + lane does not wrap, and is compared with its sign."""
    ends = np.iinfo(dtype)
    a, bounds = buffer("A", "int32", 8), buffer("L", dtype, 2)
    base, limit = (tir.BufferLoad(bounds, [const(i)]) for i in range(2))
    mask = call("boolx8", "get_active_lane_mask", base, limit)
    mod = module(tir.BufferStore(a, tir.Broadcast(const(1), 8), [ramp(0)], mask), [a, bounds])
    for first, end in [(ends.max - 3, ends.max), (ends.min, ends.min + 3), (ends.min, ends.max)]:
        x = np.zeros(8, "int32")
        run(mod, x, np.array([first, end], dtype))
        np.testing.assert_array_equal(x, [int(first) + i < int(end) for i in range(8)])


def test_memory_of_vectors():
    """A buffer whose elements are vectors: indices count these."""
    a = buffer("A", "float32", 16)
    data = pointer("T", "float32x4")
    t = tir.Buffer(data, "float32x4", [4], [], const(0), "T", 64, 1, 1)
    i = tir.Var("i", "int32")
    body = tir.SeqStmt(
        [
            tir.For(i, const(0), const(4), 0, tir.BufferStore(t, load(a, 0, 1, 4), [i])),
            tir.BufferStore(t, load(a, 4, 1, 8), [ramp(1, 1, 2)]),
            tir.BufferStore(a, tir.BufferLoad(t, [const(2)]), [ramp(12, 1, 4)]),
        ]
    )
    body = tir.Allocate(data, "float32x4", [4], tir.const(True, "bool"), tir.DeclBuffer(t, body))
    x = np.arange(16, dtype="float32")
    run(module(body, [a]), x)
    np.testing.assert_array_equal(x[12:], [8, 9, 10, 11])


def test_scalar_with_effects_is_computed_once():
    calls = []

    @tvm_ffi.register_global_func("testing.host.once", override=True)
    def once():
        calls.append(1)
        return 7

    a, stack = buffer("A", "int32", 8), tir.Var("stack", "handle")
    name = tir.StringImm("testing.host.once")
    value = call("int32", "tvm_call_packed_lowered", name, stack, const(0), const(0))
    store = tir.BufferStore(a, tir.Broadcast(value, 8) + ramp(0), [ramp(0)])
    memory = call("handle", "tvm_stack_alloca", tir.StringImm("tvm_ffi_any"), const(1))
    x = np.zeros(8, "int32")
    run(module(tir.LetStmt(stack, memory, store), [a]), x)
    np.testing.assert_array_equal(x, 7 + np.arange(8))
    assert calls == [1]


def test_operands_are_evaluated_in_order():
    """A load before a call that changes its memory gives the old value."""
    a, stack = buffer("A", "int32", 8), tir.Var("stack", "handle")

    @tvm_ffi.register_global_func("testing.host.add_one", override=True)
    def add_one(address):
        import ctypes

        memory = ctypes.cast(address.value, ctypes.POINTER(ctypes.c_int32))
        memory[0] += 1
        return memory[0]

    address = call("handle", "address_of", tir.BufferLoad(a, [const(0)]))
    fields = {11: const(4), 12: const(0)}  # kTVMFFIOpaquePtr
    sets = [
        tir.Evaluate(call("int32", "tvm_struct_set", stack, const(0), const(k), v))
        for k, v in fields.items()
    ]
    sets.append(tir.Evaluate(call("int32", "tvm_struct_set", stack, const(0), const(13), address)))
    name = tir.StringImm("testing.host.add_one")
    value = call("int32", "tvm_call_packed_lowered", name, stack, const(0), const(1))
    sum_ = tir.BufferLoad(a, [const(0)]) * const(10) + value
    body = tir.SeqStmt([*sets, tir.BufferStore(a, sum_, [const(1)])])
    memory = call("handle", "tvm_stack_alloca", tir.StringImm("tvm_ffi_any"), const(2))
    x = np.zeros(8, "int32")
    x[0] = 4
    run(module(tir.LetStmt(stack, memory, body), [a]), x)
    np.testing.assert_array_equal(x[:2], [5, 45])
