# SPDX-License-Identifier: Apache-2.0
"""Matrix-vector products."""

from ..analysis import is_gemv
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
        spatial, part, is_inner = spatial_and_reduce(sch, info)
        if is_inner:
            return inner_reduction(sch, target, info, epilogue, spatial, part)
        return inner_spatial(sch, info, epilogue, spatial, part)
