// SPDX-License-Identifier: Apache-2.0
// The paged cache of attention: keys and values of many sequences, in pages that forks share.
#pragma once
#include <mutex>
#include <optional>

#include "runtime/vm/kv_pass.h"
#include "runtime/vm/kv_state.h"
#include "tvm/runtime/vm.h"

namespace tvm::runtime::vm {
enum AttentionKind : int64_t { kMHA = 0, kMLA = 1, kMHASliding = 3 };
enum RopeMode : int64_t { kRopeNone = 0, kRopeNormal = 1, kRopeInline = 2 };

/// The functions and numbers a cache is made with.
struct CacheConfig {
  int64_t max_sequences, max_total, chunk, page_size, first_layer, num_layers;
  bool has_window;
  int64_t q_heads, kv_heads, qk_dim, v_dim;
  std::vector<int64_t> kinds;
  int64_t rope_mode;
  double rope_scale, rope_theta;
  Optional<Tensor> ext_factors;
  DLDataType dtype;
  DLDevice device;
  Optional<Function> append, append_mla, prefill_ragged, prefill, decode, prefill_window,
      decode_window, tree_paged, tree, mla_prefill, merge, split_rotary, copy_page, debug_get_kv,
      compact_copy;
};

class PagedKVCacheObj : public KVStateObj {
 public:
  explicit PagedKVCacheObj(CacheConfig config);

  // ---- sequences
  void Clear() final;
  void AddSequence(int64_t id) final;
  void RemoveSequence(int64_t id) final;
  void ForkSequence(int64_t parent, int64_t child, int64_t position) final;
  void PopN(int64_t id, int64_t n) final;
  void EnableWindow(int64_t id, int64_t window, int64_t sinks);
  bool IsEmpty();
  int64_t NumAvailablePages();
  int64_t TotalLength();

  // ---- a forward pass
  void BeginForward(const Shape& ids, const Shape& lengths, const Optional<Shape>& parents) final;
  void EndForward() final;
  Tensor QueryPositions();

  // ---- attention
  void AttendFused(int64_t layer, double scale, const Tensor& qkv, const Tensor& out);
  /// Of the tokens of this pass over each other.
  void AttendSelf(int64_t layer, double scale, const Tensor& q, const Tensor& k, const Tensor& v,
                  const Tensor& out, const Tensor& lse);
  /// Of the tokens of this pass over those before it; with one token each also over themselves.
  void AttendCross(int64_t layer, double scale, const Tensor& q, const Tensor& out,
                   const Tensor& lse);
  void AppendMLA(int64_t layer, const Tensor& kv);
  Array<Tensor> Merge(const Tensor& out, const Tensor& lse, const Tensor& other,
                      const Tensor& other_lse);

  // ---- trees, inspection
  void Commit(const Shape& ids, const Shape& leaves);
  void DebugGetKV(int64_t id, int64_t begin, int64_t end, const Tensor& k, const Tensor& v);
  void DebugGetKVOfLatent(int64_t id, int64_t begin, int64_t end, const Tensor& kv);
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.vm.PagedAttentionKVCache", PagedKVCacheObj, KVStateObj);

 private:
  std::unique_lock<std::mutex> Idle(const char* what);
  void CheckRunning(const char* what) const;
  static Function Need(const Optional<Function>& function, const char* what);
  /// Where tokens of a sequence lie.
  IntArray SlotsOf(const char* what, int64_t id, int64_t begin, int64_t end);
  int64_t Inline() const { return config_.rope_mode == kRopeInline ? 1 : 0; }

  /// Rows go to places before them, in order: `from` becomes both lists, as kernels take them.
  void MoveRows(IntArray* indptr, IntArray* from, const IntArray& to);
  std::vector<KVSequence*> Named(const Shape& ids, const Shape& lengths);
  static void CheckTrees(const std::vector<KVSequence*>& sequences, const Shape& lengths,
                         const Shape& parents);

  /// A layer of the cache, by its number in the model, which becomes that in the cache. `kind`
  /// tells latent attention from others.
  const Tensor& Layer(const char* what, int64_t& layer, std::optional<AttentionKind> kind) const;
  /// Rows of a layer of latent attention, which follow each other.
  Tensor Latent(size_t layer, int64_t slot, int64_t rows) const;
  /// Attention of the tokens of this pass and of those before it apart: what was not committed of
  /// a tree would be neither.
  void CheckNewTrees(const char* what) const;
  /// (batch, length, heads, dim) as rows, one for each token.
  Tensor Rows(const char* what, const Tensor& t, int64_t heads, int64_t dim) const;
  Tensor Sums(const char* what, const Tensor& t) const;
  Tensor Part(const Tensor& room) const;
  void AttendPages(int64_t kind, PageLists& lists, const Tensor& pages, const Tensor& q,
                   const Tensor& out, const Tensor& lse, double scale);

  CacheConfig config_;
  KVPages pages_;
  bool layer_windows_;
  std::vector<Tensor> layers_;
  Tensor q_{nullptr}, k_{nullptr}, v_{nullptr}, lse_{nullptr};  // room for the tokens of a pass
  bool running_ = false;                                        // between begin and end of `pass_`
  KVPass pass_;
};
class PagedKVCache : public ffi::ObjectRef {
 public:
  explicit PagedKVCache(CacheConfig config)
      : ffi::ObjectRef(ffi::make_object<PagedKVCacheObj>(std::move(config))) {}
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(PagedKVCache, ffi::ObjectRef, PagedKVCacheObj);
};
}  // namespace tvm::runtime::vm
