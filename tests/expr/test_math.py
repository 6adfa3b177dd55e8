# SPDX-License-Identifier: Apache-2.0
"""Mathematical functions: accuracy of what runs, special values, and folding to the same bits."""

import math

import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import te, tir

STRIDE = 40_009  # a prime: the sample meets every exponent and many different digits
EDGES = [
    0x00000000, 0x00000001, 0x007FFFFF, 0x00800000, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x42B17217,
    0x42B17218, 0x42B17219, 0x42CFF1B4, 0x42CFF1B5, 0x47FFFFFF, 0x48000000, 0x7F7FFFFF, 0x7F800000,
    0x7FC00000,
]  # fmt: skip


def bit_patterns(stride=STRIDE):
    edges = np.array(EDGES, np.uint32)
    bits = np.arange(0, 2**32, stride, dtype=np.uint64).astype(np.uint32)
    return np.concatenate([bits, edges, edges | np.uint32(0x80000000)]).view(np.float32)


def run(function, *arrays):
    """function of elements of the arrays, compiled for this machine."""
    dtype = str(arrays[0].dtype)
    shape = arrays[0].shape
    inputs = [te.placeholder(shape, dtype, name=f"A{i}") for i in range(len(arrays))]
    out = te.compute(shape, lambda *i: function(*(a[i] for a in inputs)), name="B")
    kernel = tvm.compile(te.create_prim_func([*inputs, out]), target=tvm.testing.host_target())
    result = tvm.runtime.tensor(np.zeros(shape, dtype))
    kernel(*(tvm.runtime.tensor(a) for a in arrays), result)
    return result.numpy()


def units(got, reference):
    """The distance in units in the last place; infinite where a special value is wrong."""
    with np.errstate(all="ignore"):
        rounded = reference.astype(got.dtype)
        info = np.finfo(got.dtype)
        smallest = np.longdouble(info.smallest_subnormal)
        exponent = np.frexp(np.abs(reference))[1].astype(np.longdouble)
        unit = np.maximum(np.exp2(exponent - 1 - info.nmant), smallest)
        there = got.astype(np.longdouble)
        distance = np.abs(there - reference.astype(np.longdouble)) / unit
    same = (got == rounded) & (np.signbit(got) == np.signbit(rounded))
    same |= np.isnan(got) & np.isnan(reference)
    distance = np.where(same, 0, distance)
    largest = np.longdouble(info.max)
    overflow = np.isinf(rounded) & np.isfinite(got)
    distance = np.where(overflow, (2 * largest - np.abs(there)) / largest, distance)
    wrong = np.isnan(got) != np.isnan(reference)
    wrong |= (got == 0) & (rounded == 0) & (np.signbit(got) != np.signbit(rounded))
    wrong |= np.isinf(got) & ~np.isinf(rounded)
    return np.where(wrong, np.inf, distance)


def check(name, got, reference, *args):
    distance = units(got, reference)
    worst = int(np.argmax(distance))
    values = [a[worst] for a in args]
    assert distance[worst] <= 2, (
        f"{name}{tuple(values)}: expected {reference[worst]}, got {got[worst]}: "
        f"{distance[worst]:.3g} units"
    )


def wide(function):
    def apply(*args):
        with np.errstate(all="ignore"):
            return function(*(a.astype(np.longdouble) for a in args))

    return apply


