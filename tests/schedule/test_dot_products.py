# SPDX-License-Identifier: Apache-2.0
"""Default rules: products of small numbers, packed for the instructions of the target."""

import ml_dtypes
import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import meta_schedule as ms
from tvm import te, tir
from tvm.target import Target
from tvm.tir.schedule import apply_default_rules

from .primitive.test_pack_products import product, values

# Processors, what they multiply bytes with, and what this machine must have to run that.
BYTES = {
    "znver4": ("vpdpbusd", "avx512vnni"),
    "cascadelake": ("vpdpbusd", "avx512vnni"),
    "alderlake": ("vpdpbusd", "avxvnni"),
    "sierraforest": ("vpdpbssd", "avxvnniint8"),
    "skylake-avx512": ("vpmaddwd", "avx512bw"),
    "x86-64-v3": ("vpmaddwd", "avx2"),
    "x86-64": ("pmaddwd", "sse2"),
}
FLOATS = {
    "znver4": ("vdpbf16ps", "avx512bf16"),
    "skylake-avx512": ("vfmadd", "avx512bw"),
    "x86-64-v3": ("vfmadd", "avx2"),
}
HERE = tvm.testing.host_target("-num-cores=2")


def target_of(cpu):
    return f"llvm -mtriple=x86_64-linux-gnu -num-cores=2 -mcpu={cpu}"


def runs_here(cpu, feature):
    """Whether the instruction is here, and all that the processor of that name has."""
    if not tvm.runtime.enabled("llvm") or not Target("llvm").has_feature(feature):
        return False
    try:
        tvm.build(product(4, 4, 4, "float32", "float32", "float32"), f"llvm -mcpu={cpu}")["main"]
    except ValueError as error:
        assert "which lacks" in str(error)
        return False
    return True


def reference(func, inputs):
    """In float64 or int64, rounded once."""
    a, b = (x.astype("int64" if x.dtype.kind in "iu" else "float64") for x in inputs)
    out = func.buffer_map[func.params[-1]]
    exact = a @ (b if a.shape[1] == b.shape[0] else b.T)
    return exact.astype(getattr(ml_dtypes, str(out.dtype), str(out.dtype)))


def compiled(func, target):
    if not tvm.testing.device_enabled(target):
        pytest.skip(f"no code generator for {target} here")
    return tvm.build(func, target=target)


def assembly(func, target):
    return compiled(func, target).inspect_source("asm")


def check(func, types, shapes, target=HERE, rtol=1e-5):
    inputs = [values(shape, t, i) for i, (shape, t) in enumerate(zip(shapes, types, strict=True))]
    expected = reference(func, inputs)
    out = tvm.runtime.empty(expected.shape, str(func.buffer_map[func.params[-1]].dtype))
    compiled(func, target)(*(tvm.runtime.tensor(x) for x in inputs), out)
    if expected.dtype.kind in "iu":
        np.testing.assert_array_equal(out.numpy(), expected)
    else:
        got, expected = (x.astype("float64") for x in (out.numpy(), expected))
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol * np.sqrt(shapes[0][1]))


SIZES = [(1, 1, 1), (1, 40, 8), (40, 1, 8), (3, 17, 31), (17, 33, 3), (31, 65, 127), (33, 16, 64)]
SIZES += [
    (127, 127, 65),
    (64, 100, 2),
    (65, 9, 17),
    (12, 48, 1),
    (8, 40, 129),
    (40, 6, 129),
    (2, 70, 500),
]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("m, n, k", SIZES)
@pytest.mark.parametrize(
    "types",
    [("uint8", "int8"), ("int8", "uint8"), ("int8", "int8"), ("uint8", "uint8"), ("int16", "int8")],
)
def test_integers_are_exact(types, m, n, k, turned):
    shapes = (m, k), (n, k) if turned else (k, n)
    check(product(m, n, k, *types, "int32", turned), types, shapes)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("m, n, k", SIZES)
@pytest.mark.parametrize(
    "types, result",
    [
        (("bfloat16", "bfloat16"), "float32"),
        (("bfloat16", "bfloat16"), "bfloat16"),
        (("float16", "float16"), "float32"),
        (("float16", "float16"), "float16"),
        (("bfloat16", "float32"), "float32"),
        (("float8_e4m3fn", "float8_e4m3fn"), "float32"),
    ],
)
def test_floats(types, result, m, n, k, turned):
    shapes = (m, k), (n, k) if turned else (k, n)
    func = product(m, n, k, *types, result, turned)
    check(func, types, shapes, rtol={"bfloat16": 2**-7, "float16": 2**-9}.get(result, 1e-5))


