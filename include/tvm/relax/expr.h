// SPDX-License-Identifier: Apache-2.0
// The graph language: expressions, bindings, blocks and functions.
//
// A program in normal form names every intermediate value: arguments of calls, fields of tuples and
// conditions are leaves (variables and constants), bodies are sequences of bindings. BlockBuilder
// brings programs into this form and fills the struct info of every expression.
#pragma once
#include "tvm/ir/op.h"
#include "tvm/relax/struct_info.h"
#include "tvm/runtime/tensor.h"

namespace tvm::relax {

/// The identity of a variable. Equality maps ids to each other, whatever their names are.
struct IdObj : NodeObj {
  String name_hint;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindFreeVar;
  static void Fields(auto&& def) { def("name_hint", &IdObj::name_hint, NameOnly()); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.Id", IdObj, NodeObj);
};
struct Id : ObjectRef {
  explicit Id(String name_hint);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Id, ObjectRef, IdObj);
};

/// A variable. Two are equal when their ids are mapped to each other and their struct info is
/// equal; that of a parameter defines the symbolic variables in it.
struct VarObj : RelaxExprObj {
  Id vid;
  // Compared once; every further use is one look at the mapping.
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindDAGNode;
  static constexpr uint32_t _type_child_slots = 1;
  static void Fields(auto&& def) {
    def("vid", &VarObj::vid);
    def("struct_info_", &RelaxExprObj::struct_info_, Default(nullptr));
  }
  const String& name_hint() const { return vid->name_hint; }
  TVM_FFI_DECLARE_OBJECT_INFO("relax.expr.Var", VarObj, RelaxExprObj);
};
struct Var : Expr {
  explicit Var(String name_hint, Optional<StructInfo> struct_info = {}, Optional<Span> span = {});
  explicit Var(Id vid, Optional<StructInfo> struct_info = {}, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Var, Expr, VarObj);
};

/// A variable that is seen in its dataflow block only.
struct DataflowVarObj : VarObj {
  static void Fields(auto&&) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.expr.DataflowVar", DataflowVarObj, VarObj);
};
struct DataflowVar : Var {
  explicit DataflowVar(String name_hint, Optional<StructInfo> struct_info = {},
                       Optional<Span> span = {});
  explicit DataflowVar(Id vid, Optional<StructInfo> struct_info = {}, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(DataflowVar, Var, DataflowVarObj);
};

/// A call of an operator, a function, or something packed. `sinfo_args` is what the caller says
/// about the result where inference cannot.
struct CallObj : RelaxExprObj {
  Expr op;
  Array<Expr> args;
  Optional<Attrs> attrs;
  Array<StructInfo> sinfo_args;
  static void Fields(auto&& def) {
    def("op", &CallObj::op);
    def("args", &CallObj::args);
    def("attrs", &CallObj::attrs, Default(nullptr));
    def("sinfo_args", &CallObj::sinfo_args, Default(Array<StructInfo>()));
  }
  void Init();
  bool Is(const Op& other) const { return op.same_as(other); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.expr.Call", CallObj, RelaxExprObj);
};
struct Call : Expr {
  Call(Expr op, Array<Expr> args, Optional<Attrs> attrs = {}, Array<StructInfo> sinfo_args = {},
       Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Call, Expr, CallObj);
};

struct TupleObj : RelaxExprObj {
  Array<Expr> fields;
  static void Fields(auto&& def) { def("fields", &TupleObj::fields); }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.expr.Tuple", TupleObj, RelaxExprObj);
};
struct Tuple : Expr {
  explicit Tuple(Array<Expr> fields, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Tuple, Expr, TupleObj);
};

struct TupleGetItemObj : RelaxExprObj {
  Expr tuple_value;
  int64_t index = 0;
  static void Fields(auto&& def) {
    def("tuple_value", &TupleGetItemObj::tuple_value);
    def("index", &TupleGetItemObj::index);
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.expr.TupleGetItem", TupleGetItemObj, RelaxExprObj);
};
struct TupleGetItem : Expr {
  TupleGetItem(Expr tuple_value, int64_t index, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(TupleGetItem, Expr, TupleGetItemObj);
};

/// A shape given by its dimensions, which are int64.
struct ShapeExprObj : RelaxExprObj {
  Array<PrimExpr> values;
  static void Fields(auto&& def) { def("values", &ShapeExprObj::values); }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.expr.ShapeExpr", ShapeExprObj, RelaxExprObj);
};
struct ShapeExpr : Expr {
  explicit ShapeExpr(Array<PrimExpr> values, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(ShapeExpr, Expr, ShapeExprObj);
};

/// A tensor whose contents are known.
struct ConstantObj : RelaxExprObj {
  ffi::Tensor data;
  static void Fields(auto&& def) {
    def("data", &ConstantObj::data);
    def("struct_info_", &RelaxExprObj::struct_info_, Default(nullptr));
  }
  void Init();
  bool IsScalar() const { return data.ndim() == 0; }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.expr.Constant", ConstantObj, RelaxExprObj);
};
struct Constant : Expr {
  explicit Constant(ffi::Tensor data, Optional<StructInfo> struct_info = {},
                    Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Constant, Expr, ConstantObj);
};

/// A scalar.
struct PrimValueObj : RelaxExprObj {
  PrimExpr value;
  static void Fields(auto&& def) { def("value", &PrimValueObj::value); }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.expr.PrimValue", PrimValueObj, RelaxExprObj);
};
struct PrimValue : Expr {
  explicit PrimValue(PrimExpr value, Optional<Span> span = {});
  static PrimValue Int64(int64_t value) { return PrimValue(IntImm::Int64(value)); }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(PrimValue, Expr, PrimValueObj);
};

struct StringImmObj : RelaxExprObj {
  String value;
  static void Fields(auto&& def) { def("value", &StringImmObj::value); }
  void Init() { struct_info_ = ObjectStructInfo::Get(); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.expr.StringImm", StringImmObj, RelaxExprObj);
};
struct StringImm : Expr {
  explicit StringImm(String value, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(StringImm, Expr, StringImmObj);
};

struct DataTypeImmObj : RelaxExprObj {
  DataType value;
  static void Fields(auto&& def) { def("value", &DataTypeImmObj::value); }
  void Init() { struct_info_ = ObjectStructInfo::Get(); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.expr.DataTypeImm", DataTypeImmObj, RelaxExprObj);
};
struct DataTypeImm : Expr {
  explicit DataTypeImm(DataType value, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(DataTypeImm, Expr, DataTypeImmObj);
};

// ---- bindings ---------------------------------------------------------------------------------
/// Gives a variable its value.
struct BindingObj : NodeObj {
  Optional<Span> span;
  Var var;  // a field of the classes below, where equality wants it
  static constexpr uint32_t _type_child_slots = 4;
  static void Fields(auto&& def) { def("span", &BindingObj::span, Default(nullptr), Ignored()); }
  TVM_FFI_DECLARE_OBJECT_INFO("relax.expr.Binding", BindingObj, NodeObj);
};
TVM_NODE_REF(Binding, ObjectRef, BindingObj);

/// var = value. Only a local function may use its own variable.
struct VarBindingObj : BindingObj {
  Expr value;
  static constexpr std::string_view kParamOrder = "var,value,span";
  static void Fields(auto&& def) {
    def("value", &VarBindingObj::value);
    def("var", static_cast<Var VarBindingObj::*>(&VarBindingObj::var), Binds());
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.expr.VarBinding", VarBindingObj, BindingObj);
};
struct VarBinding : Binding {
  VarBinding(Var var, Expr value, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(VarBinding, Binding, VarBindingObj);
};

/// var = value, where `value` is checked at run time to be as `struct_info` says, which defines the
/// symbolic variables in it that are new.
struct MatchCastObj : BindingObj {
  Expr value;
  StructInfo struct_info;
  static constexpr std::string_view kParamOrder = "var,value,struct_info,span";
  static void Fields(auto&& def) {
    def("value", &MatchCastObj::value);
    def("struct_info", &MatchCastObj::struct_info, Binds());
    def("var", static_cast<Var MatchCastObj::*>(&MatchCastObj::var), Binds());
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.expr.MatchCast", MatchCastObj, BindingObj);
};
struct MatchCast : Binding {
  MatchCast(Var var, Expr value, StructInfo struct_info, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(MatchCast, Binding, MatchCastObj);
};

struct BindingBlockObj : NodeObj {
  Array<Binding> bindings;
  Optional<Span> span;
  static constexpr uint32_t _type_child_slots = 1;
  static void Fields(auto&& def) {
    def("bindings", &BindingBlockObj::bindings);
    def("span", &BindingBlockObj::span, Default(nullptr), Ignored());
  }
  TVM_FFI_DECLARE_OBJECT_INFO("relax.expr.BindingBlock", BindingBlockObj, NodeObj);
};
struct BindingBlock : ObjectRef {
  explicit BindingBlock(Array<Binding> bindings, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(BindingBlock, ObjectRef, BindingBlockObj);
};

/// Bindings without side effects and without control flow, which may be reordered.
struct DataflowBlockObj : BindingBlockObj {
  static void Fields(auto&&) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.expr.DataflowBlock", DataflowBlockObj, BindingBlockObj);
};
struct DataflowBlock : BindingBlock {
  explicit DataflowBlock(Array<Binding> bindings, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(DataflowBlock, BindingBlock, DataflowBlockObj);
};

/// `body` after the bindings of `blocks`.
struct SeqExprObj : RelaxExprObj {
  Array<BindingBlock> blocks;
  Expr body;
  static void Fields(auto&& def) {
    def("blocks", &SeqExprObj::blocks);
    def("body", &SeqExprObj::body);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.expr.SeqExpr", SeqExprObj, RelaxExprObj);
};
/// Where a sequence is wanted (branches, bodies of functions), any expression is one without
/// bindings.
struct SeqExpr : Expr {
  SeqExpr(Array<BindingBlock> blocks, Expr body, Optional<Span> span = {});
  static SeqExpr Of(const Expr& expr);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(SeqExpr, Expr, SeqExprObj);
};
}  // namespace tvm::relax

namespace tvm::ffi {
template <>
inline constexpr bool use_default_type_traits_v<relax::SeqExpr> = false;
template <>
struct TypeTraits<relax::SeqExpr> : ObjectRefTypeTraitsBase<relax::SeqExpr> {
  static std::optional<relax::SeqExpr> TryCastFromAnyView(const TVMFFIAny* src) {
    if (auto seq = ObjectRefTypeTraitsBase<relax::SeqExpr>::TryCastFromAnyView(src)) return seq;
    auto expr = TypeTraits<relax::Expr>::TryCastFromAnyView(src);
    return expr && expr->defined() ? std::optional(relax::SeqExpr::Of(*expr)) : std::nullopt;
  }
};
}  // namespace tvm::ffi

namespace tvm::relax {
struct IfObj : RelaxExprObj {
  Expr cond;
  SeqExpr true_branch, false_branch;
  static void Fields(auto&& def) {
    def("cond", &IfObj::cond);
    def("true_branch", &IfObj::true_branch);
    def("false_branch", &IfObj::false_branch);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.expr.If", IfObj, RelaxExprObj);
};
struct If : Expr {
  If(Expr cond, Expr true_branch, Expr false_branch, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(If, Expr, IfObj);
};

// ---- functions --------------------------------------------------------------------------------
/// A function. `ret_struct_info` speaks only of symbolic variables that the parameters define.
struct FunctionObj : BaseFuncObj {
  Array<Var> params;
  SeqExpr body;
  StructInfo ret_struct_info;
  bool is_pure = true;
  static constexpr std::string_view kParamOrder = "params,body,ret_struct_info,is_pure,attrs,span";
  static void Fields(auto&& def) {
    def("params", &FunctionObj::params, Binds());
    def("body", &FunctionObj::body);
    def("ret_struct_info", &FunctionObj::ret_struct_info);
    def("is_pure", &FunctionObj::is_pure, Default(true));
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.expr.Function", FunctionObj, BaseFuncObj);
};
struct Function : BaseFunc {
  /// Without `ret_struct_info`, or where the body's is finer, it is the body's.
  Function(Array<Var> params, Expr body, Optional<StructInfo> ret_struct_info = {},
           bool is_pure = true, DictAttrs attrs = {}, Optional<Span> span = {});
  /// A function of that signature whose body is still to come.
  static Function CreateEmpty(Array<Var> params, StructInfo ret_struct_info, bool is_pure = true,
                              DictAttrs attrs = {}, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Function, BaseFunc, FunctionObj);
};

/// A function that is found by name at run time.
struct ExternFuncObj : BaseFuncObj {
  String global_symbol;
  static constexpr std::string_view kParamOrder = "global_symbol,struct_info_,span,attrs";
  static void Fields(auto&& def) {
    def("global_symbol", &ExternFuncObj::global_symbol);
    def("struct_info_", &RelaxExprObj::struct_info_, Default(nullptr));
  }
  /// The default: an opaque, impure function whose calls return what their sinfo_args say.
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.expr.ExternFunc", ExternFuncObj, BaseFuncObj);
};
struct ExternFunc : BaseFunc {
  explicit ExternFunc(String global_symbol, Optional<StructInfo> struct_info = {},
                      Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(ExternFunc, BaseFunc, ExternFuncObj);
};

// ---- struct info of expressions ---------------------------------------------------------------
/// What is known of `expr`, computed for a PrimFunc from its signature. ValueError when the
/// expression was not normalised yet.
StructInfo GetStructInfo(const Expr& expr);
/// The same as an `Obj`, or null.
template <class Obj>
const Obj* GetStructInfoAs(const Expr& expr) {
  return expr->struct_info_.template as<Obj>();  // without counting a reference
}
/// Nodes are immutable to everybody but who fills in what inference found.
inline void UpdateStructInfo(const Expr& expr, StructInfo info) {
  const_cast<RelaxExprObj*>(expr.get())->struct_info_ = std::move(info);
}

}  // namespace tvm::relax
