# SPDX-License-Identifier: Apache-2.0
"""The operators of `nn`: functions of tensors that bind their results in the model being built."""

import inspect
import math
from collections.abc import Sequence
from typing import TypeVar, Union

import numpy as np

from tvm import relax as rx
from tvm import tir as _tir

from . import sampling
from .core import Tensor, current_builder, wrap_nested

IntExpr = Union[int, _tir.PrimExpr]  # noqa: UP007
OutType = TypeVar("OutType", bound=Union[Tensor, Sequence[Tensor]])  # noqa: UP007


def _expr(value):
    """The expression of an argument."""
    if isinstance(value, Tensor):
        return value._expr
    if isinstance(value, (list, tuple)):
        return rx.Tuple([_expr(v) for v in value])
    if isinstance(value, rx.Expr):
        return value
    raise TypeError(f"nn: expected a tensor, got {type(value).__name__}")


def _tensors(make, params, name):
    """An operator all of whose arguments are tensors."""

    def operator(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        hint = bound.arguments.pop("name", name)
        return wrap_nested(make(*(_expr(v) for v in bound.arguments.values())), hint)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(p, kind) for p in params.split()]
    parameters.append(inspect.Parameter("name", kind, default=name))
    signature = inspect.Signature(parameters)
    operator.__signature__ = signature
    operator.__doc__ = make.__doc__
    return operator


# fmt: off
_ROWS = {
    "a b": "add subtract multiply:mul divide less less_equal greater greater_equal equal not_equal",
    "x1 x2": "maximum minimum",
    "x": "exp log floor negative:neg square sqrt sigmoid tanh",
    "condition x1 x2": "where",
}
_NN_ROWS = {"x": "relu relu6 silu", "x alpha": "prelu"}
# fmt: on


def _define(rows, group):
    for params, names in rows.items():
        for entry in names.split():
            name, _, hint = entry.partition(":")
            operator = _tensors(getattr(group, name), params, hint or name)
            operator.__name__ = operator.__qualname__ = name
            globals()[name] = operator


_define(_ROWS, rx.op)
_define(_NN_ROWS, rx.op.nn)


# ---- shapes --------------------------------------------------------------------------------------
def unsqueeze(x, dim, name="unsqueeze"):
    """A dimension of 1 more."""
    return wrap_nested(rx.op.expand_dims(x._expr, dim), name)


def squeeze(x, axis=-1, name="squeeze"):
    """Without a dimension of 1."""
    return wrap_nested(rx.op.squeeze(x._expr, axis), name)


def concat(x, dim, name="concat"):
    """Tensors one behind the other."""
    return wrap_nested(rx.op.concat([_expr(v) for v in x], dim), name)


def split(ary, indices_or_sections, axis=0, name="split"):
    """Parts of equal size, or those that begin at indices."""
    return wrap_nested(rx.op.split(ary._expr, indices_or_sections, axis), name)


def chunk(x, chunks, dim=0, name="chunk"):
    """Parts of equal size."""
    return split(x, chunks, dim, name)


def broadcast_to(x, shape, name="broadcast_to"):
    """Repeated along dimensions of 1."""
    return wrap_nested(rx.op.broadcast_to(x._expr, shape), name)


def permute_dims(x, axes=None, name=None):
    """Dimensions in another order: reversed by default."""
    return wrap_nested(rx.op.permute_dims(x._expr, axes), name or "permute_dims")


def permute(x, axes, name="permute"):
    """Dimensions in another order."""
    return wrap_nested(rx.op.permute_dims(x._expr, axes), name)


def reshape(x, shape, name="reshape"):
    """The elements in another shape; one dimension may be -1."""
    return wrap_nested(rx.op.reshape(x._expr, shape), name)


def repeat(x, repeats, axis=None, name="repeat"):
    """Each element several times."""
    return wrap_nested(rx.op.repeat(x._expr, repeats, axis), name)


def take(x, indices, axis=None, name="take"):
    """Elements by index."""
    return wrap_nested(rx.op.take(x._expr, indices._expr, axis), name)


def pad(x, pad, mode="constant", value=0.0, name="pad"):
    """More elements at both ends: (before, after) of each dimension."""
    return wrap_nested(rx.op.nn.pad(x._expr, pad, mode, value), name)


