# SPDX-License-Identifier: Apache-2.0
"""What operators without a kernel do when a program runs: the packed functions `relax.run.*`."""

import builtins

import numpy as np
import tvm_ffi
from tvm.runtime import Tensor, tensor


def render_object(val):
    """The text of a value: arrays as NumPy prints them, tuples in parentheses."""
    if isinstance(val, Tensor):
        return str(val.numpy())
    if isinstance(val, tvm_ffi.Array):
        items = ", ".join(map(render_object, val))
        return f"({items},)" if len(val) == 1 else f"({items})"
    return str(val)


def _message(format_str, values):
    texts = list(map(render_object, values))
    return str(format_str).format(*texts) if format_str else ", ".join(texts)


@tvm_ffi.register_global_func("relax.run.print")
def relax_print(format_str, *format_args):
    """Prints the values, by the format where there is one."""
    if format_str:
        builtins.print(_message(format_str, format_args))
    else:
        builtins.print(*map(render_object, format_args))


@tvm_ffi.register_global_func("relax.run.assert_op")
def relax_assert_op(condition, format_str, *format_args):
    """Raises an AssertionError unless the condition, a bool scalar, holds."""
    if isinstance(condition, Tensor):
        array = condition.numpy()
        if array.shape != () or array.dtype != np.bool_:
            raise TypeError(
                f"assert_op: expected a bool scalar, got {array.dtype} of shape {array.shape}"
            )
        condition = bool(array)
    elif not isinstance(condition, (bool, int)):
        raise TypeError(f"assert_op: expected a bool scalar, got {type(condition).__name__}")
    if not condition:
        message = _message(format_str, format_args)
        raise AssertionError(f"Assertion Failed: {message}" if message else "Assertion Failed")


@tvm_ffi.register_global_func("relax.run.shape_to_tensor")
def relax_shape_to_tensor(shape_tuple):
    """The dims of a shape as a vector of int64."""
    return tensor(np.array(list(shape_tuple), "int64"))


@tvm_ffi.register_global_func("relax.run.unique")
def numpy_unique(x, sorted, return_index, return_inverse, return_counts, axis=None):
    """The different elements of a tensor, as NumPy finds them; unsorted: in the order they came."""
    array = x.numpy()
    values, index, inverse, counts = np.unique(
        array, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(index)
        values, index, counts = np.take(values, order, axis or 0), index[order], counts[order]
        inverse = np.argsort(order)[inverse]
    extra = zip(
        (index, inverse, counts), (return_index, return_inverse, return_counts), strict=True
    )
    results = [values, *(part.astype("int64") for part, wanted in extra if wanted)]
    return tensor(results[0]) if len(results) == 1 else [tensor(r) for r in results]


@tvm_ffi.register_global_func("relax.run.nonzero")
def numpy_nonzero(x):
    """The indices of the elements that are not 0, one row for each dimension."""
    return tensor(np.stack(np.nonzero(x.numpy())).astype("int64"))
