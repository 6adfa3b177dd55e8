// SPDX-License-Identifier: Apache-2.0
// The normal form of expressions, and their struct info.
#include "relax/analysis/symbolic_vars.h"
#include "relax/ir/builder_impl.h"
#include "tir/text.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/op.h"
#include "tvm/tir/function.h"

namespace tvm::relax {

bool IsLeaf(const Expr& expr) {
  static const HandlerTable leaves = [] {
    auto yes = +[] {};
    return HandlerTable({{VarObj::RuntimeTypeIndex(), yes},
                         {GlobalVarObj::RuntimeTypeIndex(), yes},
                         {ExternFuncObj::RuntimeTypeIndex(), yes},
                         {ConstantObj::RuntimeTypeIndex(), yes},
                         {ShapeExprObj::RuntimeTypeIndex(), yes},
                         {PrimValueObj::RuntimeTypeIndex(), yes},
                         {StringImmObj::RuntimeTypeIndex(), yes},
                         {DataTypeImmObj::RuntimeTypeIndex(), yes},
                         {OpObj::RuntimeTypeIndex(), yes}});
  }();
  return leaves.Find(expr->type_index()) != nullptr;
}
bool IsLeafOrTuple(const Expr& expr) {
  auto* tuple = expr.as<TupleObj>();
  if (!tuple) return IsLeaf(expr);
  return Recurse([&] {
    return std::all_of(tuple->fields.begin(), tuple->fields.end(),
                       [](const Expr& field) { return IsLeafOrTuple(field); });
  });
}

StructInfo InferCall(const Call& call, const BlockBuilder& builder) {
  if (auto* op = call->op.as<OpObj>()) {
    const InferStructInfoFn* infer = FInferStructInfo.Find(op);
    if (!infer) {
      TVM_FFI_THROW(OpValueError) << op->name
                                  << ": expected an operator with FInferStructInfo, got none";
    }
    return (*infer)(call, builder);
  }
  auto* func = GetStructInfoAs<FuncStructInfoObj>(call->op);
  if (!func) {
    TVM_FFI_THROW(OpValueError) << "Call: expected a function whose struct info is known, got "
                                << tir::TextOf(call->op);
  }
  return DeriveCallRetStructInfo(ffi::GetRef<FuncStructInfo>(func), call, builder);
}

namespace {
bool SameBindings(const BindingBlock& a, const Array<Binding>& bindings) {
  return std::equal(a->bindings.begin(), a->bindings.end(), bindings.begin(), bindings.end(),
                    [](const Binding& x, const Binding& y) { return x.same_as(y); });
}
}  // namespace

SeqExpr MakeSeq(const SeqExpr& before, Array<BindingBlock> blocks, const Expr& body) {
  bool same = std::equal(
      blocks.begin(), blocks.end(), before->blocks.begin(), before->blocks.end(),
      [](const BindingBlock& a, const BindingBlock& b) {
        return a.same_as(b) || (a->type_index() == b->type_index() && SameBindings(a, b->bindings));
      });
  if (same && body.same_as(before->body) && before->struct_info_) return before;
  SeqExpr seq(same ? before->blocks : std::move(blocks), body, before->span);
  UpdateStructInfo(seq, GetStructInfo(body));
  return seq;
}

namespace {
using Impl = BlockBuilderObj::Impl;

class Normalizer {
 public:
  Normalizer(BlockBuilderObj* builder, Impl* impl) : builder_(builder), impl_(impl) {}

  Expr Visit(const Expr& expr) {
    // Operators' functions may be Python, which runs on the thread's own stack: leave room there.
    if (++depth_ > kShallow && !stack_state.deep) [[unlikely]]
      return OnDeepStack([&] { return VisitBelow(expr); });
    if (StackIsLow()) [[unlikely]]
      return Recurse([&] { return VisitBelow(expr); });
    return VisitBelow(expr);
  }
  /// The expression as a leaf or a tuple of leaves.
  Expr Argument(const Expr& expr) {
    if (IsLeaf(expr)) return Visit(expr);
    auto bound = impl_->frames.empty() ? nullptr : FindBound(expr);
    if (bound) return *bound;
    size_t depth = impl_->frames.size();
    Expr value = Visit(expr);
    if (IsLeaf(value) || value.as<TupleObj>()) return value;  // its fields are arguments already
    if (depth == 0) {
      TVM_FFI_THROW(RuntimeError) << "normalize: expected an open block to bind "
                                  << tir::TextOf(value) << " in, got none";
    }
    Var var = impl_->NewVar(builder_->CurrentBlockIsDataflow(), "", GetStructInfo(value));
    impl_->Push(VarBinding(var, value, expr->span));
    impl_->frames.back().bound.emplace(expr.get(), std::pair(expr, var));
    return var;
  }
  /// A body or a branch: its own sequence of blocks.
  SeqExpr Sequence(const Expr& expr) {
    builder_->BeginSequence();
    SeqExpr seq = SeqExpr::Of(expr);
    for (const BindingBlock& block : seq->blocks) Block(block);
    Expr body = Argument(seq->body);
    return MakeSeq(seq, builder_->EndSequence(), body);
  }

