# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements."""

import numpy as np
import pytest
import tvm
from tvm import te, tir, topi

from .checking import blocks, check, compiled, values

A = values(4, 5, 6)
# name: operator, arrays, expected
CASES = {
    "expand_dims": (lambda x: topi.expand_dims(x, 1), [A], A[:, None]),
    "expand_dims of two": (lambda x: topi.expand_dims(x, -1, 2), [A], A[..., None, None]),
    "expand_dims of a list": (lambda x: topi.expand_dims(x, [0, -1]), [A], A[None, ..., None]),
    "transpose": (topi.transpose, [A], A.T),
    "transpose of axes": (lambda x: topi.transpose(x, (1, 0, 2)), [A], A.transpose(1, 0, 2)),
    "flip": (lambda x: topi.flip(x, 1), [A], A[:, ::-1]),
    "reshape": (lambda x: topi.reshape(x, (10, 12)), [A], A.reshape(10, 12)),
    "reshape with -1": (lambda x: topi.reshape(x, (2, -1, 3)), [A], A.reshape(2, -1, 3)),
    "reshape to a scalar": (lambda x: topi.reshape(x, ()), [values(1, 1)], values(1, 1)[0, 0]),
    "reshape of nothing": (
        lambda x: topi.reshape(x, (0, 7)),
        [values(3, 0)],
        np.zeros((0, 7), "float32"),
    ),
    "squeeze": (topi.squeeze, [A[:, :1]], A[:, 0]),
    "squeeze of an axis": (lambda x: topi.squeeze(x, 0), [A[:1, :1]], A[0, :1]),
    "repeat": (lambda x: topi.repeat(x, 3, 1), [A], np.repeat(A, 3, 1)),
    "repeat of all": (lambda x: topi.repeat(x, 2), [A], np.repeat(A, 2)),
    "tile": (lambda x: topi.tile(x, (2, 1, 3)), [A], np.tile(A, (2, 1, 3))),
    "tile of fewer axes": (lambda x: topi.tile(x, 2), [A], np.tile(A, 2)),
    "tile of more axes": (lambda x: topi.tile(x, (2, 3)), [A[0, 0]], np.tile(A[0, 0], (2, 3))),
    "reverse_sequence": (
        lambda x, n: topi.reverse_sequence(x, n, 1, 0),
        [A, np.array([5, 1, 0, 3], "int32")],
        np.stack([A[0, ::-1], A[1], A[2], np.concatenate([A[3, 2::-1], A[3, 3:]])]),
    ),
    "expand_like": (
        lambda x, y: topi.expand_like(x, y, 1),
        [A[:, 0], A],
        np.broadcast_to(A[:, :1], A.shape),
    ),
    "trilu": (lambda x: topi.trilu(x, 1, True), [A], np.triu(A, 1)),
    "lower": (lambda x: topi.trilu(x, 0, False), [A], np.tril(A)),
    "sliding_window": (
        lambda x: topi.sliding_window(x, 1, (2, 3), (1, 2)),
        [A],
        np.lib.stride_tricks.sliding_window_view(A, (2, 3), (1, 2))[:, ::1, ::2],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name):
    op, arrays, expected = CASES[name]
    check(op, arrays, expected)


@pytest.mark.parametrize("name", ["expand_dims", "transpose of axes", "flip", "repeat", "tile"])
def test_unknown_sizes(name):
    op, arrays, expected = CASES[name]
    check(op, arrays, expected, symbolic=True)


def test_reshape_of_unknown_sizes():
    n = te.size_var("n", "int64")
    X = te.placeholder((n, 12), name="X")
    Y = topi.reshape(X, (n, 3, 4))
    module = tvm.compile(te.create_prim_func([X, Y]), target="llvm")
    x, y = values(7, 12), tvm.runtime.empty((7, 3, 4), "float32")
    module(tvm.runtime.tensor(x), y)
    np.testing.assert_array_equal(y.numpy(), x.reshape(7, 3, 4))


def test_joining():
    b, c = values(4, 2, 6, seed=1), values(4, 0, 6)
    check(lambda *x: topi.concatenate(x, 1), [A, b, A], np.concatenate([A, b, A], 1))
    check(lambda *x: topi.concatenate(x, 1), [c, A, c], A)
    check(lambda *x: topi.concatenate(x, -2), [A, b], np.concatenate([A, b], 1), symbolic=True)
    check(lambda *x: topi.stack(x, 1), [A, A + 1], np.stack([A, A + 1], 1))
    check(lambda *x: topi.stack(x, -1), [A, A + 1, A + 2], np.stack([A, A + 1, A + 2], -1))


def test_splitting():
    check(lambda x: topi.split(x, 3, 2), [A], np.split(A, 3, 2))
    check(lambda x: topi.split(x, [1, 4], 1), [A], np.split(A, [1, 4], 1))
    check(lambda x: topi.split(x, 2, 1), [A], [A[:, :3], A[:, 3:]])  # the last one is shorter
    check(lambda x: topi.split(x, [0, 2, 9], 1), [A], [A[:, :0], A[:, :2], A[:, 2:], A[:, 5:]])


def test_meshgrid():
    x, y, z = (values(n, seed=n) for n in (3, 4, 5))
    for indexing in ("ij", "xy"):
        expected = np.meshgrid(x, y, z, indexing=indexing)
        check(lambda *t, i=indexing: topi.meshgrid(t, i), [x, y, z], expected)


SLICES = [
    ((0, 1, 2), (4, 5, 6), None, None, np.s_[:, 1:, 2:]),
    ((1,), (3,), None, [2], np.s_[:, :, 1:3]),
    ((0, 4), (4, 0), (2, -1), [0, 1], np.s_[::2, 4:0:-1]),
    ((-3,), (-1,), None, [1], np.s_[:, -3:-1]),
    ((0,), (2**31 - 1,), (3,), [2], np.s_[:, :, ::3]),
    ((4,), (-100,), (-2,), [1], np.s_[:, 4::-2]),
    ((3,), (1,), None, [1], np.s_[:, 3:1]),
]


@pytest.mark.parametrize("begin, end, strides, axes, expected", SLICES)
def test_strided_slice(begin, end, strides, axes, expected):
    check(lambda x: topi.strided_slice(x, begin, end, strides, axes), [A], A[expected])
    if axes is not None:
        build = lambda x: topi.strided_slice(x, begin, end, strides, axes, "end", False)
        check(build, [A], A[expected], symbolic=True)


def test_slices_by_size():
    build = lambda x: topi.strided_slice(x, (1, 2, 0), (2, -1, 3), slice_mode="size")
    check(build, [A], A[1:3, 2:, :3])


def test_slices_by_data():
    begin, end, step = (np.array(x, "int64") for x in ([1, -2, 5], [4, 5, 0], [2, 1, -2]))
    build = lambda x, b, e, s: topi.dynamic_strided_slice(x, b, e, s, (2, 2, 3))
    check(build, [A, begin, end, step], A[1:4:2, -2:5, 5:0:-2])
    shape = np.array([2, 2, 3])
    check(topi.shape_func_dynamic_strided_slice, [A, begin, end, step], shape)


def test_setting_slices():
    v = values(2, 5, 6, seed=5)
    expected = A.copy()
    expected[0:4:2] = v
    check(lambda x, y: topi.strided_set(x, y, [0], [4], [2]), [A, v], expected)
    w = values(4, 2, 6, seed=6)
    expected = A.copy()
    expected[:, 1:5:2] = w
    check(lambda x, y: topi.slice_scatter(x, y, 1, 5, 2, 1), [A, w], expected)


def test_layouts():
    x = values(2, 8, 3, 5)
    blocked = x.reshape(2, 2, 4, 3, 5).transpose(0, 1, 3, 4, 2)
    check(lambda t: topi.layout_transform(t, "NCHW", "NHWC"), [x], x.transpose(0, 2, 3, 1))
    check(lambda t: topi.layout_transform(t, "NCHW", "NCHW4c"), [x], blocked)
    check(lambda t: topi.layout_transform(t, "NCHW4c", "NCHW"), [blocked], x)
    odd = values(1, 6, 2, 2)
    padded = np.pad(odd, [(0, 0), (0, 2), (0, 0), (0, 0)]).reshape(1, 2, 4, 2, 2)
    check(
        lambda t: topi.layout_transform(t, "NCHW", "NCHW4c"), [odd], padded.transpose(0, 1, 3, 4, 2)
    )


def test_index_maps():
    x = values(6, 8)
    tiles = tir.IndexMap.from_func(lambda i, j: (i // 2, j // 4, i % 2, j % 4))
    expected = x.reshape(3, 2, 2, 4).transpose(0, 2, 1, 3)
    check(lambda t: topi.index_map_transform(t, tiles), [x], expected)
    y = values(14)
    fours = tir.IndexMap.from_func(lambda i: (i // 4, i % 4))
    expected = np.pad(y, (0, 2), constant_values=2).reshape(4, 4)
    check(lambda t: topi.index_map_transform(t, fours, 2.0), [y], expected)


def test_making():
    check(lambda: topi.full((3, 4), "int8", 7), [], np.full((3, 4), 7, "int8"))
    check(lambda x: topi.full_like(x, 2), [A], np.full_like(A, 2))
    check(lambda: topi.eye(4, 5, 1), [], np.eye(4, 5, 1, "float32"))
    check(lambda: topi.eye(3, dtype="int32"), [], np.eye(3, dtype="int32"))
    for args in ((5,), (2, 9, 3), (9, 2, -3), (1.0, 2.0, 0.25), (5, 2)):
        check(lambda args=args: topi.arange(*args), [], np.arange(*args, dtype="float32"))
    check(lambda: topi.arange(10, dtype="int64"), [], np.arange(10))
    for periodic in (False, True):
        window = np.hamming(10 + periodic)[:10].astype("float32")
        check(lambda p=periodic: topi.hamming_window(10, p, 0.54, 0.46, "float32"), [], window)
    check(topi.shape, [A], np.array(A.shape, "int32"))
    check(topi.tensor_size, [A], np.int32(A.size))


@pytest.mark.parametrize("align", ["RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"])
def test_diagonals(align):
    x, d = values(2, 4, 5), values(2, 4, seed=1)
    expected = x.copy()
    expected[:, range(4), range(4)] = d
    check(lambda t, v: topi.matrix_set_diag(t, v, 0, align), [x, d], expected)
    several = values(2, 3, 4, seed=2)  # diagonals 1, 0 and -1
    expected = x.copy()
    for row, k in enumerate((1, 0, -1)):
        length = min(4 + min(k, 0), 5 - max(k, 0))
        side = align.split("_")[0 if k >= 0 else 1]
        start = 0 if side == "LEFT" else 4 - length
        for i in range(length):
            expected[:, i + max(-k, 0), i + max(k, 0)] = several[:, row, start + i]
    check(lambda t, v: topi.matrix_set_diag(t, v, (-1, 1), align), [x, several], expected)


def test_blocks():
    name = lambda op: blocks(compiled(op, [A]).func)
    assert name(topi.transpose) == ["T_transpose"]
    assert name(lambda x: topi.reshape(x, (-1,))) == ["T_reshape"]
    assert name(lambda x: topi.split(x, 2)) == ["T_split_sections", "T_split_sections_1"]
    assert name(lambda x: topi.strided_slice(x, [1], [2], axes=[0])) == [
        "T_strided_slice_with_axes"
    ]
    assert name(lambda x: topi.layout_transform(x, "NCW", "NWC")) == ["T_layout_trans"]


def test_wrong_arguments():
    X = te.placeholder((4, 5))
    with pytest.raises(ValueError, match=r"reshape: expected a shape with as many elements as \(4"):
        topi.reshape(X, (3, 7))
    with pytest.raises(ValueError, match="concatenate: expected tensors shaped like"):
        topi.concatenate([X, te.placeholder((4, 5, 6))], 0)
    with pytest.raises(TypeError, match="concatenate: expected tensors of type float32, got int8"):
        topi.concatenate([X, te.placeholder((4, 5), "int8")], 0)
    with pytest.raises(ValueError, match="squeeze: expected axis 1 of size 1"):
        topi.squeeze(X, 1)
    with pytest.raises(ValueError, match="transpose: expected 2 axes, got 1"):
        topi.transpose(X, (0,))
    with pytest.raises(ValueError, match="strided_slice: expected strides that are not 0"):
        topi.strided_slice(X, [0], [1], [0], [0])
    with pytest.raises(ValueError, match="arange: expected a step that is not 0"):
        topi.arange(0, 4, 0)
    with pytest.raises(TypeError, match="full: expected a shape, got None"):
        topi.full(None, "float32", 0)
    with pytest.raises(TypeError, match="repeat: expected an integer, got"):
        topi.repeat(X, 2, "axis")
    with pytest.raises(ValueError, match="meshgrid: expected indexing"):
        topi.meshgrid([te.placeholder((3,))], "yx")
