# SPDX-License-Identifier: Apache-2.0
"""Tensors: values of every dtype, views, copies, DLPack, sizes beyond 32 bits."""

import ml_dtypes
import numpy as np
import pytest
import tvm
import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import runtime
from tvm.runtime import Tensor, empty, tensor

ML = [
    "bfloat16",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
    "int4",
    "uint4",
    "int2",
    "uint2",
]
NUMPY = ["bool", "float16", "float32", "float64"]
NUMPY += [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
BITS = {"bool": 8, "bfloat16": 16} | {n: int(n[-1]) for n in ML if "int" in n}
BITS |= {n: int(n[5]) for n in ML if n[:5] == "float"}


def all_values(name):
    """Every bit pattern of a small type, random ones of a large type."""
    if name in ML:
        dtype = np.dtype(getattr(ml_dtypes, name))
        patterns = np.arange(
            2 ** min(BITS[name], 16), dtype="uint8" if BITS[name] <= 8 else "uint16"
        )
        if name in ("int4", "int2"):
            half = 2 ** (BITS[name] - 1)
            return np.arange(-half, half).astype(dtype)
        return patterns.view(dtype)
    raw = np.random.default_rng(0).integers(0, 256, 8 * 30, dtype="uint8")
    return (raw % 2 == 0) if name == "bool" else raw.view(name)


def raw(t):
    """The bytes of a tensor."""
    nbytes = -(-t.numel() * t.dtype.bits // 8)
    return t._create_view((nbytes,), "uint8").numpy().tolist()


def same(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape
    assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", NUMPY + ML)
def test_round_trip_of_every_value(name):
    values = all_values(name)
    t = tensor(values)
    assert str(t.dtype) == name and t.shape == values.shape
    same(t.numpy(), values)
    odd = values[: len(values) // 2 * 2 - 1].reshape(
        -1, 1
    )  # an odd number: the last byte is half used
    same(tensor(odd).numpy(), odd)
    copy = t.copyto(tvm.cpu())
    same(copy.numpy(), values)


def test_packed_storage():
    t = tensor(np.array([1, -2, 3], ml_dtypes.int4))
    assert raw(t) == [0xE1, 0x03]  # element 0 in the lower half
    assert raw(tensor(np.array([0.5, 6.0], ml_dtypes.float4_e2m1fn))) == [0x71]
    assert raw(tensor(np.array([True, False, True]))) == [1, 0, 1]
    assert len(raw(empty((1001,), "uint1"))) == 126


def test_read_only_source():
    array = np.arange(3)
    array.flags.writeable = False
    assert tensor(array).numpy().tolist() == [0, 1, 2]


def test_conversion_on_copyfrom():
    t = empty((3,), "float16").copyfrom([1, 2.5, -3])
    assert t.numpy().tolist() == [1, 2.5, -3]
    assert empty((2,), "int4").copyfrom(np.array([7, -8])).numpy().astype(int).tolist() == [7, -8]
    assert tensor([1.5, 2]).dtype == "float64" and tensor(True).shape == ()
    assert tensor(np.arange(6).reshape(2, 3).T).numpy().tolist() == [[0, 3], [1, 4], [2, 5]]
    assert tensor(np.array([1, 2], ">i4")).numpy().tolist() == [1, 2]
    vectors = empty((3,), "float32x4").copyfrom(np.arange(12).reshape(3, 4))
    assert vectors.numpy()[2].tolist() == [8, 9, 10, 11]


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: empty((2, 3)).copyfrom(np.zeros((3, 2))),
            ValueError,
            r"expected shape \(2, 3\), got \(3, 2\)",
        ),
        (lambda: empty((2,)).copyfrom(object()), ValueError, r"expected shape \(2,\), got \(\)"),
        (lambda: tensor([[1], [2, 3]]), TypeError, "tensor: expected numbers, got list"),
        (lambda: tensor(object()), TypeError, "tensor: expected numbers, got"),
        (lambda: empty((-1,)), ValueError, r"expected extents of at least 0, got shape \(-1,\)"),
        (lambda: empty((2,), "float33"), TypeError, "expected a dtype with values, got float33"),
        (lambda: empty((2,), "handle"), TypeError, "expected a dtype with values"),
        (lambda: empty((2,), mem_scope="texture"), ValueError, "scope 'global', got 'texture'"),
        (lambda: empty((1 << 40, 1 << 40)), MemoryError, "larger than the address space"),
        (lambda: empty((1 << 61,), "int8"), MemoryError, "cannot allocate|larger"),
        (lambda: empty((1 << 62,), "int4"), MemoryError, "cannot allocate|larger"),
        (
            lambda: empty((3,)).copyto(empty((4,))),
            ValueError,
            r"copy: expected shape \(4,\), got \(3,\)",
        ),
        (
            lambda: empty((3,)).copyto(empty((3,), "int32")),
            TypeError,
            "expected dtype int32, got float32",
        ),
        (
            lambda: empty((3,)).copyto("cpu"),
            TypeError,
            "copyto: expected a tensor or a device, got str",
        ),
        (lambda: empty((3,))[3], IndexError, r"index in \[-3, 3\) on axis 0, got 3"),
        (lambda: empty((3,))[0, 0], IndexError, "at most 1 indices, got 2"),
        (lambda: empty((3,))["x"], TypeError, "integers and slices as index, got str"),
        (lambda: empty((4,), "int4")[1:], ValueError, "share bytes"),
        (
            lambda: empty((3,))._create_view((4,)),
            ValueError,
            "would occupy bytes 0 <= i_byte < 16, the tensor only contains 12 bytes",
        ),
        (
            lambda: empty((3,))._create_view((1,), relative_byte_offset=-4),
            ValueError,
            "would occupy bytes -4 <=",
        ),
        (
            lambda: empty((3,))._create_view((1,), relative_byte_offset=12),
            ValueError,
            "would occupy bytes 12 <=",
        ),
        (
            lambda: empty((4, 4))[:, 1]._create_view((4,)),
            ValueError,
            "expected a contiguous tensor",
        ),
        (lambda: len(empty(())), TypeError, "a scalar has no length"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_strided_view_stays_inside():
    view = tvm.get_global_func("runtime.TensorStridedView")
    shape = tvm_ffi.Shape
    t = empty((4, 4))
    view(t, shape((4, 2)), shape((4, 2)), 4)
    for args in (
        (shape((4, 3)), shape((4, 2)), 0),
        (shape((5,)), shape((4,)), 0),
        (shape((2,)), shape((-1,)), 0),
        (shape((2,)), shape((1 << 62,)), 0),
        (shape((1 << 62,)), shape((1 << 62,)), 0),
        (shape((2,)), shape((1, 1)), 0),
        (shape((1,)), shape((1,)), 64),
        (shape((1,)), shape((1,)), -4),
    ):
        with pytest.raises((ValueError, MemoryError)):
            view(t, *args)


indices = st.one_of(
    st.integers(-3, 2),
    st.slices(3),
    st.just(slice(None, None, -1)),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(indices, max_size=3), st.booleans())
def test_indexing_as_numpy(index, ellipsis):
    index = (*index, ...) if ellipsis else tuple(index)
    array = np.arange(27, dtype="int32").reshape(3, 3, 3)
    t = tensor(array)
    same(t[index].numpy(), np.ascontiguousarray(array[index]).reshape(array[index].shape))
    t[index] = -5
    array[index] = -5
    same(t.numpy(), array)
    t[index] = array[index] * 2
    array[index] = array[index] * 2
    same(t.numpy(), array)


def test_views_share_memory():
    t = tensor(np.zeros((2, 3), "float32"))
    t[1][2] = 5
    assert t.numpy()[1, 2] == 5
    bits = t._create_view((6,), "int32")
    assert bits.numpy()[5] == np.float32(5).view("int32")
    assert t._create_view((2,), relative_byte_offset=16).numpy().tolist() == [0, 5]
    row = t[0]
    del t
    row[:] = 7
    assert row.numpy().tolist() == [7, 7, 7] and [float(x.numpy()) for x in row] == [7, 7, 7]


def test_overlapping_copies_as_numpy():
    for target, source in (
        (np.s_[:], np.s_[::-1]),
        (np.s_[1:], np.s_[:-1]),
        (np.s_[:-1], np.s_[1:]),
        (np.s_[::2], np.s_[:5]),
        (np.s_[:5], np.s_[::2]),
    ):
        array = np.arange(10)
        t = tensor(array)
        t[target] = t[source]
        array[target] = array[source].copy()
        same(t.numpy(), array)
    grid = np.arange(9).reshape(3, 3)
    t = tensor(grid)
    t[:2] = t[1:]
    grid[:2] = grid[1:].copy()
    same(t.numpy(), grid)


def test_copies_do_not_share_memory():
    array = np.zeros(3)
    t = tensor(array)
    again = tensor(t)
    t[0] = 1
    assert array[0] == 0 and again.numpy()[0] == 0
    assert t.numpy() is not t.numpy()
    a = t.numpy()
    a[1] = 9
    assert t.numpy()[1] == 0


def test_empty_and_scalar_tensors():
    for shape in ((), (0,), (2, 0, 3)):
        t = empty(shape, "float32")
        assert t.shape == shape and t.numpy().shape == shape
        t.copyfrom(np.ones(shape))
        assert t.copyto(tvm.cpu()).shape == shape
    assert empty((0, 1 << 40, 1 << 40)).numel() == 0
    assert tensor(3.5).item() == 3.5
    assert empty(4).shape == (4,)


def test_alignment():
    for n in (1, 3, 100, 1 << 16):
        assert empty((n,), "int8").data_ptr() % 64 == 0


def test_dlpack_with_numpy_shares_memory():
    array = np.arange(6, dtype="float32").reshape(2, 3)
    t = runtime.from_dlpack(array)
    assert isinstance(t, Tensor) and t.data_ptr() == array.ctypes.data
    t[0, 0] = 42
    assert array[0, 0] == 42
    back = np.from_dlpack(t)
    assert back.ctypes.data == array.ctypes.data
    ours = np.from_dlpack(tensor([1.0, 2.0]))
    assert ours.tolist() == [1, 2]
    strided = runtime.from_dlpack(array.T)
    assert strided.strides == (1, 3)
    same(strided.numpy(), np.ascontiguousarray(array.T))
    array.flags.writeable = False
    with pytest.raises((BufferError, TypeError, ValueError, RuntimeError)):
        runtime.from_dlpack(array)
    with pytest.raises(TypeError):
        runtime.from_dlpack([1, 2])


def test_dlpack_with_torch_shares_memory():
    torch = pytest.importorskip("torch")
    theirs = torch.arange(6, dtype=torch.float32)
    t = runtime.from_dlpack(theirs)
    assert t.data_ptr() == theirs.data_ptr()
    ours = empty((3,), "bfloat16")
    assert torch.from_dlpack(ours).data_ptr() == ours.data_ptr()
    assert tensor(theirs).data_ptr() != theirs.data_ptr()


def test_results_of_functions_are_our_tensors():
    echo = tvm_ffi.convert(lambda x: x)
    t = tensor([1, 2])
    assert isinstance(echo(t), Tensor) and echo(t).data_ptr() == t.data_ptr()
    assert isinstance(echo(tvm.cuda(1)), runtime.Device) and echo(tvm.cuda(1)) == tvm.cuda(1)
    assert isinstance(t.device, runtime.Device)


def test_numpy_protocol_and_text():
    t = tensor([[1.0, 2.0]])
    assert (np.asarray(t) + 1).tolist() == [[2, 3]]
    assert str(t) == "[[1. 2.]]" and "Tensor shape=(1, 2), cpu:0" in repr(t)


def test_more_than_two_to_the_31_elements():
    n = (1 << 32) + 3
    t = empty((n,), "int4")  # two to a byte: 2 GiB that nobody touches
    assert t.numel() == n and t.shape == (n,)
    t = empty((n,), "int8")
    t[n - 1] = 7
    t[1 << 31] = 5
    assert t[-1].item() == 7 and t[1 << 31].item() == 5
    assert t[(1 << 32) :].shape == (3,)


def test_old_spellings():
    assert tvm.nd.array is runtime.tensor and tvm.nd.empty is runtime.empty
    assert tvm.nd.NDArray is runtime.NDArray is Tensor
    assert runtime.ndarray is tvm.nd
    assert tvm.nd.cpu(0) == tvm.cpu()
    import tvm.runtime.ndarray as nd
    from tvm.nd import array

    assert array is tensor and nd.array is tensor
    with pytest.raises(AttributeError, match="no attribute 'arry', did you mean 'array'"):
        _ = tvm.nd.arry
