# SPDX-License-Identifier: Apache-2.0
"""Layouts by letters."""

import itertools

import pytest
import tvm
from tvm import te, tir
from tvm.ir import structural_equal


def test_layout():
    layout = tir.layout("NCHW16c")
    assert len(layout) == 5 and str(layout) == "NCHW16c"
    assert [layout[i] for i in range(5)] == ["N", "C", "H", "W", "c"] and layout[-1] == "c"
    assert "C" in layout and "c" in layout and "D" not in layout
    assert layout.index_of("H") == 2 and layout.index_of("D") == -1
    assert (layout.factor_of("C"), layout.factor_of("c"), layout.factor_of("N")) == (16, 16, -1)
    assert structural_equal(layout, tir.layout("NCHW16c"))
    assert not structural_equal(layout, tir.layout("NCHW8c"))
    with pytest.raises(IndexError, match="expected a dimension below 5, got 5"):
        layout[5]


@pytest.mark.parametrize(
    "text, why",
    [
        ("NCHWN", "the axis N occurs twice"),
        ("NHW16c", "there are blocks of C, but no axis C"),
        ("NCHWc", "the block c needs a size such as 16c"),
        ("NCHW16", "it ends with a number"),
        ("N16CHW", "a number goes before a lower-case letter, not C"),
        ("NC-HW", "'-' is neither a letter nor a digit"),
        ("NC99999999999c", "a block is too large"),
    ],
)
def test_no_layout(text, why):
    with pytest.raises(ValueError, match=f"layout: expected axes .* got '{text}': {why}"):
        tir.layout(text)


@pytest.mark.parametrize(
    "src, dst, shape, expected",
    [
        ("NCHW", "NHWC", (1, 8, 2, 3), (1, 2, 3, 8)),
        ("NCHW", "NCHW4c", (1, 8, 2, 3), (1, 2, 2, 3, 4)),
        ("NCHW4c", "NCHW2c", (1, 2, 2, 3, 4), (1, 4, 2, 3, 2)),
        ("OIHW", "OIHW2i4o", (8, 4, 1, 2), (2, 2, 1, 2, 2, 4)),
        ("OIHW", "OIHW2i4o3i", (8, 12, 1, 1), (2, 2, 1, 1, 2, 4, 3)),
    ],
)
def test_maps(src, dst, shape, expected):
    maps = tir.bijective_layout(src, dst)
    assert tuple(int(e) for e in maps.forward_shape(shape)) == expected
    assert tuple(int(e) for e in maps.backward_shape(expected)) == shape
    images = set()
    for index in itertools.product(*map(range, shape)):
        image = tuple(int(e) for e in maps.forward_index(index))
        assert tuple(int(e) for e in maps.backward_index(image)) == index
        images.add(image)
    assert images == set(itertools.product(*map(range, expected)))


def test_symbolic_index_and_padding():
    maps = tir.bijective_layout("NC", tir.layout("NC16c"))
    n, c = te.var("n"), te.var("c")
    block = maps.forward_index([n, c])
    assert structural_equal(list(block), [n, c // 16, c % 16])
    assert [int(e) for e in maps.forward_shape([1, 20])] == [1, 2, 16]


def test_errors():
    with pytest.raises(ValueError, match="same axes, got NCHW and NCH: W is only in one"):
        tir.bijective_layout("NCHW", "NCH")
    maps = tir.bijective_layout("NC4c", "NC")
    with pytest.raises(ValueError, match="expected 3 values for the layout NC4c, got 2"):
        maps.forward_index([1, 2])
    with pytest.raises(ValueError, match="expected 4 elements in dimension 2 .* got 5"):
        maps.forward_shape([1, 2, 5])
    with pytest.raises(ValueError, match="expected one letter as an axis, got 'NC'"):
        tir.layout("NC").index_of("NC")
    assert tvm.ir.structural_equal(maps, tir.bijective_layout("NC4c", "NC"))
