# SPDX-License-Identifier: Apache-2.0
"""Tensors: creation from NumPy and friends, copies, views."""

import numpy as np
import tvm_ffi
from tvm_ffi import core

from .device import cpu
from .device import device as _device

_empty = tvm_ffi.get_global_func("runtime.TensorEmpty")
_copy = tvm_ffi.get_global_func("runtime.TensorCopy")
_view = tvm_ffi.get_global_func("runtime.TensorCreateView")
_strided = tvm_ffi.get_global_func("runtime.TensorStridedView")
_pack = tvm_ffi.get_global_func("runtime.TensorPack")
_unpack = tvm_ffi.get_global_func("runtime.TensorUnpack")


def _numpy_dtype(dtype):
    """The NumPy dtype of one element of a tvm_ffi dtype (ml_dtypes for what NumPy lacks)."""
    name = str(dtype)
    lanes = getattr(dtype, "lanes", 1)
    if lanes != 1:
        base, _, _ = name.rpartition("x")
        return np.dtype((_numpy_dtype(tvm_ffi.dtype(base)), (lanes,)))
    if name == "bool":
        return np.dtype("bool")
    if name == "uint1":
        return np.dtype("uint8")
    try:
        return np.dtype(name)
    except TypeError:
        pass
    import ml_dtypes

    kind = getattr(ml_dtypes, name, None)
    if kind is None:
        raise TypeError(f"numpy: expected a dtype that NumPy or ml_dtypes has, got {name}")
    return np.dtype(kind)


class Tensor(core.Tensor):
    """An n-dimensional array on a device. It shares its memory with NumPy and PyTorch through DLPack."""

    __slots__ = ()

    def __getitem__(self, index):
        """A view of part of the tensor: integers and slices, as in NumPy."""
        shape, strides, offset = self._select(index)
        item = tvm_ffi.dtype(self.dtype).itemsize
        return _strided(self, tvm_ffi.Shape(shape), tvm_ffi.Shape(strides), offset * item)

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
        for axis, (extent, stride) in enumerate(zip(self.shape, self.strides)):
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
                        f"tensor: expected an index in [{-extent}, {extent}) on axis {axis}, got {i}"
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

    def _bytes(self):
        """The memory of a contiguous CPU tensor as a NumPy array of bytes."""
        nbytes = -(-self.numel() * self.dtype.bits * self.dtype.lanes // 8)
        return np.from_dlpack(_view(self, tvm_ffi.Shape((nbytes,)), "uint8", 0))

    def numpy(self):
        """A copy as NumPy array. Types of less than a byte come one to a byte, as ml_dtypes keeps them."""
        source = self
        if self.device.dlpack_device_type() != 1 or not self.is_contiguous():
            source = _empty(tvm_ffi.Shape(self.shape), self.dtype, cpu(0), None)
            _copy(self, source)
        dtype = _numpy_dtype(self.dtype)
        if self.dtype.bits < 8:
            packed, source = source, _empty(tvm_ffi.Shape(self.shape), "uint8", cpu(0), None)
            _unpack(packed, source)
        raw = source._bytes()
        return (raw.copy() if source is self else raw).view(dtype.base).reshape(self.shape + dtype.shape)

    def copyfrom(self, source_array):
        """Copies from a NumPy array (or what becomes one, or a tensor) of the same shape; converts the dtype."""
        if isinstance(source_array, core.Tensor):
            _copy(source_array, self)
            return self
        dtype = _numpy_dtype(self.dtype)
        try:
            array = np.asarray(source_array)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"copyfrom: expected an array, got {type(source_array).__name__}: {error}"
            ) from error
        if array.shape != self.shape + dtype.shape:
            raise ValueError(
                f"copyfrom: expected shape {self.shape + dtype.shape}, got {array.shape}"
            )
        array = np.ascontiguousarray(array, dtype.base).reshape(array.shape)
        direct = self.device.dlpack_device_type() == 1 and self.is_contiguous()
        target = self if direct else _empty(tvm_ffi.Shape(self.shape), self.dtype, cpu(0), None)
        if self.dtype.bits < 8:
            values = _empty(tvm_ffi.Shape(self.shape), "uint8", cpu(0), None)
            values._bytes()[:] = array.reshape(-1).view("uint8")
            _pack(values, target)
        else:
            target._bytes()[:] = array.reshape(-1).view("uint8")
        if target is not self:
            _copy(target, self)
        return self

    def copyto(self, target, mem_scope=None):
        """Copies to a tensor, or to a new one on a device; returns the copy."""
        if isinstance(target, core.Device):
            target = _empty(tvm_ffi.Shape(self.shape), self.dtype, target, mem_scope)
        elif not isinstance(target, core.Tensor):
            raise TypeError(f"copyto: expected a tensor or a device, got {type(target).__name__}")
        _copy(self, target)
        return target

    def item(self):
        """The value of a tensor with one element."""
        return self.numpy().item()

    def _create_view(self, shape, dtype=None, relative_byte_offset=0):
        """A tensor over the same bytes with another shape and dtype."""
        dtype = self.dtype if dtype is None else dtype
        return _view(self, tvm_ffi.Shape(tuple(shape)), dtype, relative_byte_offset)


tvm_ffi.register_object("ffi.Tensor")(Tensor)
core._set_class_tensor(Tensor)


def from_dlpack(ext_tensor):
    """A tensor over the memory of any object that speaks DLPack; nothing is copied."""
    return core.from_dlpack(ext_tensor)


def empty(shape, dtype="float32", device=None, mem_scope=None):
    """An uninitialised tensor, on the CPU by default."""
    shape = (shape,) if isinstance(shape, int) else tuple(int(extent) for extent in shape)
    device = cpu(0) if device is None else _device(device)
    return _empty(tvm_ffi.Shape(shape), dtype, device, mem_scope)


def tensor(arr, device=None, mem_scope=None):
    """A tensor with a copy of `arr`: an array, a tensor of any framework, or nested lists."""
    device = cpu(0) if device is None else _device(device)
    if not isinstance(arr, (np.ndarray, core.Tensor)) and hasattr(arr, "__dlpack__"):
        arr = core.from_dlpack(arr)
    if isinstance(arr, core.Tensor):
        return arr.copyto(device, mem_scope)
    try:
        arr = np.asarray(arr)
        dtype = tvm_ffi.dtype(arr.dtype.name)
    except (TypeError, ValueError) as error:
        raise TypeError(f"tensor: expected numbers, got {type(arr).__name__}: {error}") from error
    return _empty(tvm_ffi.Shape(arr.shape), dtype, device, mem_scope).copyfrom(arr)
