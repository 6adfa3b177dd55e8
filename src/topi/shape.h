// SPDX-License-Identifier: Apache-2.0
// What all operators share: axes, shapes, indices, and tensors computed from them.
#pragma once
#include <functional>
#include <vector>

#include "tvm/arith/analyzer.h"
#include "tvm/te/te.h"

namespace tvm::topi {
using te::IterVar, te::Tensor, te::Var;
using Shape = Array<PrimExpr>;
using Index = std::vector<PrimExpr>;
using Attrs = Map<String, Any>;

// ---- tags: what kind of operator made a tensor --------------------------------------------------
inline constexpr const char *kElementWise = "elemwise", *kBroadcast = "broadcast",
                            *kInjective = "injective", *kCommReduce = "comm_reduce",
                            *kCommReduceIdx = "comm_reduce_idx";

// ---- tensors ------------------------------------------------------------------------------------
using IndexFn = std::function<PrimExpr(const Index&)>;
/// A tensor whose axes are named ax0, ax1, …
Tensor Compute(const Shape& shape, const IndexFn& element, const std::string& name,
               const char* tag = kInjective, Attrs attrs = {});
inline PrimExpr At(const Tensor& t, const Index& index) {
  return t(Array<PrimExpr>(index.begin(), index.end()));
}
/// An operand of an elementwise operator: a tensor, or a number that all elements share.
using Operand = Variant<Tensor, PrimExpr>;
/// An operator on operands of which one is a tensor: Of(add, a, b).
inline Tensor Of(Operand (*op)(const Operand&, const Operand&), const Operand& a,
                 const Operand& b) {
  return op(a, b).get<Tensor>();
}
/// `e` in a type, if one is given.
inline PrimExpr AsType(const Optional<DataType>& t, const PrimExpr& e) {
  return t && !t.value().is_void() ? tvm::cast(t.value(), e) : e;
}
/// An iterator to reduce over from 0.
inline IterVar Along(const PrimExpr& extent, const std::string& name) {
  return te::reduce_axis(Range::FromMinExtent(MakeZero(extent.dtype()), extent), name);
}
/// A statement over buffers that fills new tensors, as te.extern.
using ExternFn =
    std::function<tir::Stmt(const Array<tir::Buffer>& in, const Array<tir::Buffer>& out)>;
Array<Tensor> Extern(const std::string& name, const Array<Tensor>& inputs,
                     const std::vector<std::pair<Shape, DataType>>& outputs, const ExternFn& body);

// ---- axes ---------------------------------------------------------------------------------------
/// `axis` counted from the front; ValueError when it is none of `ndim`.
size_t Axis(const char* op, int64_t axis, size_t ndim);
/// From None (`all` axes), a number or a list; ValueError for an axis that occurs twice.
std::vector<size_t> Axes(const char* op, const Any& axis, size_t ndim);
/// Integers from one number (repeated `count` times) or a list of `count`.
std::vector<int64_t> Ints(const char* op, const char* what, const Any& value, size_t count);
/// A list of integers of any length; a number is a list of one.
std::vector<int64_t> IntList(const char* op, const Any& value);
/// Extents from one number or expression (repeated) or a list of `count`.
Index Exprs(const char* op, const char* what, const Any& value, size_t count);
Shape ShapeOf(const char* op, const Any& value);

// ---- shapes -------------------------------------------------------------------------------------
/// int64 or int32: what the dimensions of a shape have; int32 for none.
DataType IndexType(const Shape& shape);
bool SameDim(const PrimExpr& a, const PrimExpr& b);
/// Whether both are constants and differ.
bool DifferentDim(const PrimExpr& a, const PrimExpr& b);
PrimExpr Simplified(const PrimExpr& e);
PrimExpr Product(const Shape& shape);
/// The common shape of operands, dimensions aligned at the end; ValueError where they contradict.
Shape BroadcastShape(const char* op, const std::vector<Shape>& shapes);
/// Where an element of a tensor of `shape` is that a common `index` means.
Index BroadcastIndex(const Shape& shape, const Shape& common, const Index& index);
/// The place of an element in row-major order, and back.
PrimExpr Ravel(const Index& index, const Shape& shape);
Index Unravel(PrimExpr flat, const Shape& shape);
std::string Text(const Shape& shape);
/// ValueError unless a tensor has so many dimensions.
void CheckRank(const char* op, const char* what, const Tensor& t, size_t ndim);
/// TypeError unless elements of this type may be indices.
void CheckIsIndex(const char* op, DataType t);
/// ValueError: `op: expected <expected>, got <got>`.
[[noreturn]] void Complain(const char* op, const std::string& expected, const std::string& got);

/// `element` of the operands, which broadcast; an expression when none is a tensor.
Operand Elementwise(const char* op, const std::vector<Operand>& operands,
                    const std::function<PrimExpr(const Index&)>& element, const std::string& name,
                    const char* tag = kBroadcast);

}  // namespace tvm::topi