 private:
  Expr VisitBelow(const Expr& expr) {
    struct Leave {
      int& depth;
      ~Leave() { --depth; }
    } leave{depth_};
    if (auto* call = expr.as<CallObj>()) return VisitCall(ffi::GetRef<Call>(call));
    if (expr.as<VarObj>()) return IsVoid(expr) ? Tuple(Array<Expr>()) : expr;
    if (auto* tuple = expr.as<TupleObj>()) return VisitTuple(ffi::GetRef<Tuple>(tuple));
    if (auto* item = expr.as<TupleGetItemObj>()) return VisitItem(ffi::GetRef<TupleGetItem>(item));
    if (auto* seq = expr.as<SeqExprObj>()) return Inline(seq);
    if (auto* branch = expr.as<IfObj>()) return VisitIf(ffi::GetRef<If>(branch));
    if (auto* func = expr.as<FunctionObj>()) return VisitFunction(ffi::GetRef<Function>(func));
    if (auto* global = expr.as<GlobalVarObj>()) return VisitGlobal(ffi::GetRef<GlobalVar>(global));
    if (expr.as<tir::PrimFuncObj>()) {
      TVM_FFI_THROW(TypeError) << "normalize: expected a PrimFunc to be a function of the module, "
                                  "which its GlobalVar calls, got one inside of a function";
    }
    return expr;
  }
  const Var* FindBound(const Expr& expr) {
    auto& bound = impl_->frames.back().bound;
    auto it = bound.find(expr.get());
    return it == bound.end() ? nullptr : &it->second.second;
  }
  /// Whether the expression is an argument as it is: true for nearly all.
  static bool StaysAsIs(const Expr& expr) {
    if (expr.as<GlobalVarObj>()) return expr->struct_info_.has_value();
    return IsLeaf(expr) && !(expr.as<VarObj>() && IsVoid(expr));
  }
  static bool IsVoid(const Expr& var) {
    auto* tuple = GetStructInfoAs<TupleStructInfoObj>(var);
    return tuple && tuple->fields.empty();
  }
  Array<Expr> Arguments(const Array<Expr>& exprs) {
    Array<Expr> result = exprs;
    for (size_t i = 0; i < exprs.size(); ++i) {
      const Expr before = exprs[i];
      if (StaysAsIs(before)) continue;
      Expr now = Argument(before);
      if (!now.same_as(before)) result.Set(i, now);
    }
    return result;
  }

  // ---- expressions ----------------------------------------------------------------------------
  Expr VisitCall(Call call) {
    Expr op = StaysAsIs(call->op) ? call->op : Argument(call->op);
    Array<Expr> args = Arguments(call->args);
    if (!op.same_as(call->op) || !args.same_as(call->args))
      call = Call(op, args, call->attrs, call->sinfo_args, call->span);
    if (!call->struct_info_)
      UpdateStructInfo(call, InferCall(call, ffi::GetRef<BlockBuilder>(builder_)));
    if (!impl_->apply_f_normalize) return call;
    const RewriteCallFn* normalize = FNormalize.Find(call->op);
    if (!normalize) return call;
    Expr normal = (*normalize)(ffi::GetRef<BlockBuilder>(builder_), call);
    return normal.same_as(call) ? normal : Visit(normal);
  }
  Expr VisitTuple(const Tuple& tuple) {
    Array<Expr> fields = Arguments(tuple->fields);
    if (!fields.same_as(tuple->fields)) return Tuple(fields, tuple->span);
    if (!tuple->struct_info_) const_cast<TupleObj*>(tuple.get())->Init();
    return tuple;
  }
  Expr VisitItem(TupleGetItem item) {
    Expr value = Argument(item->tuple_value);
    if (auto* tuple = value.as<TupleObj>()) {
      int64_t size = static_cast<int64_t>(tuple->fields.size());
      if (item->index < size) return tuple->fields[item->index];
    }
    if (!value.same_as(item->tuple_value)) return TupleGetItem(value, item->index, item->span);
    if (item->struct_info_) return item;
    const_cast<TupleGetItemObj*>(item.get())->Init();
    StructInfo known = GetStructInfo(value);
    if (!item->struct_info_) {
      if (!known.as<ObjectStructInfoObj>()) {
        TVM_FFI_THROW(TypeError) << "TupleGetItem: expected a tuple, got " << tir::TextOf(known);
      }
      UpdateStructInfo(item, ObjectStructInfo::Get());
    }
    return item;
  }
  Expr VisitGlobal(const GlobalVar& var) {
    if (var->struct_info_) return var;
    GlobalVar known = impl_->mod->FindGlobalVar(var->name_hint);
    if (known.defined()) UpdateStructInfo(var, GetStructInfo(impl_->mod->Lookup(known)));
    return var;
  }
  Expr VisitIf(const If& branch) {
    Expr cond = Argument(branch->cond);
    SeqExpr yes = Branch(branch->true_branch), no = Branch(branch->false_branch);
    bool same = cond.same_as(branch->cond) && yes.same_as(branch->true_branch) &&
                no.same_as(branch->false_branch);
    If result = same ? branch : If(cond, yes, no, branch->span);
    if (!result->struct_info_) {
      UpdateStructInfo(result, StructInfoLCA(GetStructInfo(yes), GetStructInfo(no)));
    }
    return result;
  }
  /// Symbolic variables that the branch defines are not known behind it.
  SeqExpr Branch(const SeqExpr& branch) {
    builder_->BeginScope();
    SeqExpr result = Sequence(branch);
    std::unordered_set<const Object*> inner(impl_->scopes.back().defined.begin(),
                                            impl_->scopes.back().defined.end());
    builder_->EndScope();
    if (inner.empty()) return result;
    StructInfo outer = EraseToWellDefined(
        GetStructInfo(result),
        [&](const tir::Var& var) { return inner.count(var.get()) ? PrimExpr() : PrimExpr(var); },
        [](const Var& var) -> Optional<Expr> { return Expr(var); });
    if (!outer.same_as(GetStructInfo(result))) UpdateStructInfo(result, outer);
    return result;
  }
  Expr VisitFunction(const Function& func) {
    builder_->BeginScope(func->params);
    SeqExpr body = Sequence(func->body);
    builder_->EndScope();
    if (body.same_as(func->body)) return func;
    return Function(func->params, body, func->ret_struct_info, func->is_pure, func->attrs,
                    func->span);
  }

