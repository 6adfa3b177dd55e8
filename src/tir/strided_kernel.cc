// SPDX-License-Identifier: Apache-2.0
// Recognises kernels of one operation and runs them as loops over strides.
#include "tir/strided_kernel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
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
/// A box of points.
struct Part {
  std::array<Access, kAccesses> accesses;
  std::vector<Dim> dims;
};
struct Kernel {
  Operation operation = Operation::kMove;
  DataType dtype;
  int64_t size = 1;  // elements of the result
  bool has_margins = false;
  std::vector<Part> parts;
};

// ---- recognition --------------------------------------------------------------------------------
/// A sum of loops times numbers.
struct Linear {
  std::vector<int64_t> factors;  // by loop
  int64_t shift = 0;
};
/// Where loops begin and end.
struct Box {
  std::vector<int64_t> begin, end;
  bool IsEmpty() const {
    for (size_t i = 0; i < begin.size(); ++i) {
      if (begin[i] >= end[i]) return true;
    }
    return false;
  }
};

class Matcher {
 public:
  explicit Matcher(const PrimFunc& func) : func_(func) {}
  bool Match(Kernel* out) {
    auto* root = func_->body.as<BlockRealizeObj>();
    if (!root || !IsPlain(root->block)) return false;
    const BufferStoreObj* store = EnterLoops(root->block->body);
    if (!store || !store->buffer->dtype.is_scalar()) return false;
    out->dtype = store->buffer->dtype;
    int bits = out->dtype.bits();
    if (bits != 8 && bits != 16 && bits != 32 && bits != 64) return false;  // as Run moves them
    PrimExpr value = store->value;
    boxes_ = {all_};
    if (auto* choice = value.as<CallObj>(); choice && choice->Is(builtin::if_then_else())) {
      if (!IsAllZeroBits(choice->args[2]) || !Restrict(choice->args[0])) return false;
      out->has_margins = true;
      value = choice->args[1];
    }
    for (const Box& box : boxes_) {
      Part part;
      auto& [result, a, b] = part.accesses;
      if (box.IsEmpty()) continue;
      if (!Find(store->buffer, store->indices, box, &result) || !Apply(value, box, out, &a, &b))
        return false;
      for (size_t i = 0; i < vars_.size(); ++i) {
        auto stride = [i](const Access& x) { return x.param < 0 ? 0 : x.strides[i]; };
        AddDim({box.end[i] - box.begin[i], {stride(result), stride(a), stride(b)}}, &part.dims);
      }
      out->parts.push_back(std::move(part));
    }
    for (const PrimExpr& extent : store->buffer->shape) {
      auto number = AsConstInt(extent);
      if (!number) return false;
      out->size *= *number;
    }
    return true;
  }

