# SPDX-License-Identifier: Apache-2.0
"""Tensors: creation from NumPy and friends, copies, views."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex, cast

import numpy as np
import tvm_ffi
from tvm_ffi import core

from .device import cpu as _cpu
from .device import device as _device

_CPU = _cpu(0)
_empty = tvm_ffi.get_global_func("runtime.TensorEmpty")
_copy_owned = tvm_ffi.get_global_func("runtime.TensorCopy")
_view = tvm_ffi.get_global_func("runtime.TensorCreateView")
_strided = tvm_ffi.get_global_func("runtime.TensorStridedView")
_borrow = tvm_ffi.get_global_func("runtime.TensorBorrow")
_pack = tvm_ffi.get_global_func("runtime.TensorPack")
_unpack = tvm_ffi.get_global_func("runtime.TensorUnpack")
_make_string_tensor = tvm_ffi.get_global_func("runtime.string_tensor")
_string_shape = tvm_ffi.get_global_func("vm.builtin.strings.shape")
_string_words = tvm_ffi.get_global_func("vm.builtin.strings.words")


def _own(tensor):
    """What a kernel lends to a Python function is no object: C++ and DLPack get one over its
    memory."""
    return tensor if tensor.__chandle__() else _borrow(tensor)


def _copy(source, to):
    _copy_owned(_own(source), _own(to))


@functools.cache
def _numpy_dtype(name):
    """The NumPy dtype of one element (ml_dtypes for what NumPy lacks); vectors are subarrays."""
    name, lanes = str(name), tvm_ffi.dtype(name).lanes
    if lanes != 1:
        return np.dtype((_numpy_dtype(name.rpartition("x")[0]), (lanes,)))
    if name in ("bool", "uint1"):
        return np.dtype("bool" if name == "bool" else "uint8")
    try:
        return np.dtype(name)
    except TypeError:
        pass
    import ml_dtypes

    kind = getattr(ml_dtypes, name, None)
    if kind is None:
        raise TypeError(f"numpy: expected a dtype that NumPy or ml_dtypes has, got {name}")
    return np.dtype(kind)


def _over(array, shape, dtype):
    """A tensor over the memory of a contiguous array."""
    # NumPy exports the types it defines itself, except bool in its older versions.
    if array.ndim == len(shape) and array.dtype.isbuiltin == 1 and array.dtype == dtype != "bool":
        return core.from_dlpack(array)
    return _view(core.from_dlpack(array.reshape(-1).view("uint8")), shape, dtype, 0)


class Tensor(core.Tensor):
    """An n-dimensional array on a device.

    It shares its memory with NumPy and PyTorch through DLPack. One that a Python function gets from
    the kernel that calls it is good until that function returns.
    """

    __slots__ = ()

    def __dlpack__(self, **options):
        return core.Tensor.__dlpack__(_own(self), **options)

    def __reduce__(self):
        return _unpickled, (self.numpy(), self.shape, str(self.dtype), self.device)

    def __copy__(self):
        return self.copyto(self.device)

    def __deepcopy__(self, memo):
        return self.copyto(self.device)

    def __getitem__(self, index):
        """A view of part of the tensor: integers and slices, as in NumPy."""
        shape, strides, offset = self._select(index)
        item = tvm_ffi.dtype(self.dtype).itemsize
        return _strided(_own(self), shape, strides, offset * item)

    def __setitem__(self, index, value):
        """Copies `value` into part of the tensor."""
        whole = index is Ellipsis or index == slice(None)
        target = self if whole else self[index]
        if isinstance(value, core.Tensor):
            _copy(value, target)
        elif isinstance(value, (np.ndarray, list, tuple)):
            target.copyfrom(value)
        else:
            target.copyfrom(np.full(target.shape, value, _numpy_dtype(self.dtype)))

    def _select(self, index):
        """Shape, strides and element offset of a basic index."""
        index = index if isinstance(index, tuple) else (index,)
        if Ellipsis in index:
            at = index.index(Ellipsis)
            fill = (slice(None),) * (self.ndim - len(index) + 1)
            index = index[:at] + fill + index[at + 1 :]
        if len(index) > self.ndim:
            raise IndexError(f"tensor: expected at most {self.ndim} indices, got {len(index)}")
        shape, strides, offset = [], [], 0
        for axis, (extent, stride) in enumerate(zip(self.shape, self.strides, strict=True)):
            i = index[axis] if axis < len(index) else slice(None)
            if isinstance(i, slice):
                start, stop, step = i.indices(extent)
                count = len(range(start, stop, step))
                shape.append(count)
                strides.append(stride * step)
                offset += stride * start if count else 0
            elif hasattr(i, "__index__"):
                i = i.__index__()
                if not -extent <= i < extent:
                    raise IndexError(
                        f"tensor: expected an index in [{-extent}, {extent}) on axis {axis}, "
                        f"got {i}"
                    )
                offset += stride * (i % extent)
            else:
                raise TypeError(
                    f"tensor: expected integers and slices as index, got {type(i).__name__}"
                )
        return shape, strides, offset

    def __len__(self):
        if self.ndim == 0:
            raise TypeError("tensor: a scalar has no length")
        return self.shape[0]

    def __repr__(self):
        return f"<tvm.runtime.Tensor shape={self.shape}, {self.device}>\n{self.numpy()!r}"

    def __str__(self):
        return str(self.numpy())

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            return np.from_dlpack(self)
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def to_dlpack(self) -> Any:
        """The capsule that other libraries make a tensor of the same memory from, by its name
        before 0.21."""
        return self.__dlpack__()

    def asnumpy(self) -> np.ndarray:
        """As `numpy`, by its name before 0.8."""
        return self.numpy()

    def numpy(self) -> np.ndarray:
        """A copy as NumPy array.

        Types of less than a byte come one to a byte, as ml_dtypes keeps them.
        """
        shape, name = self.shape, self.dtype
        dtype = _numpy_dtype(name)
        array = np.empty(shape + dtype.shape, dtype.base)
        if name.bits * name.lanes < 8:
            on_cpu = self.device.dlpack_device_type() == 1
            _unpack(_own(self) if on_cpu else self.copyto(_CPU), _over(array, shape, "uint8"))
        else:
            _copy(self, _over(array, shape, name))
        return array

    def copyfrom(self, source_array: Any) -> Tensor:
        """Copies from an array, or what becomes one, of the same shape; converts the dtype."""
        if isinstance(source_array, core.Tensor):
            _copy(source_array, self)
            return self
        shape, name = self.shape, self.dtype
        dtype = _numpy_dtype(name)
        try:
            array = np.asarray(source_array)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"copyfrom: expected an array, got {type(source_array).__name__}: {error}"
            ) from error
        if array.shape != shape + dtype.shape:
            raise ValueError(f"copyfrom: expected shape {shape + dtype.shape}, got {array.shape}")
        array = np.asarray(array, dtype.base, order="C")
        if not array.flags.writeable:  # DLPack cannot say that it only reads
            array = array.copy()
        if name.bits * name.lanes < 8:
            packed = _empty(shape, name, _CPU, None)
            _pack(_over(array, shape, "uint8"), packed)
            _copy(packed, self)
        else:
            _copy(_over(array, shape, name), self)
        return self

    def copyto(self, target: core.Device | core.Tensor, mem_scope: str | None = None) -> Tensor:
        """Copies to a tensor, or to a new one on a device; returns the copy."""
        if isinstance(target, core.Device):
            copy = _empty(self.shape, self.dtype, target, mem_scope)
        elif isinstance(target, core.Tensor):
            copy = target
        else:
            raise TypeError(f"copyto: expected a tensor or a device, got {type(target).__name__}")
        _copy(self, copy)
        return copy

    def item(self) -> Any:
        """The value of a tensor with one element."""
        return self.numpy().item()

    def _create_view(self, shape, dtype=None, relative_byte_offset=0):
        """A tensor over the same bytes with another shape and dtype."""
        dtype = self.dtype if dtype is None else dtype
        return _view(_own(self), tuple(shape), dtype, relative_byte_offset)


def _unpickled(array, shape, dtype, device):
    return _empty(shape, dtype, device, None).copyfrom(array)


tvm_ffi.register_object("ffi.Tensor")(Tensor)
core._set_class_tensor(Tensor)


def from_dlpack(ext_tensor: Any) -> Tensor:
    """A tensor over the memory of any object that speaks DLPack; nothing is copied."""
    return cast(Tensor, core.from_dlpack(ext_tensor))


def empty(
    shape: int | Sequence[int],
    dtype: str = "float32",
    device: core.Device | str | None = None,
    mem_scope: str | None = None,
) -> Tensor:
    """An uninitialised tensor, on the CPU by default."""
    extents = [shape] if isinstance(shape, SupportsIndex) else shape
    shape = tuple(map(operator.index, extents))
    device = _CPU if device is None else _device(device)
    return _empty(shape, dtype, device, mem_scope)


@tvm_ffi.register_object("runtime.StringTensor")
class StringTensor(tvm_ffi.Object):
    """A tensor of strings: what models for texts take and give."""

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(_string_shape(self))

    def numpy(self) -> np.ndarray:
        """An array of str objects."""
        words = [str(word) for word in _string_words(self)]
        return np.array(words, dtype=object).reshape(self.shape)

    def __repr__(self):
        return f"<tvm.runtime.StringTensor shape={self.shape}>\n{self.numpy()!r}"


def _string_tensor(array):
    words = [w.decode() if isinstance(w, bytes) else str(w) for w in array.reshape(-1).tolist()]
    return _make_string_tensor(array.shape, words)


def tensor(
    arr: Any, device: core.Device | str | None = None, mem_scope: str | None = None
) -> Tensor | StringTensor:
    """A tensor with a copy of `arr`: an array, a tensor of any framework, or nested lists.

    An array of strings becomes a StringTensor.
    """
    device = _CPU if device is None else _device(device)
    if not isinstance(arr, (np.ndarray, core.Tensor)) and hasattr(arr, "__dlpack__"):
        arr = core.from_dlpack(arr)
    if isinstance(arr, core.Tensor):
        return arr.copyto(device, mem_scope)
    given = type(arr).__name__
    try:
        arr = np.asarray(arr)
        if arr.dtype.kind in "US" or (
            arr.dtype.kind == "O" and all(isinstance(w, (str, bytes)) for w in arr.flat)
        ):
            return _string_tensor(arr)
        dtype = tvm_ffi.dtype(arr.dtype.name)
    except (TypeError, ValueError) as error:
        raise TypeError(f"tensor: expected numbers, got {given}: {error}") from error
    return _empty(arr.shape, dtype, device, mem_scope).copyfrom(arr)