def astype(x, dtype, name="astype"):
    """The elements in another dtype."""
    return x if x.dtype == dtype else wrap_nested(rx.op.astype(x._expr, dtype), name)


def triu(x, diagonal=0, name="triu"):
    """The part on and above a diagonal."""
    return wrap_nested(rx.op.triu(x._expr, diagonal), name)


# ---- tensors from nothing ------------------------------------------------------------------------
def full(shape, fill_value, dtype="float32", name="full"):
    """One value everywhere: a number or a scalar tensor."""
    value = fill_value._expr if isinstance(fill_value, Tensor) else rx.const(fill_value, dtype)
    return wrap_nested(rx.op.full(shape, value, dtype), name)


def zeros(shape, dtype="float32", name="zeros"):
    return wrap_nested(rx.op.zeros(shape, dtype), name)


def ones(shape, dtype="float32", name="ones"):
    return wrap_nested(rx.op.ones(shape, dtype), name)


def empty(shape, dtype="float32", name="empty"):
    """A tensor whose elements do not matter."""
    shape = rx.ShapeExpr(shape)
    return wrap_nested(rx.op.builtin.alloc_tensor(shape, dtype, 0), name)


def arange(start, end=None, step=1, dtype="float32", name="arange"):
    """Numbers from `start`, or 0, below `end`."""
    start, end = (0, start) if end is None else (start, end)
    return wrap_nested(rx.op.arange(start, end, step, dtype), name)


# ---- reductions, order ---------------------------------------------------------------------------
def sum(x, axis=None, keepdims=False, name="sum"):
    return wrap_nested(rx.op.sum(x._expr, axis, keepdims), name)


def max(x, axis=None, keepdims=False, name="max"):
    return wrap_nested(rx.op.max(x._expr, axis, keepdims), name)


def min(x, axis=None, keepdims=False, name="min"):
    return wrap_nested(rx.op.min(x._expr, axis, keepdims), name)


def cumsum(data, axis=None, dtype=None, exclusive=None, name="cumsum"):
    """Running sums."""
    return wrap_nested(rx.op.cumsum(data._expr, axis, dtype, bool(exclusive)), name)


def sort(x, axis=-1, descending=False, name="sort"):
    return wrap_nested(rx.op.sort(x._expr, axis, descending), name)


def argsort(data, axis=-1, descending=False, dtype="int32", name="argsort"):
    """The indices that sort."""
    return wrap_nested(rx.op.argsort(data._expr, axis, descending, dtype), name)


def topk(data, k=1, axis=-1, ret_type="both", largest=True, dtype="int32", name="topk"):
    """The largest or smallest elements, their indices, or both."""
    return wrap_nested(rx.op.topk(data._expr, k, axis, ret_type, largest, dtype), name)


# ---- products, convolutions ----------------------------------------------------------------------
def matmul(a, b, out_dtype=None, name="matmul"):
    return wrap_nested(rx.op.matmul(a._expr, b._expr, out_dtype=out_dtype), name)


def _kernel_layout(data_layout):
    """OIHW for NCHW, HWIO for NHWC."""
    space = data_layout.replace("N", "").replace("C", "")
    return f"OI{space}" if data_layout[1] == "C" else f"{space}IO"


def kernel_shape(data_layout, out_channels, in_channels, kernel):
    """The shape of a convolution's weight for that layout of data."""
    outer = data_layout[1] == "C"
    return (out_channels, in_channels, *kernel) if outer else (*kernel, in_channels, out_channels)


