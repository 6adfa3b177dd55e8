// SPDX-License-Identifier: Apache-2.0
// Recognises kernels of one operation and runs them as loops over strides.
#include "tir/strided_kernel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "runtime/host_tensor.h"
#include "tvm/expr/op.h"
#include "tvm/runtime/thread_pool.h"
#include "tvm/tir/stmt.h"

namespace tvm::tir {
namespace {
using runtime::Tensor;

enum class Operation { kMove, kAdd, kSubtract, kMultiply, kDivide, kSqrt };
constexpr size_t kAccesses = 3;  // the result, and at most two operands

/// An element of a parameter for each point of the loops, or one number for all of them.
struct Access {
  int param = -1;
  int64_t offset = 0;
  std::vector<int64_t> strides;  // by loop, in elements
  float number = 0;
};
/// One loop: how far each access moves.
struct Dim {
  int64_t extent;
  std::array<int64_t, kAccesses> strides;
};
struct Loops {
  Operation operation = Operation::kMove;
  DataType dtype;
  int64_t size = 1;  // elements of the result
  bool has_margins = false;
  std::array<Access, kAccesses> accesses;
  std::vector<Dim> dims;
};

// ---- recognition --------------------------------------------------------------------------------
class Matcher {
 public:
  explicit Matcher(const PrimFunc& func) : func_(func) {}
  bool Match(Loops* out) {
    auto* root = func_->body.as<BlockRealizeObj>();
    if (!root || !IsPlain(root->block)) return false;
    const BufferStoreObj* store = EnterLoops(root->block->body);
    if (!store || store->buffer->dtype.bits() % 8 != 0 || !store->buffer->dtype.is_scalar())
      return false;
    out->dtype = store->buffer->dtype;
    PrimExpr value = store->value;
    if (auto* choice = value.as<CallObj>(); choice && choice->Is(builtin::if_then_else())) {
      if (!IsZero(choice->args[2]) || !Restrict(choice->args[0])) return false;
      out->has_margins = true;
      value = choice->args[1];
    }
    begin_ = inside_begin_;
    end_ = inside_end_;
    auto& [result, a, b] = out->accesses;
    if (!Find(store->buffer, store->indices, &result) || !Apply(value, out)) return false;
    for (const PrimExpr& extent : store->buffer->shape) out->size *= *AsConstInt(extent);
    for (size_t i = 0; i < begin_.size(); ++i) {
      Dim dim{std::max<int64_t>(0, end_[i] - begin_[i]), {result.strides[i], 0, 0}};
      if (a.param >= 0) dim.strides[1] = a.strides[i];
      if (b.param >= 0) dim.strides[2] = b.strides[i];
      AddDim(dim, &out->dims);
    }
    return true;
  }

