# SPDX-License-Identifier: Apache-2.0
"""Default rules: what they make of functions that nobody scheduled, and that results stay."""

import re

import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import te, tir
from tvm.ir import assert_structural_equal
from tvm.script import tir as T
from tvm.target import Target
from tvm.tir.schedule import apply_default_rules, is_scheduled

TARGET = tvm.testing.host_target("-num-cores=2")
TARGETS = [
    TARGET,
    "c -num-cores=2",
    "llvm -num-cores=1",
    "llvm -num-cores=4 -mcpu=haswell",
    "llvm -num-cores=2 -mcpu=x86-64",
]


def placeholder(*shape, name="A", dtype="float32"):
    return te.placeholder(shape, dtype, name)


def sigmoid(*shape):
    a = placeholder(*shape)
    return [a, te.compute(shape, lambda *i: 1 / (1 + tir.exp(-a(*i))), "out")]


def relu_of_bias(n, c, h, w):
    a, b = placeholder(n, c, h, w), placeholder(c, name="b")
    zero = tir.const(0, "float32")
    value = lambda n, c, h, w: tir.max(a[n, c, h, w] + b[c], zero)
    return [a, b, te.compute((n, c, h, w), value, "out")]


def row_sum(n, m):
    a, k = placeholder(n, m), te.reduce_axis((0, m), "k")
    return [a, te.compute((n,), lambda i: te.sum(a[i, k], k), "out")]


def row_sum_relu(n, m):
    a, total = row_sum(n, m)
    zero = tir.const(0, "float32")
    return [a, te.compute((n,), lambda i: tir.max(total[i], zero), "relu")]


def column_sum(n, m):
    a, k = placeholder(n, m), te.reduce_axis((0, n), "k")
    return [a, te.compute((m,), lambda i: te.sum(a[k, i], k), "out")]


def whole_sum(n, m):
    a, k, l = placeholder(n, m), te.reduce_axis((0, n), "k"), te.reduce_axis((0, m), "l")
    return [a, te.compute((1,), lambda i: te.sum(a[k, l], [k, l]), "out")]


def sum_over(axes, *shape):
    a = placeholder(*shape)
    reduced = {d: te.reduce_axis((0, shape[d])) for d in axes}
    kept = [d for d in range(len(shape)) if d not in axes]

    def value(*i):
        index = dict(zip(kept, i, strict=False)) | reduced
        return te.sum(a(*[index[d] for d in range(len(shape))]), list(reduced.values()))

    return [a, te.compute([shape[d] for d in kept] or [1], value, "out")]


def softmax(n, m):
    a, k, l = placeholder(n, m), te.reduce_axis((0, m), "k"), te.reduce_axis((0, m), "l")
    top = te.compute((n,), lambda i: te.max(a[i, k], k), "top")
    e = te.compute((n, m), lambda i, j: tir.exp(a[i, j] - top[i]), "e")
    total = te.compute((n,), lambda i: te.sum(e[i, l], l), "total")
    return [a, te.compute((n, m), lambda i, j: e[i, j] / total[i], "out")]


def transpose(n, m):
    a = placeholder(n, m)
    return [a, te.compute((m, n), lambda i, j: a[j, i], "out")]


def matmul(n, m, d):
    a, b = placeholder(n, d), placeholder(d, m, name="B")
    k = te.reduce_axis((0, d), "k")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], k), "out")]


def matmul_relu(n, m, d):
    a, b, c = matmul(n, m, d)
    zero = tir.const(0, "float32")
    return [a, b, te.compute((n, m), lambda i, j: tir.max(c[i, j], zero), "relu")]


def dense(n, m, d):
    a, b = placeholder(n, d), placeholder(m, d, name="B")
    k = te.reduce_axis((0, d), "k")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[j, k], k), "out")]


def conv(c, size, out, window):
    a = placeholder(1, c, size + window - 1, size + window - 1)
    w = placeholder(out, c, window, window, name="W")
    rc, ry, rx = (te.reduce_axis((0, e), n) for n, e in [("rc", c), ("ry", window), ("rx", window)])
    value = lambda n, o, y, x: te.sum(a[n, rc, y + ry, x + rx] * w[o, rc, ry, rx], [rc, ry, rx])
    return [a, w, te.compute((1, out, size, size), value, "out")]


