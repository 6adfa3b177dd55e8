# SPDX-License-Identifier: Apache-2.0
"""Default rules: what they make of functions that nobody scheduled."""

import math
import re
import time

import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import te, tir, topi
from tvm.ir import assert_structural_equal, structural_equal
from tvm.script import tir as T
from tvm.target import Target
from tvm.tir.schedule import apply_default_rules, is_scheduled

from .operators import (
    CASES,
    DYNAMIC,
    TARGET,
    average_pool,
    column_sum,
    concatenation,
    conv,
    conv_of_lines,
    dense,
    depthwise,
    depthwise_of_lines,
    grouped_conv,
    matmul,
    max_pool,
    padded_depthwise,
    relu_of_bias,
    run,
    sigmoid,
    softmax,
    softmax_of,
    strided_conv,
    sum_over,
    transpose,
    values_of,
)

# What is expected of the rules is about one machine, whatever runs the tests.
CACHES = {
    "l1-cache-bytes": 32 << 10,
    "l1-cache-ways": 8,
    "l2-cache-bytes": 1 << 20,
    "l3-cache-bytes": 32 << 20,
}


def scheduled(args, target="llvm -num-cores=2 -mcpu=skylake-avx512"):
    sch = tir.Schedule(te.create_prim_func(args))
    given = [f"-{key}={value}" for key, value in CACHES.items() if key not in target]
    rule = apply_default_rules(sch, "main", Target(" ".join([target, *given])))
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


def tiles_of(sch):
    """Extents of the loops that stay in registers, of every block that adds to sums."""
    tiles = []

    def visit(node):
        if isinstance(node, tir.Block) and node.name_hint.endswith("_update"):
            loops = map(sch.get, sch.get_loops(sch.get_block(node.name_hint)))
            kept = (tir.ForKind.UNROLLED, tir.ForKind.VECTORIZED)
            tiles.append([int(loop.extent) for loop in loops if loop.kind in kept])

    tir.stmt_functor.post_order_visit(sch.mod["main"].body, visit)
    return [[extent for extent in tile if extent > 1] for tile in tiles]


def blocks_of(sch):
    return [sch.get(b).name_hint for b in sch.get_child_blocks(sch.get_block("root"))]


@pytest.mark.parametrize("name", DYNAMIC)
def test_dynamic_shapes_are_in_vectors(name):
    args, _ = DYNAMIC[name]
    target = "llvm -num-cores=2 -mcpu=skylake-avx512"
    _, sch = scheduled(args, target)
    assert "PARALLEL" in [kind for kind, _ in loops_of(sch)]
    if tvm.testing.device_enabled("llvm"):
        code = tvm.compile(te.create_prim_func(args), target).mod.inspect_source("ll")
        assert re.search(r"<\d+ x float>", code)


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


@pytest.mark.parametrize("rows", [1, 64])
def test_product_with_a_bias_is_in_vectors_along_its_columns(rows):
    *operands, product = matmul(rows, 768, 768)
    bias = te.placeholder((768,), name="bias")
    rule, sch = scheduled([*operands, bias, topi.add(product, bias)])
    assert rule == "BlockByBlock"
    if rows == 1:  # a row of the matrix at a time, never a column
        assert ("VECTORIZED", 64) in loops_of(sch)


def test_tile_of_blocked_channels_has_more_rows_than_blocks():
    """Each block of channels is a run of memory of its own: few of them at a time."""
    x, w = te.placeholder((1, 16, 14, 14, 16)), te.placeholder((16, 16, 3, 3, 16, 16))
    _, sch = scheduled([x, w, topi.nn.conv2d_NCHWc(x, w, 1, 1, 1, "NCHW16c", "NCHW16c")])
    unrolled = {extent for kind, extent in loops_of(sch) if kind == "UNROLLED"}
    assert {7, 2} <= unrolled and 8 not in unrolled


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


@pytest.mark.parametrize("depth, rows", [(4096, 8), (1000, 8), (1001, 7), (1009, 1)])
def test_rows_are_added_to_sums_together(depth, rows):
    """Sums stay in registers meanwhile."""
    _, sch = scheduled(matmul(1, 4096, depth), "llvm -num-cores=1 -mcpu=skylake-avx512")
    loops = [sch.get(loop) for loop in sch.get_loops("out_update")]
    assert (loops[-1].kind, int(loops[-1].extent)) == (tir.ForKind.VECTORIZED, 64)
    unrolled = [int(loop.extent) for loop in loops if loop.kind == tir.ForKind.UNROLLED]
    assert unrolled == ([rows] if rows > 1 else [])