def check_on(cpu, row, types, result):
    instruction, feature = row
    func = product(40, 50, 61, *types, result)
    assert f"\t{instruction}" in assembly(func, target_of(cpu))
    if runs_here(cpu, feature):
        check(func, types, ((40, 61), (61, 50)), f"llvm -num-cores=2 -mcpu={cpu}")


@pytest.mark.parametrize("types", [("int8", "int8"), ("uint8", "int8"), ("bfloat16", "bfloat16")])
@pytest.mark.parametrize("off", ["avx512f", "avx512vl"])
def test_processors_with_parts_turned_off(types, off):
    """The parts of AVX-512 that build on it are off with it."""
    result = "float32" if types[0] == "bfloat16" else "int32"
    for m, n, k in ((40, 50, 61), (5, 7, 9)):
        text = assembly(product(m, n, k, *types, result), target_of(f"znver4 -mattr=-{off}"))
        assert off != "avx512f" or "zmm" not in text


@pytest.mark.parametrize("types", [("int8", "int8"), ("uint8", "int8")])
@pytest.mark.parametrize("cpu", BYTES)
def test_bytes_on(cpu, types):
    row = BYTES[cpu]
    if cpu == "sierraforest" and types[0] == "uint8":
        row = ("vpdpbusd", "avxvnniint8")
    check_on(cpu, row, types, "int32")


@pytest.mark.parametrize("cpu", FLOATS)
def test_bfloat16_on(cpu):
    check_on(cpu, FLOATS[cpu], ("bfloat16", "bfloat16"), "float32")


def test_bytes_on_arm():
    target = "llvm -mtriple=aarch64-linux-gnu -mattr=+neon,+dotprod -num-cores=2"
    assert "\tsdot\t" in assembly(product(40, 50, 61, "int8", "int8", "int32"), target)


def test_ends_of_the_range():
    """-128 times -128, often; and 255 times -128, four of which leave the range of int16."""
    for types, a, b in [(("int8", "int8"), -128, -128), (("uint8", "int8"), 255, -128)]:
        func = product(24, 40, 1000, *types, "int32")
        out = tvm.runtime.empty((24, 40), "int32")
        x, y = np.full((24, 1000), a, types[0]), np.full((1000, 40), b, types[1])
        compiled(func, HERE)(tvm.runtime.tensor(x), tvm.runtime.tensor(y), out)
        assert np.all(out.numpy() == a * b * 1000)


def test_unknown_sizes():
    n, m, k = te.var("n"), te.var("m"), te.var("k")
    for types, result in [(("int8", "int8"), "int32"), (("bfloat16", "bfloat16"), "bfloat16")]:
        func = product(n, m, k, *types, result)
        module = compiled(func, HERE)
        for sizes in [(1, 1, 1), (5, 7, 3), (64, 256, 20), (77, 333, 65), (4, 64, 0), (0, 9, 4)]:
            inputs = values((sizes[0], sizes[2]), types[0]), values((sizes[2], sizes[1]), types[1])
            expected = reference(func, inputs)
            out = tvm.runtime.empty(expected.shape, result)
            module(*(tvm.runtime.tensor(x) for x in inputs), out)
            got, expected = (x.astype("float64") for x in (out.numpy(), expected))
            np.testing.assert_allclose(got, expected, rtol=2**-7, atol=0.05)


def test_with_bias_and_rounding():
    """What follows a product comes along with its tiles."""
    m, n, k = 30, 50, 70
    a, b = te.placeholder((m, k), "int8", "A"), te.placeholder((n, k), "int8", "B")
    bias, r = te.placeholder((n,), "int32", "bias"), te.reduce_axis((0, k), "k")
    wide = lambda e: e.astype("int32")
    c = te.compute((m, n), lambda i, j: te.sum(wide(a[i, r]) * wide(b[j, r]), r), "C")
    d = te.compute((m, n), lambda i, j: ((c[i, j] + bias[j]) >> 6).astype("int8"), "D")
    func = te.create_prim_func([a, b, bias, d])
    x, y, z = values((m, k), "int8"), values((n, k), "int8", 1), values((n,), "int32", 2) // 4096
    out = tvm.runtime.empty((m, n), "int8")
    compiled(func, HERE)(*(tvm.runtime.tensor(v) for v in (x, y, z)), out)
    expected = (x.astype("int32") @ y.astype("int32").T + z) >> 6
    np.testing.assert_array_equal(out.numpy(), expected.astype("int8"))