 private:
  static bool IsPlain(const Block& block) {
    return !block->init && block->alloc_buffers.empty() && block->match_buffers.empty();
  }
  /// The one statement in loops that each are an axis of its block.
  const BufferStoreObj* EnterLoops(Stmt body) {
    std::vector<const VarObj*> loops;
    while (auto* loop = body.as<ForObj>()) {
      auto extent = AsConstInt(loop->extent);
      if (!extent || !IsZero(loop->min) || loop->kind != ForKind::kSerial || loop->step)
        return nullptr;
      loops.push_back(loop->loop_var.get());
      end_.push_back(*extent);
      body = loop->body;
    }
    begin_.assign(end_.size(), 0);
    inside_begin_ = begin_;
    inside_end_ = end_;
    auto* realize = body.as<BlockRealizeObj>();
    if (!realize || !IsTrue(realize->predicate) || !IsPlain(realize->block) ||
        realize->iter_values.size() != loops.size())
      return nullptr;
    for (size_t i = 0; i < loops.size(); ++i) {
      if (realize->iter_values[i].get() != loops[i]) return nullptr;
      vars_.push_back(realize->block->iter_vars[i]->var.get());
    }
    return realize->block->body.as<BufferStoreObj>();
  }
  int LoopOf(const PrimExpr& e) const {
    auto it = std::find(vars_.begin(), vars_.end(), e.as<VarObj>());
    return it == vars_.end() ? -1 : static_cast<int>(it - vars_.begin());
  }
  /// Narrows the points where a value is computed to those of a condition.
  bool Restrict(const PrimExpr& condition) {
    if (auto* both = condition.as<AndObj>()) return Restrict(both->a) && Restrict(both->b);
    auto below = [&](const PrimExpr& a, const PrimExpr& b, int64_t and_equal) {
      auto low = AsConstInt(a), high = AsConstInt(b);
      int of_low = LoopOf(a), of_high = LoopOf(b);
      if (of_low >= 0 && high) {
        inside_end_[of_low] = std::min(inside_end_[of_low], *high + and_equal);
      } else if (of_high >= 0 && low) {
        inside_begin_[of_high] = std::max(inside_begin_[of_high], *low + 1 - and_equal);
      }
      return (of_low >= 0 && high) || (of_high >= 0 && low);
    };
    if (auto* op = condition.as<LTObj>()) return below(op->a, op->b, 0);
    if (auto* op = condition.as<LEObj>()) return below(op->a, op->b, 1);
    if (auto* op = condition.as<GTObj>()) return below(op->b, op->a, 0);
    if (auto* op = condition.as<GEObj>()) return below(op->b, op->a, 1);
    return false;
  }
  /// An index without the number that is added to it.
  static std::pair<PrimExpr, int64_t> Shifted(const PrimExpr& index) {
    if (auto* op = index.as<AddObj>()) {
      if (auto number = AsConstInt(op->b)) return {op->a, *number};
      if (auto number = AsConstInt(op->a)) return {op->b, *number};
    }
    if (auto* op = index.as<SubObj>()) {
      if (auto number = AsConstInt(op->b)) return {op->a, -*number};
    }
    return {index, 0};
  }
  /// An index is a variable, a number, or their sum or difference, and never outside its buffer.
  bool Find(const Buffer& buffer, const Array<PrimExpr>& indices, Access* access) const {
    for (size_t i = 0; i < func_->params.size(); ++i) {
      if (func_.BufferOf(func_->params[i]).same_as(buffer)) access->param = static_cast<int>(i);
    }
    if (access->param < 0 || !buffer->strides.empty() || !IsZero(buffer->elem_offset)) return false;
    access->strides.assign(vars_.size(), 0);
    int64_t stride = 1;
    for (size_t d = indices.size(); d-- > 0;) {
      auto extent = AsConstInt(buffer->shape[d]);
      auto [index, shift] = Shifted(indices[d]);
      int loop = LoopOf(index);
      auto number = AsConstInt(index);
      if (!extent || (loop < 0 && !number)) return false;
      int64_t first = shift + (number ? *number : begin_[loop]);
      int64_t last = shift + (number ? *number : end_[loop] - 1);
      if (first < 0 || last >= *extent) return false;
      access->offset += first * stride;
      if (loop >= 0) access->strides[loop] += stride;
      stride *= *extent;
    }
    return true;
  }
  bool Operand(const PrimExpr& e, Access* access) const {
    if (auto* number = e.as<FloatImmObj>()) {
      access->number = static_cast<float>(number->value);
      return true;
    }
    auto* load = e.as<BufferLoadObj>();
    return load && !load->predicate && Find(load->buffer, load->indices, access);
  }
  bool Apply(const PrimExpr& value, Loops* out) const {
    auto& [result, a, b] = out->accesses;
    if (value.as<BufferLoadObj>()) return Operand(value, &a);
    if (!(value.dtype() == DataType::Float(32))) return false;
    auto both = [&](const PrimExpr& left, const PrimExpr& right, Operation operation) {
      out->operation = operation;
      return Operand(left, &a) && Operand(right, &b);
    };
    if (auto* op = value.as<AddObj>()) return both(op->a, op->b, Operation::kAdd);
    if (auto* op = value.as<SubObj>()) return both(op->a, op->b, Operation::kSubtract);
    if (auto* op = value.as<MulObj>()) return both(op->a, op->b, Operation::kMultiply);
    if (auto* op = value.as<DivObj>()) return both(op->a, op->b, Operation::kDivide);
    static const Op& sqrt = *new Op(Op::Get("tir.sqrt"));
    auto* call = value.as<CallObj>();
    out->operation = Operation::kSqrt;
    return call && call->Is(sqrt) && Operand(call->args[0], &a);
  }
  /// Joins a loop with the one around it where both walk on alike.
  static void AddDim(const Dim& dim, std::vector<Dim>* dims) {
    if (dim.extent == 1) return;
    bool joins = !dims->empty();
    for (size_t i = 0; joins && i < kAccesses; ++i)
      joins = dims->back().strides[i] == dim.strides[i] * dim.extent;
    if (!joins) return dims->push_back(dim);
    dims->back() = {dims->back().extent * dim.extent, dim.strides};
  }

