# SPDX-License-Identifier: Apache-2.0
"""Matrix products and what can be written as one: batches, convolutions."""

from dataclasses import dataclass
from enum import Enum

from tvm import tir
from tvm.tir import ScheduleError

from ..analysis import collect_block_iter_vars_used_in_access_region, get_root_block
from ..analysis.common_analysis import get_block_info
from ..analysis.gemv import get_reduction_expr
from .base import GPUScheduleRule, bind_to_threads, or_none, start


class IterKind(Enum):
    """What an iterator of C[s, i, j] += A[s, i, k] * B[s, j, k] is; T: of extent 1."""

    kIter_S = 0
    kIter_I = 1
    kIter_J = 2
    kIter_K = 3
    kIter_T = 4


@dataclass
class IterTrait:
    """The kind and extent of an iterator."""

    kind: IterKind
    extent: tir.PrimExpr


_BANKS = 32  # of shared memory

# (in A, in B, in C) -> kind
_KINDS = {
    (True, True, True): IterKind.kIter_S,
    (True, False, True): IterKind.kIter_I,
    (False, True, True): IterKind.kIter_J,
    (True, True, False): IterKind.kIter_K,
}


def detect_iter_traits(block):
    """The traits of the block's iterators, or None of a block that is no product of two buffers."""
    if len(block.reads) != 2 or len(block.writes) != 1 or get_reduction_expr(block) is None:
        return None
    used = [
        collect_block_iter_vars_used_in_access_region(block, region.region)
        for region in [*block.reads, *block.writes]
    ]
    traits = []
    for iter_var in block.iter_vars:
        extent = iter_var.dom.extent
        kind = _KINDS.get(tuple(iter_var.var in u for u in used))
        if isinstance(extent, tir.IntImm) and int(extent) == 1:
            kind = IterKind.kIter_T
        if kind is None:
            return None
        traits.append(IterTrait(kind, extent))
    kinds = {t.kind for t in traits}
    if not {IterKind.kIter_I, IterKind.kIter_J, IterKind.kIter_K} <= kinds:
        return None
    return traits


def make_iter_fusion_index_map(traits, kind_order):
    """(iterators) -> one index for each kind, the iterators of a kind fused; those of extent 1
    belong to the first."""
    variables = [tir.Var(f"i{n}", t.extent.dtype) for n, t in enumerate(traits)]
    fused = {}
    for var, trait in zip(variables, traits, strict=True):
        kind = kind_order[0] if trait.kind is IterKind.kIter_T else trait.kind
        fused[kind] = fused[kind] * trait.extent + var if kind in fused else var
    zero = tir.const(0, variables[0].dtype)
    return tir.IndexMap(variables, [fused.get(kind, zero) for kind in kind_order], None)


def get_index_map(block):
    """The map of the block's iterators to (s, i, j, k), or None of a block that is no product."""
    traits = detect_iter_traits(block)
    if traits is None:
        return None
    order = [IterKind.kIter_S, IterKind.kIter_I, IterKind.kIter_J, IterKind.kIter_K]
    return make_iter_fusion_index_map(traits, order)


def get_reduction_blocks(sch, blocks):
    """The reductions among the blocks."""
    return [block for block in blocks if sch.get(block).init is not None]


def auto_inline_producers(sch, block):
    """Inlines what the block reads as far as that can be."""
    inlined = True
    while inlined:
        inlined = False
        for producer in sch.get_producers(block):
            try:
                sch.compute_inline(producer)
                inlined = True
            except ScheduleError:
                pass


def auto_inline_consumers(sch, block):
    """Inlines what reads the block into it, as far as that can be."""
    inlined = True
    while inlined:
        inlined = False
        for consumer in sch.get_consumers(block):
            for inline in (sch.reverse_compute_inline, sch.compute_inline):
                try:
                    inline(consumer)
                    inlined = True
                    break
                except ScheduleError:
                    pass


def auto_inline_consumer_chain(sch, block):
    """Inlines what reads the block, and what reads that, as long as there is one reader."""
    while len(sch.get_consumers(block)) == 1:
        try:
            sch.reverse_compute_inline(sch.get_consumers(block)[0])
        except ScheduleError:
            return


def get_in_out_dtypes(block):
    """The types of what a product of two buffers of one type reads and writes."""
    if len(block.reads) != 2 or len(block.writes) != 1:
        raise ValueError(
            "get_in_out_dtypes: expected a block that reads two buffers and writes one, got "
            f"{len(block.reads)} and {len(block.writes)}"
        )
    first, second = (str(region.buffer.dtype) for region in block.reads)
    if first != second:
        raise ValueError(f"get_in_out_dtypes: expected operands of one type, got {first}, {second}")
    return first, str(block.writes[0].buffer.dtype)


def check_sm_version(arch):
    """The number in the name of an NVIDIA architecture, sm_80: 80; -1 of another name."""
    digits = arch.removeprefix("sm_").rstrip("af")
    return int(digits) if arch.startswith("sm_") and digits.isdigit() else -1


