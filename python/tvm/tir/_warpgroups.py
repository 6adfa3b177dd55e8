# SPDX-License-Identifier: Apache-2.0
"""Instructions of NVIDIA's GPUs from sm_90 on, in the interpreter: tensors that are copied by their
description (TMA), products of warpgroups (wgmma)."""

import re

import numpy as np

from ._scalar import type_of
from ._warps import TYPES

WARPGROUP = 128
CHUNK = 16  # bytes that swizzling keeps together
ENCODE = "runtime.cuTensorMapEncodeTiled"


class TensorMap:
    """A tensor in memory, the innermost dimension first, and the box of it that is copied."""

    def encode(self, kind, rank, data, *numbers):
        numbers = [int(n) for n in numbers]
        self.type, self.data = type_of(kind), data
        self.sizes, numbers = numbers[:rank], numbers[rank:]
        self.strides, numbers = [self.type.bytes, *numbers[: rank - 1]], numbers[rank - 1 :]
        self.box, self.steps, (_, swizzle, _, _) = numbers[:rank], numbers[rank:-4], numbers[-4:]
        self.swizzle = (0, 32, 64, 128)[swizzle]
        aligned = data.offset % 16 == 0 and all(s % 16 == 0 for s in self.strides[1:])
        inner = self.box[0] * self.type.bytes
        if not aligned or self.steps != [1] * rank or max(self.box) > 256:
            raise ValueError(f"{ENCODE}: expected multiples of 16 bytes and boxes of up to 256")
        if inner % 16 != 0 or (self.swizzle and inner > self.swizzle):
            raise ValueError(f"{ENCODE}: expected an inner box of 16 bytes to that of the swizzle")

    def elements(self, coordinates):
        """(place in the box, pointer or None where it is outside) of all elements."""
        for place, at in enumerate(np.ndindex(*reversed(self.box))):
            at = [c + int(i) for c, i in zip(coordinates, reversed(at), strict=True)]
            inside = all(0 <= c < size for c, size in zip(at, self.sizes, strict=True))
            offset = sum(c * s for c, s in zip(at, self.strides, strict=True))
            yield place * self.type.bytes, self.data + offset if inside else None


def swizzled(pointer, offset, swizzle):
    """Where a byte is of a tile at `pointer` whose chunks are permuted, in shared memory that is
    aligned to 1024 bytes."""
    at = pointer.offset + offset
    if swizzle:
        at ^= (at // 128 % (swizzle // CHUNK)) * CHUNK
    return pointer + (at - pointer.offset)


class TensorMaps:
    """What the host does."""

    def call_tvm_stack_alloca(self, e):
        if e.args[0].value != "tensormap":
            raise NotImplementedError(f"interpret: tvm_stack_alloca of {e.args[0].value}")
        return TensorMap()

    def call_tvm_call_packed(self, e):
        if e.args[0].value != ENCODE:
            return super().call_tvm_call_packed(e)
        made, *args = (self.eval(a) for a in e.args[1:])
        made.encode(*args)
        return 0


class Warpgroups:
    def warpgroup(self, e, value=None):
        """Waits for the threads of the warpgroup; their values, in order."""
        group = (WARPGROUP, self.worker.number // WARPGROUP)
        return self.worker.meet(e, value, group)

    # ---- copies ---------------------------------------------------------------------------------
    def call_ptx_cp_async_bulk_tensor(self, e):
        to, _ = self.pointed(*e.args[:2])
        source, barrier = self.eval(e.args[2]), self.barrier(e.args[3])
        if self.eval(e.args[4]):
            raise NotImplementedError("interpret: copies for several blocks of a cluster")
        coordinates, size = [self.eval(c) for c in e.args[5:]], source.type.bytes

        def copy():
            for place, pointer in source.elements(coordinates):
                value = 0 if pointer is None else pointer.view(size, "ptx_cp_async_bulk_tensor")
                target = swizzled(to, place, source.swizzle)
                target.view(size, "ptx_cp_async_bulk_tensor")[:] = value
                barrier.bytes -= size
            barrier.settle()

        self.worker.team.later.append(copy)
        return 0

    # ---- products -------------------------------------------------------------------------------
    def call_ptx_wgmma_descriptor(self, e):
        place, _ = self.pointed(*e.args[:2])
        return (place, *(self.eval(a) for a in e.args[2:]))

    def tile(self, descriptor, t, lines, across):
        """A matrix of (lines, 32 bytes of the depth) that a descriptor is about."""
        place, leading, stride, swizzle = descriptor
        if swizzle != 128:
            raise NotImplementedError("interpret: expected matrices swizzled by 128 bytes")
        depth = 32 // t.bytes
        out = np.zeros((lines, depth), t.numpy)
        for i, k in np.ndindex(lines, depth):
            if across:  # 64 lines next to each other, the depth below
                per = 128 // t.bytes
                offset = i // per * leading + k // 8 * stride + k % 8 * 128 + i % per * t.bytes
            else:
                offset = i // 8 * stride + i % 8 * 128 + k * t.bytes
            at = swizzled(place, offset, swizzle)
            out[i, k] = at.view(t.bytes, "ptx_wgmma_mma_async").view(t.numpy)[0]
        return out

    def call_ptx_wgmma_mma_async(self, e):
        _, columns, _ = map(int, re.findall(r"\d+", str(e.args[0].value)))
        a, b, c = (type_of(TYPES.get(str(x.value), str(x.value))) for x in e.args[1:4])
        sums, _ = self.pointed(e.args[8], e.args[9])
        keeps = bool(self.eval(e.args[10]))
        operands = [self.eval(e.args[6]), self.eval(e.args[7])]
        self.warpgroup(e)
        mine = self.worker.number % WARPGROUP
        key = ("wgmma", e, self.worker.number // WARPGROUP)

        def multiply():
            wide = np.float64 if c.is_float else np.int64
            left = self.tile(operands[0], a, 64, bool(self.eval(e.args[4]))).astype(wide)
            right = self.tile(operands[1], b, columns, bool(self.eval(e.args[5]))).astype(wide)
            return left @ right.T

        total = self.worker.shared(key, multiply)
        row, place = mine // 32 * 16 + mine % 32 // 4, mine % 4 * 2
        own = sums.view(columns // 2 * c.bytes, "ptx_wgmma_mma_async").view(c.numpy)
        for i in range(columns // 2):
            at = (row + i // 2 % 2 * 8, i // 4 * 8 + place + i % 2)
            own[i] = total[at] + (own[i] if keeps else 0)
        self.warpgroup(e)  # what was read may change only now
        return 0

    def call_ptx_bar_sync(self, e):
        self.warpgroup(e)
        return 0

    def nothing(self, e):
        return 0

    call_ptx_fence_barrier_init = call_ptx_fence_proxy_async = call_ptx_setmaxnreg = nothing
    call_ptx_wgmma_fence = call_ptx_wgmma_commit_group = call_ptx_wgmma_wait_group = nothing
