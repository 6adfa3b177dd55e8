// SPDX-License-Identifier: Apache-2.0
// Axes, shapes and indices of operators; see the header.
#include "topi/shape.h"

#include <algorithm>

namespace tvm::topi {
using namespace tir;

void Complain(const char* op, const std::string& expected, const std::string& got) {
  TVM_FFI_THROW(ValueError) << op << ": expected " << expected << ", got " << got;
  TVM_FFI_UNREACHABLE();
}

// ---- tensors ------------------------------------------------------------------------------------
Tensor Compute(const Shape& shape, const IndexFn& element, const std::string& name, const char* tag,
               Attrs attrs) {
  Array<String> names;
  for (size_t i = 0; i < shape.size(); ++i) names.push_back("ax" + std::to_string(i));
  return te::compute(
      shape, [&](const Array<Var>& i) { return element(Index(i.begin(), i.end())); }, name, tag,
      std::move(attrs), names);
}
Array<Tensor> Extern(const std::string& name, const Array<Tensor>& inputs,
                     const std::vector<std::pair<Shape, DataType>>& outputs, const ExternFn& body) {
  te::ExternOp op = New<te::ExternOp>([&](te::ExternOpObj* n) {
    n->name = name;
    n->inputs = inputs;
    for (const Tensor& t : inputs) {
      n->input_placeholders.push_back(Buffer::Decl(t->shape, t->dtype, t->op->name));
    }
    for (const auto& [shape, dtype] : outputs) {
      n->output_placeholders.push_back(Buffer::Decl(shape, dtype, name));
    }
    n->body = body(n->input_placeholders, n->output_placeholders);
  });
  Array<Tensor> result;
  for (size_t i = 0; i < outputs.size(); ++i) result.push_back(op.output(static_cast<int64_t>(i)));
  return result;
}

// ---- axes ---------------------------------------------------------------------------------------
size_t Axis(const char* op, int64_t axis, size_t ndim) {
  auto n = static_cast<int64_t>(ndim);
  if (axis < -n || axis >= n) {
    Complain(op,
             n == 0 ? "no axis of a scalar"
                    : "an axis from " + std::to_string(-n) + " to " + std::to_string(n - 1),
             std::to_string(axis));
  }
  return static_cast<size_t>(axis < 0 ? axis + n : axis);
}
namespace {
/// An expression; undefined for None and what is none.
PrimExpr AsExpr(const Any& value) {
  auto e = value.try_cast<PrimExpr>();
  return e ? *e : PrimExpr();
}
std::optional<int64_t> AsInt(const Any& value) {
  if (auto i = value.try_cast<int64_t>()) return *i;
  PrimExpr e = AsExpr(value);
  return e.defined() ? AsConstInt(e) : std::nullopt;
}
int64_t AnInt(const char* op, const Any& value) {
  auto i = AsInt(value);
  if (!i) {
    TVM_FFI_THROW(TypeError) << op << ": expected an integer, got " << value.GetTypeKey();
  }
  return *i;
}
}  // namespace
std::vector<int64_t> IntList(const char* op, const Any& value) {
  std::vector<int64_t> result;
  if (auto list = value.as<Array<Any>>()) {
    for (const Any& item : *list) result.push_back(AnInt(op, item));
  } else {
    result.push_back(AnInt(op, value));
  }
  return result;
}
std::vector<size_t> Axes(const char* op, const Any& axis, size_t ndim) {
  std::vector<size_t> axes;
  if (axis == nullptr) {
    for (size_t i = 0; i < ndim; ++i) axes.push_back(i);
    return axes;
  }
  for (int64_t a : IntList(op, axis)) axes.push_back(Axis(op, a, ndim));
  std::vector<size_t> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end())
    Complain(op, "every axis once", "axis " + std::to_string(*twice) + " twice");
  return axes;
}
std::vector<int64_t> Ints(const char* op, const char* what, const Any& value, size_t count) {
  std::vector<int64_t> result = IntList(op, value);
  if (result.size() == 1) result.resize(count, result[0]);
  if (result.size() != count) {
    Complain(op, std::to_string(count) + " numbers as " + what, std::to_string(result.size()));
  }
  return result;
}
Index Exprs(const char* op, const char* what, const Any& value, size_t count) {
  Index result;
  if (auto list = value.as<Array<Any>>(); list && value != nullptr) {
    for (const Any& item : *list) result.push_back(item.cast<PrimExpr>());
  } else if (PrimExpr e = AsExpr(value); e.defined()) {
    result.push_back(e);
  } else {
    TVM_FFI_THROW(TypeError) << op << ": expected a number or a list of them as " << what
                             << ", got " << value.GetTypeKey();
  }
  if (result.size() == 1) result.resize(count, result[0]);
  if (result.size() != count) {
    Complain(op, std::to_string(count) + " numbers as " + what, std::to_string(result.size()));
  }
  return result;
}
Shape ShapeOf(const char* op, const Any& value) {
  if (auto shape = value.try_cast<Shape>(); shape && value != nullptr) return *shape;
  if (PrimExpr e = AsExpr(value); e.defined()) return {e};
  TVM_FFI_THROW(TypeError) << op << ": expected a shape, got " << value.GetTypeKey();
  TVM_FFI_UNREACHABLE();
}

