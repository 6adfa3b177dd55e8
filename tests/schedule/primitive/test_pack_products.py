# SPDX-License-Identifier: Apache-2.0
"""pack_products: sums of products of small numbers on words."""

import ml_dtypes
import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import te, tir

from tests.schedule.checking import apply, refused
from tests.schedule.programs import elementwise, matmul


def product(m, n, k, a_type, b_type, result, turned=False):
    a = te.placeholder((m, k), a_type, "A")
    b = te.placeholder((n, k) if turned else (k, n), b_type, "B")
    r = te.reduce_axis((0, k), "k")
    wide = lambda e: e if e.dtype == result else e.astype(result)
    value = lambda i, j: te.sum(wide(a[i, r]) * wide(b[j, r] if turned else b[r, j]), r)
    return te.create_prim_func([a, b, te.compute((m, n), value, "C")])


def values(shape, dtype, seed=0):
    """All that the type holds, the ends above all."""
    rng = np.random.default_rng(seed)
    if "int" not in dtype:
        return rng.normal(size=shape).astype(getattr(ml_dtypes, dtype, dtype))
    info = np.iinfo(dtype)
    some = rng.integers(info.min, info.max + 1, shape)
    return rng.choice([info.min, info.max, -1, 0], shape).astype(dtype) + some.astype(dtype) * (
        rng.random(shape) < 0.5
    ).astype(dtype)


def run(func, *inputs, out):
    result = np.zeros(
        out,
        getattr(ml_dtypes, str(func.buffer_map[func.params[-1]].dtype), None)
        or str(func.buffer_map[func.params[-1]].dtype),
    )
    tir.interpret(func)(*inputs, result)
    return result


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("padding", [[], [4, 16, 1], [1, 1, 3]])
@pytest.mark.parametrize(
    "types, instruction, shifted",
    [
        (("uint8", "int8"), "dot_bytes", -1),
        (("int8", "uint8"), "dot_bytes", -1),
        (("int8", "int8"), "dot_bytes", -1),
        (("int8", "int8"), "dot_bytes", 0),
        (("int8", "int8"), "dot_bytes", 1),
        (("uint8", "uint8"), "dot_bytes", 1),
        (("int8", "uint8"), "dot_shorts", -1),
        (("int16", "int16"), "dot_shorts", -1),
    ],
)
def test_integers_are_exact(types, instruction, shifted, padding, turned):
    func = product(3, 5, 7, *types, "int32", turned)
    sch = apply(func, lambda sch: sch.pack_products("C", instruction, shifted, padding))
    a, b = values((3, 7), types[0]), values((5, 7) if turned else (7, 5), types[1], 1)
    exact = a.astype("int64") @ (b.T if turned else b).astype("int64")
    np.testing.assert_array_equal(run(sch.mod["main"], a, b, out=(3, 5)), exact.astype("int32"))


@pytest.mark.parametrize("result", ["int8", "uint8", "int16", "uint32"])
def test_short_results_wrap(result):
    func = product(4, 4, 9, "int8", "int8", result)
    sch = apply(func, lambda sch: sch.pack_products("C", "dot_bytes", 0))
    a, b = values((4, 9), "int8"), values((9, 4), "int8", 1)
    exact = (a.astype("int64") @ b.astype("int64")).astype(result)
    np.testing.assert_array_equal(run(sch.mod["main"], a, b, out=(4, 4)), exact)


@pytest.mark.parametrize("result", ["bfloat16", "float32"])
@pytest.mark.parametrize("instruction", ["dot_bfloat16", "float32"])
def test_bfloat16_sums_up_in_float32(instruction, result):
    func = product(2, 3, 129, "bfloat16", "bfloat16", result)
    sch = apply(func, lambda sch: sch.pack_products("C", instruction), run=False)
    a, b = values((2, 129), "bfloat16"), values((129, 3), "bfloat16", 1)
    exact = a.astype("float64") @ b.astype("float64")
    got = run(sch.mod["main"], a, b, out=(2, 3)).astype("float64")
    # One rounding to eight digits, not 129 of them.
    np.testing.assert_allclose(got, exact, rtol=2**-8 if result == "bfloat16" else 1e-5, atol=1e-5)


def test_blocks_and_types():
    def primitives(sch):
        blocks = sch.pack_products("C", "dot_bytes", shifted=0)
        names = [sch.get(b).name_hint for b in blocks]
        assert names == ["A_words", "B_words", "B_sums", "C_result"]
        types = [str(sch.get(b).writes[0].buffer.dtype) for b in blocks]
        assert types == ["uint32", "int32", "int32", "int32"]
        assert [int(sch.get(x).extent) for x in sch.get_loops("C")] == [3, 5, 2]

    apply(product(3, 5, 6, "int8", "int8", "int32"), primitives)


def test_whole_words_need_no_conditions():
    sch = apply(
        product(3, 5, 8, "uint8", "int8", "int32"),
        lambda sch: sch.pack_products("C", "dot_bytes"),
    )
    assert "if_then_else" not in sch.mod.script()


