# SPDX-License-Identifier: Apache-2.0
"""A product of matrices with what may follow it."""

from tvm import relax
from tvm.relax import op


def one_function(params, result):
    """A module whose main returns what `result(*params)` gives in a dataflow block."""
    bb = relax.BlockBuilder()
    with bb.function("main", params):
        with bb.dataflow():
            out = bb.emit_output(result(*params))
        bb.emit_func_output(out)
    return bb.get()


def get_relax_matmul_module(
    x_shape,
    y_shape,
    in_dtype,
    out_dtype=None,
    transposed_y=False,
    bias_shape=None,
    activation=None,
    residual_bin_op=None,
    residual_activation=None,
):
    """main(x, y[, bias]): x · y, or x · yᵀ, with a bias, an activation, an operator of the result
    and x, and an activation of that; activations and the operator are functions of expressions."""
    shapes = {"x": (x_shape, in_dtype), "y": (y_shape, in_dtype)}
    if bias_shape is not None:
        shapes["bias"] = (bias_shape, out_dtype or in_dtype)
    params = [relax.Var(name, relax.TensorStructInfo(*info)) for name, info in shapes.items()]

    def result(x, y, *bias):
        if transposed_y:
            last = len(y_shape) - 1
            y = op.permute_dims(y, [*range(last - 1), last, last - 1])
        out = op.matmul(x, y, out_dtype=out_dtype)
        for term in bias:
            out = op.add(out, term)
        if activation is not None:
            out = activation(out)
        if residual_bin_op is not None:
            out = residual_bin_op(out, x)
            if residual_activation is not None:
                out = residual_activation(out)
        return out

    return one_function(params, result)
