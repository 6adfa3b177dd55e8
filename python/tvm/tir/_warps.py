# SPDX-License-Identifier: Apache-2.0
"""Instructions of NVIDIA's GPUs in the interpreter: what the threads of a warp do together
(ldmatrix, mma, WMMA), and copies that run beside the program and are done late (cp.async,
mbarrier).

A copy is done as late as it may be, when its thread waits for it, so that a missing wait is seen;
where threads run in random order, some are done at once, so that memory that is still read is, too.
"""

import numpy as np

from ._memory import lanes_of
from ._scalar import type_of
from .expr import Call

WARP = 32
# What operands of mma are called, beside names of types.
TYPES = {
    "fp16": "float16", "bf16": "bfloat16", "tf32": "float32", "fp32": "float32", "fp64": "float64",
    "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2",
}  # fmt: skip


class Barrier:
    """One of mbarrier: a phase ends when all have arrived and all expected bytes are there."""

    def __init__(self):
        self.count = self.left = self.bytes = self.phase = 0

    def start(self, count):
        self.count = self.left = count
        self.bytes = self.phase = 0

    def arrive(self, count=1):
        self.left -= count
        self.settle()

    def settle(self):
        if self.left == 0 and self.bytes == 0:
            self.left, self.phase = self.count, self.phase + 1


