# SPDX-License-Identifier: Apache-2.0
"""Calls of operators that the interpreter does not evaluate lane by lane: one method each."""

import ctypes
import math
import re

import numpy as np
import tvm_ffi

from ._memory import (
    NULL,
    Break,
    Continue,
    Pointer,
    Return,
    as_value,
    lane,
    lanes_of,
    raise_error,
    to_numpy,
)
from ._scalar import LANE_WISE, type_of
from .expr import BufferLoad


class Calls:
    def call_if_then_else(self, e):
        condition = self.eval(e.args[0])
        if not isinstance(condition, tuple):
            return self.eval(e.args[1] if condition else e.args[2])
        a = self.eval(e.args[1]) if any(condition) else None
        b = self.eval(e.args[2]) if not all(condition) else None
        return tuple(lane(a if c else b, i) for i, c in enumerate(condition))

    def call_reinterpret(self, e):
        source, target = type_of(e.args[0].dtype), type_of(e.dtype)
        value = self.eval(e.args[0])
        if source.is_handle or target.is_handle:
            if source.is_handle and target.is_handle:
                return value
            return target.bring(value.address()) if source.is_handle else _null_or_error(value)
        raw = np.array([to_numpy(v, source) for v in lanes_of(value)], source.numpy).tobytes()
        convert = float if target.is_float else int
        return as_value([convert(v) for v in np.frombuffer(raw, target.numpy)])

    def call_ret(self, e):
        raise Return(self.eval(e.args[0]) if len(e.args) else None)

    def call_thread_return(self, e):
        raise Continue

    def call_break_loop(self, e):
        raise Break

    def call_continue_loop(self, e):
        raise Continue

    def call_assume(self, e):
        if not self.eval(e.args[0]):
            raise ValueError(f"assume: expected {e.args[0]} to hold")
        return 1

    def call_start_profile_intrinsic(self, e):
        return 0  # time is not part of the result

    call_end_profile_intrinsic = call_start_profile_intrinsic

    def call_undef(self, e):
        t = type_of(e.dtype)
        return as_value([math.nan if t.is_float else t.bring(-1)] * t.lanes)

    def call_isnullptr(self, e):
        return int(self.eval(e.args[0]).memory is None)

    def call_large_uint_imm(self, e):
        low, high = (self.eval(a) for a in e.args)
        return type_of(e.dtype).bring((high << 32) + low)

    def call_ignore_loop_partition(self, e):
        return self.eval(e.args[0])

    def call_get_active_lane_mask(self, e):
        base, limit = (self.eval(a) for a in e.args)
        return as_value([int(base + i < limit) for i in range(type_of(e.dtype).lanes)])

    def call_vscale(self, e):
        return self.vscale

    def call_vectorlow(self, e):
        return self.half(e, 0)

    def call_vectorhigh(self, e):
        return self.half(e, 1)

    def half(self, e, which):
        lanes = lanes_of(self.eval(e.args[-1]))
        size = len(lanes) // 2
        return as_value(lanes[which * size : (which + 1) * size])

    def call_vectorcombine(self, e):
        return lanes_of(self.eval(e.args[-2])) + lanes_of(self.eval(e.args[-1]))

    def call_dp4a(self, e):
        a, b = (lanes_of(self.eval(x)) for x in e.args[:2])
        acc = self.eval(e.args[2]) if len(e.args) > 2 else 0
        return type_of(e.dtype).bring(acc + sum(x * y for x, y in zip(a, b, strict=True)))

    def call_dot_bytes(self, e):
        return self.dot_of_words(e, *("uint8" if _is_unsigned(a) else "int8" for a in e.args))

    def call_dot_shorts(self, e):
        return self.dot_of_words(e, "int16", "int16")

    def call_dot_bfloat16(self, e):
        return self.dot_of_words(e, "bfloat16", "bfloat16")

    def dot_of_words(self, e, *kinds):
        """Lane by lane, of the numbers that lie in words of 32 bits."""
        t, words = type_of(e.dtype), [self.eval(a) for a in e.args]
        number = float if t.is_float else int

        def numbers(word, kind):
            raw = np.array([word & 0xFFFFFFFF], "uint32").view(type_of(kind).numpy)
            return [number(x) for x in raw]

        def dot(i):
            a, b = (numbers(lane(w, i), k) for w, k in zip(words, kinds, strict=True))
            return t.bring(sum(x * y for x, y in zip(a, b, strict=True)))

        return as_value([dot(i) for i in range(t.lanes)])

    def call_q_multiply_shift_per_axis(self, e):
        x, y, left, right, q, is_left, is_right = (self.eval(a) for a in e.args)
        scaled = x << left if is_left else x
        return type_of(e.dtype).bring(
            LANE_WISE["q_multiply_shift"](scaled, y, q + (right if is_right else 0), 0, None)
        )

    def call_address_of(self, e):
        load = e.args[0]
        if not isinstance(load, BufferLoad):
            return self.eval(load)
        return self.element(load.buffer, [lanes_of(self.eval(i))[0] for i in load.indices])

    def call_tvm_access_ptr(self, e):
        kind, data, offset = e.args[:3]
        t = type_of(kind.dtype)
        return self.eval(data) + self.eval(offset) * t.bytes * t.lanes

    def call_handle_add_byte_offset(self, e):
        return self.eval(e.args[0]) + self.eval(e.args[1])

    def call_atomic_add(self, e):
        pointer, t = self.eval(e.args[0]), type_of(e.dtype)
        (old,) = self.read(pointer, t, "atomic_add")
        self.write(pointer, t, [t.bring(old + self.eval(e.args[1]))], "atomic_add")
        return old

    def call_call_pure_extern(self, e):
        if e.args[0].value != "cvt.rna.tf32.f32":
            raise NotImplementedError(
                f"interpret: expected an operator with a meaning here, got {e.args[0].value}"
            )
        bits = int(np.float32(self.eval(e.args[1])).view(np.uint32))
        return (bits + 0x1000) & 0xFFFFE000  # a float32 of 10 digits after the first

    def call_tvm_raise_error(self, e):
        kind, text, *values = (self.eval(a) for a in e.args)
        raise_error(kind, re.sub(r"%l+([diux])", r"%\1", text) % tuple(values))

    def call_tvm_stack_make_shape(self, e):
        return tuple(self.eval(a) for a in e.args)

    def call_tvm_stack_make_array(self, e):
        """A tensor over memory: (data, shape, strides or 0, dimensions, type, offset)."""
        data, shape, strides, _, kind, offset = e.args
        t = type_of(kind.dtype)
        shape = lanes_of(self.eval(shape))
        strides = self.eval(strides)
        if not isinstance(strides, tuple):
            strides = tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
        pointer = self.eval(data) + self.eval(offset) * t.bytes
        last = (
            sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + 1
            if math.prod(shape)
            else 0
        )
        flat = pointer.view(last * t.bytes, "tvm_stack_make_array").view(t.numpy)
        array = np.lib.stride_tricks.as_strided(flat, shape, [s * t.bytes for s in strides])
        return tvm_ffi.from_dlpack(array)

    def call_tvm_call_packed(self, e):
        name, *args = (
            bool(self.eval(a)) if str(a.dtype) == "bool" else self.eval(a) for a in e.args
        )
        args = [ctypes.c_void_p(a.address()) if isinstance(a, Pointer) else a for a in args]
        result = tvm_ffi.get_global_func(name)(*args)
        return 0 if result is None else result

    call_tvm_call_cpacked = call_tvm_call_packed


def _is_unsigned(e):
    return str(e.dtype).startswith("uint")


def _null_or_error(value):
    if value:
        raise NotImplementedError("interpret: expected 0 for a handle, got another number")
    return NULL
