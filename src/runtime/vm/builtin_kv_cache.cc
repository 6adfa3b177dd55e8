// SPDX-License-Identifier: Apache-2.0
// The plain cache of attention: rows that are appended, viewed and overwritten.
#include <algorithm>

#include "runtime/vm/program.h"
#include "tvm/runtime/data_type.h"

namespace tvm::runtime::vm {
namespace {
struct AttentionCacheObj : Object {
  static constexpr bool _type_mutable = true;
  Tensor data;       // rows along the first axis; it grows by doubling
  int64_t fill = 0;  // rows in use
  int64_t next = 0;  // of a window that is full: the row that is overwritten next

  explicit AttentionCacheObj(Tensor data) : data(std::move(data)) {}
  std::vector<int64_t> ShapeOf(int64_t rows) const {
    std::vector<int64_t> shape(data.shape().begin(), data.shape().end());
    shape[0] = rows;
    return shape;
  }
  Tensor Rows(int64_t begin, int64_t count) const {
    std::vector<int64_t> row = ShapeOf(1), shape = ShapeOf(count);
    auto bytes = static_cast<int64_t>(DataSize({row.data(), row.size()}, data.dtype()));
    return CreateView(data, {shape.data(), shape.size()}, data.dtype(), begin * bytes);
  }
  void CheckRows(const char* what, const Tensor& value) const {
    ShapeView a = data.shape(), b = value.shape();
    bool same = b.size() == a.size() && b.size() > 0 &&
                std::equal(a.begin() + 1, a.end(), b.begin() + 1, b.end()) &&
                DataType(value.dtype()) == DataType(data.dtype());
    if (!same) {
      TVM_FFI_THROW(ValueError) << what << ": expected rows of " << Shape(a) << " of "
                                << DataType(data.dtype()) << ", got " << Shape(b) << " of "
                                << DataType(value.dtype());
    }
  }
  void Reserve(int64_t rows) {
    int64_t capacity = std::max<int64_t>(data.shape()[0], 1);
    if (rows <= data.shape()[0]) return;
    while (capacity < rows) capacity *= 2;
    std::vector<int64_t> shape = ShapeOf(capacity);
    AttentionCacheObj larger(Empty({shape.data(), shape.size()}, data.dtype(), data.device()));
    if (fill > 0) CopyTensor(Rows(0, fill), larger.Rows(0, fill));
    data = larger.data;
  }
  void Append(const Tensor& value) {
    CheckRows("attention_kv_cache_append", value);
    int64_t count = value.shape()[0];
    Reserve(fill + count);
    if (count > 0) CopyTensor(value, Rows(fill, count));
    fill += count;
  }
  /// Keeps the last `max_rows` rows, in a ring, and the first `sinks` of all.
  void Override(const Tensor& value, int64_t max_rows, int64_t sinks) {
    CheckRows("attention_kv_cache_window_override", value);
    if (sinks < 0 || sinks >= max_rows) {
      TVM_FFI_THROW(ValueError) << "attention_kv_cache_window_override: expected fewer sinks than "
                                << max_rows << " rows, got " << sinks;
    }
    AttentionCacheObj source(value.is_contiguous() ? value : Dense(value));
    for (int64_t done = 0, total = value.shape()[0]; done < total;) {
      int64_t count;
      if (fill < max_rows) {
        count = std::min(total - done, max_rows - fill);
        Append(source.Rows(done, count));
        next = fill == max_rows ? sinks : fill;
      } else {
        next = std::clamp(next, sinks, max_rows - 1);
        count = std::min(total - done, max_rows - next);
        CopyTensor(source.Rows(done, count), Rows(next, count));
        next = next + count == max_rows ? sinks : next + count;
      }
      done += count;
    }
  }
  static Tensor Dense(const Tensor& value) {
    Tensor dense = Empty(value.shape(), value.dtype(), value.device());
    CopyTensor(value, dense);
    return dense;
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.vm.AttentionKVCacheLegacy", AttentionCacheObj, Object);
};
class AttentionCache : public ObjectRef {
 public:
  explicit AttentionCache(Tensor data)
      : ObjectRef(ffi::make_object<AttentionCacheObj>(std::move(data))) {}
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(AttentionCache, ObjectRef, AttentionCacheObj);
};

AttentionCache CreateCache(Tensor init, Shape reserved, int64_t fill) {
  if (reserved.size() == 0 || fill < 0 || fill > reserved[0]) {
    TVM_FFI_THROW(ValueError) << "attention_kv_cache_create: expected 0 to "
                              << (reserved.size() ? reserved[0] : 0) << " rows, got " << fill;
  }
  AttentionCache cache(Empty(reserved, init.dtype(), init.device()));
  cache->CheckRows("attention_kv_cache_create", init);
  if (fill > init.shape()[0]) {
    TVM_FFI_THROW(ValueError) << "attention_kv_cache_create: expected at most " << init.shape()[0]
                              << " rows, which are given, got " << fill;
  }
  AttentionCacheObj source(init.is_contiguous() ? init : AttentionCacheObj::Dense(init));
  if (fill > 0) cache->Append(source.Rows(0, fill));
  return cache;
}
AttentionCache UpdateCache(AttentionCache cache, Tensor value) {
  cache->CheckRows("attention_kv_cache_update", value);
  cache->fill = 0;
  cache->Append(value);
  return cache;
}
Tensor ViewCache(AttentionCache cache, Shape shape) {
  std::vector<int64_t> expected = cache->ShapeOf(cache->fill);
  if (!std::equal(expected.begin(), expected.end(), shape.begin(), shape.end())) {
    TVM_FFI_THROW(ValueError) << "attention_kv_cache_view: expected shape "
                              << Shape(expected.begin(), expected.end()) << ", got " << shape;
  }
  return cache->Rows(0, cache->fill);
}
void PopRows(Array<AttentionCache> caches, int64_t n) {
  for (const AttentionCache& cache : caches) {
    if (n < 0 || n > cache->fill) {
      TVM_FFI_THROW(ValueError) << "attention_kv_cache_array_popn: expected 0 to " << cache->fill
                                << " rows, got " << n;
    }
  }
  for (const AttentionCache& cache : caches) cache->fill -= n;
}

TVM_REGISTER() {
  AttentionCacheObj::RuntimeTypeIndex();
  Def("vm.builtin.attention_kv_cache_create", &CreateCache, "A cache with its first rows.",
      Arg("init_data"), Arg("reserve_shape"), Arg("init_fill_count"));
  Def(
      "vm.builtin.attention_kv_cache_append",
      [](AttentionCache cache, Tensor value) {
        cache->Append(value);
        return cache;
      },
      "Adds rows.", Arg("cache"), Arg("value"));
  Def("vm.builtin.attention_kv_cache_update", &UpdateCache, "Replaces all rows.", Arg("cache"),
      Arg("value"));
  Def("vm.builtin.attention_kv_cache_view", &ViewCache, "The rows, as a view.", Arg("cache"),
      Arg("shape"));
  Def(
      "vm.builtin.attention_kv_cache_window_override",
      [](AttentionCache cache, Tensor value, int64_t max_rows) {
        cache->Override(value, max_rows, 0);
        return cache;
      },
      "Adds rows; the oldest ones make room.", Arg("cache"), Arg("value"), Arg("max_cache_size"));
  Def(
      "vm.builtin.attention_kv_cache_window_override_with_sinks",
      [](AttentionCache cache, Tensor value, int64_t max_rows, int64_t sinks) {
        cache->Override(value, max_rows, sinks);
        return cache;
      },
      "The same; the first rows stay.", Arg("cache"), Arg("value"), Arg("max_cache_size"),
      Arg("num_attention_sinks"));
  Def(
      "vm.builtin.attention_kv_cache_array_clear",
      [](Array<AttentionCache> caches) {
        for (const AttentionCache& cache : caches) cache->fill = 0;
      },
      "Empties caches.", Arg("caches"));
  Def("vm.builtin.attention_kv_cache_array_popn", &PopRows, "Removes the last rows.", Arg("caches"),
      Arg("n"));
}
}  // namespace
}  // namespace tvm::runtime::vm