def test_several_loops_of_a_reduction_start_once():
    _, sch = scheduled(sum_over((0, 2), 64, 64, 700))
    assert sch.get_block("out_init") and sch.get_block("out_update")


def test_short_runs_of_sums_are_added_in_vectors():
    """Sums over axes apart: whole runs are added up, and only the last one's elements."""
    target = "llvm -num-cores=2 -mcpu=skylake-avx512"
    _, sch = scheduled(sum_over((1, 3), 2, 50, 60, 64), target)
    loops = [sch.get(loop) for loop in sch.get_loops("out_rf_update")]
    assert [int(loop.extent) for loop in loops] == [120, 50, 1, 1, 64]
    assert (loops[0].kind, loops[-1].kind) == (tir.ForKind.PARALLEL, tir.ForKind.VECTORIZED)
    # Many runs of another length in whole vectors and a rest.
    _, sch = scheduled(sum_over((1, 3), 2, 50, 60, 70), target)
    assert {("VECTORIZED", 64), ("VECTORIZED", 6)} <= set(loops_of(sch))


def test_one_column_is_no_product():
    """Of a transposed matrix times a vector: the results lie along the rows."""
    a, b, k = te.placeholder((999, 31)), te.placeholder((999, 1)), te.reduce_axis((0, 999))
    product = te.compute((31, 1), lambda i, j: te.sum(a[k, i] * b[k, j], k), "out")
    _, sch = scheduled([a, b, product])
    assert ("VECTORIZED", 31) in loops_of(sch)


def test_threads_read_whole_lines_from_memory():
    _, sch = scheduled(column_sum(4096, 1024), "llvm -num-cores=2 -mcpu=skylake-avx512")
    assert sch.get_block("out_rf_update")


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


