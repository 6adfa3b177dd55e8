# SPDX-License-Identifier: Apache-2.0
"""The paged cache of attention, as models use it and as they make it."""

import enum

from tvm import relax as rx
from tvm import tir
from tvm.target import Target

from ..core import Object, Tensor, current_builder, wrap_nested
from . import kv_cache_kernels as kernels
from .position_embedding import llama_rope_with_position_map
from .tree_attn import tree_attn_with_paged_kv_cache_cpu

_attention_decode_cpu = kernels.attention_decode_cpu
_attention_prefill_cpu = kernels.attention_prefill_cpu
_attention_prefill_mla_cpu = kernels.attention_prefill_mla_cpu
_attention_prefill_ragged_cpu = kernels.attention_prefill_ragged_cpu
_merge_state_inplace_cpu = kernels.merge_state_inplace_cpu
_kv_cache_transpose_append = kernels.kv_cache_transpose_append
_kv_cache_transpose_append_mla = kernels.kv_cache_transpose_append_mla
_kv_cache_debug_get_kv = kernels.kv_cache_debug_get_kv
_copy_single_page_cpu = kernels.copy_single_page_cpu
_compact_kv_copy_cpu = kernels.compact_kv_copy_cpu


class AttnKind(enum.IntEnum):
    """What a layer's attention is."""

    MHA = 0
    MLA = 1
    MHA_SLIDING = 3


class RopeMode(enum.IntEnum):
    """When positions are embedded: never, when keys are stored, or when they are read."""

    NONE = 0
    NORMAL = 1
    INLINE = 2


_PREFIX = "vm.builtin.attention_kv_cache_"


class PagedKVCache(Object):
    """A cache that a method takes as `spec.Object(object_type=PagedKVCache)`."""

    def _call(self, name, layer_id, sm_scale, tensors, outputs):
        args = [self._expr, rx.PrimValue(layer_id), rx.PrimValue(float(sm_scale))]
        args += [t._expr for t in tensors]
        infos = [rx.TensorStructInfo(shape, dtype) for shape, dtype in outputs]
        call = rx.op.call_dps_packed(
            _PREFIX + name, rx.Tuple(args), infos[0] if len(infos) == 1 else infos
        )
        return wrap_nested(call, name)

    def attention_with_fused_qkv(self, layer_id, qkv, num_qo_heads, sm_scale):
        """Appends the keys and values of (b, s, heads of q, k and v, d) and attends over the
        cache: (b, s, heads of q, d)."""
        batch, length, _, d = qkv.shape
        out = ((batch, length, num_qo_heads, d), qkv.dtype)
        return self._call("attention_with_fused_qkv", layer_id, sm_scale, [qkv], [out])

    def self_attention(self, layer_id, q, k, v, sm_scale):
        """Attention of the tokens of this pass over each other, and the logarithms of its sums."""
        batch, length, heads, _ = q.shape
        outputs = [
            ((batch, length, heads, v.shape[-1]), q.dtype), ((batch, length, heads), "float32")
        ]  # fmt: skip
        return self._call("self_attention", layer_id, sm_scale, [q, k, v], outputs)

    def cross_attention(self, layer_id, q, v_head_dim, sm_scale):
        """Attention over the tokens before this pass (with one token each: and themselves)."""
        batch, length, heads, _ = q.shape
        outputs = [
            ((batch, length, heads, v_head_dim), q.dtype), ((batch, length, heads), "float32")
        ]  # fmt: skip
        return self._call("cross_attention", layer_id, sm_scale, [q], outputs)

    def append_mla_kv(self, layer_id, kv):
        """Appends latent keys and values; returns the cache."""
        call = rx.op.call_inplace_packed(
            "vm.builtin.attention_kv_cache_append_mla_kv", self._expr, rx.PrimValue(layer_id),
            kv._expr, inplace_indices=[0], sinfo_args=[rx.ObjectStructInfo()],
        )  # fmt: skip
        return PagedKVCache(_expr=call, _name="append_mla_kv")

    def merge_attn_output_inplace(self, o_self_attn, lse_self_attn, o_cross_attn, lse_cross_attn):
        """Attention over two sets of tokens becomes that over both: (output, sums)."""
        tensors = [t._expr for t in (o_self_attn, lse_self_attn, o_cross_attn, lse_cross_attn)]
        call = rx.op.call_inplace_packed(
            "vm.builtin.attention_kv_cache_merge_attn_output_inplace", self._expr, *tensors,
            inplace_indices=[1, 2], sinfo_args=[tensors[0].struct_info, tensors[1].struct_info],
        )  # fmt: skip
        return wrap_nested(call, "merge_attn_output_inplace")

    def get_query_positions(self, total_length):
        """The positions of the tokens of this pass."""
        info = rx.TensorStructInfo((total_length,), "int32")
        call = rx.op.call_pure_packed(
            "vm.builtin.attention_kv_cache_get_query_positions", self._expr, sinfo_args=[info]
        )
        return Tensor(_expr=current_builder().emit(call, "query_positions"))


def _as_list(kind, layers):
    kinds = list(kind) if isinstance(kind, (list, tuple)) else [kind] * layers
    names = {"mha": AttnKind.MHA, "mla": AttnKind.MLA, "mha_sliding": AttnKind.MHA_SLIDING}
    return [int(names[k]) if isinstance(k, str) else int(k) for k in kinds]


