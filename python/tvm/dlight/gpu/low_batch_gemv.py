# SPDX-License-Identifier: Apache-2.0
"""Products of a matrix with a few vectors, whose number is known only at run time."""

from tvm import tir

from ..analysis import collect_block_iter_vars_used_in_access_region, get_block_info
from ..analysis.gemv import get_reduction_expr, step_of
from ..base import try_inline_contiguous_spatial
from .base import GPUScheduleRule, bind_to_threads, fused, or_none, start, threads_of
from .matmul import auto_inline_consumers, auto_inline_producers


def _constant_iters(block):
    """The block's iterators of constant extent."""
    return {i.var for i in block.iter_vars if isinstance(i.dom.extent, tir.IntImm)}


def is_gemv(sch, block_info):
    """The vectors of a sum of products, or None where it is none. One spatial iterator has an
    unknown extent: the matrix does not move along it, vectors and result do."""
    block = sch.get(block_info.block_rv)
    constant = _constant_iters(block)
    batch = [i for i in block.iter_vars if i.var not in constant]
    if not block_info.is_reduction() or len(batch) != 1 or len(block.writes) != 1:
        return None
    if batch[0].iter_type != tir.IterVar.DataPar or get_reduction_expr(block) is None:
        return None
    used = {
        r.buffer: collect_block_iter_vars_used_in_access_region(block, r.region)
        for r in [*block.writes, *block.reads]
    }
    result, *reads = used
    vectors = [b for b in reads if batch[0].var in used[b]]
    matrices = [b for b in reads if b not in vectors and used[b] == constant]
    is_product = batch[0].var in used[result] and len(matrices) > 0
    return vectors if is_product and vectors else None


def detect_dominant_read(block, const_iter_vars):
    """The index, as one number, of what is read along the most of the given iterators."""

    def used(region):
        return collect_block_iter_vars_used_in_access_region(block, region.region)

    region = max(block.reads, key=lambda r: len(used(r) & set(const_iter_vars)))
    index = 0
    for extent, r in zip(region.buffer.shape, region.region, strict=True):
        index = index * extent + r.min
    return index


def normalize(sch, block_info):
    """Brings the loops into the order batch, rows, reduction, the last two fused to one each. True
    if the matrix is contiguous along the reduction, False if not, None where it does not fit."""
    block = sch.get(block_info.block_rv)
    constant = _constant_iters(block)
    order = [i.var for i in block.iter_vars]
    kinds = {"S": [], "R": [], "batch": []}
    for info, var in zip(block_info.iters, order, strict=True):
        kind = info.kind if var in constant else "batch"
        if kind not in kinds:
            return None
        kinds[kind].append((info.loop_rv, var))
    if not all(kinds.values()):
        return None
    step = step_of(detect_dominant_read(block, constant), kinds["R"][-1][1])
    if step is None:
        return None
    groups = [[loop for loop, _ in kinds[kind]] for kind in ("batch", "S", "R")]
    sch.reorder(*(loop for group in groups for loop in group))
    for group in groups:
        sch.fuse(*group)
    return step == 1


def _bind(sch, loops):
    for loop, axis in zip(loops, ("blockIdx.y", "blockIdx.x", "threadIdx.x"), strict=True):
        sch.bind(loop, axis)


