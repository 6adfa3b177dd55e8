// SPDX-License-Identifier: Apache-2.0
// Functions of several kernels become one kernel.
#include <algorithm>
#include <unordered_set>

#include "relax/analysis/uncalled.h"
#include "relax/ir/builder_impl.h"
#include "tvm/expr/op.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/attrs.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::relax {
namespace {
/// What a variable of the graph is in the kernel: a buffer, a scalar, or a tuple of such.
struct KernelValue {
  tir::Buffer buffer;
  PrimExpr scalar;
  std::vector<KernelValue> fields;
};

/// The body of a kernel with its parameters replaced and names of blocks that are free.
struct KernelInliner : Mutator<KernelInliner, tir::VarObj, tir::BlockObj> {
  NameTable* block_names;
  std::unordered_map<const Object*, PrimExpr> vars;
  explicit KernelInliner(NameTable* block_names) : block_names(block_names) {}
  void Replace(const tir::Buffer& from, const tir::Buffer& to) {
    Remap(from, to);
    vars[from->data.get()] = to->data;
  }
  ObjectRef Rewrite(const tir::VarObj* op) {
    auto it = vars.find(op);
    return it == vars.end() ? ffi::GetRef<ObjectRef>(op) : ObjectRef(it->second);
  }
  ObjectRef Rewrite(const tir::BlockObj* op) {
    auto block = Below<tir::Block>(op);
    Edit(&block)->name_hint = block_names->Unique(View(op->name_hint));
    return block;
  }
};

/// One kernel for a function whose bindings call kernels. `Fuse` returns false where it is more
/// than that: then the function stays.
class KernelFuser {
 public:
  KernelFuser(const IRModule& mod, const Function& func) : mod_(mod), func_(func) {}
  tir::PrimFunc kernel{nullptr};
  Array<IntImm> inplace_indices;  // per result: the argument it overwrites, or -1
  std::vector<GlobalVar> callees;

  bool Fuse() {
    for (const Var& param : func_->params) {
      if (!AddParam(param)) return false;
    }
    size_t inputs = params_.size();
    for (const BindingBlock& block : func_->body->blocks) {
      for (const Binding& binding : block->bindings) {
        if (!AddBinding(binding)) return false;
      }
    }
    KernelValue result;
    if (!Find(func_->body->body, &result) || !AddResults(result, inputs)) return false;
    for (const tir::Var& var : tir_vars_) params_.push_back(var);
    Array<tir::Buffer> local;
    for (const tir::Buffer& buffer : allocated_) {
      if (!is_param_.count(buffer.get())) local.push_back(buffer);
    }
    tir::Block root({}, {}, {}, "root", tir::SeqStmt::Flatten(body_), {}, local);
    Map<String, Any> attrs{{tir::attr::kNoAlias, true}};
    if (target_) attrs.Set(tvm::attr::kTarget, target_.value());
    kernel = tir::PrimFunc(params_, tir::BlockRealize({}, IntImm::Bool(true), root),
                           TupleType::Void(), buffers_, DictAttrs(attrs));
    if (is_scheduled_) Edit(&kernel)->scheduled_by_hand = true;
    return true;
  }

