# SPDX-License-Identifier: Apache-2.0
"""Matrix-vector products on CPUs."""

from tvm import tir

from ..analysis import is_gemv, normalize_prim_func
from ..base import try_inline_contiguous_spatial
from .base import CPUScheduleRule


class GEMV(CPUScheduleRule):
    """Matrix-vector products: as the default pipeline schedules them, block by block."""

    rule_name = "BlockByBlock"

    def apply(self, func, target, _):
        """The scheduled function, or None where it has no matrix-vector product."""
        sch = tir.Schedule(func)
        infos = normalize_prim_func(sch)
        if infos is None:
            return None
        reductions = [i for i in try_inline_contiguous_spatial(sch, infos) if i.is_reduction()]
        if len(reductions) != 1 or is_gemv(sch, reductions[0]) is None:
            return None
        return super().apply(func, target, _)
