// SPDX-License-Identifier: Apache-2.0
// The definition of an operator of the graph, from which all else follows:
//
//   StructInfo InferTake(Infer& in);
//   TVM_REGISTER() {
//     Operator("relax.take", "x: Tensor, indices: Value, axis=None, mode='fast'", &InferTake,
//              "Elements of x along an axis.").Attrs<TakeAttrsObj>().Pattern(kInjective);
//   }
//
// The schema is the signature of the Python function tvm.relax.op.take. A parameter with a kind is
// an argument of the call, one without is an attribute, whose type is that of the field:
//
//   kind      accepted beside an expression                        argument of the call
//   Tensor    number, array                                        an expression, of a tensor
//   Value     number (of the type of its neighbour), array         of a tensor or a scalar (Prim)
//   Tensors   list of tensors                                      a tuple of tensors
//   Shape     list of dims                                         ShapeExpr
//   Prim      number, PrimExpr                                     PrimValue
//   Prims     list of numbers                                      tuple of PrimValue, int64
//   Str       str                                                  StringImm
//   DType     str, DataType                                        DataTypeImm
//   Func      name of a packed function                            ExternFunc
//   Args      one expression, a list                               tuple
//   Expr      what convert_to_expr takes                           any expression
//   OutInfo   struct info, or a list of them                       sinfo_args: one, maybe a tuple
//   InfoArgs  the same                                             sinfo_args: all
//
// Defaults are numbers, 'strings', True, False, tuples, None (an argument that is left out, an
// attribute that keeps its initial value), () for an argument (the empty tuple is passed), or the
// name of an earlier parameter. "*args: Expr" takes any number.
#pragma once
#include "tvm/relax/attrs.h"
#include "tvm/relax/op.h"

namespace tvm::relax {

enum class ParamKind : uint8_t {
  kAttr,
  kTensor,
  kValue,
  kTensors,
  kShape,
  kPrim,
  kPrims,
  kStr,
  kDType,
  kFunc,
  kArgs,
  kExpr,
  kOutInfo,
  kInfoArgs,
};
inline bool IsArgument(ParamKind kind) {
  return kind != ParamKind::kAttr && kind < ParamKind::kOutInfo;
}
struct OperatorParam {
  ParamKind kind;
  bool is_optional = false;  // an argument that is left out when None
  bool is_variadic = false;
  int same_as = -1;  // the default is the value of that parameter
};

class Infer;
using InferFn = StructInfo (*)(Infer& in);

/// An operator as it was defined; lives as long as the process.
struct OperatorInfo : FnInfo {  // name: "relax.op.<Python name>"
  Op op;
  std::vector<OperatorParam> params;  // as `args`
  std::vector<int> call_args;         // the parameters that are arguments of the call
  int min_args = 0;
  bool variadic = false;
  InferFn infer = nullptr;
  Optional<ffi::Function> packed_infer;  // of an operator that Python defined: infer(call, builder)
  int32_t attrs_type = 0;                // type index of the attributes; 0: none, or a dictionary
  Expr (*finish)(Call call) = nullptr;
  const char* Param(int call_arg) const {
    return args[call_args[std::min<size_t>(call_arg, call_args.size() - 1)]].name;
  }
};
/// The definition, or nullptr for an operator that was not defined here.
const OperatorInfo* FindOperator(const OpObj* op);
/// All definitions, by name.
std::vector<const OperatorInfo*> ListOperators();
/// The call for the parameters of the Python function, in that order; the last ones may be left
/// out.
Expr CallOperator(const OperatorInfo& info, const std::vector<AnyView>& params);
Expr CallOperator(const char* name, const std::vector<AnyView>& params);

class Operator {
 public:
  Operator(const char* name, const char* schema, InferFn infer, const char* doc);
  template <class Obj>
  Operator& Attrs() {
    [[maybe_unused]] static const bool once = (RegisterNode<Obj>("Attributes of operators."), true);
    return SetAttrs(Obj::RuntimeTypeIndex(), Obj::_type_key);
  }
  Operator& Pattern(OpPatternKind pattern) {
    return Set("TOpPattern", static_cast<int64_t>(pattern));
  }
  Operator& Precision(MixedPrecisionPolicy policy) {
    return Set("TMixedPrecisionPolicy", static_cast<int64_t>(policy));
  }
  Operator& Impure() { return Set("FPurity", false); }
  /// Calls may have more arguments than the schema names.
  Operator& Variadic();
  /// Any further attribute of the operator.
  Operator& Set(const char* key, Any value);
  /// The last step of making a call: may give another expression.
  Operator& Finish(Expr (*finish)(Call call));

 private:
  Operator& SetAttrs(int32_t type_index, const char* type_key);
  OperatorInfo* info_;
};

}  // namespace tvm::relax