def _padding(padding, weight, kernel_layout, rank, dilation):
    """`"valid"` and `"same"` as numbers."""
    if not isinstance(padding, str):
        return padding
    if padding == "valid":
        return 0
    if padding != "same":
        raise ValueError(f"conv: expected padding 'same' or 'valid', got {padding!r}")
    first = 2 if kernel_layout[0] == "O" else 0
    dilation = [dilation] * rank if isinstance(dilation, int) else list(dilation)
    total = [d * (k - 1) for d, k in zip(dilation, weight.shape[first:][:rank], strict=True)]
    return [t // 2 for t in total] + [t - t // 2 for t in total]


def _conv(make, x, weight, bias, stride, padding, dilation, groups, data_layout, name):
    layout, rank = _kernel_layout(data_layout), len(data_layout) - 2
    padding = _padding(padding, weight, layout, rank, dilation)
    result = make(x._expr, weight._expr, stride, padding, dilation, groups, data_layout, layout)
    return _biased(wrap_nested(result, name), bias, data_layout)


def _biased(x, bias, data_layout):
    if bias is None:
        return x
    channel_dims = [-1 if dim == "C" else 1 for dim in data_layout]
    return add(x, reshape(bias, channel_dims))  # noqa: F821


def conv1d(
    x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, name="conv1d"
):  # fmt: skip
    return _conv(rx.op.nn.conv1d, x, weight, bias, stride, padding, dilation, groups, "NCW", name)


def conv2d(
    x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1,
    data_layout="NCHW", name="conv2d",
):  # fmt: skip
    return _conv(
        rx.op.nn.conv2d, x, weight, bias, stride, padding, dilation, groups, data_layout, name
    )


def conv3d(
    x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1,
    data_layout="NCDHW", name="conv3d",
):  # fmt: skip
    return _conv(
        rx.op.nn.conv3d, x, weight, bias, stride, padding, dilation, groups, data_layout, name
    )


def conv1d_transpose(
    x, weight, bias=None, stride=1, padding=0, output_padding=0, dilation=1, groups=1,
    name="conv1d_transpose",
):  # fmt: skip
    result = rx.op.nn.conv1d_transpose(
        x._expr, weight._expr, stride, padding, output_padding, dilation, groups
    )
    return _biased(wrap_nested(result, name), bias, "NCW")


# ---- networks ------------------------------------------------------------------------------------
def gelu(x, approximate=None, name="gelu"):
    """x times the normal distribution's share below x; `approximate="tanh"` for the usual one."""
    if approximate not in (None, "none", "tanh"):
        raise ValueError(f"gelu: expected approximate None or 'tanh', got {approximate!r}")
    make = rx.op.nn.gelu_tanh if approximate == "tanh" else rx.op.nn.gelu
    return wrap_nested(make(x._expr), name)


def softmax(x, axis=-1, name="softmax"):
    return wrap_nested(rx.op.nn.softmax(x._expr, axis), name)


def softplus(x, beta=1.0, threshold=20.0, name="softplus"):
    return wrap_nested(rx.op.nn.softplus(x._expr, beta, threshold), name)


def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5, name="layer_norm"):
    """Mean 0 and variance 1 over the last dimensions, scaled and shifted."""
    shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    gamma = rx.const(np.ones(shape), x.dtype) if weight is None else weight._expr
    beta = rx.const(np.zeros(shape), x.dtype) if bias is None else bias._expr
    axes = list(range(-len(shape), 0))
    return wrap_nested(rx.op.nn.layer_norm(x._expr, gamma, beta, axes, eps), name)


def rms_norm(x, weight, axes, epsilon=1e-5, name="rms_norm"):
    """Mean square 1 over the axes, scaled."""
    return wrap_nested(rx.op.nn.rms_norm(x._expr, weight._expr, axes, epsilon), name)


def group_norm(
    x, num_groups, weight, bias, eps=1e-5, channel_axis=1, axes=None, name="group_norm"
):  # fmt: skip
    """Mean 0 and variance 1 over groups of channels and the axes, scaled and shifted."""
    channels = [x.shape[channel_axis]]
    gamma = rx.const(np.ones(channels), x.dtype) if weight is None else weight._expr
    beta = rx.const(np.zeros(channels), x.dtype) if bias is None else bias._expr
    if axes is None:
        axes = [i for i in range(1, x.ndim) if i != channel_axis % x.ndim]
    result = rx.op.nn.group_norm(x._expr, gamma, beta, num_groups, channel_axis, axes, eps)
    return wrap_nested(result, name)


