// SPDX-License-Identifier: Apache-2.0
// Converters: how a call of a PyTorch operator becomes operators of the graph.
//
//   Any Silu(Conversion& c) { return c.Emit("nn.silu", c.Tensor(0)); }
//   TVM_REGISTER() { Converter("silu.default", "self", &Silu); }
//
// A converter serves one or more overloads (without the leading "aten."; other libraries' and
// Python's functions in full). The schema names the
// parameters as PyTorch does, with defaults; arguments are asked for by their place in it.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "importer.h"
#include "tvm/expr/op.h"
#include "tvm/relax/call_te.h"
#include "tvm/relax/infer.h"

namespace tvm::frontend::torch {
using relax::BlockBuilder, relax::Constant, relax::Dims, relax::DimsOf, relax::Expr,
    relax::PrimValue, relax::ShapeExpr, relax::TensorStructInfoObj, relax::Tuple,
    relax::TupleGetItem, relax::Var;

class Conversion;
using ConvertFn = Any (*)(Conversion& c);

struct ConverterInfo {
  std::vector<std::string> params;
  std::vector<Any> defaults;  // of the last ones
  ConvertFn convert;
  const char* op;
};
ConverterInfo MakeConverter(const char* schema, ConvertFn convert, const char* op);
/// `overloads` are separated by spaces. `op` is what the converter asks for as `c.op`: the operator
/// of the graph, where converters of many differ in that alone.
void Converter(const char* overloads, const char* schema, ConvertFn convert,
               const char* op = nullptr);
/// The converter for a target ("aten.add.Tensor", "_operator.add"), or nullptr. An operator that
/// changes its first argument has that of the one which gives the new value.
const ConverterInfo* FindConverter(const std::string& target);
/// All targets that have one.
std::vector<std::string> ListConverters();

// ---- facts about values -------------------------------------------------------------------------
const TensorStructInfoObj* InfoOf(const Expr& tensor);
DataType TypeOf(const Expr& tensor);
int64_t RankOf(const Expr& tensor);
/// The dimensions; ValueError when they are not known.
Dims ShapeOf(const Expr& tensor);
/// The product of dimensions.
PrimExpr Count(const Dims& dims);
/// Whether the value is a tensor.
bool IsTensor(const Any& value);
bool IsNumber(const Any& value);
/// A size or another integer as an expression; TypeError for anything else.
PrimExpr AsSize(const Any& value);
/// torch.promote_types
DataType Promote(DataType a, DataType b);
DataType ParseType(const String& name);
inline bool IsIntegral(DataType t) { return t.is_integer() || t.is_bool(); }
/// [0, 1, …, n)
std::vector<int64_t> Axes(int64_t n);
Array<Any> AnyArray(const std::vector<int64_t>& values);

/// The conversion of one node.
class Conversion {
 public:
  Conversion(ImporterObj* importer, const GraphNodeObj* node, const ConverterInfo& info,
             std::vector<Any> args);
  const BlockBuilder bb;
  const char* const op;

  // ---- arguments by their place in the schema ---------------------------------------------------
  size_t size() const { return args_.size(); }
  const Any& operator[](size_t i) const { return args_[i]; }
  bool Given(size_t i) const { return args_[i] != nullptr; }
  Expr Tensor(size_t i) const;
  Optional<Expr> OptionalTensor(size_t i) const;
  Array<Expr> Tensors(size_t i) const;
  int64_t Int(size_t i) const;
  int64_t Int(size_t i, int64_t otherwise) const { return Given(i) ? Int(i) : otherwise; }
  double Number(size_t i) const;
  double Number(size_t i, double otherwise) const { return Given(i) ? Number(i) : otherwise; }
  bool Flag(size_t i) const { return Given(i) && Int(i) != 0; }
  std::string Text(size_t i) const;
  /// A number stands for a list of one; None for none.
  std::vector<int64_t> Ints(size_t i) const;
  /// The same, one number repeated: of windows and strides.
  std::vector<int64_t> Ints(size_t i, size_t n, int64_t otherwise) const;
  Dims Sizes(size_t i) const;
  DataType Type(size_t i, DataType otherwise) const;
  /// In [0, rank), also when given from the end; a scalar has one axis for this purpose.
  int64_t Axis(size_t i, int64_t rank) const { return NormalAxis(Int(i), rank); }
  int64_t NormalAxis(int64_t axis, int64_t rank) const;
  std::vector<int64_t> NormalAxes(std::vector<int64_t> axes, int64_t rank) const;

  // ---- types ------------------------------------------------------------------------------------
  /// The type of the result of arithmetic on tensors and numbers: torch.result_type.
  DataType ResultType(const std::vector<Any>& operands) const;
  DataType default_dtype() const;
  /// The operand in that type: tensors are cast where needed, numbers become constants.
  Expr As(const Any& operand, DataType dtype);
  Expr Cast(const Expr& tensor, DataType dtype);
  /// Integers and bool as the default type, as functions on real numbers take them.
  Expr Real(const Expr& tensor);

  // ---- results ----------------------------------------------------------------------------------
  /// Binds a call of the operator "relax.<name>" to a new variable.
  template <class... A>
  Expr Emit(const char* name, const A&... args) {
    return EmitCall(name, {AnyView(args)...});
  }
  Expr EmitCall(const char* name, const std::vector<AnyView>& args);
  Expr Bind(const Expr& expr) { return bb->Emit(expr); }
  /// A bound tuple.
  Expr BindTuple(const Array<Expr>& fields) { return bb->Emit(relax::Tuple(fields)); }
  /// Scalar constants.
  Expr Const(double value, DataType dtype) const;
  Expr Const(int64_t value) const;
  Expr Reshape(const Expr& x, const Dims& dims);
  Expr BroadcastTo(const Expr& x, const Dims& dims);
  Expr Permute(const Expr& x, const std::vector<int64_t>& axes);
  /// x[begin:end:stride] along one axis.
  Expr Slice(const Expr& x, int64_t axis, const PrimExpr& begin, const PrimExpr& end,
             int64_t stride = 1);
  Expr Arange(const PrimExpr& n, DataType dtype = DataType::Int(64));
  /// Whether two dimensions are provably the same.
  bool Equal(const PrimExpr& a, const PrimExpr& b) const;
  bool Equal(const Dims& a, const Dims& b) const;
  PrimExpr Simplify(const PrimExpr& e) const { return importer_->symbols.analyzer()->Simplify(e); }
  /// Binds a call of a function that computes tensor expressions.
  Expr Compute(const char* name, const Array<Expr>& tensors,
               const std::function<Array<te::Tensor>(const Array<te::Tensor>&)>& compute);

  // ---- the node ---------------------------------------------------------------------------------
  /// Whether that item of a result of several values is used.
  bool Used(size_t item) const { return importer_->Used(node_, item); }
  /// The node has given an argument this value, which its schema does not say.
  void Change(size_t i, const Expr& value);
  const Any& meta() const { return node_->meta; }
  ImporterObj* importer() const { return importer_; }
  /// "aten.conv2d.default: "
  std::string Where() const;

 private:
  ImporterObj* importer_;
  const GraphNodeObj* node_;
  const ConverterInfo& info_;
  std::vector<Any> args_;
};

/// TVM_REFUSE(c, NotImplementedError) << "expected …";
#define TVM_REFUSE(c, kind) TVM_FFI_THROW(kind) << (c).Where()

}  // namespace tvm::frontend::torch
