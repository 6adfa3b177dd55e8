// SPDX-License-Identifier: Apache-2.0
// Lowering of operators: a row names the function of topi that computes an operator and where its
// arguments come from; what no row can say is a function of its own.
#pragma once
#include <string>
#include <vector>

#include "tvm/relax/call_te.h"
#include "tvm/relax/op.h"

namespace tvm::relax {

/// {"relax.nn.softmax", "softmax", "topi.nn.softmax", "0 axis"}
///
/// The arguments of the function, separated by spaces:
///   0, 1, …    an argument of the call: a tensor, a shape, a scalar or a list of them; None when
///              the call has fewer
///   1?scale    that argument if the attribute holds, else None
///   axis       an attribute of the call; axis=0: that where it is None; !descending: its contrary
///   $shape, $dtype   of the result
///   'text', #1, true, false, None   a constant
struct LoweringRow {
  const char *op, *name, *function, *arguments;
};
void RegisterLowering(const LoweringRow& row);
/// The call lowered as that row says, whatever its operator's own row is.
Expr LowerByRow(const LoweringRow& row, const BlockBuilder& builder, const Call& call);

/// A call that is being lowered: its arguments as those of a tensor expression.
class Lowered {
 public:
  Lowered(const BlockBuilder& builder, const Call& call)
      : builder(builder), call(call), te(TEArguments::Create()) {}
  bool Has(size_t i) const { return i < call->args.size(); }
  te::Tensor Tensor(size_t i) { return te->Tensor(call->args[i]); }
  /// A tensor, or the value of a scalar: of a constant as a number.
  Variant<te::Tensor, PrimExpr> Value(size_t i);
  Array<te::Tensor> Tensors(size_t i);
  PrimExpr Scalar(size_t i) { return te->Scalar(call->args[i]); }
  Array<PrimExpr> Scalars(size_t i);
  /// Any argument as a function of topi takes it.
  Any Argument(size_t i);
  /// What one argument of a row means.
  Any Meaning(const std::string& token);
  /// The shape and type of the result, as the function sees them.
  Array<PrimExpr> ResultShape();
  DataType ResultType() const;
  Any Attr(const std::string& name) const;
  template <class Obj>
  const Obj* Attrs() const {
    return static_cast<const Obj*>(call->attrs.value().get());
  }
  /// Calls a function of topi by name; its result are one or several tensors.
  Array<te::Tensor> Run(const char* function, const std::vector<Any>& arguments);
  /// The call of the function that computes these tensors.
  Expr Finish(const String& name, Array<te::Tensor> results);
  BlockBuilder builder;
  Call call;
  TEArguments te;

 private:
  Array<Expr> Fields(const Expr& tuple);
};

/// The value of a scalar constant as an expression, or an undefined one.
PrimExpr ScalarOf(const Expr& expr);
/// A constant with these elements of a type.
Constant MakeConstant(const std::vector<double>& values, Array<PrimExpr> shape, DataType dtype);

}  // namespace tvm::relax