def test_unknown_sizes():
    n, m, k = te.var("n"), te.var("m"), te.var("k")
    func = product(n, m, k, "uint8", "int8", "int32")
    sch = tir.Schedule(func, debug_mask="all")
    sch.pack_products("C", "dot_bytes", padding=[4, 16, 1])
    for sizes in [(1, 1, 1), (5, 17, 6), (8, 16, 8)]:
        a, b = values((sizes[0], sizes[2]), "uint8"), values((sizes[2], sizes[1]), "int8")
        exact = a.astype("int32") @ b.astype("int32")
        got = run(sch.mod["main"], a, b, out=sizes[:2])
        np.testing.assert_array_equal(got, exact)


def test_convolution():
    a = te.placeholder((1, 6, 6, 5), "int8", "A")
    w = te.placeholder((3, 3, 5, 4), "int8", "W")
    ry, rx, rc = (te.reduce_axis((0, e)) for e in (3, 3, 5))
    wide = lambda e: e.astype("int32")
    value = lambda n, y, x, o: te.sum(
        wide(a[n, y + ry, x + rx, rc]) * wide(w[ry, rx, rc, o]), [ry, rx, rc]
    )
    func = te.create_prim_func([a, w, te.compute((1, 4, 4, 4), value, "C")])
    apply(func, lambda sch: sch.pack_products("C", "dot_bytes", shifted=0))


def test_square_of_a_matrix():
    a, r = te.placeholder((6, 6), "int8", "A"), te.reduce_axis((0, 6), "k")
    wide = lambda e: e.astype("int32")
    value = lambda i, j: te.sum(wide(a[i, r]) * wide(a[j, r]), r)
    func = te.create_prim_func([a, te.compute((6, 6), value, "C")])
    apply(func, lambda sch: sch.pack_products("C", "dot_bytes", shifted=1))


def test_refusals():
    small = product(3, 5, 6, "int8", "int8", "int32")
    refused(small, lambda s: s.pack_products("C", "dot_words"), "expected dot_bytes.*got dot_words")
    refused(small, lambda s: s.pack_products("C", "dot_bfloat16"), "sum up in a type that float32")
    refused(small, lambda s: s.pack_products("C", "dot_bytes", 2), "as shifted, got 2")
    refused(small, lambda s: s.pack_products("C", "dot_shorts", 0), "as shifted, got 0")
    refused(
        small, lambda s: s.pack_products("C", "dot_bytes", -1, [1]), "padding for each of the 3"
    )
    refused(
        small,
        lambda s: s.pack_products("C", "dot_bytes", -1, [1, 0, 1]),
        "positive paddings, got 0",
    )
    refused(matmul, lambda s: s.pack_products("C", "dot_bytes"), "sum up in a type that int32")
    refused(elementwise, lambda s: s.pack_products("B", "dot_bytes"), "B")
    wide = product(3, 5, 6, "int8", "int8", "int64")
    refused(wide, lambda s: s.pack_products("C", "dot_bytes"), "got products in int64")


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64", "c"])
@pytest.mark.parametrize("lanes", [1, 3, 4, 16, 20])
def test_words_in_vectors(lanes, target):
    """The operators themselves, on words of any number of lanes."""
    if not tvm.testing.device_enabled(target):
        pytest.skip(f"no code generator for {target} here")
    a = te.placeholder((lanes,), "uint32", "A")
    b = te.placeholder((lanes,), "int32", "B")
    out = te.compute((lanes,), lambda i: tir.dot_bytes(a[i], b[i]) + 7, "C")
    sch = tir.Schedule(te.create_prim_func([a, b, out]))
    if lanes > 1:
        sch.vectorize(sch.get_loops("C")[0])
    x, y = values(lanes, "uint32"), values(lanes, "int32", 1)
    products = x.view("uint8").astype("int32") * y.view("int8").astype("int32")
    expected = products.reshape(lanes, 4).sum(1) + 7
    np.testing.assert_array_equal(run(sch.mod["main"], x, y, out=lanes), expected)
    got = tvm.runtime.empty((lanes,), "int32")
    tvm.build(sch.mod, target=target)(tvm.runtime.tensor(x), tvm.runtime.tensor(y), got)
    np.testing.assert_array_equal(got.numpy(), expected)


@pytest.mark.parametrize(
    "types, instruction", [(("uint8", "int8"), "dot_bytes"), (("int16", "int16"), "dot_shorts")]
)
def test_words_in_memory(types, instruction):
    """Numbers of a word that lie side by side in both factors are not copied."""
    group = 32 // np.dtype(types[0]).itemsize // 8
    a, b = (
        te.placeholder((5, 6 * group), types[0], "A"),
        te.placeholder((6, 7, group), types[1], "B"),
    )
    k, c = te.reduce_axis((0, 6), "k"), te.reduce_axis((0, group), "c")
    wide = lambda e: e.astype("int32")
    value = lambda i, j: te.sum(wide(a[i, k * group + c]) * wide(b[k, j, c]), [k, c])
    func = te.create_prim_func([a, b, te.compute((5, 7), value, "C")])
    sch = apply(func, lambda sch: sch.pack_products("C", instruction))
    assert [
        block.name_hint for block in map(sch.get, sch.get_child_blocks(sch.get_block("root")))
    ] == ["C"]
    assert instruction in sch.mod.script()
