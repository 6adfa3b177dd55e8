# SPDX-License-Identifier: Apache-2.0
"""IndexMap: applied, inverted and compared on all indices of small shapes."""

import itertools

import numpy as np
import pytest
import tvm
from tvm import te, tir
from tvm.ir import Range, structural_equal
from tvm.tir import IndexMap


def at(index_map, index):
    """Where an index goes, as numbers."""
    return tuple(int(e) for e in index_map.map_indices([tir.IntImm("int64", i) for i in index]))


# map, shape, shape of the result; one-to-one and onto
BIJECTIVE = {
    "identity": (lambda i: [i], [16], [16]),
    "transpose": (lambda i, j: [j, i], [3, 5], [5, 3]),
    "split": (lambda i: [i // 4, i % 4], [16], [4, 4]),
    "split twice": (lambda i: [i // 8, i // 2 % 4, i % 2], [24], [3, 4, 2]),
    "fuse": (lambda i, j: [i * 5 + j], [3, 5], [15]),
    "tile": (lambda i, j: [i // 4, j // 2, i % 4, j % 2], [8, 6], [2, 3, 4, 2]),
    "reshape": (lambda i, j: [(i * 6 + j) // 4, (i * 6 + j) % 4], [4, 6], [6, 4]),
    "fuse of parts": (lambda i, j: [i // 4 * 3 + j, i % 4], [8, 3], [6, 4]),
    "interleave": (lambda i, j: [j % 2 * 4 + i, j // 2], [4, 6], [8, 3]),
    "swizzle": (lambda n, c, h, w: [n, c // 4, h, w, c % 4], [1, 8, 2, 3], [1, 2, 2, 3, 4]),
}


@pytest.mark.parametrize("name", BIJECTIVE)
def test_bijective(name):
    function, shape, expected = BIJECTIVE[name]
    forward = IndexMap.from_func(function)
    assert [int(e) for e in forward.map_shape(shape)] == expected
    backward = forward.inverse(shape)
    images = set()
    for index in itertools.product(*map(range, shape)):
        image = at(forward, index)
        assert image == tuple(int(e) for e in function(*index))
        assert at(backward, image) == index
        images.add(image)
    assert images == set(itertools.product(*map(range, expected)))


# map, shape, shape of the result; some indices of the result have no origin
PADDED = {
    "split of 14": (lambda i: [i // 4, i % 4], [14], [4, 4]),
    "two splits": (lambda i, j: [i // 4, j // 4, i % 4, j % 4], [6, 9], [2, 3, 4, 4]),
    "reshape of 18": (lambda i, j: [(i * 6 + j) // 4, (i * 6 + j) % 4], [3, 6], [5, 4]),
    "even numbers": (lambda i: [i * 2], [5], [9]),
    "beginning at 3": (lambda i: [(i + 3) // 4, (i + 3) % 4], [9], [3, 4]),
}


@pytest.mark.parametrize("name", PADDED)
def test_padded(name):
    function, shape, expected = PADDED[name]
    forward = IndexMap.from_func(function)
    assert [int(e) for e in forward.map_shape(shape)] == expected
    backward, padding = forward.non_surjective_inverse(shape)
    origin = {at(forward, index): index for index in itertools.product(*map(range, shape))}
    for image in itertools.product(*map(range, expected)):
        values = {
            v: tir.IntImm("int64", i) for v, i in zip(backward.initial_indices, image, strict=True)
        }
        is_padding = tvm.arith.Analyzer().simplify(tir.stmt_functor.substitute(padding, values))
        assert bool(is_padding) == (image not in origin), image
        if image in origin:
            assert at(backward, image) == origin[image]
    with pytest.raises(ValueError, match="IndexMap: expected a map .* and onto"):
        forward.inverse(shape)


@pytest.mark.parametrize(
    "function, shape",
    [
        (lambda i: [i, i], [4]),
        (lambda i, j: [i + j], [4, 4]),
        (lambda i: [i // 4], [16]),
        (lambda i: [i % 4], [16]),
        (lambda i: [i * i], [4]),
        (lambda i, j: [i], [4, 4]),
    ],
    ids=["twice", "sum", "quotient", "remainder", "square", "lost"],
)
def test_no_inverse(function, shape):
    with pytest.raises(ValueError, match="IndexMap: expected a map"):
        IndexMap.from_func(function).inverse(shape)


def test_inverse_given_by_the_user():
    forward = IndexMap.from_func(lambda i: [i ^ 1], inverse_index_map=lambda i: [i ^ 1])
    assert structural_equal(
        forward.inverse([8]).final_indices[0].dtype, tir.const(0, "int64").dtype
    )


def test_inverse_with_ranges_and_symbolic_shapes():
    forward = IndexMap.from_func(lambda i, j: [j, i])
    n = te.size_var("n", "int64")
    assert forward.inverse([n, 4]).is_equivalent_to(forward)
    shifted = IndexMap.from_func(lambda i: [i // 4, i % 4])
    backward = shifted.inverse([Range(0, 16)])
    assert backward.is_equivalent_to(IndexMap.from_func(lambda i, j: [i * 4 + j]))


def test_map_ranges():
    forward = IndexMap.from_func(lambda i, j: [i * 5 + j])
    (r,) = forward.map_ranges([Range(1, 3), Range(2, 4)])
    assert (int(r.min), int(r.extent)) == (7, 7)


def test_indices_keep_their_type():
    forward = IndexMap.from_func(lambda i: [i // 4, i % 4])
    i = te.var("i", "int32")
    assert [e.dtype for e in forward.map_indices([i])] == ["int32", "int32"]
    assert structural_equal(forward.map_indices([i])[0], i // 4)


def test_equivalence():
    a = IndexMap.from_func(lambda i, j: [i * 4 + j])
    assert a.is_equivalent_to(IndexMap.from_func(lambda x, y: [y + 4 * x]))
    assert not a.is_equivalent_to(IndexMap.from_func(lambda i, j: [i * 3 + j]))
    assert not a.is_equivalent_to(IndexMap.from_func(lambda i, j: [i, j]))
    assert structural_equal(a, IndexMap.from_func(lambda x, y: [x * 4 + y]))


@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
def test_map_tensor(dtype):
    array = np.arange(24).reshape(4, 6).astype(dtype)
    forward = IndexMap.from_func(lambda i, j: [j // 2, i, j % 2])
    mapped = forward.map_tensor(tvm.runtime.tensor(array))
    np.testing.assert_array_equal(mapped.numpy(), array.reshape(4, 3, 2).transpose(1, 0, 2))
    padded = IndexMap.from_func(lambda i: [i // 4, i % 4]).map_tensor(
        tvm.runtime.tensor(np.arange(1, 7).astype(dtype))
    )
    np.testing.assert_array_equal(padded.numpy(), [[1, 2, 3, 4], [5, 6, 0, 0]])


def test_separators():
    index_map, separators = IndexMap.from_func_with_separators(
        lambda i, j: [i, IndexMap.AXIS_SEPARATOR, j]
    )
    assert separators == [1] and len(index_map.final_indices) == 2
    with pytest.raises(ValueError, match="from_func_with_separators"):
        IndexMap.from_func(lambda i, j: [i, IndexMap.AXIS_SEPARATOR, j])


def test_functions_with_rest():
    index_map = IndexMap.from_func(lambda i, *rest: [*rest, i], ndim=3)
    assert [str(v.name) for v in index_map.initial_indices] == ["i", "rest_0", "rest_1"]
    assert at(index_map, (1, 2, 3)) == (2, 3, 1)
    with pytest.raises(ValueError, match="expected ndim"):
        IndexMap.from_func(lambda *i: i)
    with pytest.raises(ValueError, match="expected a function of 2 indices, got 1"):
        IndexMap.from_func(lambda i: i, ndim=2)
    with pytest.raises(ValueError, match="IndexMap: expected 1 indices, got 2"):
        IndexMap.from_func(lambda i: i).map_indices([1, 2])
    with pytest.raises(TypeError, match="IndexMap: expected integers as indices, got float32"):
        IndexMap.from_func(lambda i: [tir.const(1.0)])


def test_names_behind_the_rest_are_the_last_indices():
    swapped = tir.IndexMap.from_func(lambda i, *j, k: [k, *j, i], ndim=4)
    assert [int(e) for e in swapped.map_indices([1, 2, 3, 4])] == [4, 2, 3, 1]
    with pytest.raises(ValueError, match="a function of 1 indices, got 2"):
        tir.IndexMap.from_func(lambda i, *j, k: [k, *j, i], ndim=1)
