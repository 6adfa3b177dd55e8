// SPDX-License-Identifier: Apache-2.0
// A pass of a model over sequences of a paged cache, as the kernels take it.
#pragma once
#include <algorithm>
#include <vector>

#include "runtime/vm/kv_pages.h"
#include "tvm/runtime/data_type.h"
#include "tvm/runtime/tensor.h"

namespace tvm::runtime::vm {

/// Integers for kernels, written on the host and given as a tensor of the cache's device. The
/// memory stays, so that a step of a model allocates nothing.
class IntArray {
 public:
  void Reset() { values_.clear(); }
  void Push(int64_t value) { values_.push_back(static_cast<int32_t>(value)); }
  int64_t size() const { return static_cast<int64_t>(values_.size()); }
  const int32_t* begin() const { return values_.data(); }
  const int32_t* end() const { return values_.data() + values_.size(); }
  void Upload(DLDevice device, ShapeView shape) {
    constexpr DLDevice kHost{kDLCPU, 0};
    DataType int32 = DataType::Int(32);
    if (!memory_.defined() || memory_.numel() < std::max<int64_t>(size(), 1)) {
      int64_t capacity = std::max<int64_t>(64, 2 * size());
      staging_ = Empty({capacity}, int32, kHost);
      memory_ = device.device_type == kDLCPU ? staging_ : Empty({capacity}, int32, device);
    }
    std::copy(values_.begin(), values_.end(), static_cast<int32_t*>(staging_.data_ptr()));
    tensor_ = CreateView(memory_, shape, int32);
    if (device.device_type != kDLCPU && size() > 0) {
      CopyTensor(CreateView(staging_, shape, int32), tensor_);
    }
  }
  void Upload(DLDevice device) { Upload(device, {size()}); }
  const Tensor& tensor() const { return tensor_; }

 private:
  std::vector<int32_t> values_;
  Tensor staging_{nullptr}, memory_{nullptr}, tensor_{nullptr};
};

/// The pages of the sequences of a forward pass, as kernels take them.
struct PageLists {
  IntArray indptr, values, lengths, rope_offsets;
  void Reset() {
    for (IntArray* array : {&indptr, &values, &lengths, &rope_offsets}) array->Reset();
    indptr.Push(0);
  }
};

/// The arrays of a pass. Its tokens lie in the pages already.
struct KVPass {
  int64_t total = 0;            ///< Tokens.
  bool has_tree = false;        ///< They are trees.
  bool continues_tree = false;  ///< Some of them go on where a pass before left uncommitted tokens.
  bool only_one_each = false;   ///< One of each sequence.
  IntArray q_indptr, q_positions, append_map, past_lengths, tree_indptr, tree_order;
  bool has_window = false;  ///< Some sequences have sliding windows; then lists of what is inside
                            ///< have three rows: lengths, offsets and sinks.
  PageLists whole, past;    ///< With its tokens, without them.
  PageLists whole_in_layer, past_in_layer;  ///< The same as layers with windows of their own see.

  struct Options {
    DLDevice device;
    bool inline_positions;  ///< Keys are rotated when read, by where they are in the cache.
    bool layer_windows;     ///< Windows are those of some layers: the others see all tokens.
  };
  void Describe(const KVPages& pages, const std::vector<KVSequence*>& sequences,
                const Shape& lengths, bool is_tree, const Options& options);

 private:
  void AddTree(const std::vector<int32_t>& parents);
};

}  // namespace tvm::runtime::vm
