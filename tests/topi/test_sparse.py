# SPDX-License-Identifier: Apache-2.0
"""Places of elements, and helpers that compute them."""

import numpy as np
import pytest
import tvm
from tvm import te, tir, topi

from .checking import check


@pytest.mark.parametrize(
    "before, after",
    [((2, 3, 6), (9, -1)), ((4, 6), (2, 3, 4)), ((24,), (-1, 1, 3)), ((6, 4), (24,))],
)
def test_sparse_reshape(before, after):
    count = int(np.prod(before))
    flat = np.random.default_rng(0).choice(count, 7, replace=False)
    shape = tuple(np.empty(before).reshape(after).shape)
    places = lambda s: np.stack(np.unravel_index(flat, s), 1).astype("int64")
    arrays = [places(before), np.array(before, "int64"), np.array(after, "int64")]
    build = lambda i, b, a: topi.sparse_reshape(i, b, a, (7, len(after)), (len(after),))
    check(build, arrays, [places(shape), np.array(shape, "int64")])
    with pytest.raises(ValueError, match="sparse_reshape: expected places with an axis for each"):
        topi.sparse_reshape(
            *(te.placeholder(s, "int64") for s in ((7, 2), (3,), (2,))), (7, 2), (2,)
        )


@pytest.mark.parametrize("begin, end, step", [(2, 11, 3), (11, 1, -2), (0, 12, 1), (5, 5, 1)])
def test_places_of_ranges(begin, end, step):
    expected = {place: k for k, place in enumerate(range(begin, end, step))}
    simplify = tvm.arith.Analyzer().simplify
    b, e, s = (tir.const(v, "int32") for v in (begin, end, step))
    for place in range(13):
        inside = simplify(topi.within_index(b, e, s, tir.const(place, "int32")))
        assert bool(inside) == (place in expected)
        number = simplify(topi.make_idx(b, e, s, tir.const(13, "int32"), tir.const(place, "int32")))
        assert int(number) == expected.get(place, 12)


@pytest.mark.parametrize("right", [False, True])
def test_binary_search(right):
    rows = np.sort(np.random.default_rng(0).integers(0, 9, (3, 8)), 1).astype("int32")
    values = np.array([0, 4, 9], "int32")

    def search(ins, outs):
        ib = tir.ir_builder.create()
        rows, values, out = (ib.buffer_ptr(b) for b in (*ins, outs[0]))
        with ib.for_range(0, 3, name="i") as i:
            out[i] = topi.binary_search(ib, i * 8, 8, rows, values[i], right, "int32")
        return ib.get()

    def build(rows, values):
        flat = topi.reshape(rows, (24,))
        return te.extern((3,), [flat, values], search, dtype="int32")

    side = "right" if right else "left"
    found = [np.searchsorted(r, v, side) for r, v in zip(rows, values, strict=True)]
    check(build, [rows, values], np.array(found, "int32"))


def test_vectors_and_layouts():
    numbers = np.array([3, 1, 2], "float32")
    check(lambda x: topi.add(x, topi.const_vector(numbers)), [numbers], 2 * numbers)
    assert topi.utils.nchw_xc_layout("NCHW16c") and not topi.utils.nchw_xc_layout("NCHW")
    assert topi.utils.nchw_pack_layout("NCHW1n16c") and not topi.utils.nchw_pack_layout("NCHW16c")
    assert topi.utils.ncw_xc_layout("NCW4c") and topi.utils.ncw_pack_layout("NCW2n4c")
    x = te.placeholder((2, te.size_var("n")))
    assert topi.nn.get_padded_shape(x, (1, 0), (0, 2))[0] == 3
    with pytest.raises(
        ValueError, match="padding: expected 2 numbers before and after, got 1 and 1"
    ):
        topi.nn.get_padded_shape(x, (1,))
