# SPDX-License-Identifier: Apache-2.0
"""What cuDNN can take over, as patterns."""

from ..checks import dtype_of, partition, register_patterns
from ..patterns import make_conv2d_pattern, make_stacked_attention_pattern
from ..utils import has_leaking_intermediate_variables


def _check_conv2d(context):
    """NHWC data and OHWI kernels of one dtype."""
    parts = context.annotated_expr
    attrs = parts["root"].attrs
    return (
        not has_leaking_intermediate_variables(context)
        and dtype_of(parts["lhs"]) == dtype_of(parts["rhs"])
        and dtype_of(parts["lhs"]) in ("float16", "float32")
        and (str(attrs.data_layout), str(attrs.kernel_layout)) == ("NHWC", "OHWI")
    )


def _check_attention(context):
    return not has_leaking_intermediate_variables(context) and dtype_of(
        context.annotated_expr["stacked_qkv"]
    ) in ("float16", "bfloat16")


register_patterns(
    [
        ("cudnn.conv2d.nhwc_ohwi", *make_conv2d_pattern(), _check_conv2d),
        ("cudnn.conv2d.nhwc_ohwi_bias", *make_conv2d_pattern(with_bias=True), _check_conv2d),
        (
            "cudnn.conv2d.nhwc_ohwi_bias_relu",
            *make_conv2d_pattern(with_bias=True, activation="relax.nn.relu"),
            _check_conv2d,
        ),
        *(
            (
                f"cudnn.attention.{layout}",
                *make_stacked_attention_pattern("split", layout=layout),
                _check_attention,
            )
            for layout in ("BS3NH", "SBN3H")
        ),
    ]
)


def partition_for_cudnn(mod):
    """The module with convolutions and attention cut out for cuDNN."""
    return partition(mod, "cudnn", bind_constants=False, annotate_codegen=True)
