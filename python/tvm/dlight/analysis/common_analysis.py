# SPDX-License-Identifier: Apache-2.0
"""Blocks with their iterators and loops, and what they access."""

from tvm_ffi import get_global_func

from tvm import tir
from tvm.target import Target

get_blockrealize = get_global_func("tir.schedule.GetBlockRealize")
_KINDS = {tir.IterVar.DataPar: "S", tir.IterVar.CommReduce: "R"}


class IterInfo:
    """An iterator of a block: its kind ("S" spatial, "R" reduction, "O" other), extent and loop."""

    def __init__(self, kind, var, dom, loop_rv):
        self.kind, self.var, self._dom, self.loop_rv = kind, var, dom, loop_rv

    @property
    def dom(self):
        """The extent, as an int where it is known."""
        return int(self._dom) if isinstance(self._dom, (int, tir.IntImm)) else self._dom

    def __str__(self):
        return f'Iter("{self.kind}", {self.dom})'

    __repr__ = __str__


class BlockInfo:
    """A block with its iterators, in their order."""

    def __init__(self, name, iters, block_rv, reduction_block=False):
        self.name, self.iters, self.block_rv = name, iters, block_rv
        self._reduction_block = reduction_block

    def dom(self):
        """The extents of the iterators."""
        return [i.dom for i in self.iters]

    def dom_kind(self):
        """The kinds of the iterators, such as "SSR"."""
        return "".join(i.kind for i in self.iters)

    def get_loops(self):
        """The loops of the iterators."""
        return [i.loop_rv for i in self.iters]

    def is_injective(self):
        """Whether all iterators are spatial."""
        return all(kind == "S" for kind in self.dom_kind())

    def is_reduction(self):
        """Whether the block is a reduction."""
        return self._reduction_block

    def is_elementwise(self, sch):
        """Whether the block reads and writes one element per iteration, all at the same place."""
        if not self.is_injective():
            return False
        block = sch.get(self.block_rv)
        if len(block.writes) != 1:
            return False
        place = [r.min for r in block.writes[0].region]
        return all(
            len(read.region) == len(place)
            and all(tir.analysis.expr_deep_equal(r.min, i) and _is_one(r.extent)
                    for r, i in zip(read.region, place, strict=True))
            for read in block.reads
        )  # fmt: skip

    def is_gemv(self):
        """Whether it has the iterators of a matrix-vector product."""
        return self._reduction_block and self.dom_kind() == "SR"

    def is_gemm(self):
        """Whether it has the iterators of a matrix product: two or three spatial, one reduction."""
        return self._reduction_block and self.dom_kind() in ("SSR", "SSSR")

    def __str__(self):
        return f'BlockInfo("{self.name}", "{self.dom_kind()}", {self.dom()})'

    __repr__ = __str__


def _is_one(extent):
    return isinstance(extent, (int, tir.IntImm)) and int(extent) == 1


def get_block_info(sch, block):
    """The BlockInfo of a block whose iterators are its loops; None of others."""
    stmt, loops = sch.get(block), list(sch.get_loops(block))
    values = get_blockrealize(sch, block).iter_values
    by_var = {sch.get(loop).loop_var: loop for loop in loops}
    iters = []
    for iter_var, value in zip(stmt.iter_vars, values, strict=True):
        if not isinstance(value, tir.Var) or value not in by_var:
            return None
        kind = _KINDS.get(iter_var.iter_type, "O")
        iters.append(IterInfo(kind, iter_var.var, iter_var.dom.extent, by_var.pop(value)))
    if any(not _is_one(sch.get(loop).extent) for loop in by_var.values()):
        return None
    return BlockInfo(stmt.name_hint, iters, block, stmt.init is not None)


def _drop_unit_iters(sch, block):
    """Loops ax0, ax1, … and iterators v0, v1, … without those of extent 1; a block without spatial
    ones gets one, the constant 0."""
    iters = sch.get(block).iter_vars
    kept = [n for n, i in enumerate(iters) if not _is_one(i.dom.extent)]
    has_spatial = any(iters[n].iter_type == tir.IterVar.DataPar for n in kept)
    first = [] if has_spatial else [tir.const(0, "int64")]
    sch.transform_block_layout(block, lambda *values: [*first, *(values[n] for n in kept)])


def normalize_prim_func(sch):
    """The BlockInfo of each block of the function, in program order, without iterators of extent 1.
    None where a block has blocks inside, or iterators that are not its loops."""
    blocks = list(sch.get_child_blocks(get_root_block(sch)))
    if any(sch.get_child_blocks(b) or get_block_info(sch, b) is None for b in blocks):
        return None
    try:
        for block in blocks:
            _drop_unit_iters(sch, block)
    except tir.ScheduleError:
        return None
    infos = [get_block_info(sch, block) for block in blocks]
    return None if None in infos else infos


def get_root_block(sch, func_name="main"):
    """The root block of a function."""
    return sch.get_block(sch.mod[func_name].body.block.name_hint, func_name)


def get_max_threads_per_block(target):
    """How many threads of the target share memory: the least of the limits it names."""
    target = Target(target)
    limits = [target.attrs.get(key) for key in ("max_num_threads", "max_threads_per_block")]
    known = [int(limit) for limit in limits if limit is not None]
    return min(known) if known else 64


def get_max_shared_memory_per_block(target):
    """Bytes of shared memory; ValueError where the target does not name them."""
    limit = Target(target).attrs.get("max_shared_memory_per_block")
    if limit is None:
        raise ValueError(
            f"get_max_shared_memory_per_block: expected a target with max_shared_memory_per_block, "
            f"got {target}"
        )
    return int(limit)


def collect_vars_used_in_prim_expr(expr):
    """The variables of an expression."""
    found = set()
    tir.stmt_functor.post_order_visit(
        expr, lambda node: found.add(node) if isinstance(node, tir.Var) else None
    )
    return found


def collect_block_iter_vars_used_in_access_region(block, region):
    """The iterators of the block that are in a region."""
    used = set()
    for r in region:
        used |= collect_vars_used_in_prim_expr(r.min)
    return used & {i.var for i in block.iter_vars}


def detect_dominant_read(block):
    """The flat index of what most iterators of the block move in: the matrix of a matrix-vector
    product."""

    def count(read):
        return len(collect_block_iter_vars_used_in_access_region(block, read.region))

    dominant = max(block.reads, key=count)
    index = 0
    for extent, r in zip(dominant.buffer.shape, dominant.region, strict=True):
        index = index * extent + r.min
    return index


def is_broadcast_epilogue(sch, block, epilogue):
    """Whether the epilogue reads what the block writes with fewer iterators than it has."""
    written = {region.buffer for region in sch.get(block).writes}
    stmt = sch.get(epilogue)
    iters = {i.var for i in stmt.iter_vars if not _is_one(i.dom.extent)}
    for read in stmt.reads:
        if read.buffer not in written:
            continue
        if collect_block_iter_vars_used_in_access_region(stmt, read.region) & iters != iters:
            return True
    return False