ERF = np.vectorize(math.erf, otypes=[np.float64])
UNARY = {
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.longdouble(10) ** x, "log": np.log,
    "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "tanh": np.tanh, "sinh": np.sinh,
    "cosh": np.cosh, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "erf": lambda x: ERF(x.astype(np.float64)),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_float32_over_the_whole_range(name):
    x = bit_patterns()
    check(name, run(getattr(tir, name), x), wide(UNARY[name])(x), x)


def double_patterns(count=60_000):
    """Every exponent, and more of the numbers one meets."""
    random = np.random.default_rng(0)
    bits = random.integers(0, 2**64, count, dtype=np.uint64).view(np.float64)
    usual = random.uniform(-30, 30, count)
    edges = np.array([0.0, 5e-324, 2.3e-308, 1.0, 709.7827, 745.133, 1.7e308, np.inf, np.nan])
    return np.concatenate([bits, usual, usual / 30, edges, -edges])


@pytest.mark.parametrize("name", UNARY)
def test_float64(name):
    x = double_patterns()
    check(name, run(getattr(tir, name), x), wide(UNARY[name])(x), x)


SPECIAL = [0.0, 1.0, 0.5, 2.0, 3.0, 2.5, 1e-40, 1e30, 3e38, 1e9 + 1, 16777215.0, np.inf, np.nan]


def pairs(dtype, count=100_000):
    random = np.random.default_rng(1)
    special = np.array(SPECIAL + [-s for s in SPECIAL], dtype)
    a, b = (g.ravel() for g in np.meshgrid(special, special))
    kind = np.uint32 if dtype == "float32" else np.uint64
    top = np.iinfo(kind).max
    bits = [random.integers(0, top, count, dtype=kind, endpoint=True).view(dtype) for _ in range(2)]
    near = [
        random.uniform(0, 20, count).astype(dtype),
        random.uniform(-30, 30, count).astype(dtype),
    ]
    return [np.concatenate(parts) for parts in zip((a, b), bits, near, strict=True)]


BINARY = {
    "pow": np.power,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "fmod": np.fmod,
    "copysign": np.copysign,
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", BINARY)
def test_two_arguments(name, dtype):
    a, b = pairs(dtype)
    check(name, run(getattr(tir, name), a, b), wide(BINARY[name])(a, b), a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_next_number_and_scaling(dtype):
    a, b = pairs(dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(tir.nextafter, a, b), np.nextafter(a, b))
        exponents = np.clip(np.nan_to_num(np.rint(b)), -3000, 3000).astype(dtype)
        expected = np.ldexp(a.astype(np.longdouble), exponents.astype(int)).astype(dtype)
    np.testing.assert_array_equal(run(tir.ldexp, a, exponents), expected)


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0, 3.0, 4.0, -1.0, 0.0, 2.5])
def test_constant_powers(power):
    x = bit_patterns(STRIDE * 7)
    exponent = np.full_like(x, power)
    got = run(lambda v: tir.pow(v, tir.const(power, "float32")), x)
    check("pow", got, wide(np.power)(x, exponent), x, exponent)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "sigmoid", "sin"])
def test_small_floats_round_once(name, dtype):
    x = tir.Var("x", dtype)
    expanded = tir.expand_math(tir.Call(dtype, tvm.ir.Op.get("tir." + name), [x]))
    while type(expanded).__name__ == "Let":
        expanded = expanded.body
    assert type(expanded).__name__ == "Cast" and expanded.dtype == dtype
    assert expanded.value.dtype == "float32"


def constant(dtype, value):
    return tir.FloatImm(dtype, float(value))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [*UNARY, *BINARY, "nextafter", "ldexp"])
