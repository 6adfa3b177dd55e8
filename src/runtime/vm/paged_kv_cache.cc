// SPDX-License-Identifier: Apache-2.0
// The paged cache of attention: keys and values of many sequences, in pages that forks share.
#include <algorithm>
#include <optional>
#include <set>

#include "runtime/vm/kv_pass.h"
#include "runtime/vm/kv_state.h"
#include "tvm/runtime/vm.h"

namespace tvm::runtime::vm {
namespace {
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
  explicit PagedKVCacheObj(CacheConfig config)
      : config_(std::move(config)),
        pages_(config_.max_sequences,
               (config_.max_total + config_.page_size - 1) / config_.page_size, config_.page_size),
        layer_windows_(std::count(config_.kinds.begin(), config_.kinds.end(), kMHASliding) > 0) {
    int64_t num_pages = pages_.num_free();
    for (int64_t kind : config_.kinds) {
      Shape heads{num_pages, 2, config_.kv_heads, config_.page_size, config_.qk_dim};
      Shape latent{num_pages, config_.page_size, config_.qk_dim};
      layers_.push_back(Empty(kind == kMLA ? latent : heads, config_.dtype, config_.device));
    }
    bool all_latent = std::count(config_.kinds.begin(), config_.kinds.end(), kMLA) ==
                      static_cast<int64_t>(config_.kinds.size());
    auto room = [&](int64_t heads, int64_t dim) {  // which latent attention leaves to the model
      int64_t rows = all_latent ? 0 : config_.chunk;
      return Empty({rows, heads, dim}, config_.dtype, config_.device);
    };
    q_ = room(config_.q_heads, config_.qk_dim);
    k_ = room(config_.kv_heads, config_.qk_dim);
    v_ = room(config_.kv_heads, config_.v_dim);
    lse_ = Empty({config_.chunk, config_.q_heads}, DataType::Float(32), config_.device);
  }

  // ---- sequences
  void Clear() final {
    std::lock_guard lock(mutex_);
    pages_.Clear();
    running_ = false;
  }
  void AddSequence(int64_t id) final {
    auto lock = Idle("kv_state_add_sequence");
    pages_.Add(id);
  }
  void RemoveSequence(int64_t id) final {
    auto lock = Idle("kv_state_remove_sequence");
    pages_.Remove(id);
  }
  void ForkSequence(int64_t parent, int64_t child, int64_t position) final {
    auto lock = Idle("kv_state_fork_sequence");
    pages_.Fork(parent, child, position, [&](int32_t from, int32_t to, int64_t rows) {
      for (size_t i = 0; i < layers_.size(); ++i) {
        if (config_.kinds[i] == kMLA) {
          CopyTensor(Latent(i, from * config_.page_size, rows),
                     Latent(i, to * config_.page_size, rows));
        } else {
          Need(config_.copy_page, "copy_single_page")(layers_[i], int64_t{from}, int64_t{to}, rows);
        }
      }
    });
  }
  void PopN(int64_t id, int64_t n) final {
    auto lock = Idle("kv_state_popn");
    pages_.Pop(id, n);
  }
  void EnableWindow(int64_t id, int64_t window, int64_t sinks) {
    auto lock = Idle("attention_kv_cache_enable_sliding_window_for_seq");
    if (!config_.has_window && !layer_windows_) {
      TVM_FFI_THROW(ValueError) << "attention_kv_cache_enable_sliding_window_for_seq: expected a "
                                   "cache made for sliding windows";
    }
    pages_.SetWindow(id, window, sinks);
  }
  bool IsEmpty() {
    std::lock_guard lock(mutex_);
    return pages_.empty();
  }
  int64_t NumAvailablePages() {
    std::lock_guard lock(mutex_);
    return pages_.num_free();
  }
  int64_t TotalLength() {
    std::lock_guard lock(mutex_);
    return pages_.TotalLength();
  }

