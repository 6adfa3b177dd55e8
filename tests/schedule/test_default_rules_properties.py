# SPDX-License-Identifier: Apache-2.0
"""Every default rule for every type, size and instruction set, against float64 with a bound."""

import re
import threading

import ml_dtypes
import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import te

# Half the distance of 1 to the next number.
ROUNDING = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
CPUS = {"x86-64": (), "haswell": ("avx2", "fma"), "skylake-avx512": ("avx512f", "avx512vl")}
# Aligned, odd, prime, with one of something, with nothing.
SIZES = [(48, 64, 32), (61, 67, 37), (1, 33, 27), (15, 1, 64), (0, 16, 8), (16, 8, 0)]
# Every type on one of them, those that rules tell apart on all.
TYPES = [(t, cpu) for t in ("float32", "bfloat16", "int8") for cpu in CPUS]
TYPES += [(t, "haswell") for t in ("float64", "float16", "uint8")]


def wide(dtype):
    """What products of a type are summed up in."""
    return "int32" if dtype.startswith(("int", "uint")) else dtype


def product(n, m, d, dtype, batch=None, transposed=False, relu=False):
    lead = [] if batch is None else [batch]
    a = te.placeholder([*lead, n, d], dtype, "a")
    b = te.placeholder([*lead, m, d] if transposed else [*lead, d, m], dtype, "b")
    k, out = te.reduce_axis((0, d), "k"), wide(dtype)

    def value(*i):
        *o, i, j = i
        right = b(*o, j, k) if transposed else b(*o, k, j)
        return te.sum(a(*o, i, k).astype(out) * right.astype(out), k)

    c = te.compute([*lead, n, m], value, "c")
    if not relu:
        return [a, b, c]
    bias = te.placeholder([m], out, "bias")
    zero = tvm.tir.const(0, out)
    return [a, b, bias, te.compute((n, m), lambda i, j: te.max(c[i, j] + bias[j], zero), "relu")]


def row_sum(n, m, d, dtype):
    a, k = te.placeholder((n, m), dtype, "a"), te.reduce_axis((0, m), "k")
    return [a, te.compute((n,), lambda i: te.sum(a[i, k].astype(wide(dtype)), k), "out")]


def column_sum(n, m, d, dtype):
    a, k = te.placeholder((n, m), dtype, "a"), te.reduce_axis((0, n), "k")
    return [a, te.compute((m,), lambda i: te.sum(a[k, i].astype(wide(dtype)), k), "out")]


def convolution(n, m, d, dtype, step=1):
    """n filters of 3x3 over d channels, whose results are 4 lines of m columns."""
    a = te.placeholder((1, d, 4 * step + 2, m * step + 2), dtype, "a")
    w, out = te.placeholder((n, d, 3, 3), dtype, "w"), wide(dtype)
    c, y, x = (te.reduce_axis((0, e), name) for e, name in ((d, "c"), (3, "y"), (3, "x")))
    value = lambda _, o, i, j: te.sum(
        a[0, c, i * step + y, j * step + x].astype(out) * w[o, c, y, x].astype(out), [c, y, x]
    )
    return [a, w, te.compute((1, n, 4, m), value, "out")]


def depthwise(n, m, d, dtype):
    a = te.placeholder((1, n, 6, m + 2), dtype, "a")
    w, out = te.placeholder((n, 3, 3), dtype, "w"), wide(dtype)
    y, x = (te.reduce_axis((0, 3), name) for name in "yx")
    value = lambda _, o, i, j: te.sum(
        a[0, o, i + y, j + x].astype(out) * w[o, y, x].astype(out), [y, x]
    )
    return [a, w, te.compute((1, n, 4, m), value, "out")]


def _windows(a):
    return np.lib.stride_tricks.sliding_window_view(a, (3, 3), (2, 3))


