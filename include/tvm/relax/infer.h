// SPDX-License-Identifier: Apache-2.0
// For inference functions of operators: the arguments of a call by their kinds, dimensions that
// are equal, different or neither, axes, broadcasting, results, errors.
//
//   StructInfo InferOuter(Infer& in) {
//     const TensorStructInfoObj *a = in.Tensor(0), *b = in.Tensor(1);
//     in.ExpectRank(a, 1, "x1");
//     …
//     return in.Result(Dims{(*DimsOf(a))[0], (*DimsOf(b))[0]}, in.SameType(a->dtype, b->dtype));
//   }
#pragma once
#include <optional>

#include "tvm/arith/analyzer.h"
#include "tvm/relax/block_builder.h"
#include "tvm/relax/operator.h"
#include "tvm/relax/struct_info.h"

namespace tvm::relax {

using Dims = Array<PrimExpr>;

inline PrimExpr Dim(int64_t value) { return IntImm::Int64(value); }
inline bool IsConst(const PrimExpr& e) { return e->type_index() == IntImmObj::RuntimeTypeIndex(); }
/// The dimensions of a tensor, or nullptr when they are not known; no reference is counted.
const Dims* DimsOf(const TensorStructInfoObj* info);
/// The node as it is written in a program, for messages.
std::string TextOf(const ObjectRef& node);
/// "(2, n)", "ndim=2" or "unknown rank".
std::string ShowShape(const TensorStructInfoObj* info);
std::string Show(const Dims& dims);

/// What is known of a result's shape; `dims` counts before `ndim`.
struct Shape {
  std::optional<Dims> dims;
  int64_t ndim = -1;
  Shape() = default;
  Shape(Dims known) : dims(std::move(known)), ndim(dims->size()) {}  // NOLINT(*)
  explicit Shape(const TensorStructInfoObj* info) : ndim(info->ndim) {
    if (const Dims* known = DimsOf(info)) dims = *known;
  }
  static Shape Rank(int64_t ndim) {
    Shape shape;
    shape.ndim = ndim;
    return shape;
  }
  bool known() const { return dims.has_value(); }
  const PrimExpr operator[](size_t i) const { return (*dims)[i]; }
};

/// The inference of one call.
class Infer {
 public:
  Infer(const CallObj* call, const OperatorInfo* info, const BlockBuilder* builder)
      : call(call), info(info), builder_(builder) {}
  const CallObj* const call;
  const OperatorInfo* const info;
  /// The operator's name without "relax.".
  std::string_view name() const { return info->ShortName(); }

  // ---- arguments; their kinds have been checked against the schema -----------------------------
  size_t size() const { return call->args.size(); }
  /// What is known of it; raises when the expression was not normalised.
  const StructInfo& Of(size_t i) const;
  const TensorStructInfoObj* Tensor(size_t i) const;
  /// The argument as a tensor, or nullptr for a scalar.
  const TensorStructInfoObj* AsTensor(size_t i) const;
  /// The tensors of a tuple.
  std::vector<const TensorStructInfoObj*> Tensors(size_t i) const;
  /// A shape argument.
  Shape ShapeOf(size_t i) const;
  /// The dtype of a tensor or a scalar.
  DataType TypeOf(size_t i) const;
  /// The value of a scalar argument, when it is known.
  std::optional<PrimExpr> Prim(size_t i) const;
  std::optional<int64_t> ConstPrim(size_t i) const;
  /// The values of a tuple of scalars, when all are known.
  std::optional<Dims> Prims(size_t i) const;
  template <class A>
  const A* attrs() const {
    return static_cast<const A*>(CheckedAttrs(A::RuntimeTypeIndex()));
  }

  // ---- dimensions -------------------------------------------------------------------------------
  arith::Analyzer& analyzer();
  PrimExpr Simplify(const PrimExpr& e) { return IsConst(e) ? e : analyzer().Simplify(e); }
  /// Whether both are provably the same, provably different.
  bool Equal(const PrimExpr& a, const PrimExpr& b);
  bool Different(const PrimExpr& a, const PrimExpr& b);
  /// The dimension both are said to be: raises when they differ; nothing when that is undecided.
  std::optional<PrimExpr> Same(const PrimExpr& a, const PrimExpr& b, const char* what);
  /// Raises when the dimensions provably differ.
  void ExpectSame(const PrimExpr& a, const PrimExpr& b, const char* what);
  PrimExpr Product(const Dims& dims, size_t begin = 0, size_t end = -1);
  /// In [0, ndim); negative ones count from the end.
  int64_t Axis(int64_t axis, int64_t ndim) const;
  /// The same for several; raises for repeated ones.
  std::vector<int64_t> Axes(const Ints& axes, int64_t ndim) const;
  /// NumPy's broadcasting.
  Shape Broadcast(const Shape& a, const Shape& b);
  void ExpectRank(const TensorStructInfoObj* info, int64_t ndim, const char* what) const;
  void ExpectFloat(const TensorStructInfoObj* info, const char* what) const;
  void ExpectNoBool(const TensorStructInfoObj* info, const char* what) const;
  void ExpectInteger(const TensorStructInfoObj* info, const char* what) const;
  /// Raises unless the text is one of the words.
  void ExpectOneOf(const String& text, std::initializer_list<const char*> words,
                   const char* what) const;

  // ---- results ----------------------------------------------------------------------------------
  /// The device of the arguments that have one; raises when they have different ones.
  Optional<VDevice> Device() const;
  /// The device of that index in the module that is being built, if it declares one.
  Optional<VDevice> DeviceAt(int64_t index) const;
  /// The same dtype, or void when one is unknown; TypeError when they differ (bool mixes).
  DataType SameType(DataType a, DataType b) const;
  StructInfo Result(Shape shape, DataType dtype, Optional<VDevice> device) const;
  StructInfo Result(Shape shape, DataType dtype) const {
    return Result(std::move(shape), dtype, Device());
  }
  /// A tensor argument with another dtype; its shape may be a variable.
  StructInfo WithType(size_t i, DataType dtype) const;
  /// A tensor whose shape is an argument, which may be a variable.
  StructInfo OfShape(size_t i, DataType dtype, Optional<VDevice> device = {}) const;

 private:
  const Object* CheckedAttrs(int32_t type_index) const;
  const BlockBuilder* builder_;
};

/// Errors of inference are TVMErrors, and ValueErrors or TypeErrors: TVM_RAISE(in) << "expected …".
#define TVM_RAISE(in) TVM_FFI_THROW(OpValueError) << (in).name() << ": "
#define TVM_RAISE_TYPE(in) TVM_FFI_THROW(OpTypeError) << (in).name() << ": "

/// The struct info of the argument, whatever the operator does to the elements.
StructInfo InferSame(Infer& in);
StructInfo InferObject(Infer& in);
StructInfo InferVoid(Infer& in);
bool SameDevice(const VDevice& a, const VDevice& b);

}  // namespace tvm::relax
