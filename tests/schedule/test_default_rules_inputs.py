# SPDX-License-Identifier: Apache-2.0
"""Default rules on all kinds of input: types, empty and unit shapes, instruction sets, threads that
compile at once, and an interrupt."""

import concurrent.futures
import subprocess
import sys
import textwrap

import ml_dtypes
import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import te, tir

TARGET = tvm.testing.host_target("-num-cores=2")
DTYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int8", "uint8"]


def elementwise(n, m, dtype):
    a, b = te.placeholder((n, m), dtype, "A"), te.placeholder((m,), dtype, "B")
    value = lambda i, j: tir.max(a[i, j] + b[j], a[i, j] * b[j])
    return [a, b, te.compute((n, m), value, "out")]


def row_sum(n, m, dtype):
    a, k = te.placeholder((n, m), dtype, "A"), te.reduce_axis((0, m), "k")
    return [a, te.compute((n,), lambda i: te.sum(a[i, k], k), "out")]


def column_sum(n, m, dtype):
    a, k = te.placeholder((n, m), dtype, "A"), te.reduce_axis((0, n), "k")
    return [a, te.compute((m,), lambda i: te.sum(a[k, i], k), "out")]


def row_max(n, m, dtype):
    a, k = te.placeholder((n, m), dtype, "A"), te.reduce_axis((0, m), "k")
    return [a, te.compute((n,), lambda i: te.max(a[i, k], k), "out")]


def transpose(n, m, dtype):
    a = te.placeholder((n, m), dtype, "A")
    return [a, te.compute((m, n), lambda i, j: a[j, i], "out")]


def matmul(n, m, dtype, depth=24):
    a, b = te.placeholder((n, depth), dtype, "A"), te.placeholder((depth, m), dtype, "B")
    k = te.reduce_axis((0, depth), "k")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], k), "out")]


def dense(n, m, dtype, depth=24):
    a, b = te.placeholder((n, depth), dtype, "A"), te.placeholder((m, depth), dtype, "B")
    k = te.reduce_axis((0, depth), "k")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[j, k], k), "out")]


def softmax(n, m, dtype):
    a = te.placeholder((n, m), dtype, "A")
    k, l = te.reduce_axis((0, m), "k"), te.reduce_axis((0, m), "l")
    top = te.compute((n,), lambda i: te.max(a[i, k], k), "top")
    e = te.compute((n, m), lambda i, j: tir.exp(a[i, j] - top[i]), "e")
    total = te.compute((n,), lambda i: te.sum(e[i, l], l), "total")
    return [a, te.compute((n, m), lambda i, j: e[i, j] / total[i], "out")]