def strided_conv(c, size, out, window):
    a = placeholder(1, c, 2 * size + window - 2, 2 * size + window - 2)
    w = placeholder(out, c, window, window, name="W")
    rc, ry, rx = (te.reduce_axis((0, e), n) for n, e in [("rc", c), ("ry", window), ("rx", window)])
    value = lambda n, o, y, x: te.sum(
        a[n, rc, 2 * y + ry, 2 * x + rx] * w[o, rc, ry, rx], [rc, ry, rx]
    )
    return [a, w, te.compute((1, out, size, size), value, "out")]


def depthwise(c, size, window):
    a = placeholder(1, c, size + window - 1, size + window - 1)
    w = placeholder(c, window, window, name="W")
    ry, rx = (te.reduce_axis((0, window), n) for n in ("ry", "rx"))
    value = lambda n, c, y, x: te.sum(a[n, c, y + ry, x + rx] * w[c, ry, rx], [ry, rx])
    return [a, w, te.compute((1, c, size, size), value, "out")]


def padded_depthwise(c, size, window):
    a, rest = placeholder(1, c, size, size), window // 2
    inside = lambda i: tir.all(i >= rest, i < size + rest)
    value = lambda n, c, y, x: tir.if_then_else(
        tir.all(inside(y), inside(x)), a[n, c, y - rest, x - rest], 0.0
    )
    padded = te.compute((1, c, size + 2 * rest, size + 2 * rest), value, "padded")
    w = placeholder(c, window, window, name="W")
    ry, rx = (te.reduce_axis((0, window), n) for n in ("ry", "rx"))
    value = lambda n, c, y, x: te.sum(padded[n, c, y + ry, x + rx] * w[c, ry, rx], [ry, rx])
    return [a, w, te.compute((1, c, size, size), value, "out")]


def concatenation(n, m, d):
    a, b = placeholder(n, d), placeholder(m, d, name="B")
    value = lambda i, j: tir.if_then_else(i < n, a[i, j], b[i - n, j])
    return [a, b, te.compute((n + m, d), value, "out")]


