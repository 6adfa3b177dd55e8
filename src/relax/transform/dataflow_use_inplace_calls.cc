// SPDX-License-Identifier: Apache-2.0
// Elementwise operators overwrite an argument that nobody needs afterwards.
#include <unordered_set>

#include "lowering.h"
#include "relax/analysis/dataflow_inplace.h"
#include "tir/text.h"
#include "tvm/relax/attrs.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/op.h"
#include "tvm/relax/transform.h"
#include "tvm/tir/function.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::relax {
namespace {
struct BufferReplacer : Mutator<BufferReplacer, tir::BufferObj> {
  std::unordered_map<const Object*, tir::Buffer> buffers;
  ObjectRef Rewrite(const tir::BufferObj* buffer) {
    auto it = buffers.find(buffer);
    return it == buffers.end() ? ffi::GetRef<tir::Buffer>(buffer) : it->second;
  }
};
/// The function without the outputs that go into an input: (output, input) by parameter.
tir::PrimFunc WriteInto(const tir::PrimFunc& func,
                        const std::vector<std::pair<size_t, size_t>>& outputs) {
  BufferReplacer replacer;
  std::unordered_set<size_t> gone;
  for (auto [output, input] : outputs) {
    replacer.buffers[func.BufferOf(func->params[output]).get()] =
        func.BufferOf(func->params[input]);
    gone.insert(output);
  }
  Array<tir::Var> params;
  Map<tir::Var, tir::Buffer> buffer_map;
  for (size_t i = 0; i < func->params.size(); ++i) {
    if (gone.count(i)) continue;
    params.push_back(func->params[i]);
    if (auto buffer = func.BufferOf(func->params[i]); buffer.defined())
      buffer_map.Set(func->params[i], buffer);
  }
  return tir::PrimFunc(params, replacer.Mutate(func->body), func->ret_type, buffer_map, func->attrs,
                       func->span);
}

/// The operator's kernel, added to the builder's module, with results that overwrite arguments of
/// the operator: for each result the argument's index, or -1.
Call InplaceCall(const BlockBuilder& builder, const Call& call, const Array<int64_t>& indices) {
  const RewriteCallFn* lower = FLegalize.Find(call->op);
  if (!lower) {
    TVM_FFI_THROW(ValueError) << "in-place call: expected an operator that can be lowered, got "
                              << tir::TextOf(call->op);
  }
  BlockBuilder own = BlockBuilder::Create();
  auto lowered = Any((*lower)(own, call)).as<Call>();
  const LoweredOps& ops = LoweredOps::Get();
  auto* args =
      lowered && (*lowered)->Is(ops.call_tir) ? (*lowered)->args[1].as<TupleObj>() : nullptr;
  if (!args) {
    TVM_FFI_THROW(ValueError) << "in-place call: expected an operator that becomes one kernel, got "
                              << tir::TextOf(call->op);
  }
  auto kernel = As<GlobalVar>((*lowered)->args[0]);
  auto* tuple = (*lowered)->sinfo_args[0].as<TupleStructInfoObj>();
  if (indices.size() != (tuple ? tuple->fields.size() : 1)) {
    TVM_FFI_THROW(ValueError) << "in-place call: expected one index for each result, got "
                              << indices.size();
  }
  std::vector<std::pair<size_t, size_t>> outputs;
  Ints inplace;
  for (size_t r = 0; r < indices.size(); ++r) {
    int64_t index = indices[r], position = -1;
    if (index >= static_cast<int64_t>(call->args.size())) {
      TVM_FFI_THROW(ValueError) << "in-place call: expected the index of an argument below "
                                << call->args.size() << ", got " << index;
    }
    // Constants may have gone into the kernel: arguments moved.
    for (size_t i = 0; index >= 0 && i < args->fields.size(); ++i) {
      if (args->fields[i].same_as(call->args[index])) position = static_cast<int64_t>(i);
    }
    if (index >= 0 && position < 0) {
      TVM_FFI_THROW(ValueError) << "in-place call: expected an argument of the kernel, got "
                                << tir::TextOf(call->args[index]);
    }
    if (position >= 0) outputs.emplace_back(args->fields.size() + r, position);
    inplace.push_back(IntImm(DataType::Int(32), position));
  }
  auto func = As<tir::PrimFunc>(own->GetModule()->Lookup(kernel));
  GlobalVar var = builder->AddFunction(WriteInto(func, outputs), kernel->name_hint + "_inplace");
  Array<Expr> all = (*lowered)->args;
  all.Set(0, var);
  return Call(ops.call_tir_inplace, all, CallTIRInplaceAttrs(inplace), (*lowered)->sinfo_args,
              call->span);
}

class InplaceRewriter : public ExprMutator {
 public:
  InplaceRewriter(const IRModule& mod, BlockBuilder functions, Array<Var> params)
      : ExprMutator(WithoutFunctions(mod)),
        functions_(std::move(functions)),
        params_(std::move(params)) {}
  void VisitBindingBlock(const BindingBlock& block) final {
    if (auto dataflow = block.as<DataflowBlock>()) {
      for (const InplaceChoice& choice : FindInplaceChoices(*dataflow, params_).exact)
        choices_[block->bindings[choice.binding].get()] = choice.args[0];
    }
    ExprMutator::VisitBindingBlock(block);
  }
  void VisitBinding_(const VarBindingObj* binding) final {
    auto it = choices_.find(binding);
    if (it == choices_.end()) return ExprMutator::VisitBinding_(binding);
    auto call = As<Call>(builder_->Normalize(VisitExpr(binding->value)));
    ReEmitBinding(binding, InplaceCall(functions_, call, {it->second}));
  }