  // ---- a forward pass
  void BeginForward(const Shape& ids, const Shape& lengths, const Optional<Shape>& parents) final {
    auto lock = Idle("kv_state_begin_forward");
    std::vector<KVSequence*> sequences = Named(ids, lengths);
    if (parents) CheckTrees(sequences, lengths, *parents);
    for (size_t i = 0; i < sequences.size(); ++i) {
      if (!parents && !sequences[i]->tree.empty()) {
        TVM_FFI_THROW(ValueError) << "kv_state_begin_forward: expected the token tree of sequence "
                                  << ids[i] << " to be committed";
      }
      if (parents && sequences[i]->window > 0) {
        TVM_FFI_THROW(ValueError) << "kv_state_begin_forward: expected token trees of sequences "
                                     "without a sliding window, got "
                                  << ids[i];
      }
    }
    // With windows in some layers only, the others still need all tokens.
    pages_.Append(sequences, lengths, !layer_windows_);
    const int64_t* parent = parents ? parents.value().begin() : nullptr;
    for (size_t i = 0; parents && i < sequences.size(); ++i) {
      std::vector<int32_t>& tree = sequences[i]->tree;
      tree.insert(tree.end(), parent, parent + lengths[i]);
      parent += lengths[i];
    }
    pass_.Describe(pages_, sequences, lengths, parents.has_value(),
                   {config_.device, Inline() != 0, layer_windows_});
    running_ = true;
  }
  void EndForward() final {
    std::lock_guard lock(mutex_);
    CheckRunning("kv_state_end_forward");
    running_ = false;
  }
  Tensor QueryPositions() {
    std::lock_guard lock(mutex_);
    CheckRunning("attention_kv_cache_get_query_positions");
    Tensor copy = Empty({pass_.total}, DataType::Int(32), config_.device);
    CopyTensor(pass_.q_positions.tensor(), copy);
    return copy;
  }