  // ---- sequences ------------------------------------------------------------------------------
  /// The bindings of a nested sequence go into the open block; what remains is its body.
  Expr Inline(const SeqExprObj* seq) {
    for (const BindingBlock& block : seq->blocks) Block(block);
    return Visit(seq->body);
  }
  void Block(const BindingBlock& block) {
    bool is_dataflow = block.as<DataflowBlockObj>();
    bool opens = is_dataflow && !impl_->Top().is_dataflow;
    if (opens && !impl_->Top().is_sequence) {
      TVM_FFI_THROW(ValueError) << "normalize: Malformed AST: expected no dataflow block inside of "
                                   "a plain block, got one";
    }
    if (!opens) {
      for (const Binding& binding : block->bindings) Bind(binding);
      return;
    }
    builder_->BeginDataflowBlock();
    for (const Binding& binding : block->bindings) Bind(binding);
    builder_->CloseBlock();
  }
  void Bind(const Binding& binding) {
    if (auto* cast = binding.as<MatchCastObj>()) {
      Expr value = Argument(cast->value);
      if (!binding->var->struct_info_) UpdateStructInfo(binding->var, cast->struct_info);
      bool same = value.same_as(cast->value);
      return builder_->EmitNormalized(
          same ? binding : MatchCast(binding->var, value, cast->struct_info, binding->span));
    }
    auto* bind = binding.as<VarBindingObj>();
    // A local function may call itself.
    if (auto* func = bind->value.as<FunctionObj>(); func && !binding->var->struct_info_)
      UpdateStructInfo(binding->var, func->struct_info_.value());
    Expr value = Visit(bind->value);
    if (!binding->var->struct_info_) UpdateStructInfo(binding->var, GetStructInfo(value));
    bool same = value.same_as(bind->value);
    builder_->EmitNormalized(same ? binding : VarBinding(binding->var, value, binding->span));
  }
  static constexpr int kShallow = 32;
  BlockBuilderObj* builder_;
  Impl* impl_;
  int depth_ = 0;
};

/// Leaves the builder as it was when normalisation fails.
template <class F>
auto OrRestore(BlockBuilderObj* builder, Impl* impl, F&& run) {
  size_t frames = impl->frames.size(), scopes = impl->scopes.size();
  size_t bindings = frames ? impl->frames.back().bindings.size() : 0;
  size_t finished = frames ? impl->frames.back().finished.size() : 0;
  try {
    return run();
  } catch (...) {
    builder->UnwindTo(frames);
    impl->scopes.resize(scopes);
    if (frames && impl->frames.back().finished.size() == finished) {
      auto& open = impl->frames.back();
      open.bindings.erase(open.bindings.begin() + std::min(bindings, open.bindings.size()),
                          open.bindings.end());
      open.bound.clear();
    }
    throw;
  }
}
}  // namespace

Expr BlockBuilderObj::Normalize(const Expr& expr) {
  if (IsLeaf(expr) && !expr.as<VarObj>() && !expr.as<GlobalVarObj>()) return expr;
  return OrRestore(this, impl_.get(), [&] { return Normalizer(this, impl_.get()).Visit(expr); });
}
Expr BlockBuilderObj::NormalizeArgument(const Expr& expr) {
  return OrRestore(this, impl_.get(), [&] { return Normalizer(this, impl_.get()).Argument(expr); });
}

}  // namespace tvm::relax