def get_timestep_embedding(
    x, embedding_dim, flip_sin_to_cos=False, downscale_freq_shift=1, scale=1, max_period=10000,
    name="get_timestep_embedding",
):  # fmt: skip
    """Sines and cosines of time steps, at frequencies from 1 down to 1 / max_period."""
    half = embedding_dim // 2
    exponents = -math.log(max_period) * np.arange(half) / (half - downscale_freq_shift)
    rates = rx.const((scale * np.exp(exponents)).astype("float32")[None, :])
    angles = current_builder().emit(
        rx.op.multiply(rx.op.expand_dims(rx.op.astype(x._expr, "float32"), 1), rates)
    )
    parts = [rx.op.sin(angles), rx.op.cos(angles)]
    result = rx.op.concat(parts[::-1] if flip_sin_to_cos else parts, -1)
    if embedding_dim % 2 == 1:
        result = rx.op.nn.pad(result, [0, 0, 0, 1])
    return astype(wrap_nested(result, name), x.dtype if "float" in x.dtype else "float32")


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, is_causal=False, scale=None,
    name="scaled_dot_product_attention",
):  # fmt: skip
    """Attention of (batch, length, heads, size) over keys and values of that form."""
    mask = None if attn_mask is None else attn_mask._expr
    result = rx.op.nn.attention(
        query._expr, key._expr, value._expr, mask, scale, "TopLeft" if is_causal else None
    )
    return wrap_nested(result, name)


def interpolate(
    x, size=None, scale_factor=None, mode="nearest", align_corners=None,
    recompute_scale_factor=None, antialias=None, data_layout="NCHW", name="interpolate",
):  # fmt: skip
    """Images of another size: nearest, bilinear or bicubic."""
    if recompute_scale_factor or antialias:
        raise ValueError("interpolate: recompute_scale_factor and antialias are not supported")
    methods = {"nearest": "nearest_neighbor", "bilinear": "linear", "bicubic": "cubic"}
    if mode not in methods or (size is None) == (scale_factor is None):
        raise ValueError(
            f"interpolate: expected mode nearest, bilinear or bicubic and either a size or a "
            f"scale_factor, got mode {mode!r}, size {size} and scale_factor {scale_factor}"
        )
    if size is None:
        factors = [scale_factor] * 2 if isinstance(scale_factor, (int, float)) else scale_factor
        first = data_layout.index("H")
        size = [
            int(dim * f) if isinstance(dim, int) else dim * f
            for dim, f in zip(x.shape[first : first + 2], factors, strict=True)
        ]
    elif isinstance(size, (int, _tir.PrimExpr)):
        size = [size, size]
    coordinates = "align_corners" if align_corners else "half_pixel"
    result = rx.op.image.resize2d(
        x._expr, rx.ShapeExpr(size), layout=data_layout, method=methods[mode],
        coordinate_transformation_mode="asymmetric" if mode == "nearest" else coordinates,
        rounding_method="floor" if mode == "nearest" else "round",
    )  # fmt: skip
    return wrap_nested(result, name)


# ---- several workers -----------------------------------------------------------------------------
def ccl_allreduce(x, op_type="sum", in_group=True, name="ccl_allreduce"):
    return wrap_nested(rx.op.ccl.allreduce(x._expr, op_type, in_group), name)


def ccl_allgather(x, num_workers, name="ccl_allgather"):
    return wrap_nested(rx.op.ccl.allgather(x._expr, num_workers), name)


def ccl_broadcast_from_worker0(x, name="broadcast_from_worker"):
    return wrap_nested(rx.op.ccl.broadcast_from_worker0(x._expr), name)


# ---- functions of other kinds --------------------------------------------------------------------
def _plain(value):
    return value._expr if isinstance(value, Tensor) else value


def tensor_expr_op(tensor_expr_func, name_hint, args, *, attrs=None):
    """A tensor expression of the arguments."""
    call = current_builder().call_te(
        tensor_expr_func, *(_plain(a) for a in args),
        primfunc_name_hint=name_hint, primfunc_attrs=attrs,
    )  # fmt: skip
    return wrap_nested(call, name_hint)


def _call_tir(make, func, name_hint, args, out):
    """A call of a PrimFunc: tensors first, then numbers, which are its last parameters."""
    args = list(args) if isinstance(args, (list, tuple)) else [args]
    tensors, numbers = [], []
    for arg in args:
        if isinstance(arg, Tensor):
            tensors.append(arg._expr)
        elif isinstance(arg, rx.ShapeExpr):
            numbers += list(arg.values)
        elif isinstance(arg, (int, _tir.PrimExpr)):
            numbers.append(arg)
        else:
            raise TypeError(
                f"{name_hint}: expected tensors, shapes and integers, got {type(arg).__name__}"
            )
    infos = [o._expr.struct_info for o in (out if isinstance(out, (list, tuple)) else [out])]
    function = current_builder().add_func(func, name_hint)
    infos = infos if isinstance(out, (list, tuple)) else infos[0]
    call = make(function, rx.Tuple(tensors), infos, rx.ShapeExpr(numbers) if numbers else None)
    return wrap_nested(call, name_hint)


