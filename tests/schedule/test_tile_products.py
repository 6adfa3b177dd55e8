# SPDX-License-Identifier: Apache-2.0
"""Default rules: products on tile registers (AMX). Where the machine has none, the instructions of
the scheduled program call an emulation."""

import ctypes

import ml_dtypes
import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import te, tir
from tvm.target import Target
from tvm.tir.schedule import apply_default_rules

from .primitive.test_pack_products import product, values
from .test_dot_products import assembly, check, reference, runs_here

CPU = "sapphirerapids"
TARGET = f"llvm -mtriple=x86_64-linux-gnu -num-cores=1 -mcpu={CPU}"
INSTRUCTIONS = {
    ("bfloat16", "bfloat16"): "tdpbf16ps",
    ("int8", "int8"): "tdpbssd",
    ("int8", "uint8"): "tdpbsud",
    ("uint8", "int8"): "tdpbusd",
    ("uint8", "uint8"): "tdpbuud",
}


class Tiles:
    """Eight registers of 16 rows of 64 bytes."""

    def __init__(self):
        self.registers = [np.zeros((16, 64), np.uint8) for _ in range(8)]

    def numbers(self, tile, dtype):
        return self.registers[tile].view(dtype)

    def __call__(self, name, *args):
        kind = name.removeprefix("llvm.x86.")
        if kind == "tilezero":
            self.registers[args[0]][:] = 0
        elif kind in ("tileloadd64", "tilestored64"):
            tile, address, pitch = args
            address = getattr(address, "value", address)
            for i, row in enumerate(self.registers[tile]):
                memory = np.frombuffer(
                    (ctypes.c_uint8 * 64).from_address(address + i * pitch), "u1"
                )
                source, destination = (memory, row) if kind == "tileloadd64" else (row, memory)
                destination[:] = source
        else:
            self.multiply(kind, *args)

    def multiply(self, kind, c, a, b):
        if kind == "tdpbf16ps":
            types, sum_type = [ml_dtypes.bfloat16] * 2, "float32"
        else:
            types, sum_type = [{"s": "i1", "u": "u1"}[s] for s in kind[4:6]], "int32"
        left, right = (self.numbers(t, dtype) for t, dtype in zip((a, b), types, strict=True))
        group = left.shape[1] // 16
        wide = "float64" if sum_type == "float32" else "int64"
        right = right.reshape(16, 16, group).transpose(0, 2, 1).reshape(16 * group, 16)
        sums = left.astype(wide) @ right.astype(wide)
        self.numbers(c, sum_type)[:] += sums.astype(sum_type)


TILES = Tiles()
tvm.register_global_func("testing.tiles", TILES, override=True)


def scheduled(func, target=TARGET):
    sch = tir.Schedule(func, debug_mask="all")
    assert apply_default_rules(sch, "main", Target(target))
    return sch.mod["main"]


def emulated(func):
    """The function as it is scheduled, with calls in the place of instructions."""

    def call(node):
        if not isinstance(node.value, tir.Call) or node.value.op.name != "tir.call_llvm_intrin":
            return None
        return tir.Evaluate(tir.call_packed("testing.tiles", *node.value.args))

    func = scheduled(func)
    body = tir.stmt_functor.ir_transform(func.body, None, call, ["tir.Evaluate"])
    assert "testing.tiles" in str(body)
    return tvm.build(func.with_body(body), tvm.testing.host_target("-num-cores=1"))


SIZES = [(32, 32, 64), (64, 96, 128), (45, 47, 90), (16, 100, 64), (100, 16, 60), (31, 130, 129)]
KINDS = list(INSTRUCTIONS)


@pytest.mark.parametrize(
    "types, m, n, k, turned",
    [(KINDS[i % 2], *size, turned) for i, size in enumerate(SIZES) for turned in (False, True)]
    + [(types, 45, 47, 90, turned) for types in KINDS for turned in (False, True)],
)
def test_products_by_emulation(types, m, n, k, turned):
    result = "float32" if types[0] == "bfloat16" else "int32"
    func = product(m, n, k, *types, result, turned)
    inputs = values((m, k), types[0]), values((n, k) if turned else (k, n), types[1], 1)
    expected = reference(func, inputs)
    out = tvm.runtime.empty((m, n), result)
    emulated(func)(*(tvm.runtime.tensor(x) for x in inputs), out)
    tolerance = {"rtol": 1e-5, "atol": 1e-5 * k} if result == "float32" else {"rtol": 0}
    np.testing.assert_allclose(out.numpy(), expected, **tolerance)


@pytest.mark.parametrize("types", INSTRUCTIONS)
def test_instructions(types):
    result = "float32" if types[0] == "bfloat16" else "int32"
    func = product(64, 64, 128, *types, result)
    text = assembly(func, TARGET)
    for instruction in (INSTRUCTIONS[types], "ldtilecfg", "tileloadd", "tilestored", "tilerelease"):
        assert f"\t{instruction}" in text
    if runs_here(CPU, "amx-bf16" if types[0] == "bfloat16" else "amx-int8"):
        for m, n, k in [(64, 64, 128), *SIZES, (300, 500, 1000), (256, 512, 256)]:
            func = product(m, n, k, *types, result)
            check(func, types, ((m, k), (k, n)), f"llvm -num-cores=4 -mcpu={CPU}")


@pytest.mark.parametrize("size", [(4, 64, 256), (64, 3, 256), (64, 64, 8)])
def test_small_ones_are_left_to_vectors(size):
    assert "tdp" not in assembly(product(*size, "int8", "int8", "int32"), TARGET)