 private:
  // ---- parameters -------------------------------------------------------------------------------
  bool AddParam(const Var& param) {
    StructInfo info = GetStructInfo(param);
    if (auto* shape = info.as<ShapeStructInfoObj>()) {
      if (!shape->values || !tir_vars_.empty()) return false;
      for (const PrimExpr& value : shape->values.value()) {
        auto var = value.as<tir::Var>();
        if (!var) return false;
        tir_vars_.push_back(*var);
      }
      return true;
    }
    if (!tir_vars_.empty()) return false;  // they are the last ones of a call
    return MakeParam(info, param->name_hint(), &values_[param->vid.get()]);
  }
  bool MakeParam(const StructInfo& info, const String& name, KernelValue* value) {
    if (auto* tuple = info.as<TupleStructInfoObj>()) {
      value->fields.resize(tuple->fields.size());
      for (size_t i = 0; i < tuple->fields.size(); ++i) {
        if (!MakeParam(tuple->fields[i], name + "_" + std::to_string(i), &value->fields[i]))
          return false;
      }
      return true;
    }
    if (auto* prim = info.as<PrimStructInfoObj>()) {
      auto known = prim->value ? prim->value.value().as<tir::Var>() : std::nullopt;
      tir::Var var = known ? *known : tir::Var(name, prim->dtype);
      value->scalar = var;
      params_.push_back(var);
      return true;
    }
    if (!MakeBuffer(info, name, &value->buffer)) return false;
    AddBufferParam(value->buffer);
    return true;
  }
  static bool MakeBuffer(const StructInfo& info, const String& name, tir::Buffer* buffer) {
    auto* tensor = info.as<TensorStructInfoObj>();
    if (!tensor || !tensor->Dims() || tensor->IsUnknownDtype()) return false;
    *buffer = tir::Buffer::Decl(tensor->Dims().value(), tensor->dtype, name);
    return true;
  }
  void AddBufferParam(const tir::Buffer& buffer) {
    tir::Var handle("p_" + std::string(buffer->name), DataType::Handle());
    params_.push_back(handle);
    buffers_.Set(handle, buffer);
    is_param_.insert(buffer.get());
  }
  /// The buffers of the result: those that overwrite an argument are parameters already.
  bool AddResults(const KernelValue& result, size_t inputs) {
    std::vector<KernelValue> results = result.fields;
    if (results.empty()) results.push_back(result);
    bool any_inplace = false;
    for (const KernelValue& value : results) {
      if (!value.buffer.defined()) return false;
      if (!is_param_.count(value.buffer.get())) {
        AddBufferParam(value.buffer);
        inplace_indices.push_back(IntImm::Int64(-1));
        continue;
      }
      // A parameter that nobody wrote, or a result that is there twice, would be a copy.
      if (!overwritten_.erase(value.buffer.get())) return false;
      for (size_t i = 0; i < inputs; ++i) {
        if (buffers_.count(params_[i]) && buffers_[params_[i]].same_as(value.buffer))
          inplace_indices.push_back(IntImm::Int64(static_cast<int64_t>(i)));
      }
      any_inplace = true;
    }
    if (!any_inplace) inplace_indices = {};
    return overwritten_.empty();
  }