  // ---- attention
  void AttendFused(int64_t layer, double scale, const Tensor& qkv, const Tensor& out) {
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
  /// Of the tokens of this pass over each other.
  void AttendSelf(int64_t layer, double scale, const Tensor& q, const Tensor& k, const Tensor& v,
                  const Tensor& out, const Tensor& lse) {
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
          pass_.q_positions.tensor(), pass_.past_lengths.tensor(), found, sums, int64_t{1},
          Inline(), config_.rope_scale, config_.rope_theta, scale);
    }
  }
  /// Of the tokens of this pass over those before it; with one token each also over themselves.
  void AttendCross(int64_t layer, double scale, const Tensor& q, const Tensor& out,
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
  void AppendMLA(int64_t layer, const Tensor& kv) {
    constexpr const char* kName = "attention_kv_cache_append_mla_kv";
    std::lock_guard lock(mutex_);
    const Tensor& pages = Layer(kName, layer, kMLA);
    Tensor rows = Rows(kName, kv, 1, config_.qk_dim);
    Need(config_.append_mla, "transpose_append_mla")(
        pages, CreateView(rows, {pass_.total, config_.qk_dim}, rows.dtype()),
        pass_.append_map.tensor());
  }
  Array<Tensor> Merge(const Tensor& out, const Tensor& lse, const Tensor& other,
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

  // ---- trees, inspection
  void Commit(const Shape& ids, const Shape& leaves) {
    constexpr const char* kName = "attention_kv_cache_commit_accepted_token_tree_nodes";
    auto lock = Idle(kName);
    if (ids.size() != leaves.size()) {
      TVM_FFI_THROW(ValueError) << kName << ": expected a leaf for each sequence, got "
                                << leaves.size() << " for " << ids.size();
    }
    IntArray indptr, from, to;
    indptr.Push(0);
    std::vector<std::pair<KVSequence*, int64_t>> kept;  // and how many of its tree's tokens
    std::set<KVSequence*> seen;
    for (size_t i = 0; i < ids.size(); ++i) {
      KVSequence& sequence = pages_.At(ids[i], kName);
      auto size = static_cast<int64_t>(sequence.tree.size());
      if (size == 0 || leaves[i] < -1 || leaves[i] >= size || !seen.insert(&sequence).second) {
        TVM_FFI_THROW(ValueError) << kName << ": expected a sequence with a token tree, once, and "
                                  << "one of its nodes or -1, got sequence " << ids[i] << " of "
                                  << size << " nodes and " << leaves[i];
      }
      std::vector<int64_t> path;
      for (int64_t node = leaves[i]; node >= 0; node = sequence.tree[node]) path.push_back(node);
      std::reverse(path.begin(), path.end());
      int64_t base = sequence.stored - size;
      for (size_t k = 0; k < path.size(); ++k) {
        if (path[k] == static_cast<int64_t>(k)) continue;
        from.Push(pages_.Slot(sequence, base + path[k]));
        to.Push(pages_.Slot(sequence, base + static_cast<int64_t>(k)));
      }
      indptr.Push(from.size());
      kept.emplace_back(&sequence, static_cast<int64_t>(path.size()));
    }
    if (from.size() > 0) MoveRows(&indptr, &from, to);
    for (auto [sequence, count] : kept) {
      auto size = static_cast<int64_t>(sequence->tree.size());
      pages_.Truncate(sequence, sequence->stored - size + count);
      sequence->tree.clear();
    }
  }
  /// Rows go to places before them, in order: `from` becomes both lists, as kernels take them.
  void MoveRows(IntArray* indptr, IntArray* from, const IntArray& to) {
    int64_t count = from->size(), batch = indptr->size() - 1;
    for (int32_t slot : to) from->Push(slot);
    indptr->Upload(config_.device);
    from->Upload(config_.device, {2, count});
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (config_.kinds[i] == kMLA) {
        for (int64_t k = 0; k < count; ++k) {
          CopyTensor(Latent(i, from->begin()[k], 1), Latent(i, to.begin()[k], 1));
        }
      } else {
        Need(config_.compact_copy, "compact_copy")(layers_[i], indptr->tensor(), from->tensor(),
                                                   batch);
      }
    }
  }
  void DebugGetKV(int64_t id, int64_t begin, int64_t end, const Tensor& k, const Tensor& v) {
    std::lock_guard lock(mutex_);
    IntArray map = SlotsOf("attention_kv_cache_debug_get_kv", id, begin, end);
    map.Upload(config_.device);
    for (size_t layer = 0; layer < layers_.size(); ++layer) {
      if (config_.kinds[layer] == kMLA) continue;
      Need(config_.debug_get_kv, "debug_get_kv")(layers_[layer], map.tensor(), k, v,
                                                 static_cast<int64_t>(layer));
    }
  }
  void DebugGetKVOfLatent(int64_t id, int64_t begin, int64_t end, const Tensor& kv) {
    constexpr const char* kName = "attention_kv_cache_debug_get_kv_mla";
    std::lock_guard lock(mutex_);
    IntArray map = SlotsOf(kName, id, begin, end);
    Shape shape{static_cast<int64_t>(layers_.size()), map.size(), config_.qk_dim};
    ShapeView given = kv.shape();
    if (!std::equal(shape.begin(), shape.end(), given.begin(), given.end()) ||
        DataType(kv.dtype()) != DataType(config_.dtype) || !kv.is_contiguous()) {
      TVM_FFI_THROW(ValueError) << kName << ": expected " << shape << " of "
                                << DataType(config_.dtype) << ", contiguous, got " << Shape(given)
                                << " of " << DataType(kv.dtype());
    }
    auto bytes = static_cast<int64_t>(DataSize({config_.qk_dim}, config_.dtype));
    for (size_t layer = 0; layer < layers_.size(); ++layer) {
      for (int64_t i = 0; config_.kinds[layer] == kMLA && i < map.size(); ++i) {
        int64_t row = static_cast<int64_t>(layer) * map.size() + i;
        CopyTensor(Latent(layer, map.begin()[i], 1),
                   CreateView(kv, {1, config_.qk_dim}, config_.dtype, row * bytes));
      }
    }
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.vm.PagedAttentionKVCache", PagedKVCacheObj, KVStateObj);

 private:
  std::unique_lock<std::mutex> Idle(const char* what) {
    std::unique_lock lock(mutex_);
    if (running_) {
      TVM_FFI_THROW(RuntimeError) << what << ": expected kv_state_end_forward of the pass before";
    }
    return lock;
  }
  void CheckRunning(const char* what) const {
    if (!running_) {
      TVM_FFI_THROW(RuntimeError) << what << ": expected kv_state_begin_forward before it";
    }
  }
  static Function Need(const Optional<Function>& function, const char* what) {
    if (!function)
      TVM_FFI_THROW(RuntimeError) << "the cache was made without a kernel for " << what;
    return *function;
  }
  /// Where tokens of a sequence lie.
  IntArray SlotsOf(const char* what, int64_t id, int64_t begin, int64_t end) {
    KVSequence& sequence = pages_.At(id, what);
    if (begin < 0 || end > sequence.length() || begin >= end) {
      TVM_FFI_THROW(IndexError) << what << ": expected tokens of 0 to " << sequence.length()
                                << ", got " << begin << " to " << end;
    }
    IntArray slots;
    for (int64_t i = begin; i < end; ++i) {
      slots.Push(
          pages_.Slot(sequence, i < sequence.sinks ? i : i - sequence.sinks + sequence.offset));
    }
    return slots;
  }
  int64_t Inline() const { return config_.rope_mode == kRopeInline ? 1 : 0; }

  std::vector<KVSequence*> Named(const Shape& ids, const Shape& lengths) {
    constexpr const char* kName = "kv_state_begin_forward";
    if (ids.size() != lengths.size() || ids.size() == 0) {
      TVM_FFI_THROW(ValueError) << kName << ": expected sequences and a length for each, got "
                                << ids << " and " << lengths;
    }
    std::vector<KVSequence*> sequences;
    std::set<int64_t> seen;
    int64_t total = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      sequences.push_back(&pages_.At(ids[i], kName));
      if (!seen.insert(ids[i]).second || lengths[i] <= 0) {
        TVM_FFI_THROW(ValueError) << kName << ": expected each sequence once and positive lengths, "
                                  << "got " << ids << " and " << lengths;
      }
      total += lengths[i];
    }
    if (total > config_.chunk) {
      TVM_FFI_THROW(ValueError) << kName << ": expected at most " << config_.chunk
                                << " tokens, the prefill chunk size, got " << total;
    }
    return sequences;
  }
  static void CheckTrees(const std::vector<KVSequence*>& sequences, const Shape& lengths,
                         const Shape& parents) {
    size_t next = 0;
    bool is_tree = true;
    for (size_t i = 0; i < sequences.size(); ++i) {
      auto node = static_cast<int64_t>(sequences[i]->tree.size());
      for (int64_t k = 0; k < lengths[i]; ++k, ++next, ++node) {
        is_tree = is_tree && next < parents.size() && parents[next] >= -1 && parents[next] < node;
      }
    }
    if (!is_tree || next != parents.size()) {
      TVM_FFI_THROW(ValueError) << "kv_state_begin_forward: expected for each token the index of "
                                   "an earlier one of its tree, or -1, got "
                                << parents;
    }
  }

  /// A layer of the cache, by its number in the model, which becomes that in the cache. `kind`
  /// tells latent attention from others.
  const Tensor& Layer(const char* what, int64_t& layer, std::optional<AttentionKind> kind) const {
    CheckRunning(what);
    layer -= config_.first_layer;
    if (layer < 0 || layer >= static_cast<int64_t>(layers_.size())) {
      TVM_FFI_THROW(IndexError) << what << ": expected a layer of the cache's " << layers_.size()
                                << ", got " << layer + config_.first_layer;
    }
    if (kind && (kind == kMLA) != (config_.kinds[layer] == kMLA)) {
      TVM_FFI_THROW(ValueError) << what << ": expected a layer "
                                << (kind == kMLA ? "of" : "without") << " latent attention, got "
                                << layer + config_.first_layer;
    }
    return layers_[layer];
  }
  /// Rows of a layer of latent attention, which follow each other.
  Tensor Latent(size_t layer, int64_t slot, int64_t rows) const {
    Shape row{config_.qk_dim};
    int64_t bytes = slot * static_cast<int64_t>(DataSize(row, config_.dtype));
    return CreateView(layers_[layer], {rows, config_.qk_dim}, config_.dtype, bytes);
  }
  /// Attention of the tokens of this pass and of those before it apart: what was not committed of
  /// a tree would be neither.
  void CheckNewTrees(const char* what) const {
    if (pass_.continues_tree) {
      TVM_FFI_THROW(ValueError) << what << ": expected token trees to be committed before the pass";
    }
  }
  /// (batch, length, heads, dim) as rows, one for each token.
  Tensor Rows(const char* what, const Tensor& t, int64_t heads, int64_t dim) const {
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
  Tensor Sums(const char* what, const Tensor& t) const {
    if (pass_.total == 0 || t.numel() % pass_.total != 0 ||
        DataType(t.dtype()) != DataType::Float(32)) {
      TVM_FFI_THROW(ValueError) << what << ": expected float32 for each row and head, got "
                                << Shape(t.shape()) << " of " << DataType(t.dtype());
    }
    return CreateView(t, {pass_.total, t.numel() / pass_.total}, t.dtype());
  }
  Tensor Part(const Tensor& room) const {
    std::vector<int64_t> shape(room.shape().begin(), room.shape().end());
    shape[0] = pass_.total;
    return CreateView(room, {shape.data(), shape.size()}, room.dtype());
  }
  void AttendPages(int64_t kind, PageLists& lists, const Tensor& pages, const Tensor& q,
                   const Tensor& out, const Tensor& lse, double scale) {
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