def test_not_without_the_instructions():
    func = product(64, 64, 128, "int8", "int8", "int32")
    assert "tdp" not in assembly(func, TARGET + " -mattr=-amx-int8")
    assert "tdp" in assembly(func, TARGET + " -mattr=-amx-bf16")


def test_grids_fill_the_registers():
    """Four tiles of sums where rows and columns allow it; fewer rows leave more columns."""
    for size, grid in [((64, 64, 128), "2x2"), ((16, 96, 128), "1x3"), ((96, 16, 128), "3x1")]:
        text = scheduled(product(*size, "int8", "int8", "int32")).script()
        rows, columns = map(int, grid.split("x"))
        assert text.count("llvm.x86.tilezero") == rows * columns
        assert text.count("llvm.x86.tileloadd64") == rows + columns


@pytest.mark.parametrize("types", [("bfloat16", "bfloat16"), ("uint8", "int8")])
def test_rows_are_read_as_they_lie(types):
    """And where they stay in a cache, threads pack the columns of their own."""
    result = "float32" if types[0] == "bfloat16" else "int32"
    target = TARGET.replace("-num-cores=1", "-num-cores=4 -l2-cache-bytes=2097152")
    text = scheduled(product(128, 256, 512, *types, result), target).script()
    assert "A_words" not in text and text.count("T.parallel") == 1
    assert "A_words" in scheduled(product(120, 256, 512, *types, result), target).script()
    assert f"\t{INSTRUCTIONS[types]}" in assembly(product(128, 256, 512, *types, result), target)
    large = scheduled(product(4096, 4096, 4096, *types, result), target).script()
    assert "A_words" not in large and large.count("T.parallel") == 2


def epilogue(m, n, k, dtype="int8"):
    a, b = te.placeholder((m, k), dtype, "A"), te.placeholder((n, k), dtype, "B")
    bias, r = te.placeholder((n,), "int32", "bias"), te.reduce_axis((0, k), "k")
    wide = lambda e: e.astype("int32")
    c = te.compute((m, n), lambda i, j: te.sum(wide(a[i, r]) * wide(b[j, r]), r), "C")
    d = te.compute((m, n), lambda i, j: ((c[i, j] + bias[j]) >> 6).astype(dtype), "D")
    return te.create_prim_func([a, b, bias, d])


@pytest.mark.parametrize("m, n, k", [(64, 64, 64), (50, 90, 190)])
def test_with_bias_and_rounding(m, n, k):
    x, y, z = values((m, k), "int8"), values((n, k), "int8", 1), values((n,), "int32", 2) // 4096
    out = tvm.runtime.empty((m, n), "int8")
    emulated(epilogue(m, n, k))(*(tvm.runtime.tensor(v) for v in (x, y, z)), out)
    expected = (x.astype("int32") @ y.astype("int32").T + z) >> 6
    np.testing.assert_array_equal(out.numpy(), expected.astype("int8"))


def test_rounded_sums():
    func = product(48, 48, 64, "bfloat16", "bfloat16", "bfloat16")
    inputs = values((48, 64), "bfloat16"), values((64, 48), "bfloat16", 1)
    out = tvm.runtime.empty((48, 48), "bfloat16")
    emulated(func)(*(tvm.runtime.tensor(x) for x in inputs), out)
    exact = inputs[0].astype("float64") @ inputs[1].astype("float64")
    np.testing.assert_allclose(out.numpy().astype("float64"), exact, rtol=2**-7, atol=2**-7)


def test_unknown_rows():
    func = product(te.var("n"), 64, 128, "uint8", "int8", "int32")
    module = emulated(func)
    for rows in (0, 1, 31, 32, 70):
        x, y = values((rows, 128), "uint8"), values((128, 64), "int8", 1)
        out = tvm.runtime.empty((rows, 64), "int32")
        module(tvm.runtime.tensor(x), tvm.runtime.tensor(y), out)
        np.testing.assert_array_equal(out.numpy(), x.astype("int32") @ y.astype("int32"))


def test_batches():
    s, m, n, k = 3, 32, 40, 64
    a, b = te.placeholder((s, m, k), "uint8", "A"), te.placeholder((s, k, n), "int8", "B")
    r, wide = te.reduce_axis((0, k), "k"), lambda e: e.astype("int32")
    value = lambda t, i, j: te.sum(wide(a[t, i, r]) * wide(b[t, r, j]), r)
    func = te.create_prim_func([a, b, te.compute((s, m, n), value, "C")])
    x, y = values((s, m, k), "uint8"), values((s, k, n), "int8", 1)
    out = tvm.runtime.empty((s, m, n), "int32")
    emulated(func)(tvm.runtime.tensor(x), tvm.runtime.tensor(y), out)
    np.testing.assert_array_equal(out.numpy(), x.astype("int32") @ y.astype("int32"))


def test_functions_with_a_result():
    from tvm.script import tir as T

    @T.prim_func
    def first(a: T.handle) -> T.int32:
        T.func_attr({"tir.is_scheduled": True})
        A = T.match_buffer(a, (16, 16), "float32")
        T.evaluate(T.call_llvm_intrin("void", "llvm.x86.tilezero", T.int8(0)))
        T.ret(T.cast(A[0, 0], "int32"))

    text = tvm.build(first, TARGET).inspect_source("asm")
    assert text.index("\tldtilecfg") < text.index("\ttilezero") < text.index("\ttilerelease")
