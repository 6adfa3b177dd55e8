# SPDX-License-Identifier: Apache-2.0
"""Names of the registry, as `tvm.arith` has them."""

from tvm import arith


def __getattr__(name):
    return getattr(arith, name)
