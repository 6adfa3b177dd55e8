# SPDX-License-Identifier: Apache-2.0
"""Layers, and the effects that models use."""

import tvm_ffi

from tvm import relax as rx

from . import op
from .core import Effect, Module, ModuleList, Parameter, Tensor, current_builder, get_default_dtype


class _OneVariable(Effect):
    """An effect whose state is one value."""

    _state = None  # its variable while a function is recorded

    def create(self, name_hint):
        self.set_state([rx.Var(self._name(name_hint), rx.ObjectStructInfo())])
        return [self._state]

    def set_state(self, state_vars):
        (self._state,) = state_vars

    def finalize(self):
        return [self._state]

    @staticmethod
    def _name(name_hint):
        return name_hint


class IOEffect(_OneVariable):
    """Orders what prints or calls debug functions."""

    @property
    def effect(self):
        return self._state

    @effect.setter
    def effect(self, var):
        self._state = var

    @staticmethod
    def _name(name_hint):
        return f"{name_hint}_io" if name_hint else "_io"

    def emit_init(self, name_hint, builder):
        return [builder.emit(rx.op.null_value(), self._name(name_hint))]


@tvm_ffi.register_global_func("vm.builtin.debug_print", override=True)
def _debug_print(line, value):
    print(f"[{line}]: shape = {tuple(value.shape)}, dtype = {value.dtype}, data =\n{value}")


class ReLU(Module):
    def forward(self, x):
        return op.relu(x)


class SiLU(Module):
    def forward(self, x):
        return op.silu(x)


class GELU(Module):
    def forward(self, x):
        return op.gelu(x)


class Identity(Module):
    def forward(self, x):
        return x


class Linear(Module):
    """x @ weight.T + bias"""

    def __init__(self, in_features, out_features, bias=True, dtype=None, out_dtype=None):
        self.in_features, self.out_features, self.out_dtype = in_features, out_features, out_dtype
        self.weight = Parameter((out_features, in_features), dtype)
        self.bias = Parameter((out_features,), out_dtype or dtype) if bias else None

    def forward(self, x):
        x = op.matmul(x, op.permute_dims(self.weight), out_dtype=self.out_dtype)
        return x if self.bias is None else x + self.bias

    def to(self, dtype=None):
        """A given `out_dtype` stays, and is the bias's."""
        self.weight.to(dtype)
        if self.bias is not None and self.out_dtype is None:
            self.bias.to(dtype)


class _Conv(Module):
    """What all convolutions have."""

    def _set(self, stride, padding, dilation, groups):
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups

    def _weights(self, shape, out_channels, bias, dtype):
        self.weight = Parameter(shape, dtype)
        self.bias = Parameter((out_channels,), dtype) if bias else None

    def _strides(self):
        return {"stride": self.stride, "padding": self.padding, "dilation": self.dilation}


def _kernel(size, rank):
    return [size] * rank if isinstance(size, int) else list(size)