  const PrimFunc& func_;
  std::vector<const VarObj*> vars_;                 // of the block, by loop
  std::vector<int64_t> begin_, end_;                // of the points that are visited
  std::vector<int64_t> inside_begin_, inside_end_;  // of those where a condition holds
};

// ---- running ------------------------------------------------------------------------------------
template <class T, class F>
void Row(const Dim& dim, T* __restrict out, const T* a, const T* b, F f) {
  auto [to, from, other] = dim.strides;
  int64_t n = dim.extent;
  if (to == 1 && from == 1 && other == 1) {
    for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
  } else if (to == 1 && from == 1 && other == 0) {
    T y = *b;
    for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], y);
  } else {
    for (int64_t i = 0; i < n; ++i) out[i * to] = f(a[i * from], b[i * other]);
  }
}
template <class T, class F>
void Nest(const Dim* first, const Dim* last, T* out, const T* a, const T* b, F f) {
  if (first == last) return Row(*first, out, a, b, f);
  auto [to, from, other] = first->strides;
  // Where a run of the operand is spread over rows of the result, a line of the cache is used up
  // at once: rows that lie a power of two apart would evict each other.
  constexpr int64_t kRun = 16;
  bool is_transposed = first + 1 == last && from == 1 && last->strides[1] != 1;
  int64_t step = is_transposed ? kRun : 1;
  for (int64_t i = 0; i < first->extent; i += step) {
    T* row = out + i * to;
    const T *x = a + i * from, *y = b + i * other;
    if (!is_transposed) {
      Nest(first + 1, last, row, x, y, f);
      continue;
    }
    Dim run{std::min(step, first->extent - i), first->strides};
    for (int64_t j = 0; j < last->extent; ++j)
      Row(run, row + j * last->strides[0], x + j * last->strides[1], y + j * last->strides[2], f);
  }
}
template <class T, class F>
void RunAs(const Loops& loops, void* result, std::array<const void*, 2> operands, F f) {
  auto* out = static_cast<T*>(result) + loops.accesses[0].offset;
  auto* a = static_cast<const T*>(operands[0]) + loops.accesses[1].offset;
  auto* b = static_cast<const T*>(operands[1]) + loops.accesses[2].offset;
  std::vector<Dim> dims = loops.dims;
  if (dims.empty()) dims.push_back({1, {0, 0, 0}});
  if (std::any_of(dims.begin(), dims.end(), [](const Dim& d) { return d.extent <= 0; })) return;
  constexpr int64_t kWorthAThread = 1 << 17;  // elements
  Dim outer = dims[0];
  int64_t most = std::min<int64_t>(outer.extent, loops.size / kWorthAThread);
  int tasks = static_cast<int>(std::clamp<int64_t>(most, 1, runtime::NumThreads()));
  runtime::ParallelRun(tasks, [&](int task, int count) {
    int64_t begin = outer.extent * task / count, end = outer.extent * (task + 1) / count;
    if (begin == end) return;
    std::vector<Dim> part = dims;
    part[0].extent = end - begin;
    const auto& [to, from, other] = outer.strides;
    Nest(&part.front(), &part.back(), out + begin * to, a + begin * from, b + begin * other, f);
  });
}
template <class T>
void Move(const Loops& loops, void* result, std::array<const void*, 2> operands) {
  RunAs<T>(loops, result, {operands[0], operands[0]}, [](T x, T) { return x; });
}
void Run(const Loops& loops, void* result, std::array<const void*, 2> operands) {
  int64_t bytes = loops.dtype.bytes();
  if (loops.has_margins) std::memset(result, 0, static_cast<size_t>(loops.size * bytes));
  auto as_float = [&](auto f) { RunAs<float>(loops, result, operands, f); };
  switch (loops.operation) {
    case Operation::kAdd:
      return as_float([](float x, float y) { return x + y; });
    case Operation::kSubtract:
      return as_float([](float x, float y) { return x - y; });
    case Operation::kMultiply:
      return as_float([](float x, float y) { return x * y; });
    case Operation::kDivide:
      return as_float([](float x, float y) { return x / y; });
    case Operation::kSqrt:
      return as_float([](float x, float) { return std::sqrt(x); });
    case Operation::kMove:
      return bytes == 1   ? Move<uint8_t>(loops, result, operands)
             : bytes == 2 ? Move<uint16_t>(loops, result, operands)
             : bytes == 4 ? Move<uint32_t>(loops, result, operands)
                          : Move<uint64_t>(loops, result, operands);
  }
}
void* DataOf(const AnyView& argument) {
  auto tensor = argument.cast<Tensor>();
  if (!tensor.is_contiguous())
    TVM_FFI_THROW(ValueError) << "StridedKernel: expected compact tensors, got strides";
  return static_cast<char*>(tensor.data_ptr()) + tensor.byte_offset();
}
}  // namespace

Optional<ffi::Function> StridedKernel(const PrimFunc& func) {
  Loops loops;
  if (!Matcher(func).Match(&loops)) return std::nullopt;
  return ffi::Function::FromPacked([loops](const AnyView* args, int32_t, Any*) {
    std::array<const void*, 2> operands;
    for (size_t i = 0; i < operands.size(); ++i) {
      const Access& access = loops.accesses[i + 1];
      operands[i] = access.param < 0 ? &access.number : DataOf(args[access.param]);
    }
    Run(loops, DataOf(args[loops.accesses[0].param]), operands);
  });
}
}  // namespace tvm::tir