def test_copies_of_factors_are_none():
    """As padding by nothing leaves them: words are packed from what was copied."""
    a, b = te.placeholder((32, 64), "uint8", "A"), te.placeholder((64, 48), "int8", "B")
    copy = te.compute((32, 64), lambda i, j: a[i, j], "copied")
    r, wide = te.reduce_axis((0, 64), "k"), lambda e: e.astype("int32")
    value = lambda i, j: te.sum(wide(copy[i, r]) * wide(b[r, j]), r)
    sch = tir.Schedule(te.create_prim_func([a, b, te.compute((32, 48), value, "C")]))
    assert apply_default_rules(sch, "main", Target(target_of("znver4")))
    text = sch.mod.script()
    assert "copied" not in text and "dot_bytes" in text


def test_batches():
    s, m, n, k = 3, 17, 33, 30
    a, b = te.placeholder((s, m, k), "uint8", "A"), te.placeholder((s, k, n), "int8", "B")
    r, wide = te.reduce_axis((0, k), "k"), lambda e: e.astype("int32")
    value = lambda t, i, j: te.sum(wide(a[t, i, r]) * wide(b[t, r, j]), r)
    func = te.create_prim_func([a, b, te.compute((s, m, n), value, "C")])
    x, y = values((s, m, k), "uint8"), values((s, k, n), "int8", 1)
    out = tvm.runtime.empty((s, m, n), "int32")
    compiled(func, HERE)(tvm.runtime.tensor(x), tvm.runtime.tensor(y), out)
    np.testing.assert_array_equal(out.numpy(), x.astype("int32") @ y.astype("int32"))


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("padding", [0, 1])
def test_convolutions(channels_last, padding):
    c, size, o = 13, 9, 20
    shape = (1, size, size, c) if channels_last else (1, c, size, size)
    a, w = te.placeholder(shape, "int8", "A"), te.placeholder((o, c, 3, 3), "int8", "W")
    rc, ry, rx = (te.reduce_axis((0, e)) for e in (c, 3, 3))
    wide, inner = lambda e: e.astype("int32"), size + 2 * padding - 2

    def data(y, x, ch):
        y, x = y - padding, x - padding
        value = a[0, y, x, ch] if channels_last else a[0, ch, y, x]
        inside = tir.all(y >= 0, y < size, x >= 0, x < size)
        return tir.if_then_else(inside, value, tir.const(0, "int8")) if padding else value

    side = size + 2 * padding
    p = te.compute((side, side, c), data, "padded")
    value = lambda y, x, o: te.sum(
        wide(p[y + ry, x + rx, rc]) * wide(w[o, rc, ry, rx]), [rc, ry, rx]
    )
    func = te.create_prim_func([a, w, te.compute((inner, inner, o), value, "C")])
    x, v = values(shape, "int8"), values((o, c, 3, 3), "int8", 1)
    out = tvm.runtime.empty((inner, inner, o), "int32")
    compiled(func, HERE)(tvm.runtime.tensor(x), tvm.runtime.tensor(v), out)
    planes = np.moveaxis(x[0], -1, 0) if channels_last else x[0]
    planes = np.pad(planes.astype("int32"), [(0, 0), (padding, padding), (padding, padding)])
    views = np.lib.stride_tricks.sliding_window_view(planes, (3, 3), (1, 2))
    np.testing.assert_array_equal(
        out.numpy(), np.einsum("cyxij,ocij->yxo", views, v.astype("int32"))
    )


@pytest.mark.parametrize("types", [("int8", "int8"), ("bfloat16", "bfloat16")])
def test_interpreter_agrees(types):
    """The scheduled program itself, without lowering and code generation."""
    result = "int32" if types[0] == "int8" else "float32"
    func = product(9, 18, 7, *types, result)
    sch = tir.Schedule(func, debug_mask="all")
    assert apply_default_rules(sch, "main", Target(target_of("znver4")))
    assert any("dot_" in line for line in sch.mod.script().splitlines())
    inputs = values((9, 7), types[0]), values((7, 18), types[1], 1)
    expected = reference(func, inputs)
    out = np.zeros_like(expected)
    tir.interpret(sch.mod["main"])(*inputs, out)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("types", [("int8", "int8"), ("bfloat16", "bfloat16")])
def test_tuning_has_the_instructions_too(types):
    """The default schedule with other numbers, and tiles of any size."""
    result = "int32" if types[0] == "int8" else "bfloat16"
    context = ms.TuneContext(
        product(24, 64, 40, *types, result),
        target=Target(target_of("znver4")),
        space_generator="post-order-apply",
        search_strategy="replay-trace",
        rand_state=1,
    )
    packed = [s for s in context.generate_design_space() if "pack_products" in str(s.trace)]
    assert len(packed) > 1
    instruction = "vpdpbusd" if types[0] == "int8" else "vdpbf16ps"
    for sch in packed:
        assert f"\t{instruction}" in assembly(sch.mod, target_of("znver4"))
