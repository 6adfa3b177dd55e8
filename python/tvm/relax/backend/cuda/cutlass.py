# SPDX-License-Identifier: Apache-2.0
"""What CUTLASS can take over, as patterns."""

from ..checks import dtype_of, partition, register_patterns, static
from ..checks import matmul_patterns as _matmuls
from ..patterns import (
    make_attention_pattern,
    make_conv2d_pattern,
    make_layer_norm_pattern,
    make_residual_block_pattern,
    make_rms_norm_pattern,
    make_stacked_attention_pattern,
)
from ..utils import has_leaking_intermediate_variables

_DTYPES = ("float16", "float32", "int8")


def _check_conv2d(context):
    """NHWC data and OHWI kernels, channels that fill the vectors of the tensor cores."""
    parts = context.annotated_expr
    attrs, kernel = parts["root"].attrs, static(parts["rhs"])
    return (
        not has_leaking_intermediate_variables(context)
        and dtype_of(parts["lhs"]) == dtype_of(parts["rhs"])
        and dtype_of(parts["lhs"]) in _DTYPES
        and (str(attrs.data_layout), str(attrs.kernel_layout)) == ("NHWC", "OHWI")
        and kernel is not None
        and kernel[0] is not None
        and kernel[3] is not None
        and int(attrs.groups) == 1
    )


def _check_half(context):
    return not has_leaking_intermediate_variables(context) and dtype_of(context.matched_expr) in (
        "float16",
        "float32",
    )


def _check_rms_norm(context):
    """The call is of a function of that name."""
    name = str(context.annotated_expr["rms_norm"].args[0].name_hint)
    return "rms_norm" in name and not has_leaking_intermediate_variables(context)


def matmul_patterns():
    """Products, with a bias and an activation, also of a transposed matrix."""
    return _matmuls("cutlass", _DTYPES)


def decode_matmul_patterns():
    """Products of weights that are decoded on the way."""
    raise NotImplementedError(
        "decode_matmul_patterns: the form of the decoding is CUTLASS's own, and is not here"
    )


def conv2d_patterns():
    """Convolutions, with a bias and an activation."""
    forms = {"": (False, None), "_bias": (True, None)}
    forms |= {f"_bias_{a}": (True, f"relax.nn.{a}") for a in ("relu", "silu")}
    return [
        ("cutlass.conv2d" + suffix, *make_conv2d_pattern(*form), _check_conv2d)
        for suffix, form in forms.items()
    ]


def residual_block_patterns():
    """Convolutions and products with a bias, to whose result another tensor is added, or by which
    it is multiplied, maybe with an activation behind it."""
    rows = []
    for name, pattern, parts, check in [*conv2d_patterns()[1:], *matmul_patterns()[1:2]]:
        for word, binary in (("add", "relax.add"), ("multiply", "relax.multiply")):
            for after in (None, "relax.nn.relu"):
                suffix = f"_residual_{word}" + ("_relu" if after else "")
                block = make_residual_block_pattern((pattern, parts), binary, after)
                rows.append((name + suffix, *block, check))
    return rows


def attention_patterns():
    """nn.attention, with a bias, of packed sequences, of one stacked tensor."""
    return [
        ("cutlass.attention", *make_attention_pattern(), _check_half),
        ("cutlass.attention_bias", *make_attention_pattern(with_bias=True), _check_half),
        ("cutlass.stacked_attention", *make_stacked_attention_pattern("split"), _check_half),
        (
            "cutlass.stacked_attention",
            *make_stacked_attention_pattern("split", with_bias=True),
            _check_half,
        ),
        ("cutlass.attention_var_len", *make_attention_pattern(var_len=True), _check_half),
    ]


def layer_norm_pattern():
    return [("cutlass.layer_norm", *make_layer_norm_pattern(), _check_half)]


def rms_norm_pattern():
    return [("cutlass.rms_norm", *make_rms_norm_pattern(), _check_rms_norm)]


register_patterns(
    [
        *conv2d_patterns(),
        *matmul_patterns(),
        *residual_block_patterns(),
        *attention_patterns(),
        *layer_norm_pattern(),
        *rms_norm_pattern(),
    ]
)


def partition_for_cutlass(mod, annotate_codegen=True, use_flash_mqa=True):
    """The module with what CUTLASS can do cut out for it.

    `use_flash_mqa` has no effect: attention is cut out in either case."""
    from tvm.relax.transform import RecoverStructure

    mod = RecoverStructure()(mod)  # attention that is spelled out
    return partition(mod, "cutlass", bind_constants=False, annotate_codegen=annotate_codegen)