class Matmul(GPUScheduleRule):
    """A tile of the result for each block of threads and a smaller one for each thread; what they
    read goes through shared memory."""

    @dataclass
    class Config:
        """Sizes, x along the columns of the result and y along its rows.

        block_size, vthread, micro_size: threads of a block, virtual threads of one, elements of
        each; micro_size_k: steps of the reduction that are loaded at once. vector_size: elements
        that a thread loads at once. unroll: of the inner loops up to so many steps. use_shared:
        operands go through shared memory. storage_align: its rows are shifted against the banks.
        inner_x: of the elements of a thread those along x are next to each other in time.
        """

        block_size_x: int = 8
        block_size_y: int = 8
        vthread_x: int = 1
        vthread_y: int = 1
        micro_size_x: int = 4
        micro_size_y: int = 4
        micro_size_k: int = 8
        vector_size: int = 1
        unroll: int = 256
        use_shared: bool = True
        storage_align: bool = False
        inner_x: bool = False

    def get_configs(self, target):
        """The sizes for a target."""
        if "cuda" in target.keys:
            return Matmul.Config(
                block_size_x=8, block_size_y=16, micro_size_k=16, vector_size=2,
                storage_align=True, inner_x=True,
            )  # fmt: skip
        return Matmul.Config()

    @or_none
    def apply(self, func, target, _):
        """The scheduled function, or None where it has no product, or more than one reduction."""
        sch, infos = start(func)
        blocks = [i.block_rv for i in infos]
        reductions = get_reduction_blocks(sch, blocks)
        if len(reductions) != 1 or get_block_info(sch, reductions[0]) is None:
            return None
        (block,) = reductions
        index_map = get_index_map(sch.get(block))
        if index_map is None:
            return None
        sch.transform_block_layout(block, index_map)
        for buffer in (("read", 0), ("read", 1), ("write", 0)):
            sch.reindex(block, buffer)
        return self.sch_outer_reduction(sch, self.get_configs(target), block, blocks)

    def sch_outer_reduction(self, sch, config, reduction_block, blocks):
        """Tiles a product whose iterators are (s, i, j, k), and what is around it."""
        c, block = config, reduction_block
        threads = c.block_size_x * c.block_size_y
        tile_x = c.vthread_x * c.block_size_x * c.micro_size_x
        tile_y = c.vthread_y * c.block_size_y * c.micro_size_y
        sch.pad_einsum(block, [1, tile_y, tile_x, c.micro_size_k])
        loads = list(sch.get_producers(block))
        (store,) = sch.get_consumers(block)
        for load in loads:
            auto_inline_producers(sch, load)
        auto_inline_consumers(sch, store)

        def bind_tile(i, j, rows, columns):
            """[rows] [columns] [virtual threads] [threads], and the loops of a thread."""
            *by, vy, ty, yi = sch.split(i, [*rows, c.vthread_y, c.block_size_y, c.micro_size_y])
            *bx, vx, tx, xi = sch.split(j, [*columns, c.vthread_x, c.block_size_x, c.micro_size_x])
            own = (yi, xi) if c.inner_x else (xi, yi)
            return [*by, *bx], (vy, vx), (ty, tx), own

        def bind_threads(virtual, real):
            for loop, axis in zip(virtual, ("vthread.y", "vthread.x"), strict=True):
                sch.bind(loop, axis)
            sch.bind(sch.fuse(*real), "threadIdx.x")

        batch, i, j, k = sch.get_loops(block)
        grid, virtual, real, own = bind_tile(i, j, [None], [None])
        ko, ki = sch.split(k, [None, c.micro_size_k])
        sch.reorder(batch, *grid, ko, *virtual, *real, ki, *own)
        for loop, axis in zip(
            (batch, *grid), ("blockIdx.z", "blockIdx.y", "blockIdx.x"), strict=True
        ):
            sch.bind(loop, axis)
        bind_threads(virtual, real)
        for loop in own:
            sch.unroll(loop)
        if c.unroll > 0:
            sch.annotate(ki, "pragma_auto_unroll_max_step", c.unroll)
            sch.annotate(ki, "pragma_unroll_explicit", 1)
        for load in loads:
            if not c.use_shared:
                sch.compute_inline(load)
                continue
            sch.set_scope(load, 0, "shared")
            sch.compute_at(load, ko)
            fused = sch.fuse(*sch.get_loops(load)[4:])
            if c.vector_size > 1:
                fused, lanes = sch.split(fused, [None, c.vector_size])
                sch.vectorize(lanes)
            bind_to_threads(sch, fused, threads)
            if c.storage_align:
                sch.storage_align(load, 0, -2, _BANKS, max(1, c.vector_size))
        # A thread stores what it computed: its elements stay in registers.
        sch.set_scope(block, 0, "local")
        sch.reverse_compute_at(store, grid[1], preserve_unit_loops=True)
        *_, i, j = sch.get_loops(store)
        _, virtual, real, own = bind_tile(i, j, [], [])
        sch.reorder(*virtual, *real, *own)
        bind_threads(virtual, real)
        sch.decompose_reduction(block, ko)
        rest = [b for b in sch.get_child_blocks(get_root_block(sch)) if not _is_bound(sch, b)]
        for other in rest:
            loop = sch.fuse(*sch.get_loops(other))
            outer, inner = sch.split(loop, [None, threads])
            sch.bind(outer, "blockIdx.x")
            sch.bind(inner, "threadIdx.x")
        return sch


def _is_bound(sch, block):
    return any(sch.get(loop).thread_binding is not None for loop in sch.get_loops(block))