class LowBatchGEMV(GPUScheduleRule):
    """Products of a matrix with a few vectors: `bucket` of them share what is read of it."""

    def __init__(self, bucket=4):
        if not isinstance(bucket, int) or bucket < 1:
            raise ValueError(f"LowBatchGEMV: expected a positive bucket, got {bucket}")
        self.bucket = bucket

    @or_none
    def apply(self, func, target, _):
        """The scheduled function, or None where it is no such product."""
        sch, infos = start(func)
        infos = try_inline_contiguous_spatial(sch, infos)
        reductions = [n for n, info in enumerate(infos) if info.is_reduction()]
        if len(reductions) != 1 or reductions[0] > 1 or len(infos) > reductions[0] + 2:
            return None
        at = reductions[0]
        block, before = infos[at].block_rv, [info.block_rv for info in infos[:at]]
        info = get_block_info(sch, block)
        vectors = None if info is None else is_gemv(sch, info)
        if vectors is None or not all(i.is_injective() for i in infos[at + 1 :]):
            return None
        constant = _constant_iters(sch.get(block))
        pads = [1 if i.var in constant else self.bucket for i in sch.get(block).iter_vars]
        sch.pad_einsum(block, pads)
        padded = [b for b in sch.get_producers(block) if b not in before]
        epilogue = infos[at + 1] if len(infos) > at + 1 else None
        inner = normalize(sch, get_block_info(sch, block))
        schedule = self.sch_inner_reduction if inner else self.sch_outer_reduction
        return schedule(
            sch, target, block, before[0] if before else None, padded[0] if padded else None,
            vectors, epilogue, self.bucket,
        )  # fmt: skip

    def sch_inner_reduction(
        self, sch, target, block, dequantize_block, pad_input_block, vector_input_buffers,
        epilogue_info, batch_pad,
    ):  # fmt: skip
        """A block of threads for each row: a thread takes a part of it, for all vectors.

        What is around the block is found in the program: `dequantize_block`, `pad_input_block`,
        `vector_input_buffers` and `epilogue_info` have no effect."""
        threads = threads_of(target, 256)
        batch, row, k = self._begin(sch, block)
        outer, inner = sch.split(batch, [None, batch_pad])
        steps, part = sch.split(k, [None, threads])
        sch.reorder(outer, row, part, steps, inner)
        partial = sch.rfactor(part, 0)
        outer, row, part, inner = sch.get_loops(block)
        sch.reorder(outer, row, inner, part)
        _bind(sch, (outer, row, part))
        sch.compute_at(partial, row, preserve_unit_loops=True)
        sch.set_scope(partial, 0, "local")
        inner, _, part, steps = sch.get_loops(partial)[-4:]
        sch.reorder(part, steps, inner)
        sch.bind(part, "threadIdx.x")
        sch.unroll(inner)
        sch.decompose_reduction(partial, steps)
        self._store(sch, block, row, threads)
        return sch

    def sch_outer_reduction(
        self, sch, target, block, dequantize_block, pad_input_block, vector_input_buffers,
        epilogue_info, batch_pad,
    ):  # fmt: skip
        """A thread for each row, with the sums of all vectors.

        What is around the block is found in the program: `dequantize_block`, `pad_input_block`,
        `vector_input_buffers` and `epilogue_info` have no effect."""
        threads = threads_of(target, 256)
        batch, row, k = self._begin(sch, block)
        outer, inner = sch.split(batch, [None, batch_pad])
        rows, thread = sch.split(row, [None, threads])
        sch.reorder(outer, rows, thread, k, inner)
        _bind(sch, (outer, rows, thread))
        sch.unroll(inner)
        sch.decompose_reduction(block, k)
        self._store(sch, block, rows, threads)
        return sch

    @staticmethod
    def _begin(sch, block):
        """Inlines what is around; the loops are (batch, rows, reduction)."""
        for producer in sch.get_producers(block):
            auto_inline_producers(sch, producer)
        auto_inline_producers(sch, block)
        for store in sch.get_consumers(block):
            auto_inline_consumers(sch, store)
        return sch.get_loops(block)

    @staticmethod
    def _store(sch, block, at, threads):
        """What copies the results of vectors that are there runs beside the sums."""
        loops = [sch.get(loop).loop_var for loop in sch.get_loops(block)]
        depth = loops.index(sch.get(at).loop_var)
        for store in sch.get_consumers(block):  # none where nothing was padded
            sch.reverse_compute_at(store, at)
            bind_to_threads(sch, fused(sch, store, sch.get_loops(store)[depth + 1 :]), threads)