 private:
  BlockBuilder functions_;
  Array<Var> params_;
  std::unordered_map<const Object*, int64_t> choices_;
};

IRModule DataflowUseInplaceCalls(IRModule mod) {
  BlockBuilder functions = BlockBuilder::Create(mod);
  std::vector<std::pair<GlobalVar, Function>> changed;
  for (const auto& [var, base] : mod->Sorted()) {
    auto func = base.as<Function>();
    if (!func) continue;
    Expr now = InplaceRewriter(mod, functions, (*func)->params).VisitExpr(*func);
    if (!now.same_as(base)) changed.emplace_back(var, As<Function>(now));
  }
  if (changed.empty()) return mod;
  Map<GlobalVar, BaseFunc> all = functions->GetModule()->functions;
  for (const auto& [var, func] : changed) all.Set(var, func);
  return IRModule(all, mod->attrs, mod->global_infos);
}
}  // namespace
TVM_RELAX_PASS(DataflowUseInplaceCalls, 0,
               "y = R.add(x, z)  ->  y = R.call_tir_inplace(add_inplace, (x, z), [0]), where x is "
               "of the result's shape and not needed afterwards.");

// ---- for tests --------------------------------------------------------------------------------
namespace {
Array<int64_t> AsArray(const std::set<int64_t>& places) {
  return Array<int64_t>(places.begin(), places.end());
}
Map<Var, Array<int64_t>> Liveness(DataflowBlock block) {
  Map<Var, Array<int64_t>> result;
  for (const LiveRange& range : DataflowLiveness(block))
    result.Set(range.var, {range.begin, range.end});
  return result;
}
Array<Any> AliasesOf(DataflowBlock block, Array<Var> inputs) {
  Aliases aliases = DataflowAliases(block, inputs);
  Map<Var, Array<int64_t>> places;
  for (const auto& [var, at] : aliases.places) places.Set(var, AsArray(at));
  Map<int64_t, Array<Array<int64_t>>> tuples;
  for (const auto& [tuple, fields] : aliases.tuples) {
    Array<Array<int64_t>> all;
    for (const auto& field : fields) all.push_back(AsArray(field));
    tuples.Set(tuple, all);
  }
  return {places, tuples};
}
Array<Array<Array<int64_t>>> Choices(DataflowBlock block, Array<Var> inputs) {
  InplaceChoices choices = FindInplaceChoices(block, inputs);
  auto list = [](const std::vector<InplaceChoice>& all) {
    Array<Array<int64_t>> result;  // the binding, then its arguments
    for (const InplaceChoice& choice : all) {
      Array<int64_t> row = {choice.binding};
      for (int64_t arg : choice.args) row.push_back(arg);
      result.push_back(row);
    }
    return result;
  };
  return {list(choices.large_enough), list(choices.exact)};
}
TVM_REGISTER() {
  Def("relax.testing.transform._dataflow_liveness_analysis", &Liveness, "", Arg("block"));
  Def("relax.testing.transform._dataflow_alias_analysis", &AliasesOf, "", Arg("block"),
      Arg("inputs"));
  Def("relax.testing.transform._dataflow_inplace_analysis", &Choices, "", Arg("block"),
      Arg("inputs"));
  Def(
      "relax.testing.transform._dataflow_single_inplace_call",
      [](IRModule mod, Call call, Array<int64_t> indices) -> Array<Any> {
        BlockBuilder builder = BlockBuilder::Create(mod);
        Call inplace = InplaceCall(builder, call, indices);
        return {builder->Normalize(inplace), builder->GetModule()};
      },
      "", Arg("mod"), Arg("call"), Arg("inplace_indices"));
}
}  // namespace
}  // namespace tvm::relax
