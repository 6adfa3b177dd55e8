# SPDX-License-Identifier: Apache-2.0
"""Tensor expressions: what each element of a tensor is."""

from tvm import tir
from tvm._aliases import no_attribute
from tvm._derive import public_names

from .operation import *  # noqa: F403
from .tag import TagScope, tag_scope
from .tensor import *  # noqa: F403

# Names that are those of tvm.tir.
_TIR = frozenset(
    """
    any all min_value max_value trace exp erf tanh sigmoid log tan cos sin sqrt rsqrt
    floor ceil sinh cosh log2 log10 asin asinh acos acosh atan atanh trunc abs round
    nearbyint power popcount fmod if_then_else isnan isfinite isinf div indexdiv indexmod
    truncdiv truncmod floordiv floormod logaddexp comm_reducer min max sum add subtract
    multiply
    """.split()
)


def __getattr__(name):
    if name in _TIR:
        value = globals()[name] = getattr(tir, name)
        return value
    if name == "__all__":
        return public_names(__name__)
    raise no_attribute("tvm.te", name, __dir__)


def __dir__():
    return sorted({*globals(), *_TIR})
