# SPDX-License-Identifier: Apache-2.0
"""Matrix-vector products."""

from tvm import arith, tir
from tvm.tir.schedule.analysis import BlockView

from .common_analysis import IterInfo, collect_block_iter_vars_used_in_access_region


def get_reduction_expr(block):
    """What a block adds to its result, or None of a block that is no sum."""
    store = block.body
    if not isinstance(store, tir.BufferStore) or not isinstance(store.value, tir.Add):
        return None
    old = tir.BufferLoad(store.buffer, store.indices)
    if not tir.analysis.expr_deep_equal(store.value.a, old):
        return None
    return store.value.b


def is_gemv(sch, block_info):
    """The vectors that a sum of products reads beside its matrix, or None where it is none: a
    vector is what not all spatial iterators move in."""
    block = sch.get(block_info.block_rv)
    if not block_info.is_reduction() or len(block.reads) < 2 or len(block.writes) != 1:
        return None
    if get_reduction_expr(block) is None:
        return None
    iters = {i.var for i in block.iter_vars}
    used = [collect_block_iter_vars_used_in_access_region(block, r.region) for r in block.reads]
    vectors = [r.buffer for r, u in zip(block.reads, used, strict=True) if len(u) < len(iters)]
    return vectors if 0 < len(vectors) < len(block.reads) else None


def normalize(sch, block_info):
    """Fuses the loops of a matrix-vector product to one spatial and one of the reduction. True if
    the matrix is contiguous along the reduction, False if not, None where it does not fit."""
    spatial = [i for i in block_info.iters if i.kind == "S"]
    reduce = [i for i in block_info.iters if i.kind == "R"]
    if not spatial or not reduce or len(spatial) + len(reduce) != len(block_info.iters):
        return None
    step = step_of_matrix(sch, block_info, reduce[-1])
    if step is None:
        return None
    sch.reorder(*(i.loop_rv for i in spatial), *(i.loop_rv for i in reduce))
    loops = [sch.fuse(*(i.loop_rv for i in group)) for group in (spatial, reduce)]
    block_info.iters[:] = [
        IterInfo(kind, sch.get(loop).loop_var, sch.get(loop).extent, loop)
        for kind, loop in zip("SR", loops, strict=True)
    ]
    return step == 1


def step_of_matrix(sch, block_info, along):
    """By how many elements what most loops move in, the matrix of a matrix-vector product, moves
    along an iterator; None where that is no number."""
    view = BlockView(sch, block_info.block_rv)
    loops = range(len(view.uses))
    matrix = max(view.loads, key=lambda load: sum(load.moves(loop) for loop in loops))
    loop_var = sch.get(along.loop_rv).loop_var
    position = next(i for i in loops if view.loop_vars[i].same_as(loop_var))
    step = None if matrix.steps is None else matrix.steps[position]
    return int(step) if isinstance(step, tir.IntImm) else None


def step_of(index, var):
    """How far the index moves with the variable, where that is a number."""
    moved = tir.stmt_functor.substitute(index, {var: var + 1})
    step = arith.Analyzer().simplify(moved - index)
    return int(step) if isinstance(step, tir.IntImm) else None
