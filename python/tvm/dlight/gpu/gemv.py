# SPDX-License-Identifier: Apache-2.0
"""Matrix-vector products."""

from ..analysis import get_block_info, is_gemv
from .base import GPUScheduleRule, or_none, threads_of
from .reduction import across_threads, one_reduction


class GEMV(GPUScheduleRule):
    """Matrix-vector products: a block of threads for each row."""

    @or_none
    def apply(self, func, target, _):
        """The scheduled function, or None where it is no matrix-vector product."""
        found = one_reduction(func)
        if found is None:
            return None
        sch, info, epilogue = found
        vectors = is_gemv(sch, info)
        if vectors is None:
            return None
        return self.sch_inner_reduction(sch, target, info.block_rv, vectors, epilogue)

    def sch_inner_reduction(self, sch, target, block, vector_input_buffers, epilogue_info):
        """Each thread of a block takes a part of the row. `vector_input_buffers` has no effect."""
        threads = threads_of(target)
        return across_threads(sch, get_block_info(sch, block), epilogue_info, threads)