class TIRPagedKVCache(PagedKVCache):
    """A new cache, with kernels in TIR; `page_size` of those is 16 where it is a variable.

    With latent attention, `qk_head_dim` is that of a row of the cache, which begins with the
    `v_head_dim` elements of the value; `mla_original_qk_head_dim` and `mla_original_v_head_dim` are
    the sizes that `self_attention` takes, before keys and values are projected to it.
    """

    def __init__(
        self, attn_kind, max_batch_size, max_total_seq_len, prefill_chunk_size, page_size,
        support_sliding_window, layer_partition, num_hidden_layers, num_attention_heads,
        num_key_value_heads, qk_head_dim, v_head_dim, mla_original_qk_head_dim,
        mla_original_v_head_dim, rope_mode, rope_scale, rope_theta, rope_scaling,
        rope_ext_factors, rotary_dim, enable_disaggregation, dtype, target, name="paged_kv_cache",
    ):  # fmt: skip
        target = Target.canon_target(target) if target is not None else Target("llvm")
        if not target.machine().is_host:
            raise ValueError(
                f"TIRPagedKVCache: expected a target of CPUs, llvm or c, got {target.kind.name}"
            )
        kinds = _as_list(attn_kind, num_hidden_layers)
        latent = AttnKind.MLA in kinds
        all_latent = latent and len(set(kinds)) == 1
        if not all_latent and qk_head_dim != v_head_dim:
            raise ValueError(
                f"TIRPagedKVCache: expected keys and values of one size, got {qk_head_dim} and "
                f"{v_head_dim}"
            )
        rows = int(page_size) if isinstance(page_size, (int, tir.IntImm)) else 16
        h_q, h_kv, d, scaling = num_attention_heads, num_key_value_heads, qk_head_dim, rope_scaling
        # Tokens of a pass over each other: with latent attention as they are before it.
        own = (mla_original_qk_head_dim, mla_original_v_head_dim) if latent else (d, v_head_dim)
        bb = current_builder()
        nothing = rx.Tuple([])

        def kernel(func):
            return bb.add_func(func, str(func.attrs["global_symbol"]))

        def tir_kernel(func):
            return rx.Tuple([rx.StringImm("tir"), kernel(func)])

        def of_heads(make):
            """Kernels of layers that are not latent."""
            return nothing if all_latent else make()

        def paged(make, *window):
            return of_heads(
                lambda: tir_kernel(make(h_kv, h_q, d, dtype, *window, scaling, page_size=rows))
            )

        def ragged(tree):
            make = kernels.attention_prefill_ragged_cpu
            return tir_kernel(make(h_kv, h_q, *own, dtype, scaling, tree=tree))

        def split_rotary():
            return llama_rope_with_position_map(
                rope_theta, rope_scale, d, h_q, h_kv, dtype, scaling, rotary_dim
            ).with_attr("global_symbol", "llama_rope_with_position_map")

        ext = rope_ext_factors
        if not isinstance(ext, rx.Expr):
            ext = rx.PrimValue(0) if ext is None else rx.const(list(ext), "float32")
        sizes = (
            max_batch_size, max_total_seq_len, prefill_chunk_size, page_size,
            support_sliding_window,
        )  # fmt: skip
        args = [
            rx.ShapeExpr(sizes),
            layer_partition, *map(rx.PrimValue, (h_q, h_kv, qk_head_dim, v_head_dim)),
            rx.ShapeExpr(kinds), rx.PrimValue(int(bool(enable_disaggregation))),
            rx.PrimValue(int(rope_mode)), rx.PrimValue(float(rope_scale)),
            rx.PrimValue(float(rope_theta)), ext, rx.op.zeros((), dtype),
            of_heads(lambda: kernel(kernels.kv_cache_transpose_append(h_kv, d, dtype, rows))),
            kernel(kernels.kv_cache_transpose_append_mla(d, dtype, rows)) if latent else nothing,
            ragged(tree=False),
            paged(kernels.attention_prefill_cpu, False), paged(kernels.attention_decode_cpu, False),
            paged(kernels.attention_prefill_cpu, True), paged(kernels.attention_decode_cpu, True),
            paged(tree_attn_with_paged_kv_cache_cpu),
            ragged(tree=True),
            tir_kernel(
                kernels.attention_prefill_mla_cpu(
                    h_q, v_head_dim, d - v_head_dim, dtype, False, rows
                )
            ) if latent else nothing,
            rx.Tuple([kernel(kernels.merge_state_inplace_cpu(dtype))]),
            of_heads(lambda: kernel(split_rotary())),
            of_heads(lambda: kernel(kernels.copy_single_page_cpu(h_kv, rows, d, dtype))),
            of_heads(
                lambda: kernel(
                    kernels.kv_cache_debug_get_kv(num_hidden_layers, h_kv, d, dtype, rows)
                )
            ),
            of_heads(lambda: kernel(kernels.compact_kv_copy_cpu(h_kv, d, dtype, rows))),
        ]  # fmt: skip
        call = rx.op.call_pure_packed(
            "vm.builtin.paged_attention_kv_cache_create", *args, sinfo_args=[rx.ObjectStructInfo()]
        )
        super().__init__(_expr=call, _name=name)