// ---- shapes -------------------------------------------------------------------------------------
DataType IndexType(const Shape& shape) {
  for (const PrimExpr& extent : shape) {
    if (extent.dtype().bits() == 64) return DataType::Int(64);
  }
  return DataType::Int(32);
}
PrimExpr Simplified(const PrimExpr& e) {
  if (e.as<IntImmObj>() || e.as<VarObj>()) return e;
  return arith::Analyzer().Simplify(e);
}
bool SameDim(const PrimExpr& a, const PrimExpr& b) {
  if (a.same_as(b)) return true;
  auto x = AsConstInt(a), y = AsConstInt(b);
  if (x && y) return *x == *y;
  return IsZero(Simplified(a - b));
}
bool DifferentDim(const PrimExpr& a, const PrimExpr& b) {
  if (a.same_as(b)) return false;
  auto difference = AsConstInt(Simplified(a - b));
  return difference && *difference != 0;
}
PrimExpr Product(const Shape& shape) {
  PrimExpr product = MakeConst(IndexType(shape), 1);
  for (const PrimExpr& extent : shape) product = product * extent;
  return Simplified(product);
}
std::string Text(const Shape& shape) {
  std::string text = "(";
  for (const PrimExpr& extent : shape) {
    auto constant = AsConstInt(extent);
    auto* var = extent.as<VarObj>();
    text += (text.size() > 1 ? ", " : "") + (constant ? std::to_string(*constant)
                                             : var    ? std::string(var->name_hint)
                                                      : "?");
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}
void CheckRank(const char* op, const char* what, const Tensor& t, size_t ndim) {
  if (t->shape.size() == ndim) return;
  Complain(op, std::string(what) + " with " + std::to_string(ndim) + " dimensions", Text(t->shape));
}

void CheckIsIndex(const char* op, DataType t) {
  if (!t.is_integer() && !t.is_bool())
    TVM_FFI_THROW(TypeError) << op << ": expected integers as indices, got " << t;
}

Shape BroadcastShape(const char* op, const std::vector<Shape>& shapes) {
  size_t ndim = 0;
  for (const Shape& shape : shapes) ndim = std::max(ndim, shape.size());
  Index result(ndim);
  for (const Shape& shape : shapes) {
    for (size_t i = 0; i < shape.size(); ++i) {
      PrimExpr& common = result[ndim - shape.size() + i];
      const PrimExpr& extent = shape[i];
      if (!common.defined() || IsOne(common)) {
        common = extent;
      } else if (IsOne(extent) || SameDim(common, extent)) {
        continue;
      } else if (AsConstInt(common) && AsConstInt(extent)) {
        std::string all;
        for (const Shape& s : shapes) all += (all.empty() ? "" : " and ") + Text(s);
        Complain(op, "shapes that broadcast", all);
      } else if (!AsConstInt(common)) {
        // One of them may be 1 when it runs; a constant that is not 1 decides.
        common = AsConstInt(extent) ? extent : max(common, extent);
      }
    }
  }
  return Shape(result.begin(), result.end());
}
Index BroadcastIndex(const Shape& shape, const Shape& common, const Index& index) {
  Index result;
  size_t skipped = index.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i) {
    const PrimExpr &extent = shape[i], &at = index[skipped + i];
    PrimExpr zero = MakeZero(at.dtype());
    if (IsOne(extent)) {
      result.push_back(zero);
    } else if (SameDim(extent, common[skipped + i])) {
      result.push_back(at);
    } else {
      result.push_back(if_then_else(equal(extent, MakeConst(extent.dtype(), 1)), zero, at));
    }
  }
  return result;
}
PrimExpr Ravel(const Index& index, const Shape& shape) {
  PrimExpr flat = MakeZero(IndexType(shape));
  for (size_t i = 0; i < shape.size(); ++i) flat = i == 0 ? index[0] : flat * shape[i] + index[i];
  return flat;
}
Index Unravel(PrimExpr flat, const Shape& shape) {
  Index index(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    if (IsOne(shape[i])) {
      index[i] = MakeZero(flat.dtype());
      continue;
    }
    bool is_first = std::all_of(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(i),
                                [](const PrimExpr& e) { return IsOne(e); });
    index[i] = is_first ? flat : floormod(flat, shape[i]);
    flat = floordiv(flat, shape[i]);
  }
  return index;
}

Operand Elementwise(const char* op, const std::vector<Operand>& operands,
                    const std::function<PrimExpr(const Index&)>& element, const std::string& name,
                    const char* tag) {
  std::vector<Shape> shapes;
  for (const Operand& operand : operands) {
    if (auto tensor = operand.as<Tensor>()) shapes.push_back((*tensor)->shape);
  }
  auto values = [&](const Shape& common, const Index& index) {
    Index result;
    for (const Operand& operand : operands) {
      auto tensor = operand.as<Tensor>();
      result.push_back(tensor ? At(*tensor, BroadcastIndex((*tensor)->shape, common, index))
                              : operand.get<PrimExpr>());
    }
    return element(result);
  };
  if (shapes.empty()) return values({}, {});
  Shape common = BroadcastShape(op, shapes);
  return Compute(common, [&](const Index& index) { return values(common, index); }, name, tag);
}

}  // namespace tvm::topi