def tensor_ir_op(func, name_hint, args, out):
    """A call of a PrimFunc that writes `out`, tensors that say of which shape and dtype."""
    return _call_tir(rx.op.call_tir, func, name_hint, args, out)


def tensor_ir_inplace_op(func, name_hint, args, inplace_indices, out):
    """A call of a PrimFunc that writes some of its arguments."""
    indices = [inplace_indices] if isinstance(inplace_indices, int) else list(inplace_indices)

    def make(function, tensors, infos, numbers):
        return rx.op.call_tir_inplace(function, tensors, indices, infos, numbers)

    return _call_tir(make, func, name_hint, args, out)


def _argument(value):
    if isinstance(value, (int, float, _tir.PrimExpr)):
        return rx.PrimValue(value)
    return rx.StringImm(value) if isinstance(value, str) else _expr(value)


def extern(name, args, out):
    """A call of a global function that writes `out`, which comes behind its arguments."""
    infos = [o._expr.struct_info for o in (out if isinstance(out, (list, tuple)) else [out])]
    infos = infos if isinstance(out, (list, tuple)) else infos[0]
    arguments = rx.Tuple([_argument(a) for a in args])
    return wrap_nested(rx.op.call_dps_packed(name, arguments, infos), name)


def debug_func(name, *args, _line_info=None):
    """Calls a global function with the place of this call and the arguments; the model has to be
    exported with debug=True."""
    from .exporter import Exporter

    io = Exporter.io_effect_or_none()
    if io is None:
        raise RuntimeError(
            f"debug_func '{name}': expected the model to be exported with debug=True"
        )
    if _line_info is None:
        frame = inspect.stack()[1]
        _line_info = f"{frame.filename}:{frame.lineno}"
    call = rx.op.call_pure_packed(
        "vm.builtin.invoke_debug_func", io.effect, rx.StringImm(name), rx.StringImm(_line_info),
        *(_argument(a) for a in args), sinfo_args=[rx.ObjectStructInfo()],
    )  # fmt: skip
    io.effect = current_builder().emit(call, io.effect.name_hint)


def print_(tensor):
    """Prints a tensor when the model runs."""
    frame = inspect.stack()[1]
    debug_func("vm.builtin.debug_print", tensor, _line_info=f"{frame.filename}:{frame.lineno}")


# ---- the next token ------------------------------------------------------------------------------
def _own_rows(count, sample_indices):
    """Sample i is of row i unless said otherwise."""
    if sample_indices is not None:
        return sample_indices
    return reshape(arange(0, count, dtype="int64"), [count, 1])


def multinomial_from_uniform(
    prob, uniform_sample, sample_indices=None, dtype="int64", name="multinomial_from_uniform"
):
    """Indices at which running sums of probabilities pass uniform numbers."""
    rows = _own_rows(uniform_sample.shape[0], sample_indices)
    result = rx.op.multinomial_from_uniform(prob._expr, uniform_sample._expr, rows._expr, dtype)
    return wrap_nested(result, name)


def sample_top_p_top_k_from_sorted_prob(
    sorted_prob, sorted_index, top_p, top_k, uniform_sample, sample_indices=None
):
    """For each uniform number a token, by probability, among the likeliest `top_k` that together
    reach `top_p`. Rows are sorted, the likeliest first."""
    rows = _own_rows(uniform_sample.shape[0], sample_indices)
    args = [cumsum(sorted_prob, axis=1), sorted_index, top_p, top_k, uniform_sample, rows]
    return tensor_expr_op(sampling.sample, "sample_top_p_top_k_from_sorted_prob", args)


def renormalize_top_p_top_k_prob(prob, sorted_prob, top_p, top_k):
    """Probabilities of the likeliest `top_k` tokens that together reach `top_p`, scaled to a sum
    of 1; those of all others are 0."""
    args = [prob, sorted_prob, cumsum(sorted_prob, axis=1), top_p, top_k]
    return tensor_expr_op(sampling.renormalize, "renormalize_top_p_top_k_prob", args)