def softmax_of(a):
    e = np.exp(a - a.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


PROGRAMS = {
    "elementwise": (elementwise, lambda a, b: np.maximum(a + b, a * b)),
    "row sum": (row_sum, lambda a: a.sum(1)),
    "column sum": (column_sum, lambda a: a.sum(0)),
    "row max": (row_max, lambda a: a.max(1)),
    "transpose": (transpose, np.transpose),
    "matmul": (matmul, np.matmul),
    "dense": (dense, lambda a, b: a @ b.T),
}


def numpy_type(dtype):
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def check(args, reference, target=TARGET, sizes=None, exact=None):
    """Compiles without a schedule, runs, and compares with the reference in a wide type."""
    module = tvm.compile(te.create_prim_func(args), target=target)
    random = np.random.default_rng(0)
    for size in sizes or [{}]:
        shapes = [
            [size[d.name] if isinstance(d, tir.Var) else int(d) for d in a.shape] for a in args
        ]
        types = [numpy_type(a.dtype) for a in args]
        arrays = [
            random.integers(0, 2 if t.kind == "b" else 5, shape).astype(t)
            for shape, t in zip(shapes, types, strict=True)
        ]
        tensors = [tvm.runtime.tensor(x) for x in arrays]
        module(*tensors)
        wide = [x if x.dtype == bool else x.astype(np.float64 if x.dtype.kind in "fV" else np.int64)
                for x in arrays[:-1]]  # fmt: skip
        expected = np.asarray(reference(*wide))
        got = tensors[-1].numpy()
        if exact is None:
            np.testing.assert_array_equal(got, expected.astype(types[-1]))
        else:
            np.testing.assert_allclose(got.astype(np.float64), expected, rtol=exact, atol=exact)


# ---- types -------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_types(name, dtype):
    """Small integers: every order of summing gives the same, also in the short types."""
    program, reference = PROGRAMS[name]
    # bfloat16 has 8 bits: sums of more numbers would not be exact.
    n, m = (11, 20) if dtype == "bfloat16" else (37, 67)
    more = {"depth": 9} if name in ("matmul", "dense") and dtype == "bfloat16" else {}
    check(program(n, m, dtype, **more), reference)


@pytest.mark.parametrize(
    "dtype, error", [("float64", 1e-12), ("float16", 2e-3), ("bfloat16", 2e-2)]
)
def test_softmax_of_other_floats(dtype, error):
    check(softmax(9, 130, dtype), softmax_of, exact=error)


@pytest.mark.parametrize("n, m", [(1040, 1024), (1500, 1413), (40, 52003)])
def test_transposes_that_no_cache_holds(n, m):
    check(transpose(n, m, "float32"), np.transpose)


# {what is divided: (shape read, shape written, indices read, what NumPy makes of it)}
DIVIDED = {
    "blocks of 16": ((3, 9, 11, 16), (48, 9, 11), lambda c, i, j: (c // 16, i, j, c % 16),
                     lambda a: a.transpose(0, 3, 1, 2)),
    "blocks of 6": ((5, 7, 4, 6), (30, 7, 4), lambda c, i, j: (c // 6, i, j, c % 6),
                    lambda a: a.transpose(0, 3, 1, 2)),
    "blocks in blocks": ((2, 4, 33, 16), (128, 33), lambda c, i: (c // 64, c // 16 % 4, i, c % 16),
                         lambda a: a.transpose(0, 1, 3, 2)),
    "two axes": ((3, 5, 8, 16), (24, 80), lambda c, i: (c // 8, i // 16, c % 8, i % 16),
                 lambda a: a.transpose(0, 2, 1, 3)),
    "lines in a row": ((40, 16), (640,), lambda i: (i // 16, i % 16), lambda a: a),
    "part of the last block": ((3, 9, 16), (41, 9), lambda c, i: (c // 16, i, c % 16),
                               lambda a: a.transpose(0, 2, 1).reshape(48, 9)[:41]),
    "periods that do not divide": ((4, 9, 6), (24, 9), lambda c, i: (c // 6, i, c % 4),
                                   lambda a: np.array([a[c // 6, :, c % 4] for c in range(24)])),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("what", DIVIDED)
def test_divided_indices(what, dtype):
    read, written, indices, reference = DIVIDED[what]
    a = te.placeholder(read, dtype, "A")
    out = te.compute(written, lambda *i: a(*indices(*i)), "out")
    check([a, out], lambda a: reference(a).reshape(written))


def test_booleans():
    a, b = (te.placeholder((33, 70), "bool", name) for name in "AB")
    k = te.reduce_axis((0, 70), "k")
    both = te.compute((33, 70), lambda i, j: tir.all(a[i, j], tir.Not(b[i, j])), "out")
    check([a, b, both], lambda a, b: a & ~b)
    turned = te.compute((70, 33), lambda i, j: a[j, i], "out")
    check([a, turned], np.transpose)
    count = te.compute((33,), lambda i: te.sum(a[i, k].astype("int32"), k), "out")
    check([a, count], lambda a: a.sum(1))


# ---- shapes ------------------------------------------------------------------------------------
@pytest.mark.parametrize("shape", [(0, 8), (8, 0), (0, 0), (1, 1), (1, 100), (100, 1)])
@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "row max"])
def test_empty_and_unit_shapes(name, shape):
    program, reference = PROGRAMS[name]
    check(program(*shape, "float32"), reference)


@pytest.mark.parametrize("program", [matmul, dense])
def test_product_over_nothing(program):
    check(program(5, 20, "float32", depth=0), lambda a, b: np.zeros((5, 20)))


@pytest.mark.parametrize("shape", [(0, 8), (1, 1), (1, 64), (64, 1)])
def test_softmax_of_empty_and_unit_shapes(shape):
    check(softmax(*shape, "float32"), lambda a: softmax_of(a) if a.size else a, exact=1e-5)


N, M = te.var("n"), te.var("m")
DYNAMIC = [{"n": n, "m": m} for n, m in ((0, 5), (5, 0), (1, 1), (1, 200), (200, 1), (33, 65))]


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in ("row max", "matmul", "dense")])
def test_dynamic_shapes_that_are_empty_or_one(name):
    program, reference = PROGRAMS[name]
    check(program(N, M, "float32"), reference, sizes=DYNAMIC)


@pytest.mark.parametrize("name", ["matmul", "dense"])
def test_products_of_dynamic_many_rows(name):
    program, reference = PROGRAMS[name]
    check(program(N, 40, "float32"), reference, sizes=DYNAMIC)


# ---- instruction sets --------------------------------------------------------------------------
@pytest.mark.parametrize(
    "attributes", ["-avx512f", "-avx512f,-avx2,-fma", "-avx512f,-avx2,-avx,-fma"]
)
@pytest.mark.parametrize("name", [*PROGRAMS, "softmax"])
def test_without_instruction_sets(name, attributes):
    target = f"{TARGET} -mattr={attributes}"
    if name == "softmax":
        check(softmax(5, 130, "float32"), softmax_of, target, exact=1e-5)
    else:
        program, reference = PROGRAMS[name]
        check(program(33, 130, "float32"), reference, target)


@tvm.testing.requires_llvm
@pytest.mark.parametrize("attributes, width", [("-avx512f", 256), ("-avx512f,-avx2,-avx", 128)])
def test_vectors_are_as_wide_as_the_target_has_them(attributes, width):
    target = tvm.target.Target(f"llvm -mcpu=skylake-avx512 -mattr={attributes}")
    assert tvm.target.codegen.llvm_get_vector_width(target) == width
    module = tvm.compile(te.create_prim_func(elementwise(64, 640, "float32")), target=target)
    assert "zmm" not in module.get_source("asm")
    assert ("ymm" in module.get_source("asm")) == (width == 256)


# ---- at the same time, and interrupted ---------------------------------------------------------
def test_threads_compile_at_once():
    def one(i):
        program, reference = list(PROGRAMS.values())[i % len(PROGRAMS)]
        check(program(17 + i, 40, "float32"), reference)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(14)))


@tvm.testing.requires_llvm
def test_interrupt_while_compiling():
    """Ctrl-C ends what is under way with KeyboardInterrupt; what comes later works."""
    script = """
        import itertools, os, signal, threading
        import numpy as np, tvm
        from tvm import te

        def compiled(n):
            a, k = te.placeholder((n, 64), name="A"), te.reduce_axis((0, 64), "k")
            out = te.compute((n,), lambda i: te.sum(a[i, k], k), name="out")
            return tvm.compile(te.create_prim_func([a, out]), target="llvm -num-cores=2")

        compiled(1)
        interrupts = 0

        def interrupt(delay, received):
            # Once more where Python had to ignore it: in a destructor, say.
            while not received.wait(delay):
                os.kill(os.getpid(), signal.SIGINT)
                delay = 2

        for i in range(5):
            received = threading.Event()
            try:
                threading.Thread(target=interrupt, args=(0.01 * i, received), daemon=True).start()
                for n in itertools.count(2):
                    compiled(n)
            except KeyboardInterrupt:
                received.set()
                interrupts += 1
        x, y = tvm.runtime.tensor(np.ones((9, 64), "float32")), tvm.runtime.empty((9,), "float32")
        compiled(9)(x, y)
        print(interrupts, y.numpy().sum())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout.split()) == (0, ["5", "576.0"]), done.stderr


# ---- many cores --------------------------------------------------------------------------------
@pytest.mark.parametrize("shape, shared", [((2048, 64), 32), ((1000, 130), 50), ((1024, 8192), 16)])
def test_column_sums_on_many_cores(shape, shared):
    """Narrow matrices: threads share the rows, whose partial sums are added; wide ones: columns."""
    args, target = column_sum(*shape, "float32"), "llvm -num-cores=16 -mcpu=skylake-avx512"
    sch = tir.Schedule(te.create_prim_func(args))
    tir.schedule.apply_default_rules(sch, "main", tvm.target.Target(target))
    parallel = []
    tir.stmt_functor.post_order_visit(
        sch.mod["main"].body,
        lambda s: (
            parallel.append(int(s.extent))
            if isinstance(s, tir.For) and s.kind == tir.ForKind.PARALLEL
            else None
        ),
    )
    assert shared in parallel, sch.mod
    check(args, lambda a: a.sum(0), tvm.testing.host_target("-num-cores=16"))