# {name: (the program of sizes and a type, what NumPy makes of its inputs, terms of a sum)}
PROGRAMS = {
    "product": (product, lambda a, b: a @ b, lambda n, m, d: d),
    "product by a transpose": (
        lambda *sizes: product(*sizes, transposed=True),
        lambda a, b: a @ b.T,
        lambda n, m, d: d,
    ),
    "batch of products": (
        lambda *sizes: product(*sizes, batch=3),
        lambda a, b: a @ b,
        lambda n, m, d: d,
    ),
    "product, bias, relu": (
        lambda *sizes: product(*sizes, relu=True),
        lambda a, b, bias: np.maximum(a @ b + bias, 0),
        lambda n, m, d: d + 1,
    ),
    "row sum": (row_sum, lambda a: a.sum(1), lambda n, m, d: m),
    "column sum": (column_sum, lambda a: a.sum(0), lambda n, m, d: n),
    "convolution": (
        convolution,
        lambda a, w: np.einsum("ncyxij,ocij->noyx", _windows(a), w),
        lambda n, m, d: 9 * d,
    ),
    "strided convolution": (
        lambda *sizes: convolution(*sizes, step=2),
        lambda a, w: np.einsum("ncyxij,ocij->noyx", _windows(a)[:, :, :-1:2, :-1:2], w),
        lambda n, m, d: 9 * d,
    ),
    "depthwise convolution": (
        depthwise,
        lambda a, w: np.einsum("ncyxij,cij->ncyx", _windows(a), w),
        lambda n, m, d: 9,
    ),
}