def test_channels_leave_their_blocks_as_transposes():
    """Of an index that is divided the rules make several axes."""
    a = te.placeholder((4, 16, 32, 16), "float32", "A")
    plain = te.compute((64, 16, 32), lambda c, i, j: a[c // 16, i, j, c % 16], "B")
    _, sch = scheduled([a, plain])
    assert sch.mod.script().count("T.Shuffle(") == 16 * 4


@pytest.mark.parametrize(
    "rows, megabytes, streams", [(512, 32, False), (4096, 32, True), (4096, 64, False)]
)
def test_transposes_that_no_cache_holds_are_written_past_it(rows, megabytes, streams):
    target = f"llvm -num-cores=2 -mcpu=skylake-avx512 -l3-cache-bytes={megabytes << 20}"
    _, sch = scheduled(transpose(rows, 512), target)
    assert ('"nontemporal_store"' in sch.mod.script()) == streams


def test_products_are_tiled():
    _, sch = scheduled(matmul(512, 512, 512))
    kinds = [kind for kind, _ in loops_of(sch)]
    assert "UNROLLED" in kinds and "VECTORIZED" in kinds and "PARALLEL" in kinds


@pytest.mark.parametrize("size, lanes", [(32, {16}), (28, {16, 12}), (14, {14}), (7, {7})])
def test_tiles_of_convolutions_fill_vectors(size, lanes):
    _, sch = scheduled(conv(64, size, 64, 3), "llvm -num-cores=2 -mcpu=skylake-avx512")
    assert {n for kind, n in loops_of(sch) if kind == "VECTORIZED"} == lanes


@pytest.mark.parametrize("relu", [False, True])
def test_strided_convolutions_copy_no_windows(relu):
    """The results of 64 filters are transposed, less than the 3 x 49 elements that each sees."""
    _, sch = scheduled(strided_conv(3, 112, 64, 7, relu=relu))
    made = sch.get(sch.get_block("root")).alloc_buffers
    assert max(math.prod(map(int, buffer.shape)) for buffer in made) == 64 * 112 * 112
    assert tiles_of(sch) == [[4, 4, 16]]


@pytest.mark.parametrize("rows", [7, 14])
def test_short_lines_of_blocked_channels_are_whole_rows_of_tiles(rows):
    """Parts of them would read all of the weights for each part."""
    x, w = te.placeholder((1, 16, rows, rows, 16)), te.placeholder((32, 16, 1, 1, 16, 16))
    _, sch = scheduled([x, w, topi.nn.conv2d_NCHWc(x, w, 1, 0, 1, "NCHW16c", "NCHW16c")])
    assert tiles_of(sch) == [[7, 2, 16]]


@pytest.mark.parametrize(
    "args, rows, lanes",
    [
        (depthwise(64, 56, 3), 8, 14),
        (depthwise(64, 56, 3, step=2), 4, 14),
        (max_pool(64, 56, 3, 2), 4, 14),
        (average_pool(64, 64, 3, 1), 8, 16),
        (depthwise_of_lines(56, 64, 3), 8, 16),
    ],
    ids=["depthwise", "strided", "max pool", "average pool", "lines"],
)
def test_windows_are_tiled(args, rows, lanes):
    """Several rows of vectors in registers, and all of the window's places along the rows."""
    rule, sch = scheduled(args, "llvm -num-cores=2 -mcpu=skylake-avx512")
    assert rule == "BlockByBlock"
    loops = loops_of(sch)
    assert {("VECTORIZED", lanes), ("UNROLLED", rows), ("UNROLLED", 3)} <= set(loops)


def test_margins_between_vectors_are_inlined():
    _, sch = scheduled(depthwise_of_lines(56, 64, 3))
    assert "padded" not in blocks_of(sch)


@pytest.mark.parametrize("channels, inside", [(96, True), (3, False)])
def test_margins_within_vectors_are_filled_where_they_are_read(channels, inside):
    """In the loop over channels, where that leaves no thread without work."""
    _, sch = scheduled(padded_depthwise(channels, 56, 3))
    blocks = sch.get_child_blocks(sch.get_loops("padded")[0])
    assert ("out_update" in [sch.get(b).name_hint for b in blocks]) == inside


def test_conditions_on_places_leave_vectors_whole():
    """Places are numbers of 64 bits, what is computed has 32."""
    data = te.placeholder((6, 56, 56, 16), "float32", "A")
    weight = te.placeholder((6, 3, 3, 16), "float32", "W")
    n = [te.reduce_axis((0, 3), name) for name in "yx"]

    def inside(*i):
        at = [tir.Cast("int64", d) for d in i[1:3]]
        ok = tir.all(at[0] >= 1, at[0] < 57, at[1] >= 1, at[1] < 57)
        return tir.if_then_else(ok, data[i[0], i[1] - 1, i[2] - 1, i[3]], tir.const(0, "float32"))

    padded = te.compute((6, 58, 58, 16), inside, "padded")
    out = te.compute(
        (6, 56, 56, 16),
        lambda c, h, w, i: te.sum(
            padded[c, h + n[0], w + n[1], i] * weight[c, n[0], n[1], i], axis=n
        ),
        "out",
    )
    _, sch = scheduled([data, weight, out])
    assert tiles_of(sch)[0][-1] == 16


def test_reductions_of_images_are_one_run():
    """Of an instance norm: three axes, but lines of 12 are no vectors."""
    a = te.placeholder((8, 12, 12), "float32", "A")
    k, r = te.reduce_axis((0, 12), "k"), te.reduce_axis((0, 12), "r")
    total = te.compute((8,), lambda i: te.sum(a[i, k, r], axis=[k, r]), "total")
    out = te.compute((8, 12, 12), lambda i, j, l: a[i, j, l] - total[i], "out")
    rule, sch = scheduled([a, out])
    assert rule == "RowByRow"
    extents = [[int(sch.get(l).extent) for l in sch.get_loops(b)] for b in ("total", "out")]
    assert [e[-1] for e in extents] in ([144, 16], [144, 48])


def test_what_the_place_chooses_stays_the_same_along_a_vector():
    """Channels in blocks behind each other: which tensor is read is asked for each block."""
    a, b = (te.placeholder((8, 27, 27, 16), "float32", name) for name in "AB")
    out = topi.concatenate((a, b), 0)
    _, sch = scheduled([a, b, out])
    extents = [int(sch.get(loop).extent) for loop in sch.get_loops(out.op.name)]
    assert extents == [16, 729, 16]


@pytest.mark.parametrize("times", [2, 4])
def test_repeated_elements_are_in_vectors(times):
    """An image of several times the size: vectors along its lines."""
    a = te.placeholder((8, 20, 16), "float32", "A")
    out = te.compute(
        (8, 20 * times, 16 * times), lambda c, i, j: a[c, i // times, j // times], "out"
    )
    _, sch = scheduled([a, out])
    assert ("VECTORIZED", 16 * times) in loops_of(sch)


@pytest.mark.parametrize("rows, columns, margin", [(7, 33, 2), (20, 64, 1), (3, 5, 2)])
@pytest.mark.parametrize("mode", ["reflect", "edge"])
def test_margins_of_images_are_apart(rows, columns, margin, mode):
    """What lies between the margins is copied in vectors."""
    a = te.placeholder((4, rows, columns), "float32", "A")
    pad = topi.nn.mirror_pad if mode == "reflect" else topi.nn.replicate_pad
    more = {"mode": "REFLECT"} if mode == "reflect" else {}
    out = pad(a, [0, margin, margin], [0, margin, margin], **more)
    _, sch = scheduled([a, out])
    lengths = {extent for kind, extent in loops_of(sch) if kind == "VECTORIZED"}
    assert lengths & {columns, columns - 1}  # (the edge itself is read by its margin, too)
    inputs, result = values_of([a, out])
    got = run(tvm.build(te.create_prim_func([a, out]), target="llvm"), inputs, result)
    width = [(0, 0), (margin, margin), (margin, margin)]
    tvm.testing.assert_allclose(got, np.pad(inputs[0], width, mode))


def test_copies_with_steps_are_parallel_and_in_vectors():
    """Windows of one element that move by two: what is copied for the product's columns."""
    _, sch = scheduled(strided_conv(64, 112, 64, 1), "llvm -num-cores=16 -mcpu=skylake-avx512")
    loops = sch.get_loops("A_global")
    assert sch.get(loops[0]).kind == tir.ForKind.PARALLEL
    assert sch.get(loops[-1]).kind == tir.ForKind.VECTORIZED


def test_groups_of_convolutions_have_tiles():
    _, sch = scheduled(grouped_conv(64, 32, 64, 3, 4))
    assert "UNROLLED" in [kind for kind, _ in loops_of(sch)]


@pytest.mark.parametrize("make", [matmul, dense])
def test_operands_of_colliding_lines_are_packed(make):
    _, sch = scheduled(make(128, 1024, 256), "llvm -num-cores=2 -mcpu=skylake-avx512")
    copy = sch.get(sch.get_block("B_global")).writes[0].buffer
    assert [int(n) for n in copy.shape] == [16, 256, 64]


def test_operands_scattered_over_pages_are_packed():
    """A line of each page is read: more pages than a CPU knows the addresses of."""
    target = "llvm -num-cores=1 -mcpu=haswell"
    for size, packs in ((1000, True), (120, False)):
        _, sch = scheduled(matmul(size, size, size), target)
        assert ("B_global" in sch.mod.script()) == packs
    # A window reads the same lines again: copying them for each would be much more.
    _, sch = scheduled(conv(256, 56, 64, 3), target)
    assert "A_global" not in sch.mod.script()


@pytest.mark.parametrize("cpu, tile", [("haswell", [4, 2, 8]), ("skylake-avx512", [8, 2, 16])])
@pytest.mark.parametrize("cores", [1, 16])
def test_few_rows_use_whole_pages_of_a_matrix(cpu, tile, cores):
    """Results take part of the reduction at a time, as the matrix is not worth a copy."""
    _, sch = scheduled(matmul(16, 4096, 4096), f"llvm -num-cores={cores} -mcpu={cpu}")
    loops = [int(sch.get(loop).extent) for loop in sch.get_loops("out_update")]
    assert loops[-4:] == [128, *tile]
    assert loops[-3 - 4] == 4096 // 128
    assert len(sch.get_child_blocks(sch.get_block("root"))) == 2


@pytest.mark.parametrize("megabytes, rows", [(32, 512), (128, 2048), (512, 4096)])
def test_rows_stay_in_the_third_cache_while_columns_go_by(megabytes, rows):
    """A quarter of it has so many rows of 16 kB."""
    target = f"llvm -num-cores=1 -mcpu=skylake-avx512 -l3-cache-bytes={megabytes << 20}"
    _, sch = scheduled(matmul(4096, 4096, 4096), target)
    (row,) = re.findall(r"v_i = T.axis.spatial\(4096, (.*) \+ i_1\)", sch.mod.script())
    assert (f" * {rows} + " in row) == (rows < 4096)
    assert row.endswith(f" % {rows // 8} * 8")


@pytest.mark.parametrize("depth, tile", [(32, [3, 5, 16]), (333, [9, 2, 16])])
def test_columns_of_the_second_cache_are_used_for_several_rows(depth, tile):
    """Others wait for them. Rests of columns have few sums at a time, which wait for each other."""
    _, sch = scheduled(matmul(333, 333, depth))
    assert tiles_of(sch) == [tile, [9, 13]]


def test_transposed_operands_are_packed():
    """Tiles as wide as the second cache holds for all of the reduction, one behind the other."""
    target = "llvm -num-cores=2 -mcpu=skylake-avx512 -l2-cache-bytes=1048576"
    for depth, width in ((512, 64), (3072, 32)):
        _, sch = scheduled(dense(128, 512, depth), target)
        copy = sch.get(sch.get_block("B_global")).writes[0].buffer
        assert [int(n) for n in copy.shape] == [512 // width, depth, width]


def test_threads_share_products_in_squares():
    """Each of 16 threads makes 64 x 64 of the result, and transposes the columns that it reads."""
    _, sch = scheduled(dense(128, 512, 512), "llvm -num-cores=16 -mcpu=skylake-avx512")
    parallel = [n for kind, n in loops_of(sch) if kind == "PARALLEL"]
    rows_of_tile, columns_of_tile = 4, 64
    assert parallel == [512 // 16, (128 // rows_of_tile) * (512 // columns_of_tile)]


def test_padding_by_nothing_is_inlined():
    """Neither a copy of the pixels nor one of the weights, whose lines of 128 do not collide."""
    _, sch = scheduled(conv_of_lines(28, 128, 128, 1), "llvm -num-cores=2 -mcpu=skylake-avx512")
    assert blocks_of(sch) == ["out_init", "out_update", "out_local"]


@pytest.mark.parametrize("cores, jobs", [(2, 196), (16, 392)])
def test_tiles_are_shared_evenly(cores, jobs):
    """196 jobs of two tiles take 16 threads 13 rounds, of which the last is a short one."""
    target = f"llvm -num-cores={cores} -mcpu=skylake-avx512"
    _, sch = scheduled(conv_of_lines(28, 128, 128, 1), target)
    assert [n for kind, n in loops_of(sch) if kind == "PARALLEL"] == [jobs]


def test_rows_of_tiles_are_near_each_other():
    """Of two axes that are long enough the one with smaller steps."""
    _, sch = scheduled(conv_of_lines(56, 64, 64, 3), "llvm -num-cores=2 -mcpu=skylake-avx512")
    unrolled = [sch.get(loop) for loop in sch.get_loops("out_update")]
    unrolled = [loop.loop_var.name for loop in unrolled if loop.kind == tir.ForKind.UNROLLED]
    assert unrolled == ["x_1", "o_2"]


def test_concatenation_is_in_vectors():
    _, sch = scheduled(concatenation(64, 64, 128), "llvm -num-cores=2 -mcpu=skylake-avx512")
    assert ("VECTORIZED", 64) in loops_of(sch)


def test_values_that_are_used_twice_in_one_place_are_inlined():
    """x * sigmoid(x) of a long x is one stage: it is computed once."""
    a = te.placeholder((64, 64), "float32", "A")
    x = te.compute((64, 64), lambda i, j: te.exp(te.tanh(a[i, j])), "x")
    gate = te.compute((64, 64), lambda i, j: te.sigmoid(x[i, j]), "gate")
    out = te.compute((64, 64), lambda i, j: x[i, j] * gate[i, j], "out")
    _, sch = scheduled([a, out])
    assert blocks_of(sch) == ["out"]
    # Neighbours would compute it again.
    near = te.compute((64, 63), lambda i, j: x[i, j] * x[i, j + 1], "near")
    _, sch = scheduled([a, near])
    assert len(blocks_of(sch)) == 2


def test_values_do_not_double_from_stage_to_stage():
    a = te.placeholder((64,), "float32", "A")
    value = a
    for stage in range(40):
        gate = te.compute((64,), lambda i, v=value: te.sigmoid(v[i]), f"gate{stage}")
        value = te.compute((64,), lambda i, v=value, g=gate: v[i] * g[i], f"value{stage}")
    _, sch = scheduled([a, value])
    assert 4 < len(blocks_of(sch)) <= 40


def test_products_whose_results_are_used_with_others_are_in_tiles():
    """What follows reads results next to each other: it does not come along with a tile."""
    a, b, c = matmul(64, 128, 64)
    out = te.compute((64, 127), lambda i, j: c[i, j] * c[i, j + 1], "next")
    _, sch = scheduled([a, b, out])
    (tile,) = tiles_of(sch)
    assert math.prod(tile) >= 8 * 16


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


def test_reductions_that_only_share_loops_are_apart():
    a, g = te.placeholder((64, 768), name="A"), te.placeholder((768,), name="G")
    func = te.create_prim_func([a, g, topi.nn.layer_norm(a, g, None, 1)])
    text = lowered(func).script()
    assert 'T.block("A_red_temp")' in text and 'T.block("A_red_temp_1")' in text
    best = te.create_prim_func([a, topi.argmax(a, 1)])  # where one value decides on the other
    assert "A_red_temp_1" not in lowered(best).script()


def test_indices_are_as_simple_as_ranges_allow():
    a = te.placeholder((64, 768), name="A")
    func = te.create_prim_func([a, topi.reshape(a, (64, 12, 64))])
    # Of the element's place in A, not of the iterators: one loop over all elements is taken apart.
    assert "= A[v_ax0, v_ax1 * 64 + v_ax2]" in lowered(func).script()


def test_what_tensor_expressions_tell_is_no_schedule():
    a, out = sigmoid(1024, 1024)
    told = {"axis": 1, "schedule_rule": "meta_schedule.pool_max", "of_the_user": "anything"}
    twice = te.compute((1024, 1024), lambda i, j: out[i, j] * 2.0, "twice", attrs=told)
    func = te.create_prim_func([a, twice])
    assert not is_scheduled(func)
    assert not structural_equal(lowered(func).body, func.body)
    for key in ("meta_schedule.unroll_explicit", "pragma_auto_unroll_max_step", "auto_copy"):
        marked = te.compute((64,), lambda i: a[i, 0], "marked", attrs={key: 1})
        assert is_scheduled(te.create_prim_func([a, marked]))


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


def test_means_of_columns_in_vectors():
    """A mean over rows that lie apart: results side by side are summed up in vectors."""
    a = te.placeholder((49, 2048), "float32", "A")
    k = te.reduce_axis((0, 49), "k")
    total = te.compute((2048,), lambda j: te.sum(a[k, j], k), "total")
    mean = te.compute((2048,), lambda j: total[j] / 49.0, "mean")
    sch = tir.Schedule(te.create_prim_func([a, mean]))
    target = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3 -num-cores=1")
    assert apply_default_rules(sch, "main", target) == "BlockByBlock"
    loops = [sch.get(loop) for loop in sch.get_loops(sch.get_block("total_update"))]
    assert loops[-1].kind == tir.ForKind.VECTORIZED


def test_many_stages_that_are_inlined():
    """Each call of a long value is asked once what it does, not once for each call around it."""

    def seconds(stages):
        a = te.placeholder((64,), "float32", "A")
        value = a
        for i in range(stages):
            value = te.compute((64,), lambda k, v=value: te.exp(v[k]), f"stage{i}")
        mod = tvm.IRModule({"main": te.create_prim_func([a, value])})
        mod = tir.transform.BindTarget(tvm.target.Target("llvm -num-cores=2"))(mod)
        begin = time.process_time()
        tir.transform.DefaultSchedule()(mod)
        return time.process_time() - begin

    first, second = seconds(100), seconds(400)
    assert second < 0.5 or second < 32 * first
