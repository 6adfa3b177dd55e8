# SPDX-License-Identifier: Apache-2.0
"""Attention of three tensors, and of one that holds all three."""

from tvm import relax
from tvm.relax import op as _op

from .matmul import one_function


def get_relax_attention_module(
    q_shape,
    k_shape,
    v_shape,
    *,
    dtype,
    bias_shape=None,
    qk_scale=None,
    causal_mask=None,
    window_size=None,
):
    """main(q, k, v[, bias]): their attention."""
    shapes = {"q": q_shape, "k": k_shape, "v": v_shape, "bias": bias_shape}
    params = [
        relax.Var(name, relax.TensorStructInfo(shape, dtype))
        for name, shape in shapes.items()
        if shape is not None
    ]

    def result(q, k, v, bias=None):
        return _op.nn.attention(q, k, v, bias, qk_scale, causal_mask, window_size)

    return one_function(params, result)


def get_relax_stacked_attention_module(
    qkv, b, s, n, h, h_v, op, bias=None, qk_scale=None, single_shape=False, layout="BS3NH"
):
    """main(qkv[, bias]): attention of the parts of one tensor, which `op`, "split" or
    "strided_slice", takes apart: of (b, s, n · (2h + h_v)) for the layout BS3NH, of (s, b, n · 3h)
    for SBN3H. `qkv` and `bias` are arrays of their shapes and types; with `single_shape` all parts
    are reshaped by one expression."""
    if op not in ("split", "strided_slice"):
        raise NotImplementedError(f"expected 'split' or 'strided_slice', got '{op}'")
    if layout not in ("BS3NH", "SBN3H"):
        raise NotImplementedError(f"expected the layout BS3NH or SBN3H, got '{layout}'")
    params = [
        relax.Var(name, relax.TensorStructInfo(array.shape, str(array.dtype)))
        for name, array in (("qkv", qkv), ("bias", bias))
        if array is not None
    ]
    shape = relax.ShapeExpr([b, s, n, h])
    by_heads = layout == "BS3NH"
    ends = [n * h, 2 * n * h, n * (2 * h + h_v)] if by_heads else [h, 2 * h, 3 * h]

    def parts(stacked, axis):
        if op == "split":
            split = _op.split(stacked, ends[:-1], axis)
            return [split[i] for i in range(3)]
        begins = [0, *ends[:-1]]
        return [
            _op.strided_slice(stacked, [axis], [begin], [end])
            for begin, end in zip(begins, ends, strict=True)
        ]

    def result(stacked, bias=None):
        if by_heads:
            shapes = [shape, shape, shape if single_shape else relax.ShapeExpr([b, s, n, h_v])]
            sides = [
                _op.reshape(part, dims)
                for part, dims in zip(parts(stacked, 2), shapes, strict=True)
            ]
        else:
            heads = _op.reshape(stacked, [s, b, n, 3 * h])
            sides = [_op.permute_dims(part, [1, 0, 2, 3]) for part in parts(heads, 3)]
        out = _op.nn.attention(*sides, bias, qk_scale)
        if by_heads:
            return out
        return _op.reshape(_op.permute_dims(out, [1, 0, 2, 3]), [s, b, n * h])

    return one_function(params, result)