class Warps:
    # ---- memory ---------------------------------------------------------------------------------
    def pointed(self, pointer, offset=None):
        """(pointer, size of an element) of two arguments; the offset counts elements."""
        if isinstance(pointer, Call):
            first = pointer.args[0]
            is_address = pointer.op.name == "tir.address_of"
            size = type_of(first.buffer.dtype if is_address else first.dtype).bytes
        else:
            size = type_of(pointer.type_annotation.element_type.dtype).bytes
        at = self.eval(pointer)
        return at + (0 if offset is None else self.eval(offset)) * size, size

    def lane(self):
        return self.worker.number % WARP

    def meet_in_warp(self, e, value=None):
        """Waits for the threads of the warp; their values, by lane."""
        board = self.worker.meet(e, value, (WARP, self.worker.number // WARP))
        if len(board) != WARP:
            raise ValueError(f"interpret: expected a warp of {WARP} threads, got {len(board)}")
        return board

    def once(self, e, action):
        """One thread of the warp acts for all, after all have come and before any goes on."""
        self.meet_in_warp(e)
        if self.lane() == 0:
            action()
        self.meet_in_warp(e)
        return 0

    # ---- mma ------------------------------------------------------------------------------------
    def call_ptx_ldmatrix(self, e):
        trans, num, _, to, to_offset, source, offset = e.args
        place, _ = self.pointed(source, offset)
        target, _ = self.pointed(to, to_offset)
        rows, lane = self.meet_in_warp(e, place), self.lane()
        for i in range(self.eval(num)):
            lines = [
                np.frombuffer(rows[8 * i + r].view(16, "ptx_ldmatrix").tobytes(), np.uint16)
                for r in range(8)
            ]
            pairs = range(lane % 4 * 2, lane % 4 * 2 + 2)
            if self.eval(trans):
                pair = [lines[p][lane // 4] for p in pairs]
            else:
                pair = [lines[lane // 4][p] for p in pairs]
            word = np.array(pair, np.uint16).view(np.uint8)
            (target + 4 * i).view(4, "ptx_ldmatrix")[:] = word
        self.meet_in_warp(e)  # what was read may change only now
        return 0

    def call_ptx_mma(self, e):
        shape, _, _, *kinds = (str(a.value) for a in e.args[:6])
        m, n, k = (
            int(x) for x in shape.replace("m", "").replace("n", " ").replace("k", " ").split()
        )
        if len(e.args) > 13 or m % 8 or n != 8 or (m, k) == (8, 4) and "64" not in kinds[0]:
            raise NotImplementedError(f"interpret: expected mma of 8 columns, got {shape}")
        types = [type_of(TYPES.get(name, name)) for name in kinds]
        if any(t.bits < 8 for t in types):
            raise NotImplementedError("interpret: expected mma of whole bytes")
        per = max(1, 4 // types[0].bytes)  # elements of a register
        sizes = [m * k // WARP, k * n // WARP, m * n // WARP]
        places = [self.pointed(e.args[i], e.args[i + 1])[0] for i in (6, 8, 10)]
        own = [
            np.frombuffer(p.view(c * t.bytes, "ptx_mma").tobytes(), t.numpy)
            for p, c, t in zip(places, sizes, types, strict=True)
        ]
        board = self.meet_in_warp(e, own)
        wide = np.int64 if types[2].name.startswith("int") else np.float64
        a, b, c = np.zeros((m, k), wide), np.zeros((k, n), wide), np.zeros((m, n), wide)
        for lane, (x, y, z) in enumerate(board):
            group, place = lane // 4, lane % 4
            for i, value in enumerate(x):
                r = i // per
                a[group + r % (m // 8) * 8, (place + r // (m // 8) * 4) * per + i % per] = value
            for i, value in enumerate(y):
                b[(place + i // per * 4) * per + i % per, group] = value
            for i, value in enumerate(z):
                c[group + i // 2 * 8, place * 2 + i % 2] = value
        with np.errstate(all="ignore"):
            total = a @ b + c
            if wide is np.int64 and self.eval(e.args[12]):
                total = np.clip(total, -(2**31), 2**31 - 1)
            group, place = self.lane() // 4, self.lane() % 4
            mine = [total[group + i // 2 * 8, place * 2 + i % 2] for i in range(sizes[2])]
            raw = np.array(mine).astype(types[2].numpy).tobytes()
        places[2].view(len(raw), "ptx_mma")[:] = np.frombuffer(raw, np.uint8)
        return 0

    def call_mma_fill(self, e):
        size, pointer, offset = e.args
        to, element = self.pointed(pointer, offset)
        to.view(self.eval(size) * element, "mma_fill")[:] = 0
        return 0

    def call_mma_store(self, e):
        m, n, to, source, offset, stride = e.args
        if (self.eval(m), self.eval(n)) != (16, 16):
            raise NotImplementedError("interpret: expected mma_store of 16 x 16 elements")
        place, size = self.pointed(source, offset)
        target, _ = self.pointed(to)
        stride, lane = self.eval(stride), self.lane()
        for i in range(8):
            at = (lane // 4 + i // 2 % 2 * 8) * stride + i // 4 * 8 + i % 2 + lane % 4 * 2
            value = (place + i * size).view(size, "mma_store")
            (target + at * size).view(size, "mma_store")[:] = value
        return 0

    # ---- WMMA: a fragment is its matrix, row by row ---------------------------------------------
    def fragment(self, pointer, shape, number):
        t = type_of(pointer.type_annotation.element_type.dtype)
        size = shape[0] * shape[1] * t.bytes
        raw = (self.eval(pointer) + self.eval(number) * size).view(size, "fragment")
        return raw.view(t.numpy).reshape(shape), t

    def fragment_shape(self, pointer, m, n, k):
        scope = pointer.type_annotation.storage_scope
        return {"wmma.matrix_a": (m, k), "wmma.matrix_b": (k, n)}.get(scope, (m, n))

    def whole_fragment(self, e):
        sizes = [self.eval(a) for a in e.args[1:4]]
        self.shapes[e.args[0]] = sizes
        return self.fragment(e.args[0], self.fragment_shape(e.args[0], *sizes), e.args[4])

    def move_fragment(self, e, is_load):
        def act():
            matrix, t = self.whole_fragment(e)
            pointer, stride = self.eval(e.args[5]), self.eval(e.args[6])
            is_row = self.eval(e.args[7]) == "row_major"
            for i, j in np.ndindex(*matrix.shape):
                at = pointer + (i * stride + j if is_row else j * stride + i) * t.bytes
                raw = at.view(t.bytes, "matrix").view(t.numpy)
                if is_load:
                    matrix[i, j] = raw[0]
                else:
                    raw[0] = matrix[i, j]

        self.whole_fragment(e)
        return self.once(e, act)

    def call_tvm_load_matrix_sync(self, e):
        return self.move_fragment(e, True)

    def call_tvm_store_matrix_sync(self, e):
        return self.move_fragment(e, False)

    def call_tvm_fill_fragment(self, e):
        self.whole_fragment(e)
        return self.once(e, lambda: self.whole_fragment(e)[0].fill(self.eval(e.args[5])))

    def call_tvm_mma_sync(self, e):
        def act():
            d, a, b, c = (
                self.fragment(p, self.fragment_shape(p, *self.shapes[p]), i)
                for p, i in zip(e.args[::2], e.args[1::2], strict=True)
            )
            wide = np.float64 if d[1].is_float else np.int64
            x, y, z = (v[0].astype(wide) for v in (a, b, c))
            d[0][:] = (x @ y + z).astype(d[1].numpy)

        return self.once(e, act)

    # ---- copies ---------------------------------------------------------------------------------
    def call_ptx_ldg32(self, e):
        if not self.eval(e.args[0]):
            return 0.0 if type_of(e.dtype).is_float else 0
        return self.read(self.eval(e.args[1]), type_of(e.dtype), "ptx_ldg32")[0]

    def call_ptx_cp_async(self, e):
        to, _ = self.pointed(*e.args[:2])
        source, _ = self.pointed(*e.args[2:4])
        size = self.eval(e.args[4])
        is_there = len(e.args) < 6 or bool(lanes_of(self.eval(e.args[5]))[0])

        def copy():
            value = source.view(size, "ptx_cp_async") if is_there else 0
            to.view(size, "ptx_cp_async")[:] = value

        if self.worker.team.draw() < 0.5:
            copy()
        else:
            self.worker.copies[-1].append(copy)
        return 0

    def call_ptx_commit_group(self, e):
        self.worker.copies.append([])
        return 0

    def call_ptx_wait_group(self, e):
        """All groups but the newest ones are done; the last list is what has no group yet."""
        count = len(self.worker.copies) - 1 - self.eval(e.args[0])
        for _ in range(max(0, count)):
            for copy in self.worker.copies.pop(0):
                copy()
        return 0

    # ---- barriers in shared memory --------------------------------------------------------------
    def call_create_barriers(self, e):
        count = self.eval(e.args[0])
        self.worker.barriers = self.worker.shared(
            "barriers", lambda: [Barrier() for _ in range(count)]
        )
        return 0

    def barrier(self, e):
        return self.worker.barriers[self.eval(e)]

    def call_ptx_init_barrier_thread_count(self, e):
        self.barrier(e.args[0]).start(self.eval(e.args[1]))
        return 0

    def call_ptx_arrive_barrier(self, e):
        self.barrier(e.args[0]).arrive()
        return 0

    def call_ptx_arrive_barrier_expect_tx(self, e):
        barrier = self.barrier(e.args[0])
        barrier.bytes += self.eval(e.args[1])
        barrier.arrive()
        return 0

    def call_ptx_cp_async_barrier(self, e):
        """Arrives when all copies that the thread has begun are done; counts for itself."""
        barrier = self.barrier(e.args[0])
        barrier.left += 1
        begun, self.worker.copies = self.worker.copies, [[]]

        def arrive():
            for copy in (c for group in begun for c in group):
                copy()
            barrier.arrive()

        self.worker.team.later.append(arrive)
        return 0

    def call_ptx_cp_async_bulk(self, e):
        to, _ = self.pointed(*e.args[:2])
        source, _ = self.pointed(*e.args[2:4])
        size, barrier = self.eval(e.args[4]), self.barrier(e.args[5])

        def copy():
            to.view(size, "ptx_cp_async_bulk")[:] = source.view(size, "ptx_cp_async_bulk")
            barrier.bytes -= size
            barrier.settle()

        self.worker.team.later.append(copy)
        return 0

    def call_ptx_wait_barrier(self, e):
        number = self.eval(e.args[0])
        barrier, phases = self.worker.barriers[number], self.worker.phases
        phase = phases.get(number, 0)
        self.worker.wait_until(lambda: barrier.phase % 2 != phase % 2)
        phases[number] = phase + 1
        return 0
