# SPDX-License-Identifier: Apache-2.0
"""The rule for changes of layout on GPUs: what it offers, and that it computes the same."""

import pytest
import tvm
from tvm import meta_schedule as ms
from tvm import te, tir
from tvm.meta_schedule.schedule.cuda import layout_transform

from tests.tune.test_gpu_rules import same_results, threads

GPU = tvm.target.Target("cuda")


def transform(shape, src, dst, bias=False, **marks):
    """B[dst] = A[src], through a producer and with a consumer where there is a bias."""
    attrs = {"src_layout": src, "dst_layout": dst, "input_shape": list(shape), **marks}
    A = te.placeholder(shape, name="A")
    P = te.compute(shape, lambda *i: A(*i) * 2, name="P") if bias else A
    out = [shape[src.index(c)] for c in dst]
    B = te.compute(
        out,
        lambda *i: P(*(i[dst.index(c)] for c in src)),
        name="B",
        attrs={"schedule_rule": "layout_transform", **attrs},
    )
    C = te.compute(out, lambda *i: B(*i) + 1, name="C") if bias else B
    return te.create_prim_func([A, C])


def spaces(func):
    context = ms.TuneContext(
        func, target=GPU, space_generator="post-order-apply", rand_state=1, num_threads=1
    )
    return context.generate_design_space()


@pytest.mark.parametrize(
    ("shape", "src", "dst"),
    [
        ((48, 40), "AB", "BA"),
        ((2, 33, 5, 7), "NCHW", "NHWC"),
        ((1, 6, 6, 10), "NHWC", "NCHW"),
        ((3, 20, 1, 9), "ABCD", "DCBA"),
    ],
)
@pytest.mark.parametrize("bias", [False, True])
def test_squares_go_through_shared_memory(shape, src, dst, bias):
    func = transform(shape, src, dst, bias)
    by_memory = {'scope="shared"' in sch.mod.script(): sch for sch in spaces(func)}
    assert by_memory.keys() == {False, True}
    tiled = by_memory[True]
    assert threads(tiled).keys() == {"blockIdx.x", "threadIdx.x"}
    same_results(func, tiled)


def test_sizes_for_tests_are_taken_as_they_are():
    func = transform((32, 32), "AB", "BA")
    sch = tir.Schedule(ms.TuneContext(func).mod)
    rule = layout_transform.cuda_layout_transform_schedule_rule
    _, four, eight = rule(sch, sch.get_block("B"), [4, 8])
    assert threads(four)["blockIdx.x"] == 64 and threads(eight)["blockIdx.x"] == 16
    same_results(func, four)


def test_a_last_axis_that_stays_needs_no_shared_memory():
    (only,) = spaces(transform((4, 6, 8), "ABC", "BAC"))
    assert 'scope="shared"' not in only.mod.script()


def test_layouts_that_do_not_fit():
    with pytest.raises(ValueError, match="expected layouts of the same axes, .* got AB, BC"):
        func = transform((4, 4), "AB", "BA", dst_layout="BC")
        spaces(func)


def test_tiles_fit_the_shared_memory_of_the_target():
    assert layout_transform.get_max_tile_size() == 55
    with tvm.target.Target({"kind": "cuda", "max_shared_memory_per_block": 4096}):
        assert layout_transform.get_max_tile_size() == 16
