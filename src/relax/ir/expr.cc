// SPDX-License-Identifier: Apache-2.0
// Expressions, bindings and functions: constructors, invariants, equality of variables.
#include "tvm/relax/expr.h"

#include <unordered_set>

#include "ir/structural_equal.h"
#include "tir/text.h"
#include "tvm/expr/index_type.h"
#include "tvm/relax/analysis.h"
#include "tvm/tir/analysis.h"

namespace tvm::relax {
namespace {
/// A node of class `Ref` with its span set.
template <class Ref, class F>
Ref Make(Optional<Span> span, F&& fill) {
  return New<Ref>([&](typename Ref::ContainerType* n) {
    fill(n);
    n->span = std::move(span);
  });
}
}  // namespace

Id::Id(String name_hint) {
  *this = New<Id>([&](IdObj* n) { n->name_hint = std::move(name_hint); });
}
Var::Var(Id vid, Optional<StructInfo> struct_info, Optional<Span> span) {
  *this = Make<Var>(std::move(span), [&](VarObj* n) {
    n->vid = std::move(vid);
    n->struct_info_ = std::move(struct_info);
  });
}
Var::Var(String name_hint, Optional<StructInfo> struct_info, Optional<Span> span)
    : Var(Id(std::move(name_hint)), std::move(struct_info), std::move(span)) {}
DataflowVar::DataflowVar(Id vid, Optional<StructInfo> struct_info, Optional<Span> span) {
  *this = Make<DataflowVar>(std::move(span), [&](DataflowVarObj* n) {
    n->vid = std::move(vid);
    n->struct_info_ = std::move(struct_info);
  });
}
DataflowVar::DataflowVar(String name_hint, Optional<StructInfo> struct_info, Optional<Span> span)
    : DataflowVar(Id(std::move(name_hint)), std::move(struct_info), std::move(span)) {}

Call::Call(Expr op, Array<Expr> args, Optional<Attrs> attrs, Array<StructInfo> sinfo_args,
           Optional<Span> span) {
  *this = Make<Call>(std::move(span), [&](CallObj* n) {
    n->op = std::move(op);
    n->args = std::move(args);
    n->attrs = std::move(attrs);
    n->sinfo_args = std::move(sinfo_args);
  });
}
void CallObj::Init() {
  if (op->struct_info_.has_value() && !GetStructInfoAs<FuncStructInfoObj>(op)) {
    TVM_FFI_THROW(ValueError) << "Call: expected a function to call, got " << tir::TextOf(op)
                              << " of kind " << tir::TextOf(op->struct_info_.value());
  }
}

Tuple::Tuple(Array<Expr> fields, Optional<Span> span) {
  *this = Make<Tuple>(std::move(span), [&](TupleObj* n) { n->fields = std::move(fields); });
}
void TupleObj::Init() {
  Array<StructInfo> infos;
  for (const Expr& field : fields) {
    if (!field->struct_info_.has_value()) return;
    infos.push_back(field->struct_info_.value());
  }
  struct_info_ = infos.empty() ? TupleStructInfo::Void() : TupleStructInfo(infos);
}

TupleGetItem::TupleGetItem(Expr tuple_value, int64_t index, Optional<Span> span) {
  *this = Make<TupleGetItem>(std::move(span), [&](TupleGetItemObj* n) {
    n->tuple_value = std::move(tuple_value);
    n->index = index;
  });
}
void TupleGetItemObj::Init() {
  auto* tuple = GetStructInfoAs<TupleStructInfoObj>(tuple_value);
  int64_t size = tuple ? static_cast<int64_t>(tuple->fields.size()) : INT64_MAX;
  if (index < 0 || index >= size) {
    TVM_FFI_THROW(IndexError) << "TupleGetItem: Index out of bounds: expected an index of a tuple"
                              << (tuple ? " of size " + std::to_string(size) : "") << ", got "
                              << index;
  }
  if (tuple) struct_info_ = tuple->fields[index];
}

ShapeExpr::ShapeExpr(Array<PrimExpr> values, Optional<Span> span) {
  *this = Make<ShapeExpr>(std::move(span), [&](ShapeExprObj* n) { n->values = std::move(values); });
}
void ShapeExprObj::Init() {
  values = AsDims(std::move(values), "ShapeExpr");
  struct_info_ = ShapeStructInfo(values);
}

Constant::Constant(ffi::Tensor data, Optional<StructInfo> struct_info, Optional<Span> span) {
  *this = Make<Constant>(std::move(span), [&](ConstantObj* n) {
    n->data = std::move(data);
    n->struct_info_ = std::move(struct_info);
  });
}
void ConstantObj::Init() {
  if (struct_info_.has_value()) return;
  Array<PrimExpr> dims;
  for (int64_t extent : data.shape()) dims.push_back(IntImm::Int64(extent));
  struct_info_ = TensorStructInfo(dims, DataType(data.dtype()));
}

PrimValue::PrimValue(PrimExpr value, Optional<Span> span) {
  *this = Make<PrimValue>(std::move(span), [&](PrimValueObj* n) { n->value = std::move(value); });
}
void PrimValueObj::Init() { struct_info_ = PrimStructInfo(value); }
StringImm::StringImm(String value, Optional<Span> span) {
  *this = Make<StringImm>(std::move(span), [&](StringImmObj* n) { n->value = std::move(value); });
}
DataTypeImm::DataTypeImm(DataType value, Optional<Span> span) {
  *this = Make<DataTypeImm>(std::move(span), [&](DataTypeImmObj* n) { n->value = value; });
}

VarBinding::VarBinding(Var var, Expr value, Optional<Span> span) {
  *this = Make<VarBinding>(std::move(span), [&](VarBindingObj* n) {
    n->var = std::move(var);
    n->value = std::move(value);
  });
}
MatchCast::MatchCast(Var var, Expr value, StructInfo struct_info, Optional<Span> span) {
  *this = Make<MatchCast>(std::move(span), [&](MatchCastObj* n) {
    n->var = std::move(var);
    n->value = std::move(value);
    n->struct_info = std::move(struct_info);
  });
}
BindingBlock::BindingBlock(Array<Binding> bindings, Optional<Span> span) {
  *this = Make<BindingBlock>(std::move(span),
                             [&](BindingBlockObj* n) { n->bindings = std::move(bindings); });
}
DataflowBlock::DataflowBlock(Array<Binding> bindings, Optional<Span> span) {
  *this = Make<DataflowBlock>(std::move(span),
                              [&](DataflowBlockObj* n) { n->bindings = std::move(bindings); });
}
SeqExpr::SeqExpr(Array<BindingBlock> blocks, Expr body, Optional<Span> span) {
  *this = Make<SeqExpr>(std::move(span), [&](SeqExprObj* n) {
    n->blocks = std::move(blocks);
    n->body = std::move(body);
  });
}
SeqExpr SeqExpr::Of(const Expr& expr) {
  if (auto* seq = expr.as<SeqExprObj>()) return ffi::GetRef<SeqExpr>(seq);
  SeqExpr seq({}, expr, expr->span);
  if (expr->struct_info_) UpdateStructInfo(seq, expr->struct_info_.value());
  return seq;
}
If::If(Expr cond, Expr true_branch, Expr false_branch, Optional<Span> span) {
  *this = Make<If>(std::move(span), [&](IfObj* n) {
    n->cond = std::move(cond);
    n->true_branch = SeqExpr::Of(true_branch);
    n->false_branch = SeqExpr::Of(false_branch);
  });
}

// ---- functions --------------------------------------------------------------------------------
Function::Function(Array<Var> params, Expr body, Optional<StructInfo> ret_struct_info, bool is_pure,
                   DictAttrs attrs, Optional<Span> span) {
  if (!ret_struct_info) {
    if (!body->struct_info_) {
      TVM_FFI_THROW(ValueError)
          << "Function: expected ret_struct_info for a body whose struct info "
             "is not known yet, got none";
    }
    ret_struct_info = body->struct_info_;
  }
  *this = Make<Function>(std::move(span), [&](FunctionObj* n) {
    n->params = std::move(params);
    n->body = SeqExpr::Of(body);
    n->ret_struct_info = ret_struct_info.value();
    n->is_pure = is_pure;
    n->attrs = attrs.defined() ? std::move(attrs) : DictAttrs(Map<String, Any>());
  });
}
void FunctionObj::Init() {
  Array<StructInfo> infos;
  std::unordered_set<const Object*> defined;
  for (const Var& param : params) {
    if (!param->struct_info_) {
      TVM_FFI_THROW(ValueError) << "Function: expected the struct info of each parameter, got none "
                                   "for '"
                                << param->name_hint() << "'";
    }
    infos.push_back(param->struct_info_.value());
    for (const tir::Var& var : DefinableTIRVarsInStructInfo(infos.back()))
      defined.insert(var.get());
  }
  auto known = [&](const tir::Var& var) { return defined.count(var.get()) ? var : tir::Var(); };
  // A shape variable among the parameters is known as well.
  auto known_var = [&](const Var& var) -> Optional<Expr> {
    for (const Var& param : params) {
      if (param.same_as(var)) return Expr(var);
    }
    return std::nullopt;
  };
  if (body->struct_info_) {
    StructInfo found = EraseToWellDefined(body->struct_info_.value(), known, known_var);
    if (IsBaseOf(ret_struct_info, found)) ret_struct_info = found;
  }
  ret_struct_info = EraseToWellDefined(ret_struct_info, known, known_var);
  struct_info_ = FuncStructInfo(infos, ret_struct_info, is_pure);
}
Function Function::CreateEmpty(Array<Var> params, StructInfo ret_struct_info, bool is_pure,
                               DictAttrs attrs, Optional<Span> span) {
  static const EnvFunc derive = EnvFunc::Get("tvm.relax.struct_info.infer_by_sinfo_args");
  ExternFunc dummy("_dummy_function",
                   FuncStructInfo::Opaque(ObjectStructInfo::Get(), is_pure, derive));
  Call body(dummy, {}, {}, {ret_struct_info});
  UpdateStructInfo(body, ret_struct_info);
  return Function(std::move(params), SeqExpr::Of(body), ret_struct_info, is_pure, std::move(attrs),
                  std::move(span));
}

ExternFunc::ExternFunc(String global_symbol, Optional<StructInfo> struct_info,
                       Optional<Span> span) {
  *this = Make<ExternFunc>(std::move(span), [&](ExternFuncObj* n) {
    n->global_symbol = std::move(global_symbol);
    n->struct_info_ = std::move(struct_info);
    n->attrs = DictAttrs(Map<String, Any>());
  });
}
void ExternFuncObj::Init() {
  if (!struct_info_) {
    static const auto* opaque = new FuncStructInfo(FuncStructInfo::Opaque(
        ObjectStructInfo::Get(), false, EnvFunc::Get("tvm.relax.struct_info.infer_by_sinfo_args")));
    struct_info_ = *opaque;
  }
  if (!struct_info_.value().as<FuncStructInfoObj>()) {
    TVM_FFI_THROW(TypeError) << "ExternFunc: expected the struct info of a function, got "
                             << tir::TextOf(struct_info_.value());
  }
}

// ---- struct info of PrimFuncs -----------------------------------------------------------------
namespace {
/// Dimensions of buffers as int64: a variable of another type becomes one of int64, the same one
/// everywhere.
struct AsInt64 : Mutator<AsInt64, tir::CastObj> {
  Map<tir::Var, tir::Var> vars;
  ObjectRef Rewrite(const tir::CastObj* cast) {
    auto* var = cast->value.as<tir::VarObj>();
    if (!var || cast->dtype != DataType::Int(64)) return Below<tir::Cast>(cast);
    auto ref = ffi::GetRef<tir::Var>(var);
    if (!vars.count(ref)) vars.Set(ref, tir::Var(var->name_hint, DataType::Int(64)));
    return vars.at(ref);
  }
};
StructInfo StructInfoOfPrimFunc(const tir::PrimFunc& func) {
  AsInt64 as_int64;
  Array<StructInfo> params;
  for (const tir::Var& param : func->params) {
    if (tir::Buffer buffer = func.BufferOf(param); buffer.defined()) {
      Array<PrimExpr> dims = buffer->shape.Map([&](const PrimExpr& e) {
        return as_int64.Mutate(tir::ToIndexType(e, DataType::Int(64)));
      });
      params.push_back(TensorStructInfo(dims, buffer->dtype));
    } else if (param.dtype().is_handle()) {
      params.push_back(ObjectStructInfo::Get());
    } else {
      params.push_back(PrimStructInfo(param.dtype()));
    }
  }
  StructInfo ret = ObjectStructInfo::Get();
  if (IsVoidType(func->ret_type)) {
    ret = TupleStructInfo::Void();
  } else if (auto* prim = func->ret_type.as<PrimTypeObj>()) {
    ret = PrimStructInfo(prim->dtype);
  }
  return FuncStructInfo(params, ret, tir::IsPureFunction(func));
}
}  // namespace

StructInfo GetStructInfo(const Expr& expr) {
  if (expr->struct_info_) return expr->struct_info_.value();
  if (auto* func = expr.as<tir::PrimFuncObj>())
    return StructInfoOfPrimFunc(ffi::GetRef<tir::PrimFunc>(func));
  TVM_FFI_THROW(ValueError) << "struct_info: expected an expression in normal form, which "
                               "BlockBuilder.normalize gives, got one without struct info: "
                            << tir::TextOf(expr);
  TVM_FFI_UNREACHABLE();
}

// ---- equality ---------------------------------------------------------------------------------
namespace {
constexpr int kUse = kTVMFFIDefRegionKindNone, kDefine = kTVMFFIDefRegionKindPattern;

constexpr auto kVarEqual = [](const VarObj* a, const VarObj* b, auto equal) {
  return equal(a->vid, b->vid, kUse, "vid") &&
         equal(a->struct_info_, b->struct_info_, kUse, "struct_info_");
};
int64_t VarHash(Var var, int64_t seed, ffi::Function hash) {
  seed = hash(var->vid, seed, kUse).cast<int64_t>();
  return hash(var->struct_info_, seed, kUse).cast<int64_t>();
}
/// A value cannot use the variable it is bound to, but a local function can.
constexpr auto kBindingEqual = [](const VarBindingObj* a, const VarBindingObj* b, auto equal) {
  auto values = [&] { return equal(a->value, b->value, kUse, "value"); };
  bool value_first = !a->value.as<FunctionObj>();
  if (value_first && !values()) return false;
  if (!equal(a->var, b->var, kDefine, "var")) return false;
  return value_first || values();
};
int64_t BindingHash(VarBinding binding, int64_t seed, ffi::Function hash) {
  auto value = [&] { seed = hash(binding->value, seed, kUse).cast<int64_t>(); };
  bool is_function = binding->value.as<FunctionObj>();
  if (!is_function) value();
  seed = hash(binding->var, seed, kDefine).cast<int64_t>();
  if (is_function) value();
  return seed;
}

TVM_REGISTER() {
  RegisterNode<IdObj>("The identity of a variable.");
  RegisterNode<VarObj>("A variable.");
  RegisterNode<DataflowVarObj>("A variable that is seen in its dataflow block only.");
  RegisterNode<CallObj>("A call.");
  RegisterNode<TupleObj>("A tuple.");
  RegisterNode<TupleGetItemObj>("A field of a tuple.");
  RegisterNode<ShapeExprObj>("A shape given by its dimensions.");
  RegisterNode<ConstantObj>("A tensor whose contents are known.");
  RegisterNode<PrimValueObj>("A scalar.");
  RegisterNode<StringImmObj>("A text.");
  RegisterNode<DataTypeImmObj>("A dtype.");
  RegisterBase<BindingObj>("Gives a variable its value.");
  RegisterNode<VarBindingObj>("var = value");
  RegisterNode<MatchCastObj>("var = value, checked at run time to be as the struct info says.");
  RegisterNode<BindingBlockObj>("Bindings in order.");
  RegisterNode<DataflowBlockObj>("Bindings without side effects and control flow.");
  RegisterNode<SeqExprObj>("A body after the bindings of blocks.");
  RegisterNode<IfObj>("One of two sequences.");
  RegisterNode<FunctionObj>("A function.");
  RegisterNode<ExternFuncObj>("A function that is found by name at run time.");
  SetStructuralEqual<VarObj>(kVarEqual);
  SetStructuralEqual<DataflowVarObj>(kVarEqual);
  SetStructuralEqual<VarBindingObj>(kBindingEqual);
  for (int32_t index : {VarObj::RuntimeTypeIndex(), DataflowVarObj::RuntimeTypeIndex()})
    SetTypeAttr(index, "__s_hash__", ffi::Function::FromTyped(&VarHash));
  SetTypeAttr(VarBindingObj::RuntimeTypeIndex(), "__s_hash__",
              ffi::Function::FromTyped(&BindingHash));

  Def("relax.GetStructInfo", &GetStructInfo, "What is known of an expression.", Arg("expr"));
  Def("relax.UpdateStructInfo", &UpdateStructInfo, "Sets what is known of an expression.",
      Arg("expr"), Arg("struct_info"));
  Def(
      "relax.expr.Function._make",
      [](Array<Var> params, Expr body, Optional<StructInfo> ret, bool is_pure, DictAttrs attrs,
         Optional<Span> span) -> Function {
        return Function(params, body, ret, is_pure, attrs, span);
      },
      "", Arg("params"), Arg("body"), Arg("ret_struct_info"), Arg("is_pure"), Arg("attrs"),
      Arg("span"));
  Def("relax.expr.Function._create_empty", &Function::CreateEmpty, "", Arg("params"),
      Arg("ret_struct_info"), Arg("is_pure"), Arg("attrs"), Arg("span"));
}
}  // namespace
}  // namespace tvm::relax
