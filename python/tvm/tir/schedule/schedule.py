# SPDX-License-Identifier: Apache-2.0
"""Schedule. Its primitives come from their registrations in C++; here is what only Python needs."""

import tvm_ffi

from tvm import tir
from tvm._derive import Node, function, register_node
from tvm.error import ScheduleError  # noqa: F401  (its name is here, too)
from tvm.ir import PrimExpr

from ..index_map import positional, without_separators
from .state import _debug_mask

ExprRV = PrimExpr
_LEVELS = {"detail": 0, "fast": 1, "none": 2}
_make = tvm_ffi.get_global_func("tir.schedule._make")
_mod = function("tir.schedule._mod", __name__)
_state = function("tir.schedule._state", __name__)
_trace = function("tir.schedule._trace", __name__)
_working_on = function("tir.schedule._working_on", __name__)


_annotate_buffer_access = function("tir.Schedule.annotate_buffer_access", __name__)
_transform_layout = function("tir.Schedule.transform_layout", __name__)
_transform_block_layout = function("tir.Schedule.transform_block_layout", __name__)


def _ranges_map(ranges, iters, rank):
    """lambda iters: (begin, end, begin, end, ...) from a function that returns pairs (begin, end)
    or points, which are [e, e + 1)."""
    copies = [tir.Var(i.var.name, i.var.dtype) for i in iters]
    items, flat = list(ranges(*copies)), []
    are_ends = len(items) == 2 * rank  # begin, end, begin, end, as traces are printed
    for item in items:
        if isinstance(item, (tuple, list)):
            flat += item
        else:
            flat += [item] if are_ends else [item, item + 1]
    return tir.IndexMap(copies, flat, None)


@register_node("tir.BlockRV")
class BlockRV(Node):
    pass


@register_node("tir.LoopRV")
class LoopRV(Node):
    pass


RAND_VAR_TYPE = ExprRV | BlockRV | LoopRV


@register_node("tir.Schedule")
class Schedule(Node):
    """A program being transformed, and the trace of how.

    Parameters
    ----------
    mod : PrimFunc or IRModule
    seed : of the random numbers of sample_*; another one every time if None
    debug_mask : "all" checks the state after every primitive; see ScheduleDebugMask
    error_render_level : "detail" shows the program in errors, "fast" the reason alone, "none"
        nearly nothing
    enable_check : if False, reorder, bind, parallel and vectorize take any iterations to be
        independent. What primitives refuse otherwise would change the results, whoever asks: the
        checks cost microseconds, and passes after the schedule rely on what they hold.
    """

    PrimAnnotationValueT = str | int | float | ExprRV
    AnnotationValueT = (
        PrimAnnotationValueT | list[PrimAnnotationValueT] | dict[str, PrimAnnotationValueT]
    )

    _not_pickled = "keep its module and trace.as_json()"

    def __deepcopy__(self, memo):
        return self.copy()

    def __init__(
        self, mod, *, seed=None, debug_mask="none", error_render_level="detail", enable_check=True
    ):
        if error_render_level not in _LEVELS:
            raise ValueError(
                f"error_render_level: expected one of {list(_LEVELS)}, got '{error_render_level}'"
            )
        level = _LEVELS[error_render_level]
        mask = _debug_mask(debug_mask)
        self.__init_handle_by_constructor__(_make, mod, seed, mask, level, enable_check)

    @property
    def mod(self):
        """The program as it is now."""
        return _mod(self)

    @property
    def state(self):
        """The tree of blocks and loops of the program."""
        return _state(self)

    @property
    def trace(self):
        """The primitives applied so far; it does not change any more."""
        return _trace(self)

    @property
    def func_working_on(self):
        """The function that get_block looks in by default, or None."""
        return _working_on(self)

    def annotate_buffer_access(self, block, buffer_index, buf_type, gen_new_ranges):
        if isinstance(block, str):
            block = self.get_block(block)
        if not isinstance(gen_new_ranges, tir.IndexMap):
            node = self.get(block)
            regions = node.reads if buf_type == "read" else node.writes
            known = isinstance(buffer_index, int) and 0 <= buffer_index < len(regions)
            rank = len(regions[buffer_index].region) if known else -1  # is refused below
            gen_new_ranges = _ranges_map(gen_new_ranges, node.iter_vars, rank)
        _annotate_buffer_access(self, block, buffer_index, buf_type, gen_new_ranges)

    annotate_buffer_access.__doc__ = _annotate_buffer_access.__doc__

    def transform_layout(
        self, block, buffer, index_map, pad_value=None, *, assume_injective_transform=False
    ):
        separators = []
        if not isinstance(index_map, tir.IndexMap):
            index_map = without_separators(positional(index_map), separators)
        _transform_layout(self, block, buffer, index_map, pad_value, assume_injective_transform)
        if separators:  # an instruction of its own, so that traces have them
            name = buffer.name if isinstance(buffer, tir.Buffer) else buffer
            self.set_axis_separator(block, name, separators)

    transform_layout.__doc__ = _transform_layout.__doc__

    def transform_block_layout(self, block, index_map):
        _transform_block_layout(self, block, positional(index_map))

    transform_block_layout.__doc__ = _transform_block_layout.__doc__

    def get_sblock(self, name, func_name=None):
        """Another name of get_block."""
        return self.get_block(name, func_name)

    def show(self, *args, **kwargs):
        """Prints the program and the trace."""
        self.mod.show(*args, **kwargs)
        self.trace.show(*args, **kwargs)

    def __repr__(self):
        return f"{self.mod.script()}\n{self.trace}"
