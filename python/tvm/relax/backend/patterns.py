# SPDX-License-Identifier: Apache-2.0
"""Patterns that backends have in common: (pattern, {name: part of it})."""

from tvm.relax.dpl import is_const, is_op, is_tuple_get_item, wildcard


def _finished(out, parts, with_bias=False, activation=None):
    """`out`, then a bias added and an activation applied where asked for."""
    parts["root"] = out
    if with_bias:
        parts["bias"] = wildcard()
        out = is_op("relax.add")(out, parts["bias"])
    if activation:
        out = is_op(activation)(out)
    return out, parts


def make_fused_bias_activation_pattern(op_name, with_bias=False, activation=None):
    """An operator of two operands, maybe with a bias and an activation: lhs, rhs, bias, root."""
    lhs, rhs = wildcard(), wildcard()
    return _finished(is_op(op_name)(lhs, rhs), {"lhs": lhs, "rhs": rhs}, with_bias, activation)


def make_residual_block_pattern(node_output, binary_op="relax.add", activation=None):
    """Something combined with another input of the block, in any order, maybe with an activation:
    residual, and the parts of `node_output`."""
    parts = {}
    if isinstance(node_output, tuple):
        node_output, parts = node_output
    residual, op = wildcard(), is_op(binary_op)
    out = op(node_output, residual) | op(residual, node_output)
    if activation is not None:
        out = is_op(activation)(out)
    return out, {**parts, "residual": residual}


def make_conv2d_pattern(with_bias=False, activation=None):
    """A convolution, maybe with a bias and an activation."""
    return make_fused_bias_activation_pattern("relax.nn.conv2d", with_bias, activation)


def _operands(transposed_rhs):
    lhs, rhs = wildcard(), wildcard()
    parts = {"lhs": lhs, "rhs": rhs}
    return lhs, is_op("relax.permute_dims")(rhs) if transposed_rhs else rhs, parts


def make_matmul_pattern(with_bias=False, activation=None, transposed_rhs=False):
    """A product, maybe with a transposed right operand, a bias and an activation."""
    lhs, rhs, parts = _operands(transposed_rhs)
    return _finished(is_op("relax.matmul")(lhs, rhs), parts, with_bias, activation)


def make_matmul_dequantize_pattern(transposed_rhs=False):
    """A product of quantised operands whose result is scaled: also scale and zp, constants."""
    lhs, rhs, parts = _operands(transposed_rhs)
    out = is_op("relax.matmul")(lhs, rhs)
    parts |= {"root": out, "scale": is_const(), "zp": is_const()}
    return is_op("relax.dequantize")(out, parts["scale"], parts["zp"]), parts


def make_matmul_multiply_pattern(transposed_rhs=False):
    """A product, cast and multiplied by a constant: also scale."""
    lhs, rhs, parts = _operands(transposed_rhs)
    out = is_op("relax.matmul")(lhs, rhs)
    parts |= {"root": out, "scale": is_const()}
    cast = is_op("relax.astype")(out)
    return is_op("relax.multiply")(cast, parts["scale"]), parts


def make_attention_pattern(with_bias=False, var_len=False):
    """nn.attention, of packed sequences with `var_len`: query, key, value, bias, …"""
    names = ["query", "key", "value"]
    if var_len:
        names += ["seqstart_q", "seqstart_k", "max_seqlen_q", "max_seqlen_k"]
    elif with_bias:
        names.append("bias")
    parts = {name: wildcard() for name in names}
    op = "attention_var_len" if var_len else "attention_bias" if with_bias else "attention"
    return is_op("relax.nn." + op)(*parts.values()), parts


def make_stacked_attention_pattern(start_op, with_bias=False, layout="BS3NH"):
    """nn.attention of the parts of one stacked tensor, which `start_op` ("split" or
    "strided_slice") takes apart: stacked_qkv, bias, and of slices their bounds."""
    stacked = wildcard()
    parts = {"stacked_qkv": stacked}
    if start_op not in ("split", "strided_slice"):
        raise NotImplementedError(f"expected 'split' or 'strided_slice', got '{start_op}'")
    if layout not in ("BS3NH", "SBN3H"):
        raise NotImplementedError(f"expected the layout BS3NH or SBN3H, got '{layout}'")
    source = stacked
    if layout == "SBN3H":
        source = is_op("relax.reshape")(stacked, wildcard())
    ops = {}
    if start_op == "split":
        ops["split"] = source = is_op("relax.split")(source)
    sides = []
    for i, name in enumerate(("query", "key", "value")):
        if start_op == "split":
            side = is_tuple_get_item(source, i)
        else:
            side = is_op("relax.strided_slice")(source, varg_default_wildcard=True)
            ops[f"strided_slice_{name}"] = side
        if layout == "BS3NH":
            parts[f"{name}_reshape_list"] = wildcard()
            side = is_op("relax.reshape")(side, parts[f"{name}_reshape_list"])
        else:
            side = is_op("relax.permute_dims")(side)
        sides.append(side)
    if with_bias:
        parts["bias"] = wildcard()
        sides.append(parts["bias"])
    out = is_op("relax.nn.attention_bias" if with_bias else "relax.nn.attention")(*sides)
    if layout == "SBN3H":
        out = is_op("relax.reshape")(is_op("relax.permute_dims")(out), wildcard())
    return out, {**parts, **ops}


def make_layer_norm_pattern():
    """nn.layer_norm: its operands stand for themselves."""
    return is_op("relax.nn.layer_norm")(wildcard(), wildcard(), wildcard()), {}


def make_rms_norm_pattern():
    """A call of the PrimFunc rms_norm: inp, weight."""
    from tvm.relax.dpl import GlobalVarPattern, TuplePattern

    inp, weight = wildcard(), wildcard()
    callee = GlobalVarPattern()
    out = is_op("relax.call_tir")(callee, TuplePattern([inp, weight]))
    return out, {"gv": callee, "inp": inp, "rms_norm": out}


def make_attention_rewrite_pattern(
    qkv_layout, out_layout, with_bias, with_cast, with_kv_repeat=False
):
    """(pattern, rewriter) of attention that is spelled out as products and a softmax, for layouts
    "BSNH" (transposed to heads first) or "NSH" (heads and batch in one dimension)."""
    raise NotImplementedError(
        "make_attention_rewrite_pattern: attention that is spelled out is found by "
        "relax.transform.RecoverStructure"
    )
