// SPDX-License-Identifier: Apache-2.0
// The builtins of the paged cache.
#include <algorithm>

#include "runtime/vm/paged_kv_cache.h"

namespace tvm::runtime::vm {
namespace {
/// A kernel as callers give it: a function, ["tir", function], [function], [] or None.
Optional<Function> Kernel(const AnyView& value) {
  if (auto function = As<Function>(value)) return *function;
  if (auto items = As<Array<Any>>(value)) {
    for (const Any& item : *items) {
      if (auto function = As<Function>(item)) return *function;
    }
  }
  return std::nullopt;
}
void Create(ffi::PackedArgs args, Any* result) {
  constexpr const char* kName = "paged_attention_kv_cache_create";
  constexpr int kCount = 28;
  if (args.size() < kCount) {
    TVM_FFI_THROW(TypeError) << kName << ": expected " << kCount << " arguments, got "
                             << args.size();
  }
  auto sizes = args[0].cast<Shape>(), layers = args[1].cast<Shape>(), kinds = args[6].cast<Shape>();
  bool positive = sizes.size() == 5 && sizes[0] > 0 && sizes[1] > 0 && sizes[2] > 0 && sizes[3] > 0;
  if (!positive || layers.size() < 2 || layers[0] < 0) {
    TVM_FFI_THROW(ValueError) << kName
                              << ": expected (sequences, total length, prefill chunk, "
                                 "page size, sliding window) and where layers begin, got "
                              << sizes << " and " << layers;
  }
  CacheConfig config;
  config.max_sequences = sizes[0];
  config.max_total = sizes[1];
  config.chunk = sizes[2];
  config.page_size = sizes[3];
  config.has_window = sizes[4] != 0;
  config.first_layer = layers[0];
  config.num_layers = layers[layers.size() - 1] - layers[0];
  config.q_heads = args[2].cast<int64_t>();
  config.kv_heads = args[3].cast<int64_t>();
  config.qk_dim = args[4].cast<int64_t>();
  config.v_dim = args[5].cast<int64_t>();
  config.kinds.assign(kinds.begin(), kinds.end());
  bool known = std::all_of(kinds.begin(), kinds.end(), [](int64_t kind) {
    return kind == kMHA || kind == kMLA || kind == kMHASliding;
  });
  if (!known || static_cast<int64_t>(kinds.size()) != config.num_layers) {
    TVM_FFI_THROW(ValueError) << kName << ": expected a kind of attention (0, 1 or 3) for each of "
                              << config.num_layers << " layers, got " << kinds;
  }
  if (config.has_window && std::count(kinds.begin(), kinds.end(), kMLA) > 0) {
    TVM_FFI_THROW(ValueError) << kName << ": expected no sliding window with latent attention, got "
                              << sizes[4];
  }
  if (args[7].cast<int64_t>() != 0) {
    TVM_FFI_THROW(NotImplementedError) << kName
                                       << ": caches that other processes fill are not "
                                          "supported";
  }
  config.rope_mode = args[8].cast<int64_t>();
  config.rope_scale = args[9].cast<double>();
  config.rope_theta = args[10].cast<double>();
  config.ext_factors = As<Tensor>(args[11]);
  auto like = args[12].cast<Tensor>();
  config.dtype = like.dtype();
  config.device = like.device();
  Optional<Function>* kernels[] = {
      &config.append,    &config.append_mla,     &config.prefill_ragged, &config.prefill,
      &config.decode,    &config.prefill_window, &config.decode_window,  &config.tree_paged,
      &config.tree,      &config.mla_prefill,    &config.merge,          &config.split_rotary,
      &config.copy_page, &config.debug_get_kv,   &config.compact_copy};
  for (int i = 0; i < static_cast<int>(std::size(kernels)); ++i) *kernels[i] = Kernel(args[13 + i]);
  *result = PagedKVCache(std::move(config));
}

TVM_REGISTER() {
  PagedKVCacheObj::RuntimeTypeIndex();
  Function::SetGlobal("vm.builtin.paged_attention_kv_cache_create", Function::FromPacked(&Create));
#define TVM_CACHE_BUILTIN(Name, Params, Call, Doc, ...)                                            \
  Def(                                                                                             \
      "vm.builtin.attention_kv_cache_" Name, [] Params { return cache->Call; }, Doc, Arg("cache"), \
      ##__VA_ARGS__)
  TVM_CACHE_BUILTIN("enable_sliding_window_for_seq",
                    (PagedKVCache cache, int64_t id, int64_t window, int64_t sinks),
                    EnableWindow(id, window, sinks),
                    "Of a sequence only the first tokens, the sinks, and the last ones stay.",
                    Arg("seq_id"), Arg("sliding_window_size"), Arg("attn_sink_size"));
  TVM_CACHE_BUILTIN("commit_accepted_token_tree_nodes",
                    (PagedKVCache cache, Shape ids, Shape leaves), Commit(ids, leaves),
                    "Of token trees the paths to the leaves stay (-1: nothing).", Arg("seq_ids"),
                    Arg("leaf_indices"));
  TVM_CACHE_BUILTIN("empty", (PagedKVCache cache), IsEmpty(), "Whether there is no sequence.");
  TVM_CACHE_BUILTIN("get_num_available_pages", (PagedKVCache cache), NumAvailablePages(),
                    "Pages that no sequence uses.");
  TVM_CACHE_BUILTIN("get_total_sequence_length", (PagedKVCache cache), TotalLength(),
                    "Tokens of all sequences.");
  TVM_CACHE_BUILTIN("get_query_positions", (PagedKVCache cache), QueryPositions(),
                    "The positions of the tokens of this pass.");
  TVM_CACHE_BUILTIN(
      "debug_get_kv",
      (PagedKVCache cache, int64_t id, int64_t begin, int64_t end, Tensor k, Tensor v),
      DebugGetKV(id, begin, end, k, v), "Keys and values of tokens: (layers, tokens, heads, dim).",
      Arg("seq_id"), Arg("start_pos"), Arg("end_pos"), Arg("k_data"), Arg("v_data"));
  TVM_CACHE_BUILTIN("debug_get_kv_mla",
                    (PagedKVCache cache, int64_t id, int64_t begin, int64_t end, Tensor kv),
                    DebugGetKVOfLatent(id, begin, end, kv),
                    "Latent keys and values of tokens: (layers, tokens, dim).", Arg("seq_id"),
                    Arg("start_pos"), Arg("end_pos"), Arg("kv_data"));
  TVM_CACHE_BUILTIN("attention_with_fused_qkv",
                    (PagedKVCache cache, int64_t layer, double scale, Tensor qkv, Tensor out),
                    AttendFused(layer, scale, qkv, out),
                    "Appends keys and values and attends over the cache.", Arg("layer_id"),
                    Arg("sm_scale"), Arg("qkv_data"), Arg("o_data"));
  TVM_CACHE_BUILTIN("self_attention",
                    (PagedKVCache cache, int64_t layer, double scale, Tensor q, Tensor k, Tensor v,
                     Tensor out, Tensor lse),
                    AttendSelf(layer, scale, q, k, v, out, lse),
                    "Attention of the tokens of this pass over each other.", Arg("layer_id"),
                    Arg("sm_scale"), Arg("q_data"), Arg("k_data"), Arg("v_data"), Arg("o_data"),
                    Arg("lse_data"));
  TVM_CACHE_BUILTIN(
      "cross_attention",
      (PagedKVCache cache, int64_t layer, double scale, Tensor q, Tensor out, Tensor lse),
      AttendCross(layer, scale, q, out, lse),
      "Attention of the tokens of this pass over the cache.", Arg("layer_id"), Arg("sm_scale"),
      Arg("q_data"), Arg("o_data"), Arg("lse_data"));
  Def(
      "vm.builtin.attention_kv_cache_append_mla_kv",
      [](PagedKVCache cache, int64_t layer, Tensor kv) {
        cache->AppendMLA(layer, kv);
        return cache;
      },
      "Appends latent keys and values.", Arg("cache"), Arg("layer_id"), Arg("kv_data"));
  TVM_CACHE_BUILTIN("merge_attn_output_inplace",
                    (PagedKVCache cache, Tensor out, Tensor lse, Tensor other, Tensor other_lse),
                    Merge(out, lse, other, other_lse),
                    "Attention over two sets of tokens becomes that over both, in the first.",
                    Arg("o_self_attn"), Arg("lse_self_attn"), Arg("o_cross_attn"),
                    Arg("lse_cross_attn"));
#undef TVM_CACHE_BUILTIN
}
}  // namespace
}  // namespace tvm::runtime::vm
