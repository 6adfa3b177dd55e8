# SPDX-License-Identifier: Apache-2.0
"""Schedules in the spelling that we share with Apache TVM, made and transformed by either."""

from programs import Timed  # this file runs in our process and in workers

from scripts import from_source

_MATMUL = """
@T.prim_func(s_tir=True)
def main(
    A: T.Buffer((512, 512), "float32"),
    B: T.Buffer((512, 512), "float32"),
    C: T.Buffer((512, 512), "float32"),
):
    for i, j, k in T.grid(512, 512, 512):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
_STAGE = """
    for i, j in T.grid(128, 128):
        with T.sblock("B{at}"):
            vi, vj = T.axis.remap("SS", [i, j])
            B{at}[vi, vj] = B{before}[vi, vj] + T.float32(1)
"""
BLOCKS = 200


def _schedule(mod):
    import tvm

    try:
        from tvm.s_tir import Schedule  # what newer versions call it
    except ImportError:
        from tvm.tir import Schedule
    return Schedule(tvm.IRModule({"main": mod}))


def _chain():
    shape = '(128, 128), "float32"'
    params = f"B0: T.Buffer({shape}), B{BLOCKS}: T.Buffer({shape})"
    text = f"@T.prim_func(s_tir=True)\ndef main({params}):\n"
    for at in range(1, BLOCKS):
        text += f"    B{at} = T.sblock_alloc_buffer((128, 128))\n"
    return text + "".join(_STAGE.format(at=at, before=at - 1) for at in range(1, BLOCKS + 1))


def _tile(mod):
    """A tiled matmul: 12 primitives."""
    sch = _schedule(mod)
    block = sch.get_sblock("C")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, [None, 16])
    j0, j1 = sch.split(j, [None, 32])
    k0, k1 = sch.split(k, [None, 8])
    sch.reorder(i0, j0, k0, i1, k1, j1)
    outer = sch.fuse(i0, j0)
    sch.parallel(outer)
    sch.vectorize(j1)
    sch.unroll(k1)
    sch.annotate(outer, "pragma_auto_unroll_max_step", 16)
    sch.decompose_reduction(block, k0)
    return sch


def _each(mod):
    """Six primitives on every block of a function of many blocks."""
    sch = _schedule(mod)
    for at in range(1, BLOCKS + 1):
        i, j = sch.get_loops(sch.get_sblock(f"B{at}"))
        j0, j1 = sch.split(j, [None, 16])
        sch.parallel(sch.fuse(i, j0))
        sch.vectorize(j1)
    return sch


CASES = {
    "make, matmul": (_MATMUL, _schedule),
    "make and tile, matmul": (_MATMUL, _tile),
    "make, 200 blocks": (_chain, _schedule),
    "make and schedule, 200 blocks": (_chain, _each),
}


def seconds(what, number=1):
    """How long one run of a case takes."""
    text, run = CASES[what]
    mod = from_source(text() if callable(text) else text)
    run(mod)
    return Timed(lambda: run(mod)).time(number) / number