def array(rng, shape, dtype):
    if dtype in ROUNDING:
        return rng.normal(0, 1, shape).astype(getattr(ml_dtypes, dtype, dtype))
    return rng.integers(np.iinfo(dtype).min // 2**24, 128, shape).astype(dtype)


def arrays_of(args, rng):
    return [array(rng, [int(s) for s in t.shape], str(t.dtype)) for t in args[:-1]]


def call(module, arrays, result):
    out = tvm.runtime.empty([int(s) for s in result.shape], result.dtype)
    module["main"](*map(tvm.runtime.tensor, arrays), out)
    return out.numpy()


def check(name, dtype, module, sizes, rng):
    """The error is at most that of a sum in any order that is rounded. Products are summed up in
    float32 or better, numbers alone in their own type."""
    program, reference, terms = PROGRAMS[name]
    args = program(*sizes, dtype)
    arrays = arrays_of(args, rng)
    got = call(module, arrays, args[-1]).astype("float64")
    doubles = [x.astype("float64") for x in arrays]
    exact = reference(*doubles)
    if dtype not in ROUNDING:
        np.testing.assert_array_equal(got, exact)
        return
    inside = ROUNDING[dtype]
    if not name.endswith(" sum"):
        inside = min(inside, ROUNDING["float32"])
    size = reference(*map(np.abs, doubles))
    # What is added to a sum is added to one that was rounded.
    rounded = size if "bias" in name else np.abs(exact)
    bound = 2 * terms(*sizes) * inside * size + 2 * ROUNDING[dtype] * rounded
    assert (np.abs(got - exact) <= bound).all(), (sizes, np.abs(got - exact).max())


def target_of(cpu):
    if not tvm.testing.device_enabled("llvm"):
        pytest.skip("no code generator here")
    if missing := [f for f in CPUS[cpu] if not tvm.target.codegen.llvm_cpu_has_features(f)]:
        pytest.skip(f"this processor has no {missing}")
    return f"llvm -num-cores=2 -mcpu={cpu}"


@pytest.mark.parametrize("dtype, cpu", TYPES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_sizes(name, dtype, cpu):
    rng, target = np.random.default_rng(0), target_of(cpu)
    for sizes in SIZES:
        func = te.create_prim_func(PROGRAMS[name][0](*sizes, dtype))
        check(name, dtype, tvm.compile(func, target), sizes, rng)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("dtype, dynamic", [("float32", "n"), ("float32", "nmd"), ("int8", "n")])
@pytest.mark.parametrize("name", PROGRAMS)
def test_dynamic_sizes(name, dtype, cpu, dynamic):
    rng, target = np.random.default_rng(0), target_of(cpu)
    static = {"m": 48, "d": 33}
    args = PROGRAMS[name][0](*(te.var(s) if s in dynamic else static[s] for s in "nmd"), dtype)
    module = tvm.compile(te.create_prim_func(args), target)
    for sizes in SIZES:
        known = [size if s in dynamic else static[s] for s, size in zip("nmd", sizes, strict=True)]
        check(name, dtype, module, known, rng)


@pytest.mark.parametrize("name", PROGRAMS)
def test_calls_of_several_threads(name):
    args, rng = PROGRAMS[name][0](61, 96, 70, "float32"), np.random.default_rng(0)
    module = tvm.compile(te.create_prim_func(args), target_of("x86-64"))
    inputs = [arrays_of(args, rng) for _ in range(4)]
    want = [call(module, arrays, args[-1]) for arrays in inputs]
    failures = []

    def run(i):
        for _ in range(50):
            if not np.array_equal(call(module, inputs[i], args[-1]), want[i]):
                failures.append(i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("name", PROGRAMS)
def test_unaligned_inputs(name):
    """Arrays may begin at any element."""
    args, rng = PROGRAMS[name][0](61, 96, 70, "float32"), np.random.default_rng(0)
    module = tvm.compile(te.create_prim_func(args), target_of("x86-64"))
    arrays, tensors = arrays_of(args, rng), []
    want = call(module, arrays, args[-1])
    shape = [int(s) for s in args[-1].shape]
    for x in [*arrays, np.empty(shape, "float32")]:
        room = np.empty(x.size + 64, x.dtype)
        room[1 : x.size + 1] = x.ravel()
        tensors.append(tvm.runtime.from_dlpack(room[1 : x.size + 1].reshape(x.shape)))
    module["main"](*tensors)
    np.testing.assert_array_equal(tensors[-1].numpy(), want)


# ---- inputs --------------------------------------------------------------------------------------
EVERY_CPU = pytest.mark.parametrize("cpu", CPUS)


@EVERY_CPU
@pytest.mark.parametrize("name", PROGRAMS)
def test_strided_inputs(name, cpu):
    """Every other element of lines that are longer than they seem."""
    args, rng = PROGRAMS[name][0](21, 40, 33, "float32"), np.random.default_rng(0)
    plain = te.create_prim_func(args)
    arrays = arrays_of(args, rng)
    want = call(tvm.compile(plain, target_of(cpu)), arrays, args[-1])

    views = []
    for x in [*arrays, np.zeros([int(s) for s in args[-1].shape], "float32")]:
        room = np.full([2 * (size + 3) for size in x.shape], np.nan, x.dtype)
        views.append(room[tuple(slice(0, 2 * size, 2) for size in x.shape)])
        views[-1][...] = x
    strides = iter([[step // 4 for step in view.strides] for view in views])
    declared = re.compile(r'T.Buffer\(\((.*?)\), "float32"\)')
    text = declared.sub(
        lambda found: f'T.Buffer(({found[1]}), "float32", strides={next(strides)})', plain.script()
    )
    module = tvm.compile(tvm.script.from_source(text), target_of(cpu))
    module["main"](*map(tvm.runtime.from_dlpack, views))
    np.testing.assert_allclose(views[-1], want, rtol=1e-5, atol=1e-5)


@EVERY_CPU
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_nan_and_infinities(name, dtype, cpu):
    """They reach the results that they are part of, as NumPy says, and no others."""
    program, reference, _ = PROGRAMS[name]
    args, rng = program(21, 37, 33, dtype), np.random.default_rng(0)
    arrays = arrays_of(args, rng)
    for special in (np.nan, np.inf, -np.inf):
        arrays[0].reshape(-1)[rng.integers(arrays[0].size)] = special
    got = call(tvm.compile(te.create_prim_func(args), target_of(cpu)), arrays, args[-1])
    with np.errstate(invalid="ignore"):
        exact = reference(*(x.astype("float64") for x in arrays))
    got = got.astype("float64")
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(exact))
    special = ~np.isfinite(exact)
    if "relu" not in name:  # (which of a NaN and a number is larger is open)
        np.testing.assert_array_equal(got[special], exact[special])


@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_of_threads(name):
    """The schedule is that of the target's cores, whoever runs it; of others the sums are near."""
    args, rng = PROGRAMS[name][0](61, 96, 70, "float32"), np.random.default_rng(0)
    arrays, func = arrays_of(args, rng), te.create_prim_func(args)
    many = target_of("x86-64").replace("-num-cores=2", "-num-cores={}")
    one, *others = (
        call(tvm.compile(func, many.format(cores)), arrays, args[-1]) for cores in (1, 2, 3, 16)
    )
    for got in others:
        np.testing.assert_allclose(got, one, rtol=1e-5, atol=1e-4)