  // ---- bindings ---------------------------------------------------------------------------------
  bool Find(const Expr& expr, KernelValue* value) const {
    if (auto* var = expr.as<VarObj>()) {
      auto it = values_.find(var->vid.get());
      if (it == values_.end()) return false;
      *value = it->second;
      return true;
    }
    if (auto* prim = expr.as<PrimValueObj>()) {
      value->scalar = prim->value;
      return true;
    }
    auto* tuple = expr.as<TupleObj>();
    if (!tuple) return false;
    value->fields.resize(tuple->fields.size());
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      if (!Find(tuple->fields[i], &value->fields[i])) return false;
    }
    return true;
  }
  bool AddBinding(const Binding& binding) {
    static const Op &call_tir = *new Op(Op::Get("relax.call_tir")),
                    &inplace = *new Op(Op::Get("relax.call_tir_inplace"));
    auto* bind = binding.as<VarBindingObj>();
    if (!bind) return false;
    KernelValue& value = values_[binding->var->vid.get()];
    if (auto* item = bind->value.as<TupleGetItemObj>()) {
      KernelValue tuple;
      if (!Find(item->tuple_value, &tuple)) return false;
      value = tuple.fields[item->index];
      return true;
    }
    auto* call = bind->value.as<CallObj>();
    if (!call) return Find(bind->value, &value);
    if (!call->Is(call_tir) && !call->Is(inplace)) return false;
    KernelValue args;
    if (!Find(call->args[1], &args)) return false;
    if (!MakeOutputs(call, args.fields, binding->var->name_hint(), &value)) return false;
    std::vector<KernelValue> outputs = value.fields;
    if (!call->sinfo_args[0].as<TupleStructInfoObj>()) outputs = {value};
    return AddCall(call, args.fields, outputs);
  }
  bool MakeOutputs(const CallObj* call, const std::vector<KernelValue>& args, const String& name,
                   KernelValue* value) {
    Array<StructInfo> infos{call->sinfo_args[0]};
    if (auto* tuple = infos[0].as<TupleStructInfoObj>()) {
      infos = tuple->fields;
      value->fields.resize(infos.size());
    }
    auto* attrs = call->attrs ? call->attrs.value().as<CallTIRInplaceAttrsObj>() : nullptr;
    for (size_t i = 0; i < infos.size(); ++i) {
      KernelValue& output = value->fields.empty() ? *value : value->fields[i];
      int64_t source = attrs ? attrs->inplace_indices[i]->value : -1;
      if (source >= 0) {
        output = args[source];
        if (is_param_.count(output.buffer.get())) overwritten_.insert(output.buffer.get());
        continue;
      }
      if (!MakeBuffer(infos[i], name, &output.buffer)) return false;
      allocated_.push_back(output.buffer);
    }
    return true;
  }
  /// Appends what the kernel does.
  bool AddCall(const CallObj* call, const std::vector<KernelValue>& args,
               const std::vector<KernelValue>& outputs) {
    auto callee = Any(call->args[0]).cast<GlobalVar>();
    auto found = mod_->Lookup(callee).as<tir::PrimFunc>();
    if (!found) return false;
    callees.push_back(callee);
    is_scheduled_ = is_scheduled_ || (*found)->scheduled_by_hand ||
                    (*found)->HasNonzeroAttr(tir::attr::kIsScheduled);
    if (auto target = (*found)->GetAttr<Target>(tvm::attr::kTarget)) target_ = target;
    tir::PrimFunc func = tir::RenewDefs(*found);
    std::vector<KernelValue> given = args;
    auto* attrs = call->attrs ? call->attrs.value().as<CallTIRInplaceAttrsObj>() : nullptr;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!attrs || attrs->inplace_indices[i]->value < 0) given.push_back(outputs[i]);
    }
    if (call->args.size() > 2) {
      auto* shape = call->args[2].as<ShapeExprObj>();
      auto* info = GetStructInfoAs<ShapeStructInfoObj>(call->args[2]);
      if (!shape && !(info && info->values)) return false;
      for (const PrimExpr& dim : shape ? shape->values : info->values.value())
        given.push_back({{}, dim, {}});
    }
    if (given.size() != func->params.size()) return false;
    KernelInliner inliner(&block_names_);
    for (size_t i = 0; i < given.size(); ++i) {
      if (!Match(func, func->params[i], given[i], &inliner)) return false;
    }
    auto* root = func->body.as<tir::BlockRealizeObj>();
    bool is_plain = root && root->block->iter_vars.empty() && root->block->match_buffers.empty();
    if (!is_plain) {
      body_.push_back(inliner.Mutate(func->body));
      return true;
    }
    for (const tir::Buffer& buffer : root->block->alloc_buffers)
      allocated_.push_back(inliner.Mutate(buffer));
    body_.push_back(inliner.Mutate(root->block->body));
    return true;
  }
  /// Tells the inliner what a parameter of the kernel, and the variables in its shape, are.
  static bool Match(const tir::PrimFunc& func, const tir::Var& param, const KernelValue& value,
                    KernelInliner* inliner) {
    tir::Buffer buffer = func.BufferOf(param);
    if (!buffer.defined()) {
      if (!value.scalar.defined()) return false;
      inliner->vars[param.get()] = cast(param.dtype(), value.scalar);
      return true;
    }
    const tir::Buffer& to = value.buffer;
    if (!to.defined() || to->shape.size() != buffer->shape.size() || to->dtype != buffer->dtype)
      return false;
    auto bind = [&](const PrimExpr& e, const PrimExpr& is) {
      if (auto* var = e.as<tir::VarObj>()) inliner->vars.try_emplace(var, cast(e.dtype(), is));
    };
    for (size_t d = 0; d < to->shape.size(); ++d) bind(buffer->shape[d], to->shape[d]);
    Array<PrimExpr> strides = to.ExplicitStrides();
    for (size_t d = 0; d < buffer->strides.size(); ++d) bind(buffer->strides[d], strides[d]);
    bind(buffer->elem_offset, to->elem_offset);
    inliner->Replace(buffer, to);
    return true;
  }

  const IRModule& mod_;
  const Function& func_;
  std::unordered_map<const Object*, KernelValue> values_;  // by id
  Array<tir::Var> params_, tir_vars_;
  Map<tir::Var, tir::Buffer> buffers_;
  std::unordered_set<const Object*> is_param_, overwritten_;  // buffers
  Array<tir::Buffer> allocated_;
  Array<tir::Stmt> body_;
  NameTable block_names_;
  Optional<Target> target_;
  bool is_scheduled_ = false;
};

