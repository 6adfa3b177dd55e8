// SPDX-License-Identifier: Apache-2.0
// What the Python builder of Relax needs from C++: bindings under the names of the text.
#include <unordered_map>

#include "tvm/relax/analysis.h"
#include "tvm/relax/block_builder.h"
#include "tvm/script/language.h"

namespace tvm::script {
using namespace relax;
namespace {

void NameVar(const relax::VarObj* var, const String& name) {
  SetIfEmpty(var->vid->name_hint, name);
}

/// Binds a value; `info`, where it is given, is what the text says about the variable.
relax::Var Emit(const BlockBuilder& builder, const Expr& value, const Optional<StructInfo>& info,
                const String& name) {
  Expr normal = builder->Normalize(value);
  StructInfo known = GetStructInfo(normal);
  if (info.has_value() && StructInfoBaseCheck(info.value(), known) == BaseCheckResult::kFailL0) {
    TVM_FFI_THROW(ValueError) << "expected a value that is " << Repr(info.value())
                              << ", as annotated, got " << Repr(known);
  }
  StructInfo kept = info.value_or(known);
  relax::Var var =
      builder->CurrentBlockIsDataflow() ? DataflowVar(Id(name), kept) : relax::Var(Id(name), kept);
  builder->EmitNormalized(VarBinding(var, normal, value->span));
  return var;
}
relax::Var EmitMatchCast(const BlockBuilder& builder, const Expr& value, const StructInfo& info,
                         const Optional<StructInfo>& annotation, const String& name) {
  Expr normal = builder->NormalizeArgument(value);
  StructInfo known = GetStructInfo(normal);
  if (StructInfoBaseCheck(info, known) == BaseCheckResult::kFailL0) {
    TVM_FFI_THROW(ValueError) << "match_cast: expected something that " << Repr(known)
                              << " can be, got " << Repr(info);
  }
  StructInfo kept = annotation.value_or(info);
  relax::Var var =
      builder->CurrentBlockIsDataflow() ? DataflowVar(Id(name), kept) : relax::Var(Id(name), kept);
  builder->EmitNormalized(MatchCast(var, normal, info, value->span));
  return var;
}

/// Only at its end is it known which variables of a dataflow block are seen behind it.
struct Publish : Mutator<Publish, DataflowVarObj> {
  std::unordered_map<const Object*, relax::Var> outputs;
  ObjectRef Rewrite(const DataflowVarObj* var) {
    auto it = outputs.find(var);
    return it == outputs.end() ? ffi::GetRef<ObjectRef>(var) : it->second;
  }
};
/// [the block, its outputs as variables of the function]
Array<Any> EndDataflow(const BlockBuilder& builder, const Array<relax::Var>& outputs) {
  BindingBlock block = builder->EndBlock();
  Publish publish;
  Array<relax::Var> published;
  for (const relax::Var& var : outputs) {
    auto& found = publish.outputs[var.get()];
    if (!found.defined()) found = relax::Var(var->vid, GetStructInfo(var), var->span);
    published.push_back(found);
  }
  return {OnDeepStack([&] { return publish(block); }), published};
}

/// The sequence in normal form: neighbouring blocks of one kind are one, empty ones are none.
SeqExpr MakeSequence(const Array<BindingBlock>& blocks, const Expr& body) {
  std::vector<Array<Binding>> bindings;
  std::vector<int32_t> kinds;
  for (const BindingBlock& block : blocks) {
    if (block->bindings.empty()) continue;
    if (!kinds.empty() && kinds.back() == block->type_index()) {
      for (const Binding& binding : block->bindings) bindings.back().push_back(binding);
    } else {
      kinds.push_back(block->type_index());
      bindings.push_back(block->bindings);
    }
  }
  Array<BindingBlock> merged;
  for (size_t i = 0; i < kinds.size(); ++i) {
    bool dataflow = kinds[i] == DataflowBlockObj::RuntimeTypeIndex();
    merged.push_back(dataflow ? DataflowBlock(bindings[i]) : BindingBlock(bindings[i]));
  }
  SeqExpr seq(merged, body);
  UpdateStructInfo(seq, GetStructInfo(body));
  return seq;
}
/// A value that a function may return.
Expr AsResult(const BlockBuilder& builder, const Expr& value) {
  Expr normal = builder->Normalize(value);
  return IsLeafOrTuple(normal) ? normal : builder->NormalizeArgument(normal);
}
/// The end of a branch: the blocks without a last `name = leaf`, and what the branch gives.
Array<Any> EndBranch(const Array<BindingBlock>& blocks) {
  Array<BindingBlock> kept = blocks;
  while (!kept.empty() && kept.back()->bindings.empty()) kept.pop_back();
  if (kept.empty()) return {};
  BindingBlock last = kept.back();
  Binding binding = last->bindings.back();
  auto* plain = binding.as<VarBindingObj>();
  Expr result = binding->var;
  if (plain && IsLeafOrTuple(plain->value) && !last.as<DataflowBlockObj>()) {
    result = plain->value;
    Array<Binding> bindings = last->bindings;
    bindings.pop_back();
    kept.Set(kept.size() - 1, BindingBlock(bindings));
  }
  return {MakeSequence(kept, result), binding->var};
}
/// The choice between two branches, which give variables of that struct info.
relax::Var EmitIf(const BlockBuilder& builder, const Expr& cond, const SeqExpr& then_branch,
                  const SeqExpr& else_branch, const relax::Var& then_var,
                  const relax::Var& else_var) {
  If choice(builder->NormalizeArgument(cond), then_branch, else_branch);
  UpdateStructInfo(choice, StructInfoLCA(GetStructInfo(then_branch), GetStructInfo(else_branch)));
  relax::Var var(Id(then_var->name_hint()),
                 StructInfoLCA(GetStructInfo(then_var), GetStructInfo(else_var)));
  builder->EmitNormalized(VarBinding(var, choice));
  return var;
}
void SetInfo(const Expr& expr, const StructInfo& info) { UpdateStructInfo(expr, info); }
StructInfo KnownInfo(const Expr& expr) { return GetStructInfo(expr); }

TVM_REGISTER() {
  DefName<relax::VarObj, &NameVar>();
  SpanHandlers().Set(relax::VarObj::RuntimeTypeIndex(),
                     [](const Object*, ObjectRef*) -> const Optional<Span>* { return nullptr; });
  Def("script._relax_emit", &Emit, "Binds a value under a name.", Arg("builder"), Arg("value"),
      Arg("info"), Arg("name"));
  Def("script._relax_match_cast", &EmitMatchCast, "Binds a value that is checked at run time.",
      Arg("builder"), Arg("value"), Arg("info"), Arg("annotation"), Arg("name"));
  Def("script._relax_end_dataflow", &EndDataflow, "Ends a dataflow block.", Arg("builder"),
      Arg("outputs"));
  Def("script._relax_sequence", &MakeSequence, "Blocks and a body as one expression.",
      Arg("blocks"), Arg("body"));
  Def("script._relax_result", &AsResult, "What a function returns.", Arg("builder"), Arg("value"));
  Def("script._relax_end_branch", &EndBranch, "Blocks of a branch as one expression.",
      Arg("blocks"));
  Def("script._relax_if", &EmitIf, "Binds the choice between two branches.", Arg("builder"),
      Arg("cond"), Arg("then_branch"), Arg("else_branch"), Arg("then_var"), Arg("else_var"));
  Def("script._relax_info_of", &KnownInfo, "What is known of an expression or function.",
      Arg("expr"));
  Def("script._relax_set_info", &SetInfo, "Says what is known of an expression.", Arg("expr"),
      Arg("info"));
}
}  // namespace
}  // namespace tvm::script