 private:
  static bool IsAllZeroBits(const PrimExpr& e) {
    auto* real = e.as<FloatImmObj>();
    return real ? real->value == 0 && !std::signbit(real->value) : IsZero(e);
  }
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
      all_.end.push_back(*extent);
      body = loop->body;
    }
    all_.begin.assign(loops.size(), 0);
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
  /// Adds `factor` times an expression.
  bool AddLinear(const PrimExpr& e, int64_t factor, Linear* out) const {
    if (auto number = AsConstInt(e)) {
      out->shift += factor * *number;
      return true;
    }
    if (auto* var = e.as<VarObj>()) {
      auto it = std::find(vars_.begin(), vars_.end(), var);
      if (it == vars_.end()) return false;
      out->factors[it - vars_.begin()] += factor;
      return true;
    }
    if (auto* op = e.as<AddObj>())
      return AddLinear(op->a, factor, out) && AddLinear(op->b, factor, out);
    if (auto* op = e.as<SubObj>())
      return AddLinear(op->a, factor, out) && AddLinear(op->b, -factor, out);
    auto* product = e.as<MulObj>();
    auto times = product ? AsConstInt(product->b) : std::nullopt;
    return times && AddLinear(product->a, factor * *times, out);
  }
  /// Narrows the points where a value is computed to those of a condition.
  bool Restrict(const PrimExpr& condition) {
    if (auto* both = condition.as<AndObj>()) return Restrict(both->a) && Restrict(both->b);
    auto at_most = [&](const PrimExpr& a, const PrimExpr& b, int64_t margin) {
      Linear difference{std::vector<int64_t>(vars_.size()), margin};
      return AddLinear(a, 1, &difference) && AddLinear(b, -1, &difference) &&
             RestrictToNegative(difference);
    };
    if (auto* op = condition.as<LTObj>()) return at_most(op->a, op->b, 0);
    if (auto* op = condition.as<LEObj>()) return at_most(op->a, op->b, -1);
    if (auto* op = condition.as<GTObj>()) return at_most(op->b, op->a, 0);
    if (auto* op = condition.as<GEObj>()) return at_most(op->b, op->a, -1);
    return false;
  }
  /// To points of a sum below 0.
  bool RestrictToNegative(const Linear& sum) {
    std::vector<size_t> loops;
    for (size_t i = 0; i < sum.factors.size(); ++i) {
      if (sum.factors[i] != 0) loops.push_back(i);
    }
    if (loops.size() == 1 && std::abs(sum.factors[loops[0]]) == 1) {
      for (Box& box : boxes_) {
        int64_t &begin = box.begin[loops[0]], &end = box.end[loops[0]];
        if (sum.factors[loops[0]] == 1)
          end = std::min(end, -sum.shift);
        else
          begin = std::max(begin, sum.shift + 1);
      }
      return true;
    }
    // An axis that two loops walk over: whole rows of the inner loop, and a part of one.
    if (loops.size() != 2 || boxes_.size() != 1) return false;
    size_t outer = loops[0], inner = loops[1];
    int64_t width = sum.factors[outer], count = -sum.shift;
    Box whole = boxes_[0], part = whole;
    if (sum.factors[inner] != 1 || whole.begin[inner] != 0 || whole.end[inner] != width ||
        count < 0)
      return false;
    whole.end[outer] = std::min(whole.end[outer], count / width);
    part.begin[outer] = std::max(part.begin[outer], count / width);
    part.end[outer] = std::min(part.end[outer], count / width + 1);
    part.end[inner] = count % width;
    boxes_ = {whole, part};
    return true;
  }
  /// Indices are sums of loops, and never outside their buffer.
  bool Find(const Buffer& buffer, const Array<PrimExpr>& indices, const Box& box,
            Access* access) const {
    for (size_t i = 0; i < func_->params.size(); ++i) {
      if (func_.BufferOf(func_->params[i]).same_as(buffer)) access->param = static_cast<int>(i);
    }
    if (access->param < 0 || !buffer->strides.empty() || !IsZero(buffer->elem_offset)) return false;
    access->strides.assign(vars_.size(), 0);
    int64_t stride = 1;
    for (size_t d = indices.size(); d-- > 0;) {
      auto extent = AsConstInt(buffer->shape[d]);
      Linear index{std::vector<int64_t>(vars_.size())};
      if (!extent || !AddLinear(indices[d], 1, &index)) return false;
      int64_t first = index.shift, least = index.shift, most = index.shift;
      for (size_t i = 0; i < vars_.size(); ++i) {
        int64_t at_begin = index.factors[i] * box.begin[i];
        int64_t at_end = index.factors[i] * (box.end[i] - 1);
        first += at_begin;
        least += std::min(at_begin, at_end);
        most += std::max(at_begin, at_end);
        access->strides[i] += index.factors[i] * stride;
      }
      if (least < 0 || most >= *extent) return false;
      access->offset += first * stride;
      stride *= *extent;
    }
    return true;
  }
  bool Operand(const PrimExpr& e, const Box& box, Access* access) const {
    if (auto* number = e.as<FloatImmObj>()) {
      access->number = static_cast<float>(number->value);
      return true;
    }
    auto* load = e.as<BufferLoadObj>();
    return load && !load->predicate && Find(load->buffer, load->indices, box, access);
  }
  bool Apply(const PrimExpr& value, const Box& box, Kernel* out, Access* a, Access* b) const {
    if (value.as<BufferLoadObj>()) return Operand(value, box, a);
    if (!(value.dtype() == DataType::Float(32))) return false;
    auto both = [&](const PrimExpr& left, const PrimExpr& right, Operation operation) {
      out->operation = operation;
      return Operand(left, box, a) && Operand(right, box, b);
    };
    if (auto* op = value.as<AddObj>()) return both(op->a, op->b, Operation::kAdd);
    if (auto* op = value.as<SubObj>()) return both(op->a, op->b, Operation::kSubtract);
    if (auto* op = value.as<MulObj>()) return both(op->a, op->b, Operation::kMultiply);
    if (auto* op = value.as<DivObj>()) return both(op->a, op->b, Operation::kDivide);
    static const Op& sqrt = *new Op(Op::Get("tir.sqrt"));
    auto* call = value.as<CallObj>();
    out->operation = Operation::kSqrt;
    return call && call->Is(sqrt) && Operand(call->args[0], box, a);
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
  std::vector<const VarObj*> vars_;  // of the block, by loop
  Box all_;
  std::vector<Box> boxes_;  // where the value is not a margin
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
void RunPart(const Part& part, void* result, std::array<const void*, 2> operands, F f) {
  auto* out = static_cast<T*>(result) + part.accesses[0].offset;
  auto* a = static_cast<const T*>(operands[0]) + part.accesses[1].offset;
  auto* b = static_cast<const T*>(operands[1]) + part.accesses[2].offset;
  std::vector<Dim> dims = part.dims;
  if (dims.empty()) dims.push_back({1, {0, 0, 0}});
  int64_t points = 1;
  for (const Dim& dim : dims) points *= dim.extent;
  constexpr int64_t kWorthAThread = 1 << 17;
  Dim outer = dims[0];
  int64_t most = std::min(outer.extent, points / kWorthAThread);
  int tasks = static_cast<int>(std::clamp<int64_t>(most, 1, runtime::NumThreads()));
  runtime::ParallelRun(tasks, [&](int task, int count) {
    int64_t begin = outer.extent * task / count, end = outer.extent * (task + 1) / count;
    std::vector<Dim> share = dims;
    share[0].extent = end - begin;
    const auto& [to, from, other] = outer.strides;
    Nest(&share.front(), &share.back(), out + begin * to, a + begin * from, b + begin * other, f);
  });
}
template <class T, class F>
void RunAs(const Kernel& kernel, void* result, std::array<const void*, 2> operands, F f) {
  if (kernel.has_margins) std::memset(result, 0, static_cast<size_t>(kernel.size) * sizeof(T));
  for (const Part& part : kernel.parts) RunPart<T>(part, result, operands, f);
}
template <class T>
void Move(const Kernel& kernel, void* result, std::array<const void*, 2> operands) {
  RunAs<T>(kernel, result, {operands[0], operands[0]}, [](T x, T) { return x; });
}
void Run(const Kernel& kernel, void* result, std::array<const void*, 2> operands) {
  int64_t bytes = kernel.dtype.bytes();
  auto as_float = [&](auto f) { RunAs<float>(kernel, result, operands, f); };
  switch (kernel.operation) {
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
      return bytes == 1   ? Move<uint8_t>(kernel, result, operands)
             : bytes == 2 ? Move<uint16_t>(kernel, result, operands)
             : bytes == 4 ? Move<uint32_t>(kernel, result, operands)
                          : Move<uint64_t>(kernel, result, operands);
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
  Kernel kernel;
  if (!Matcher(func).Match(&kernel) || kernel.parts.empty()) return std::nullopt;
  return ffi::Function::FromPacked([kernel](const AnyView* args, int32_t, Any*) {
    const auto& accesses = kernel.parts[0].accesses;  // all parts have the same parameters
    std::array<const void*, 2> operands;
    for (size_t i = 0; i < operands.size(); ++i) {
      const Access& access = accesses[i + 1];
      operands[i] = access.param < 0 ? &access.number : DataOf(args[access.param]);
    }
    Run(kernel, DataOf(args[accesses[0].param]), operands);
  });
}
}  // namespace tvm::tir
