# SPDX-License-Identifier: Apache-2.0
"""Schedules of one module for another one with the same anchor block."""

import tvm
from tvm import tir
from tvm.target import Target
from tvm.tir.schedule import ScheduleError

from .postproc import Postproc


def schedule_using_anchor_trace(sch, anchor_trace, target):
    """Schedules a module as the trace of another module with the same anchor block says (the block
    that does most of the work): what a search found for a convolution serves one that is followed
    by something else as well.

    Blocks that the trace does not know are inlined where they can be, and else run in parallel.
    Instructions about blocks that this module does not have are left out.

    Parameters
    ----------
    sch : Schedule, of the module; changed in place.
    anchor_trace : Trace, of the other module.
    target : Target
    """
    target = Target(target)
    if tir.analysis.find_anchor_block(sch.mod) is None:
        raise ValueError("schedule_using_anchor_trace: expected a module with an anchor block")
    known = {str(inst.attrs[0]) for inst in anchor_trace.insts if inst.kind.name == "GetBlock"}
    for name in _names(sch):
        if name not in known:
            _inline(sch, name)
    strange = {name for name in _names(sch) if name not in known}
    # What postprocessors did counts the blocks of the other module: they are asked again.
    _applicable(sch, anchor_trace).apply_to_schedule(sch, remove_postproc=True)
    sch.enter_postproc()
    for postproc in Postproc.create(str(target.kind.name)):
        if not postproc.apply(sch):
            raise ValueError(f"schedule_using_anchor_trace: {type(postproc).__name__} refused")
    for name in _names(sch):
        if name in strange:
            _parallel(sch, name, target)


def _names(sch):
    """Of the blocks below the root."""
    root = sch.get_block("root")
    return [str(sch.get(block).name_hint) for block in sch.get_child_blocks(root)]


def _inline(sch, name):
    for inline in (sch.compute_inline, sch.reverse_compute_inline):
        try:
            return inline(name)
        except ScheduleError:
            continue


def _applicable(sch, trace):
    """The trace without what concerns blocks that the schedule does not have."""
    there = {"root", *_names(sch)}
    insts, missing = [], []  # missing: random variables without value
    for inst in trace.insts:
        absent = any(any(i is m or _same(i, m) for m in missing) for i in inst.inputs)
        if inst.kind.name == "GetBlock" and str(inst.attrs[0]) not in there:
            # A block made by an earlier instruction of the trace is there when that one is.
            absent = not any(str(inst.attrs[0]).startswith(name) for name in there - {"root"})
        if absent:
            missing += list(inst.outputs)
        else:
            insts.append(inst)
    decisions = {i: trace.decisions[i] for i in insts if i in trace.decisions}
    return tir.schedule.Trace(insts, decisions)


def _same(a, b):
    return hasattr(a, "same_as") and a.same_as(b)


def _parallel(sch, name, target):
    """A loop over the whole block on all cores, or on the threads of a GPU."""
    block = sch.get_block(name)
    loops = sch.get_loops(block)
    if not loops or any(sch.get(loop).kind != tir.ForKind.SERIAL for loop in loops):
        return
    spatial = [
        loop
        for loop, kind in zip(loops, (v.iter_type for v in sch.get(block).iter_vars), strict=False)
        if kind == tir.IterVar.DataPar
    ]
    if len(spatial) != len(loops):
        spatial = spatial[:1] if spatial and spatial[0] is loops[0] else []
    if not spatial:
        return
    fused = sch.fuse(*spatial) if len(spatial) > 1 else spatial[0]
    if tvm.device(target).type == "cpu":
        sch.parallel(fused)
        return
    outer, inner = sch.split(fused, [None, int(target.attrs["max_num_threads"])])
    sch.bind(outer, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