class Conv1D(_Conv):
    """A convolution of (batch, channels, width)."""

    def __init__(
        self, in_channels, out_channels, kernel_size,
        stride=1, padding=0, dilation=1, groups=1, bias=True, dtype=None,
    ):  # fmt: skip
        self._set(stride, padding, dilation, groups)
        kernel = _kernel(kernel_size, 1)
        self._weights((out_channels, in_channels // groups, *kernel), out_channels, bias, dtype)

    def forward(self, x):
        return op.conv1d(x, self.weight, self.bias, groups=self.groups, **self._strides())


class Conv2D(_Conv):
    """A convolution of images: NCHW, or NHWC with a weight of HWIO."""

    def __init__(
        self, in_channels, out_channels, kernel_size,
        stride=1, padding=0, dilation=1, groups=1, bias=True, dtype=None, data_layout="NCHW",
    ):  # fmt: skip
        self._set(stride, padding, dilation, groups)
        self.data_layout = data_layout
        shape = op.kernel_shape(
            data_layout, out_channels, in_channels // groups, _kernel(kernel_size, 2)
        )
        self._weights(shape, out_channels, bias, dtype)

    def forward(self, x):
        return op.conv2d(
            x, self.weight, self.bias,
            groups=self.groups, data_layout=self.data_layout, **self._strides(),
        )  # fmt: skip


class Conv3D(_Conv):
    """A convolution of volumes: NCDHW, or NDHWC with a weight of DHWIO."""

    def __init__(
        self, in_channels, out_channels, kernel_size,
        stride=1, padding=0, dilation=1, groups=1, bias=True, dtype=None, data_layout="NCDHW",
    ):  # fmt: skip
        self._set(stride, padding, dilation, groups)
        self.data_layout = data_layout
        shape = op.kernel_shape(
            data_layout, out_channels, in_channels // groups, _kernel(kernel_size, 3)
        )
        self._weights(shape, out_channels, bias, dtype)

    def forward(self, x):
        return op.conv3d(
            x, self.weight, self.bias,
            groups=self.groups, data_layout=self.data_layout, **self._strides(),
        )  # fmt: skip


class ConvTranspose1D(_Conv):
    """A transposed convolution of (batch, channels, width)."""

    def __init__(
        self, in_channels, out_channels, kernel_size,
        stride=1, padding=0, output_padding=0, dilation=1, groups=1, bias=True, dtype=None,
    ):  # fmt: skip
        self._set(stride, padding, dilation, groups)
        self.output_padding = output_padding
        kernel = _kernel(kernel_size, 1)
        self._weights((in_channels, out_channels // groups, *kernel), out_channels, bias, dtype)

    def forward(self, x):
        return op.conv1d_transpose(
            x, self.weight, self.bias,
            output_padding=self.output_padding, groups=self.groups, **self._strides(),
        )  # fmt: skip


class LayerNorm(Module):
    """Rows of mean 0 and variance 1, scaled and shifted."""

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, dtype=None):
        self.normalized_shape, self.eps = normalized_shape, eps
        self.elementwise_affine = elementwise_affine
        shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
        self.weight = Parameter(shape, dtype) if elementwise_affine else None
        self.bias = Parameter(shape, dtype) if elementwise_affine else None

    def forward(self, x):
        return op.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    """Rows of mean square 1, scaled."""

    def __init__(self, hidden_size, axes, epsilon=1e-5, bias=True, dtype=None):
        self.epsilon, self.axes = epsilon, axes
        self.weight = Parameter((hidden_size,), dtype)
        self.bias = Parameter((hidden_size,), dtype) if bias else None

    def forward(self, x):
        out = op.rms_norm(x, self.weight, self.axes, self.epsilon)
        return out if self.bias is None else out + self.bias


class GroupNorm(Module):
    """Groups of channels of mean 0 and variance 1, scaled and shifted."""

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, dtype=None):
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = Parameter((num_channels,), dtype) if affine else None
        self.bias = Parameter((num_channels,), dtype) if affine else None

    def forward(self, x, channel_axis=1, axes=None):
        return op.group_norm(
            x, self.num_groups, self.weight, self.bias, self.eps, channel_axis, axes
        )


class KVCache(_OneVariable):
    """Rows that are appended and viewed as one tensor."""

    def __init__(self, init_seq_len, unit_shape, dtype=None):
        self.init_seq_len, self.unit_shape = init_seq_len, [int(d) for d in unit_shape]
        self.dtype = dtype or get_default_dtype()

    @property
    def cache(self):
        return self._state

    def emit_init(self, name_hint, bb):
        shape = rx.ShapeExpr([self.init_seq_len, *self.unit_shape])
        call = rx.op.call_pure_packed(
            "vm.builtin.attention_kv_cache_create",
            bb.emit(rx.op.zeros(shape, self.dtype)), shape, rx.PrimValue(0),
            sinfo_args=[rx.ObjectStructInfo()],
        )  # fmt: skip
        return [bb.emit(call, name_hint)]

    def to(self, dtype=None):
        self.dtype = dtype or self.dtype

    def view(self, seq_len):
        """All rows, of which there are `seq_len`."""
        shape = rx.ShapeExpr([seq_len, *self.unit_shape])
        call = rx.op.call_pure_packed(
            "vm.builtin.attention_kv_cache_view", self.cache, shape,
            sinfo_args=[rx.TensorStructInfo(shape, self.dtype)],
        )  # fmt: skip
        return Tensor(_expr=current_builder().emit(call))

    def append(self, new_element):
        """Adds rows."""
        if new_element.dtype != self.dtype:
            raise TypeError(
                f"KVCache.append: expected rows of {self.dtype}, got {new_element.dtype}"
            )
        call = rx.op.call_inplace_packed(
            "vm.builtin.attention_kv_cache_append", self.cache, new_element._expr,
            inplace_indices=[0], sinfo_args=[rx.ObjectStructInfo()],
        )  # fmt: skip
        self._state = current_builder().emit(call, self.cache.name_hint)


class Embedding(Module):
    """Rows of a table by number."""

    def __init__(self, num, dim, dtype=None):
        self.num, self.dim = num, dim
        self.weight = Parameter((num, dim), dtype)

    def forward(self, x):
        if x.ndim == 1:
            return op.take(self.weight, x, axis=0)
        rows = op.take(self.weight, op.reshape(x, [-1]), axis=0)
        return op.reshape(rows, [*x.shape, self.weight.shape[1]])


_ACTIVATIONS = {"silu": op.silu, "gelu": op.gelu, "relu": op.relu, None: lambda x: x}


class TimestepEmbedding(Module):
    """Two linear layers with an activation between them."""

    def __init__(
        self, in_channels, time_embed_dim, act_fn="silu",
        out_dim=None, post_act_fn=None, cond_proj_dim=None,
    ):  # fmt: skip
        for name in (act_fn, post_act_fn):
            if _ACTIVATIONS.get(name) is None:
                raise ValueError(
                    f"TimestepEmbedding: expected the activation silu, gelu or relu, got {name!r}"
                )
        self.linear_1 = Linear(in_channels, time_embed_dim)
        has_condition = cond_proj_dim is not None
        self.cond_proj = Linear(cond_proj_dim, in_channels, bias=False) if has_condition else None
        self.linear_2 = Linear(time_embed_dim, out_dim or time_embed_dim)
        self.act, self.post_act = act_fn, post_act_fn

    def forward(self, sample, condition=None):
        if condition is not None:
            if self.cond_proj is None:
                raise ValueError(
                    "TimestepEmbedding: expected cond_proj_dim for a condition, got none"
                )
            sample = sample + self.cond_proj(condition)
        sample = self.linear_2(_ACTIVATIONS[self.act](self.linear_1(sample)))
        return _ACTIVATIONS[self.post_act](sample)


class Timesteps(Module):
    """Sines and cosines of time steps."""

    def __init__(self, num_channels, flip_sin_to_cos=False, downscale_freq_shift=1):
        self.num_channels, self.flip_sin_to_cos = num_channels, flip_sin_to_cos
        self.downscale_freq_shift = downscale_freq_shift

    def forward(self, x):
        return op.get_timestep_embedding(
            x, self.num_channels, self.flip_sin_to_cos, self.downscale_freq_shift
        )


class Attention(Module):
    """Attention of states over themselves or over those of an encoder."""

    def __init__(
        self, query_dim, cross_attention_dim=None, heads=8, dim_head=64,
        bias=False, norm_num_groups=None, out_bias=True, scale_qk=True,
    ):  # fmt: skip
        inner = heads * dim_head
        source = cross_attention_dim or query_dim
        self.heads, self.dim_head = heads, dim_head
        self.scale = None if scale_qk else 1.0
        self.group_norm = GroupNorm(norm_num_groups, query_dim) if norm_num_groups else None
        self.to_q = Linear(query_dim, inner, bias=bias)
        self.to_k = Linear(source, inner, bias=bias)
        self.to_v = Linear(source, inner, bias=bias)
        self.to_out = ModuleList([Linear(inner, query_dim, bias=out_bias)])

    def forward(
        self, hidden_states, encoder_hidden_states=None, attention_mask=None,
        **cross_attention_kwargs,
    ):  # fmt: skip
        """Attention over `encoder_hidden_states`, or over the states themselves.
        `cross_attention_kwargs`, options of other implementations, have no effect."""
        if self.group_norm is not None:
            hidden_states = self.group_norm(hidden_states, channel_axis=2, axes=[1])
        source = hidden_states if encoder_hidden_states is None else encoder_hidden_states
        query, key, value = self.to_q(hidden_states), self.to_k(source), self.to_v(source)

        def by_head(x):
            return op.reshape(x, [x.shape[0], x.shape[1], self.heads, self.dim_head])

        query, key, value = by_head(query), by_head(key), by_head(value)
        out = op.scaled_dot_product_attention(
            query, key, value, attention_mask, is_causal=False, scale=self.scale
        )
        out = op.reshape(out, [out.shape[0], out.shape[1], self.heads * self.dim_head])
        return self.to_out[0](out)