def test_folding_gives_the_bits_of_a_run(name, dtype):
    unsigned = np.uint32 if dtype == "float32" else np.uint64
    if name in UNARY:
        arrays = [(bit_patterns(2**26 + 11) if dtype == "float32" else double_patterns(60))]
    else:
        arrays = [a[::97] for a in pairs(dtype, 3000)]
        # Powers with these constants are products, which round less often than the general way.
        arrays[1] = np.where(np.isin(arrays[1], [0.5, 1, 2, 3, 4, -1]), 0.75, arrays[1]).astype(
            dtype
        )
    got = run(getattr(tir, name), *arrays)
    for i, args in enumerate(zip(*arrays, strict=True)):
        call = tir.Call(dtype, tvm.ir.Op.get("tir." + name), [constant(dtype, a) for a in args])
        folded = tir.fold_math(call)
        assert type(folded).__name__ == "FloatImm", f"{name}{args} does not fold"
        value = np.array(folded.value, dtype)
        same = value.view(unsigned) == got[i].view(unsigned) or (
            np.isnan(value) and np.isnan(got[i])
        )
        assert same, f"{name}{args}: folds to {value}, runs to {got[i]}"


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "sigmoid", "sin", "atan"])
def test_interpreter_agrees(name):
    """The expansion, evaluated node by node, is as accurate as the function it stands for."""
    x = np.array(
        [0.0, -0.0, 1e-40, 0.3, -1.7, 2.5, 12.0, -88.0, 1e10, np.inf, -np.inf, np.nan], "float32"
    )
    n, i = len(x), tir.Var("i", "int32")
    a, b = (tir.decl_buffer((n,), "float32", name=s) for s in "AB")
    value = tir.expand_math(
        tir.Call("float32", tvm.ir.Op.get("tir." + name), [tir.BufferLoad(a, [i])])
    )
    body = tir.For(i, 0, n, tir.ForKind.SERIAL, tir.BufferStore(b, value, [i]))
    out = np.zeros(n, "float32")
    handles = [tir.Var(s, "handle") for s in "ab"]
    tir.interpret(tir.PrimFunc(handles, body, buffer_map=dict(zip(handles, (a, b), strict=True))))(
        x, out
    )
    check(name, out, wide(UNARY[name])(x), x)


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "sigmoid", "sin", "tan", "pow"])
def test_vectors(name):
    """A vector of values expands into the same arithmetic as one value."""
    x = bit_patterns(2**20 + 7)
    x = x[: len(x) // 16 * 16].reshape(-1, 16)
    args = [x, np.roll(x, 1)] if name == "pow" else [x]
    inputs = [tir.decl_buffer(x.shape, "float32", name=f"A{k}") for k in range(len(args))]
    out = tir.decl_buffer(x.shape, "float32", name="B")
    i = tir.Var("i", "int32")
    index = [i, tir.Ramp(0, 1, 16)]
    loads = [tir.BufferLoad(a, index) for a in inputs]
    store = tir.BufferStore(out, getattr(tir, name)(*loads), index)
    body = tir.For(i, 0, x.shape[0], tir.ForKind.SERIAL, store)
    handles = [tir.Var(f"h{k}", "handle") for k in range(len(args) + 1)]
    func = tir.PrimFunc(handles, body, buffer_map=dict(zip(handles, [*inputs, out], strict=True)))
    kernel = tvm.compile(func.with_attr("global_symbol", "main"), target=tvm.testing.host_target())
    got = tvm.runtime.tensor(np.zeros_like(x))
    kernel(*(tvm.runtime.tensor(a) for a in args), got)
    scalar = run(getattr(tir, name), *(a.ravel() for a in args))
    np.testing.assert_array_equal(got.numpy().ravel(), scalar)


def products_in_sums(expr):
    """The sums with a product as operand: what a compiler may contract to one operation."""
    lets, found = {}, []

    def visit(node):
        if isinstance(node, tir.Let):
            lets[node.var] = node.value
        elif isinstance(node, (tir.Add, tir.Sub)) and node.dtype.startswith("float"):
            for operand in (node.a, node.b):
                while isinstance(operand, tir.Var) and operand in lets:
                    operand = lets[operand]
                if isinstance(operand, tir.Mul):
                    found.append(node)

    # Values of lets come before the body in which they stand.
    order = []
    tir.stmt_functor.post_order_visit(tir.Evaluate(expr), order.append)
    for node in [n for n in order if isinstance(n, tir.Let)] + order:
        visit(node)
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [*UNARY, *BINARY, "nextafter", "ldexp"])
def test_nothing_to_contract(name, dtype):
    """Contraction would give other bits than folding, and break sums that recover a rounding error.
    Multiply-adds are written as such."""
    args = [tir.Var(n, dtype) for n in ("xy" if name in [*BINARY, "nextafter", "ldexp"] else "x")]
    expanded = tir.expand_math(tir.Call(dtype, tvm.ir.Op.get("tir." + name), args))
    assert not products_in_sums(expanded)


@pytest.mark.slow
@pytest.mark.parametrize("name", UNARY)
def test_float32_densely(name):
    """Every 251st number of all: 17 million each."""
    if name == "erf":
        pytest.skip("the reference of erf runs number by number")
    for part in np.array_split(bit_patterns(251), 16):
        part = part.copy()
        with np.errstate(all="ignore"):
            reference = UNARY[name](part.astype(np.float64))
        check(name, run(getattr(tir, name), part), reference, part)


