# SPDX-License-Identifier: Apache-2.0
"""What operators without a kernel call when a program runs: `relax.run.*`, which are C++, by their
Python names."""

import tvm_ffi

from tvm.runtime import Tensor

relax_print, relax_assert_op, relax_shape_to_tensor, numpy_unique, numpy_nonzero = (
    tvm_ffi.get_global_func("relax.run." + name)
    for name in ("print", "assert_op", "shape_to_tensor", "unique", "nonzero")
)


def render_object(val):
    """The text of a value: arrays as NumPy prints them, tuples in parentheses."""
    if isinstance(val, Tensor):
        return str(val.numpy())
    if isinstance(val, tvm_ffi.Array):
        items = ", ".join(map(render_object, val))
        return f"({items},)" if len(val) == 1 else f"({items})"
    return str(val)