/// Calls of functions that became kernels become call_tir.
class KernelCaller : public ExprMutator {
 public:
  explicit KernelCaller(const IRModule& mod) : ExprMutator(mod), mod_(mod) {}
  IRModule Run() {
    std::unordered_set<std::string> inlined;
    for (const auto& [var, base] : mod_->Sorted()) {
      auto func = base.as<Function>();
      if (!func || !(*func)->HasNonzeroAttr("Primitive")) continue;
      KernelFuser fuser(mod_, *func);
      if (!fuser.Fuse()) continue;
      // Another variable of that name: the module before goes on with its own.
      GlobalVar fresh(var->name_hint);
      kernels_.emplace(var->name_hint, Kernel{fresh, fuser.inplace_indices});
      builder_->UpdateFunction(fresh, fuser.kernel);
      for (const GlobalVar& callee : fuser.callees) inlined.insert(callee->name_hint);
    }
    if (kernels_.empty()) return mod_;
    return RemoveUncalled(VisitFunctions(), inlined);
  }
  Expr VisitExpr_(const GlobalVarObj* op) final {
    auto it = kernels_.find(op->name_hint);
    return it == kernels_.end() ? ExprMutator::VisitExpr_(op) : it->second.var;
  }
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* call = visited.as<CallObj>();
    auto* callee = call ? call->op.as<GlobalVarObj>() : nullptr;
    auto it = callee ? kernels_.find(callee->name_hint) : kernels_.end();
    if (it == kernels_.end()) return visited;
    Array<Expr> flat, shape;
    for (const Expr& arg : call->args) {
      if (GetStructInfoAs<ShapeStructInfoObj>(arg)) {
        shape.push_back(arg);
      } else {
        Flatten(arg, &flat);
      }
    }
    Array<Expr> args{call->op, Tuple(flat)};
    for (const Expr& vars : shape) args.push_back(vars);
    static const Op &call_tir = *new Op(Op::Get("relax.call_tir")),
                    &inplace = *new Op(Op::Get("relax.call_tir_inplace"));
    StructInfo out = GetStructInfo(ffi::GetRef<Expr>(op));
    if (it->second.inplace_indices.empty()) return Call(call_tir, args, {}, {out}, op->span);
    return Call(inplace, args, CallTIRInplaceAttrs(it->second.inplace_indices), {out}, op->span);
  }

 private:
  static void Flatten(const Expr& arg, Array<Expr>* flat) {
    auto* info = GetStructInfoAs<TupleStructInfoObj>(arg);
    if (!info) return flat->push_back(arg);
    auto* tuple = arg.as<TupleObj>();
    for (size_t i = 0; i < info->fields.size(); ++i)
      Flatten(tuple ? tuple->fields[i] : TupleGetItem(arg, static_cast<int64_t>(i)), flat);
  }
  struct Kernel {
    GlobalVar var;
    Array<IntImm> inplace_indices;
  };
  IRModule mod_;
  std::unordered_map<std::string, Kernel> kernels_;
};

IRModule FuseTIR(IRModule mod) {
  return OnDeepStack([&] { return KernelCaller(mod).Run(); });
}
}  // namespace
TVM_RELAX_PASS(
    FuseTIR, 0,
    R"(Makes each function with the attribute Primitive whose bindings are calls of PrimFuncs one
PrimFunc: intermediate tensors become buffers of its root block, and its calls become call_tir.
PrimFuncs that nobody calls any more go.

gv = cls.fused_matmul_relu(x, w)
->
gv = R.call_tir(cls.fused_matmul_relu, (x, w), out_sinfo=R.Tensor((4, 8), dtype="float32")))");
}  // namespace tvm::relax
