# SPDX-License-Identifier: Apache-2.0
"""Matrix-vector products."""

from ..analysis import get_block_info, is_gemv
from .base import GPUScheduleRule, or_none
from .reduction import inner_reduction, inner_spatial, one_reduction, spatial_and_reduce


class GEMV(GPUScheduleRule):
    """Matrix-vector products: a block of threads for each row."""

    @or_none
    def apply(self, func, target, _):
        """The scheduled function, or None where it is no matrix-vector product."""
        found = one_reduction(func)
        if found is None or is_gemv(found[0], found[1]) is None:
            return None
        sch, info, epilogue = found
        return self.sch_inner_reduction(sch, target, info.block_rv, [], epilogue)

    def sch_inner_reduction(self, sch, target, block, vector_input_buffers, epilogue_info):
        """Each thread of a block takes a part of the row, or of several rows where memory runs
        across them. `vector_input_buffers` has no effect: caches hold them."""
        info = get_block_info(sch, block)
        spatial, part, is_inner = spatial_and_reduce(sch, info)
        if is_inner:
            return inner_reduction(sch, target, info, epilogue_info, spatial, part)
        return inner_spatial(sch, info, epilogue_info, spatial, part)
