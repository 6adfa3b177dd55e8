// SPDX-License-Identifier: Apache-2.0
// Finds kernels that are one program with other extents.
#include "tir/shared_kernels.h"

#include <algorithm>
#include <unordered_map>

#include "tir/any_stmt.h"
#include "tvm/expr/op.h"
#include "tvm/ir/structural.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
constexpr DataType kIndex = DataType::Int(64);

/// Writes variables for extents: equal numbers are one variable. The function means the same where
/// a variable is the number that it stands for, so two functions that become equal were one.
struct ExtentNamer : Mutator<ExtentNamer, BufferObj, ForObj, IterVarObj> {
  std::vector<std::pair<int64_t, Var>> names;

  PrimExpr Named(const PrimExpr& extent) const {
    auto value = AsConstInt(extent);
    if (!value) return extent;
    auto it = std::find_if(names.begin(), names.end(), [&](auto& n) { return n.first == *value; });
    return it != names.end() && extent.dtype() == kIndex ? PrimExpr(it->second) : extent;
  }
  ObjectRef Rewrite(const BufferObj* op) {
    Buffer buffer = ffi::GetRef<Buffer>(op);
    Edit(&buffer)->shape = op->shape.Map([&](const PrimExpr& extent) { return Named(extent); });
    return buffer;
  }
  ObjectRef Rewrite(const ForObj* op) {
    For loop = Any(MapChildren(op, *this)).cast<For>();
    Edit(&loop)->extent = Named(op->extent);
    return loop;
  }
  ObjectRef Rewrite(const IterVarObj* op) {
    if (!op->dom.has_value()) return ffi::GetRef<ObjectRef>(op);
    Range dom = op->dom.value();
    dom = Range::FromMinExtent(dom->min, Named(dom->extent));
    return IterVar(dom, op->var, op->iter_type, op->thread_tag, op->span);
  }
};
/// The extents of a kernel's arguments, each once, in the order of the arguments; none where they
/// cannot be told from the arguments, or matter to the result.
std::vector<int64_t> ExtentsOf(const PrimFunc& func) {
  bool is_plain = !AnyStmt<BlockObj>(func->body, [](const BlockObj* block) {
    return block->init.has_value() || !block->alloc_buffers.empty();
  });
  std::vector<int64_t> extents;
  for (const Var& param : func->params) {
    Buffer buffer = func.BufferOf(param);
    if (!is_plain || !buffer.defined() || !buffer->strides.empty()) return {};
    for (const PrimExpr& dim : buffer->shape) {
      auto value = AsConstInt(dim);
      if (!value || dim.dtype() != kIndex) return {};
      bool is_new = std::find(extents.begin(), extents.end(), *value) == extents.end();
      if (*value > 1 && is_new) extents.push_back(*value);
    }
  }
  return extents;
}
PrimFunc WithNames(const PrimFunc& func, const std::vector<int64_t>& extents) {
  ExtentNamer namer;
  for (int64_t extent : extents) {
    Var name("n" + std::to_string(namer.names.size()), kIndex);
    namer.names.emplace_back(extent, name);
  }
  return namer.Mutate(func);
}
}  // namespace

SharedKernels ShareKernels(const std::vector<PrimFunc>& kernels) {
  std::vector<std::vector<int64_t>> extents;
  std::unordered_map<ObjectRef, size_t, StructuralHasher, StructuralEquals> known;
  std::vector<std::vector<size_t>> groups;
  SharedKernels shared;
  for (size_t i = 0; i < kernels.size(); ++i) {
    extents.push_back(ExtentsOf(kernels[i]));
    auto [it, is_new] = known.try_emplace(WithNames(kernels[i], extents[i]), groups.size());
    if (is_new) groups.emplace_back();
    groups[it->second].push_back(i);
    shared.of.push_back(it->second);
  }
  for (const std::vector<size_t>& group : groups) {
    const std::vector<int64_t>& first = extents[group[0]];
    std::vector<int64_t> varying;
    for (size_t k = 0; k < first.size(); ++k) {
      auto differs = [&](size_t i) { return extents[i][k] != first[k]; };
      if (std::any_of(group.begin(), group.end(), differs)) varying.push_back(first[k]);
    }
    shared.kernels.push_back(WithNames(kernels[group[0]], varying));
  }
  return shared;
}
}  // namespace tvm::tir