def softmax_of(a):
    e = np.exp(a - a.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def conv_of(a, w):
    window = w.shape[-1]
    views = np.lib.stride_tricks.sliding_window_view(a, (window, window), (2, 3))
    return np.einsum("ncyxij,ocij->noyx", views, w)


def depthwise_of(a, w):
    views = np.lib.stride_tricks.sliding_window_view(a, w.shape[1:], (2, 3))
    return np.einsum("ncyxij,cij->ncyx", views, w)


CASES = {
    "sigmoid": (sigmoid(64, 64), lambda a: 1 / (1 + np.exp(-a))),
    "sigmoid of odd sizes": (sigmoid(7, 11, 13), lambda a: 1 / (1 + np.exp(-a))),
    "sigmoid of one": (sigmoid(1), lambda a: 1 / (1 + np.exp(-a))),
    "broadcast": (
        relu_of_bias(2, 5, 9, 30),
        lambda a, b: np.maximum(a + b[None, :, None, None], 0),
    ),
    "row sum": (row_sum(33, 257), lambda a: a.sum(1)),
    "column sum": (column_sum(65, 333), lambda a: a.sum(0)),
    "whole sum": (whole_sum(128, 512), lambda a: a.sum().reshape(1)),
    "sum of leading axes": (sum_over((0, 1), 16, 64, 70), lambda a: a.sum((0, 1))),
    "sum of trailing axes": (sum_over((1, 2), 2, 60, 70), lambda a: a.sum((1, 2))),
    "sum of axes apart": (sum_over((0, 2), 30, 7, 40), lambda a: a.sum((0, 2))),
    "sum of all axes": (sum_over((0, 1, 2), 3, 50, 70), lambda a: a.sum().reshape(1)),
    "softmax": (softmax(20, 100), softmax_of),
    "softmax of odd sizes": (softmax(3, 67), softmax_of),
    "softmax of groups of rows": (softmax(96, 70), softmax_of),
    "transpose": (transpose(64, 128), lambda a: a.T),
    "transpose of odd sizes": (transpose(37, 53), lambda a: a.T),
    "transpose of prime sizes": (transpose(211, 307), lambda a: a.T),
    "matmul": (matmul(64, 96, 32), lambda a, b: a @ b),
    "matmul of odd sizes": (matmul(37, 83, 19), lambda a, b: a @ b),
    "matmul with relu": (matmul_relu(64, 64, 40), lambda a, b: np.maximum(a @ b, 0)),
    "matmul of lines that collide": (matmul(64, 1024, 32), lambda a, b: a @ b),
    "dense": (dense(24, 40, 64), lambda a, b: a @ b.T),
    "dense of lines that collide": (dense(24, 1024, 32), lambda a, b: a @ b.T),
    "vector times matrix": (matmul(1, 200, 300), lambda a, b: a @ b),
    "matrix times vector": (dense(1, 100, 300), lambda a, b: a @ b.T),
    "convolution": (conv(5, 14, 12, 3), conv_of),
    "strided convolution": (strided_conv(8, 6, 32, 3), lambda a, w: conv_of(a, w)[..., ::2, ::2]),
    "strided convolution of single elements": (
        strided_conv(8, 6, 32, 1),
        lambda a, w: conv_of(a, w)[..., ::2, ::2],
    ),
    "convolution of narrow lines": (conv(1024, 7, 16, 1), conv_of),
    "convolution of odd sizes": (conv(3, 31, 13, 2), conv_of),
    "depthwise convolution": (depthwise(6, 28, 3), depthwise_of),
    "padded depthwise convolution": (
        padded_depthwise(6, 15, 3),
        lambda a, w: depthwise_of(np.pad(a, [(0, 0), (0, 0), (1, 1), (1, 1)]), w),
    ),
    "concatenation": (concatenation(5, 6, 70), lambda *parts: np.concatenate(parts)),
}


def values_of(args, sizes=None):
    random = np.random.default_rng(0)
    shape = lambda a: [sizes[d.name] if isinstance(d, tir.Var) else int(d) for d in a.shape]
    *inputs, out = [random.normal(size=shape(a)).astype("float32") for a in args]
    return inputs, np.zeros_like(out)


def run(module, inputs, out):
    tensors = [tvm.runtime.tensor(x) for x in (*inputs, out)]
    module(*tensors)
    return tensors[-1].numpy()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("target", dict.fromkeys(TARGETS))
def test_results(name, target):
    if not tvm.testing.device_enabled(target):
        pytest.skip(f"no code generator for {target} here")
    args, reference = CASES[name]
    inputs, out = values_of(args)
    got = run(tvm.build(te.create_prim_func(args), target=target), inputs, out)
    tvm.testing.assert_allclose(got, reference(*inputs), rtol=1e-4, atol=1e-4)


SMALL = {
    "sigmoid of odd sizes": sigmoid(3, 5, 7),
    "softmax": softmax(3, 40),
    "matmul": matmul(8, 33, 6),
    "transpose": transpose(16, 33),
    "dense": dense(17, 16, 5),
}


@pytest.mark.parametrize("name", SMALL)
def test_interpreter_agrees(name):
    """The scheduled program itself, without lowering and code generation."""
    args, reference = SMALL[name], CASES[name][1]
    sch = tir.Schedule(te.create_prim_func(args), debug_mask="all")
    assert apply_default_rules(sch, "main", Target(TARGET))
    inputs, out = values_of(args)
    tir.interpret(sch.mod["main"])(*inputs, out)
    tvm.testing.assert_allclose(out, reference(*inputs), rtol=1e-4, atol=1e-4)


N, M, K = te.var("n"), te.size_var("m"), te.var("k")
DYNAMIC = {
    "sigmoid": (sigmoid(N, M), CASES["sigmoid"][1]),
    "sigmoid of rows": (sigmoid(N, 48), CASES["sigmoid"][1]),
    "broadcast": (relu_of_bias(2, N, M, 30), CASES["broadcast"][1]),
    "row sum": (row_sum(N, M), lambda a: a.sum(1)),
    "column sum": (column_sum(N, M), lambda a: a.sum(0)),
    "sum of leading axes": (sum_over((0, 1), N, 5, M), lambda a: a.sum((0, 1))),
    "softmax": (softmax(N, M), softmax_of),
    "row sum with relu": (row_sum_relu(N, M), lambda a: np.maximum(a.sum(1), 0)),
    "transpose": (transpose(N, M), lambda a: a.T),
    "matmul": (matmul(N, 48, 32), lambda a, b: a @ b),
    "matmul of unknown sizes": (matmul(N, M, K), lambda a, b: a @ b),
    "matmul with relu": (matmul_relu(N, M, K), lambda a, b: np.maximum(a @ b, 0)),
    "dense": (dense(N, M, 40), lambda a, b: a @ b.T),
}
SIZES = [(1, 1, 1), (5, 7, 3), (64, 256, 20), (77, 333, 65), (4, 64, 0), (3, 0, 5), (0, 9, 4)]


@pytest.mark.parametrize("name", DYNAMIC)
@pytest.mark.parametrize("target", dict.fromkeys([TARGET, "c -num-cores=2"]))
def test_dynamic_shapes(name, target):
    if not tvm.testing.device_enabled(target):
        pytest.skip(f"no code generator for {target} here")
    args, reference = DYNAMIC[name]
    module = tvm.build(te.create_prim_func(args), target=target)
    for n, m, k in SIZES:
        if name == "softmax" and m == 0:  # NumPy has no maximum of nothing
            continue
        inputs, out = values_of(args, {"n": n, "m": m, "k": k})
        tvm.testing.assert_allclose(
            run(module, inputs, out), reference(*inputs), rtol=1e-4, atol=1e-4
        )


@pytest.mark.parametrize("name", DYNAMIC)
def test_dynamic_shapes_are_in_vectors(name):
    args, _ = DYNAMIC[name]
    target = "llvm -num-cores=2 -mcpu=skylake-avx512"
    _, sch = scheduled(args, target)
    assert "PARALLEL" in [kind for kind, _ in loops_of(sch)]
    if tvm.testing.device_enabled("llvm"):
        code = tvm.compile(te.create_prim_func(args), target).mod.inspect_source("ll")
        assert re.search(r"<\d+ x float>", code)


def scheduled(args, target="llvm -num-cores=2"):
    sch = tir.Schedule(te.create_prim_func(args))
    rule = apply_default_rules(sch, "main", Target(target))
    return rule, sch


def loops_of(sch):
    kinds = []
    tir.stmt_functor.post_order_visit(
        sch.mod["main"].body,
        lambda s: (
            kinds.append((tir.ForKind(s.kind).name, s.extent)) if isinstance(s, tir.For) else None
        ),
    )
    return kinds


def test_elementwise_is_parallel_and_in_vectors():
    rule, sch = scheduled(sigmoid(1024, 1024), "llvm -num-cores=2 -mcpu=skylake-avx512")
    assert rule == "BlockByBlock"
    assert loops_of(sch) == [("VECTORIZED", 64), ("PARALLEL", 16384)]


def test_small_work_is_not_parallel():
    _, sch = scheduled(sigmoid(8, 64))
    assert "PARALLEL" not in [kind for kind, _ in loops_of(sch)]


def test_one_core_is_not_parallel():
    _, sch = scheduled(sigmoid(1024, 1024), "llvm -num-cores=1")
    assert "PARALLEL" not in [kind for kind, _ in loops_of(sch)]


def test_stages_of_a_row_run_together():
    rule, sch = scheduled(softmax(1024, 1024))
    assert rule == "RowByRow"
    assert [kind for kind, _ in loops_of(sch)].count("PARALLEL") == 1


@pytest.mark.parametrize("cores", [1, 2, 16])
@pytest.mark.parametrize(
    "args",
    [matmul(1, 1000, 1000), column_sum(1000, 1000), sum_over((0, 1), 64, 64, 64)],
    ids=["product", "columns", "leading axes"],
)
def test_sums_across_memory_are_in_vectors(args, cores):
    """Also those of parts for threads, and without asking whether an element is one."""
    _, sch = scheduled(args, f"llvm -num-cores={cores} -mcpu=skylake-avx512")
    text = sch.mod.script()
    assert "T.where" not in text and "_update" in text
    blocks_in_vectors = re.findall(r"T\.vectorized.*\n *with T\.block", text)
    assert len(blocks_in_vectors) == len(re.findall(r"T\.block\(.*_(?:init|update)", text))


def test_several_loops_of_a_reduction_start_once():
    _, sch = scheduled(sum_over((0, 2), 64, 64, 70))
    assert sch.get_block("out_init") and sch.get_block("out_update")


def test_parts_of_a_reduction_stay_runs_of_memory():
    """Threads share the second axis; what they read in one go is whole."""
    _, sch = scheduled(sum_over((0, 1, 2), 3, 1000, 130), "llvm -num-cores=2")
    assert ("PARALLEL", 8) in loops_of(sch) and ("SERIAL", 125 * 130) in loops_of(sch)


@pytest.mark.parametrize("rows, columns, groups", [
    (1024, 256, 256), (1024, 1024, 512), (1024, 4096, 1024), (1023, 256, 341), (1021, 256, 1021),
    (8, 256, 8),
])  # fmt: skip
def test_short_rows_go_through_a_stage_together(rows, columns, groups):
    """As many as fit in the cache and leave work for all threads, without a rest."""
    _, sch = scheduled(softmax(rows, columns), "llvm -num-cores=2 -l1-cache-bytes=32768")
    assert loops_of(sch)[-1][1] == groups


@pytest.mark.parametrize("cpu, side", [("x86-64-v4", 16), ("x86-64-v3", 8), ("x86-64-v2", 4)])
def test_transposes_take_few_shuffles(cpu, side):
    _, sch = scheduled(transpose(1024, 512), f"llvm -num-cores=2 -mcpu={cpu}")
    steps = {16: 4, 8: 3, 4: 2}[side]
    assert sch.mod.script().count("T.Shuffle(") == side * steps


def test_products_are_tiled():
    _, sch = scheduled(matmul(512, 512, 512))
    kinds = [kind for kind, _ in loops_of(sch)]
    assert "UNROLLED" in kinds and "VECTORIZED" in kinds and "PARALLEL" in kinds


@pytest.mark.parametrize("size, lanes", [(32, {16}), (28, {16, 12}), (14, {14}), (7, {7})])
def test_tiles_of_convolutions_fill_vectors(size, lanes):
    _, sch = scheduled(conv(64, size, 64, 3), "llvm -num-cores=2 -mcpu=skylake-avx512")
    assert {n for kind, n in loops_of(sch) if kind == "VECTORIZED"} == lanes


def test_depthwise_convolution_is_in_vectors():
    _, sch = scheduled(depthwise(64, 56, 3), "llvm -num-cores=2 -mcpu=skylake-avx512")
    assert ("VECTORIZED", 56) in loops_of(sch)


@pytest.mark.parametrize("make", [matmul, dense])
def test_operands_of_colliding_lines_are_packed(make):
    _, sch = scheduled(make(128, 1024, 256), "llvm -num-cores=2 -mcpu=skylake-avx512")
    copy = sch.get(sch.get_block("B_global")).writes[0].buffer
    assert [int(n) for n in copy.shape] == [16, 256, 64]


def test_operands_that_are_turned_are_packed():
    """Tiles as wide as the second cache holds for all of the reduction, one behind the other."""
    target = "llvm -num-cores=2 -mcpu=skylake-avx512 -l2-cache-bytes=1048576"
    for depth, width in ((512, 64), (3072, 32)):
        _, sch = scheduled(dense(128, 512, depth), target)
        copy = sch.get(sch.get_block("B_global")).writes[0].buffer
        assert [int(n) for n in copy.shape] == [512 // width, depth, width]


def test_threads_share_products_in_squares():
    """Each of 16 threads makes 64 x 64 of the result, and turns the columns that it reads."""
    _, sch = scheduled(dense(128, 512, 512), "llvm -num-cores=16 -mcpu=skylake-avx512")
    parallel = [n for kind, n in loops_of(sch) if kind == "PARALLEL"]
    rows_of_tile, columns_of_tile = 4, 64
    assert parallel == [512 // 16, (128 // rows_of_tile) * (512 // columns_of_tile)]


def test_concatenation_is_in_vectors():
    _, sch = scheduled(concatenation(64, 64, 128), "llvm -num-cores=2 -mcpu=skylake-avx512")
    assert ("VECTORIZED", 64) in loops_of(sch)


def test_what_a_window_reads_again_is_not_computed_again():
    _, sch = scheduled(padded_depthwise(16, 28, 3))
    assert sch.get_block("padded")


def test_axes_that_are_one_run_of_memory_stay_one():
    """Lines of 56 in vectors of 64: the index is simple again once the buffer is flat."""
    module = tvm.compile(te.create_prim_func(relu_of_bias(1, 64, 56, 56)), "llvm -mcpu=x86-64-v4")
    assert "gather" not in module.mod.inspect_source("ll")


def test_traces_replay():
    for name in ("sigmoid", "softmax", "matmul of odd sizes", "transpose", "convolution"):
        func = te.create_prim_func(CASES[name][0])
        sch = tir.Schedule(func)
        apply_default_rules(sch, "main", Target(TARGET))
        again = tir.Schedule(func)
        sch.trace.apply_to_schedule(again, remove_postproc=False)
        assert_structural_equal(again.mod, sch.mod)


# ---- who is left alone ------------------------------------------------------------------------
def lowered(func, **config):
    mod = tvm.IRModule({"main": func.with_attr("target", Target(TARGET))})
    with tvm.transform.PassContext(config=config):
        return tir.transform.DefaultSchedule()(mod)["main"]


def test_scheduled_functions_stay():
    func = te.create_prim_func(sigmoid(1024, 1024))
    assert not is_scheduled(func)
    by_hand = tir.Schedule(func)
    by_hand.split(by_hand.get_loops("out")[0], [None, 4])

    @T.prim_func
    def unrolled(a: T.Buffer((1024,), "float32"), b: T.Buffer((1024,), "float32")):
        for i in T.unroll(1024):
            with T.block("b"):
                v = T.axis.spatial(1024, i)
                b[v] = a[v] + 1.0

    for one in (func.with_attr("tir.is_scheduled", True), by_hand.mod["main"], unrolled):
        assert is_scheduled(one)
        assert_structural_equal(lowered(one).body, one.body)


@tvm.testing.requires_llvm
def test_option_turns_it_off():
    args, reference = CASES["matmul"]
    func = te.create_prim_func(args)
    inputs, out = values_of(args)
    with tvm.transform.PassContext(config={"tir.default_schedule": False}):
        module = tvm.build(func, target="llvm -num-cores=2 -opt-level=0")
    assert "x float>" not in module.get_source("ll")
    assert "x float>" in tvm.build(func, target="llvm -num-cores=2 -opt-level=0").get_source("ll")
    tvm.testing.assert_allclose(run(module, inputs, out), reference(*inputs), rtol=1e-4, atol=1e-4)


def test_functions_without_blocks_stay():
    @T.prim_func
    def plain(a: T.Buffer((8,), "float32")):
        for i in range(8):
            a[i] = a[i] + 1.0

    assert_structural_equal(lowered(plain).body, plain.body)


# ---- as rules of one's own ---------------------------------------------------------------------
def test_dlight():
    from tvm import dlight as dl

    @dl.ScheduleRule.from_callable("Nothing")
    def nothing(func, target, tunable):
        return None

    func = te.create_prim_func(softmax(64, 64)).with_attr("target", Target(TARGET))
    mod = dl.ApplyDefaultSchedule(nothing, dl.cpu.RowByRow(), dl.cpu.BlockByBlock())(
        tvm.IRModule({"main": func})
    )
    assert mod["main"].attrs["tir.is_scheduled"]
    inputs, out = values_of(softmax(64, 64))
    tvm.testing.assert_allclose(
        run(tvm.build(mod, target=TARGET), inputs, out), softmax_of(*inputs), rtol=1e-4
    )


def test_dlight_two_schedules_are_an_error():
    from tvm import dlight as dl

    @dl.ScheduleRule.from_callable("Two")
    def two(func, target, tunable):
        return [tir.Schedule(func), tir.Schedule(func)]

    mod = tvm.IRModule({"main": te.create_prim_func(sigmoid(4))})
    with Target("llvm"), pytest.raises(ValueError, match="Two: expected one schedule"):
        dl.ApplyDefaultSchedule(two)(mod)
