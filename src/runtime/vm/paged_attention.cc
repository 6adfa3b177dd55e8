// SPDX-License-Identifier: Apache-2.0
// Attention of the tokens of a pass over the paged cache and over each other.
#include "runtime/vm/paged_kv_cache.h"

namespace tvm::runtime::vm {
void PagedKVCacheObj::AttendFused(int64_t layer, double scale, const Tensor& qkv,
                                  const Tensor& out) {
  constexpr const char* kName = "attention_kv_cache_attention_with_fused_qkv";
  std::lock_guard lock(mutex_);
  const Tensor& pages = Layer(kName, layer, kMHA);
  Tensor rows = Rows(kName, qkv, config_.q_heads + 2 * config_.kv_heads, config_.qk_dim);
  Tensor result = Rows(kName, out, config_.q_heads, config_.v_dim);
  Tensor q = Part(q_), k = Part(k_), v = Part(v_);
  bool rotate = config_.rope_mode == kRopeNormal;
  Function split = Need(config_.split_rotary, "split_rotary");
  if (config_.ext_factors) {
    split(rows, pass_.q_positions.tensor(), q, k, v, int64_t{rotate}, *config_.ext_factors);
  } else {
    split(rows, pass_.q_positions.tensor(), q, k, v, int64_t{rotate});
  }
  Need(config_.append, "transpose_append")(pages, k, v, pass_.append_map.tensor());
  AttendPages(config_.kinds[layer], pass_.whole, pages, q, result, Part(lse_), scale);
}
void PagedKVCacheObj::AttendSelf(int64_t layer, double scale, const Tensor& q, const Tensor& k,
                                 const Tensor& v, const Tensor& out, const Tensor& lse) {
  constexpr const char* kName = "attention_kv_cache_self_attention";
  std::lock_guard lock(mutex_);
  Layer(kName, layer, std::nullopt);
  CheckNewTrees(kName);
  // Dimensions may be those of latent attention before its projection.
  auto rows = [&](const Tensor& t) {
    return Rows(kName, t, t.shape()[t.ndim() - 2], t.shape()[t.ndim() - 1]);
  };
  Tensor found = rows(out), sums = Sums(kName, lse);
  if (pass_.has_tree) {
    Need(config_.tree, "tree attention")(
        rows(q), pass_.q_indptr.tensor(), rows(k), rows(v), pass_.q_indptr.tensor(),
        pass_.q_positions.tensor(), pass_.tree_indptr.tensor(), pass_.tree_order.tensor(), found,
        sums, Inline(), config_.rope_scale, config_.rope_theta, scale);
  } else {
    Need(config_.prefill_ragged, "ragged prefill")(
        rows(q), pass_.q_indptr.tensor(), rows(k), rows(v), pass_.q_indptr.tensor(),
        pass_.q_positions.tensor(), pass_.past_lengths.tensor(), found, sums, int64_t{1}, Inline(),
        config_.rope_scale, config_.rope_theta, scale);
  }
}
void PagedKVCacheObj::AttendCross(int64_t layer, double scale, const Tensor& q, const Tensor& out,
                                  const Tensor& lse) {
  constexpr const char* kName = "attention_kv_cache_cross_attention";
  std::lock_guard lock(mutex_);
  const Tensor& pages = Layer(kName, layer, std::nullopt);
  CheckNewTrees(kName);
  auto rows = [&](const Tensor& t) {
    return Rows(kName, t, t.shape()[t.ndim() - 2], t.shape()[t.ndim() - 1]);
  };
  PageLists& lists = pass_.only_one_each ? pass_.whole : pass_.past;
  Tensor found = rows(out), sums = Sums(kName, lse);
  if (config_.kinds[layer] == kMLA) {
    Need(config_.mla_prefill, "mla prefill")(
        rows(q), pass_.q_indptr.tensor(), pages, lists.indptr.tensor(), lists.values.tensor(),
        lists.lengths.tensor(), found, sums, int64_t{0}, scale);
  } else {
    AttendPages(config_.kinds[layer], lists, pages, rows(q), found, sums, scale);
  }
}
void PagedKVCacheObj::AppendMLA(int64_t layer, const Tensor& kv) {
  constexpr const char* kName = "attention_kv_cache_append_mla_kv";
  std::lock_guard lock(mutex_);
  const Tensor& pages = Layer(kName, layer, kMLA);
  Tensor rows = Rows(kName, kv, 1, config_.qk_dim);
  Need(config_.append_mla, "transpose_append_mla")(
      pages, CreateView(rows, {pass_.total, config_.qk_dim}, rows.dtype()),
      pass_.append_map.tensor());
}
Array<Tensor> PagedKVCacheObj::Merge(const Tensor& out, const Tensor& lse, const Tensor& other,
                                     const Tensor& other_lse) {
  constexpr const char* kName = "attention_kv_cache_merge_attn_output_inplace";
  std::lock_guard lock(mutex_);
  CheckRunning(kName);
  auto rows = [&](const Tensor& t) {
    return Rows(kName, t, t.shape()[t.ndim() - 2], t.shape()[t.ndim() - 1]);
  };
  Need(config_.merge, "merge_state_inplace")(rows(out), Sums(kName, lse), rows(other),
                                             Sums(kName, other_lse));
  return {out, lse};
}

const Tensor& PagedKVCacheObj::Layer(const char* what, int64_t& layer,
                                     std::optional<AttentionKind> kind) const {
  CheckRunning(what);
  layer -= config_.first_layer;
  if (layer < 0 || layer >= static_cast<int64_t>(layers_.size())) {
    TVM_FFI_THROW(IndexError) << what << ": expected a layer of the cache's " << layers_.size()
                              << ", got " << layer + config_.first_layer;
  }
  if (kind && (kind == kMLA) != (config_.kinds[layer] == kMLA)) {
    TVM_FFI_THROW(ValueError) << what << ": expected a layer " << (kind == kMLA ? "of" : "without")
                              << " latent attention, got " << layer + config_.first_layer;
  }
  return layers_[layer];
}
void PagedKVCacheObj::CheckNewTrees(const char* what) const {
  if (pass_.continues_tree) {
    TVM_FFI_THROW(ValueError) << what << ": expected token trees to be committed before the pass";
  }
}
Tensor PagedKVCacheObj::Rows(const char* what, const Tensor& t, int64_t heads, int64_t dim) const {
  bool fits = t.numel() == pass_.total * heads * dim && t.is_contiguous() &&
              DataType(t.dtype()) == DataType(config_.dtype);
  if (!fits) {
    TVM_FFI_THROW(ValueError) << what << ": expected " << pass_.total << " rows of " << heads
                              << " x " << dim << " " << DataType(config_.dtype)
                              << ", contiguous, got " << Shape(t.shape()) << " of "
                              << DataType(t.dtype());
  }
  return CreateView(t, {pass_.total, heads, dim}, t.dtype());
}
Tensor PagedKVCacheObj::Sums(const char* what, const Tensor& t) const {
  if (pass_.total == 0 || t.numel() % pass_.total != 0 ||
      DataType(t.dtype()) != DataType::Float(32)) {
    TVM_FFI_THROW(ValueError) << what << ": expected float32 for each row and head, got "
                              << Shape(t.shape()) << " of " << DataType(t.dtype());
  }
  return CreateView(t, {pass_.total, t.numel() / pass_.total}, t.dtype());
}
Tensor PagedKVCacheObj::Part(const Tensor& room) const {
  std::vector<int64_t> shape(room.shape().begin(), room.shape().end());
  shape[0] = pass_.total;
  return CreateView(room, {shape.data(), shape.size()}, room.dtype());
}
void PagedKVCacheObj::AttendPages(int64_t kind, PageLists& lists, const Tensor& pages,
                                  const Tensor& q, const Tensor& out, const Tensor& lse,
                                  double scale) {
  bool is_past = &lists == &pass_.past;
  bool in_layer = pass_.has_window && kind == kMHASliding;
  bool in_window = pass_.has_window && (kind == kMHASliding || !layer_windows_);
  const PageLists& used =
      !in_layer ? lists : (is_past ? pass_.past_in_layer : pass_.whole_in_layer);
  auto call = [&](const Optional<Function>& kernel, const char* name, auto&&... last) {
    Need(kernel, name)(q, pass_.q_indptr.tensor(), pages, used.indptr.tensor(),
                       used.values.tensor(), used.lengths.tensor(), used.rope_offsets.tensor(),
                       pass_.q_positions.tensor(), out, lse, last...);
  };
  double rope_scale = config_.rope_scale, theta = config_.rope_theta;
  if (pass_.has_tree && !is_past) {
    call(config_.tree_paged, "tree attention over pages", Inline(), rope_scale, theta, scale,
         pass_.tree_indptr.tensor(), pass_.tree_order.tensor());
  } else if (pass_.only_one_each) {
    Need(in_window ? config_.decode_window : config_.decode, "decode")(
        q, pages, used.indptr.tensor(), used.values.tensor(), used.lengths.tensor(),
        used.rope_offsets.tensor(), pass_.q_positions.tensor(), out, lse, Inline(), rope_scale,
        theta, scale);
  } else {
    call(in_window ? config_.prefill_window : config_.prefill, "prefill", int64_t{!is_past},
         Inline(), rope_scale, theta, scale);
  }
}
}  // namespace tvm::runtime::vm