def quotients_near_the_middle(rows, rng):
    """Divisors, and for each dividends whose quotient is almost halfway between two numbers: the
    products m b with an odd m of 25 bits that end in almost as many zeros."""
    b = (rng.integers(2**23, 2**24, rows, dtype=np.int64) | 1).astype(np.uint64)
    inverse = b.copy()
    for _ in range(5):
        inverse *= 2 - b * inverse
    a = []
    for zeros in (24, 25):
        for c in (1, 3, 5, -1, -3, -5):
            c = np.uint64(c % 2**64)
            m = (c * inverse) % np.uint64(2**zeros) | np.uint64(2**24)
            a.append((m * b - c) >> np.uint64(zeros))
            assert np.all((m * b - c) % np.uint64(2**24) == 0) and np.all(m % np.uint64(2) == 1)
    return np.stack(a, 1).astype(np.float32), b.astype(np.float32)


def test_division_by_one_number_has_the_bits_of_a_division():
    rng = np.random.default_rng(0)
    near, b = quotients_near_the_middle(4096, rng)
    a = rng.integers(2**23, 2**24, (4096, 96)).astype(np.float32)
    a[:, : near.shape[1]] = near
    scaled = (
        np.ldexp(a, rng.integers(-150, 100, (4096, 1))),
        np.ldexp(b, rng.integers(-45, 0, 4096)),
    )
    anything = [rng.integers(0, 2**32, n, dtype=np.uint64).astype(np.uint32).view(np.float32)
                for n in ((4096, 96), 4096)]  # fmt: skip
    divided, divisors = te.placeholder((4096, 96), name="A"), te.placeholder((4096,), name="B")
    out = te.compute((4096, 96), lambda i, j: divided[i, j] / divisors[i], name="C")
    kernel = tvm.compile(te.create_prim_func([divided, divisors, out]), target="llvm")
    for x, y in ((a, b), (-a, b), scaled, (a * np.float32(2**-23), -b), anything, (anything[0], b)):
        result = tvm.runtime.empty((4096, 96), "float32")
        kernel(tvm.runtime.tensor(x), tvm.runtime.tensor(y), result)
        with np.errstate(all="ignore"):
            expected = x / y[:, None]
        got = result.numpy()
        same = (got.view("u4") == expected.view("u4")) | (np.isnan(got) & np.isnan(expected))
        assert same.all(), (
            f"{x[~same][0]} / ...: expected {expected[~same][0]}, got {got[~same][0]}"
        )


@pytest.mark.parametrize("divisor, mcpu, products", [
    (3.0, "skylake-avx512", True), (4.0, "skylake-avx512", False), (3.0, "haswell", False),
])  # fmt: skip
def test_which_divisions_are_products(divisor, mcpu, products):
    a = te.placeholder((1024,), name="A")
    out = te.compute((1024,), lambda i: a[i] / tir.const(divisor, "float32"), name="C")
    module = tvm.compile(te.create_prim_func([a, out]), target=f"llvm -mcpu={mcpu} -num-cores=1")
    assert ("llvm.fma" in module.get_source("ll")) == products


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["exp", "sigmoid", "tanh", "erf", "sinh"])
def test_cpus_give_the_same_bits(name, dtype):
    """With the instructions of AVX-512, which scale by powers of two, and without."""
    try:
        with open("/proc/cpuinfo") as f:
            has = "avx512f" in f.read()
    except OSError:
        has = False
    if not has:
        pytest.skip("this CPU has no AVX-512")
    rng = np.random.default_rng(0)
    some = bit_patterns(2**13 + 7) if dtype == "float32" else double_patterns(2**18)
    others = (rng.uniform(-800, 800, 2**16), rng.standard_normal(2**16))
    x = np.concatenate([some, *(y.astype(dtype) for y in others)])
    a = te.placeholder(x.shape, dtype, name="A")
    func = te.create_prim_func([a, te.compute(x.shape, lambda i: getattr(tir, name)(a[i]), "B")])
    results = [np.zeros_like(x) for _ in range(2)]
    for result, cpu in zip(results, ("x86-64-v3", "x86-64-v4"), strict=True):
        kernel = tvm.compile(func, target=f"llvm -mcpu={cpu}")
        assert ("vscalef" in kernel.mod.inspect_source("asm")) == (cpu == "x86-64-v4")
        kernel(x, result)
    np.testing.assert_array_equal(*(r.view(f"u{r.itemsize}")[~np.isnan(r)] for r in results))
    np.testing.assert_array_equal(*map(np.isnan, results))
