// SPDX-License-Identifier: Apache-2.0
// DataflowBlockRewrite: one dataflow block of a function changed step by step.
#include <unordered_set>

#include "tir/text.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"

namespace tvm::relax {

/// The block and the function change together; the function is made anew when it is asked for.
struct DataflowBlockRewriteObj : NodeObj {
  DataflowBlock dfb;
  Function root_fn;
  static constexpr bool _type_mutable = true;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindUnsupported;
  static void Fields(auto&& def) {
    def("dfb", &DataflowBlockRewriteObj::dfb);
    def("root_fn", &DataflowBlockRewriteObj::root_fn);
  }
  void Init();

  void ReplaceAllUses(const Var& old_var, const Var& new_var);
  Var Add(const Variant<Binding, Expr>& item, const Optional<String>& name, bool is_dataflow_var);
  void RemoveUnused(const Var& var, bool allow_undefined);
  void RemoveAllUnused();
  DataflowBlock MutatedBlock() const {
    return DataflowBlock(Array<Binding>(bindings.begin(), bindings.end()));
  }
  Function MutatedFunction() const;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.DataflowBlockRewrite", DataflowBlockRewriteObj, NodeObj);

 private:
  std::vector<Binding> bindings;
  std::unordered_set<const Object*> used_outside;  // ids
  std::unordered_map<const Object*, Var> replaced;
  BlockBuilder builder = BlockBuilder::Create();
};
struct DataflowBlockRewrite : ObjectRef {
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(DataflowBlockRewrite, ObjectRef,
                                             DataflowBlockRewriteObj);
};

namespace {
/// Another block in the place of one, other variables in the place of some.
class BlockReplacer : public ExprMutator {
 public:
  BlockReplacer(const DataflowBlock& before, const DataflowBlock& after,
                const std::unordered_map<const Object*, Var>& replaced)
      : before_(before), after_(after), replaced_(replaced) {}
  Expr VisitExpr_(const VarObj* op) final {
    auto it = replaced_.find(op->vid.get());
    return it == replaced_.end() ? ExprMutator::VisitExpr_(op) : Expr(it->second);
  }
  void VisitBindingBlock(const BindingBlock& block) final {
    ExprMutator::VisitBindingBlock(block.same_as(before_) ? BindingBlock(after_) : block);
  }

 private:
  const DataflowBlock &before_, &after_;
  const std::unordered_map<const Object*, Var>& replaced_;
};
struct OutsideUses : ExprVisitor {
  const DataflowBlock& block;
  BlockBuilder names;
  std::unordered_set<const Object*> used;
  bool found = false;
  OutsideUses(const DataflowBlock& block, BlockBuilder names) : block(block), names(names) {}
  void VisitExpr_(const VarObj* op) final { used.insert(op->vid.get()); }
  void VisitVarDef(const Var& var) final { names->GetUniqueName(var->name_hint()); }
  void VisitBindingBlock(const BindingBlock& b) final {
    if (!b.same_as(block)) return ExprVisitor::VisitBindingBlock(b);
    found = true;
    for (const Binding& binding : b->bindings) VisitVarDef(binding->var);
  }
};
std::unordered_set<const Object*> UsedIds(const Binding& binding) {
  std::unordered_set<const Object*> ids;
  for (const Var& var : UsedVars(ValueOf(binding))) ids.insert(var->vid.get());
  return ids;
}
}  // namespace

void DataflowBlockRewriteObj::Init() {
  OutsideUses outside(dfb, builder);
  outside.VisitExpr(root_fn);
  if (!outside.found) {
    TVM_FFI_THROW(ValueError) << "DataflowBlockRewrite: expected a dataflow block of the function, "
                                 "got another one";
  }
  used_outside = std::move(outside.used);
  bindings.assign(dfb->bindings.begin(), dfb->bindings.end());
  for (const Binding& binding : bindings) {
    builder->BeginDataflowBlock();
    builder->EmitNormalized(binding);
    builder->EndBlock();
  }
}
void DataflowBlockRewriteObj::ReplaceAllUses(const Var& old_var, const Var& new_var) {
  replaced[old_var->vid.get()] = new_var;
  if (used_outside.erase(old_var->vid.get())) used_outside.insert(new_var->vid.get());
  DataflowBlock block = MutatedBlock();
  std::unordered_map<const Object*, Var> one{{old_var->vid.get(), new_var}};
  SeqExpr seq({block}, Tuple(Array<Expr>()));
  auto changed = As<SeqExpr>(BlockReplacer(block, block, one).VisitExpr(seq));
  bindings.clear();
  for (const BindingBlock& b : changed->blocks)
    bindings.insert(bindings.end(), b->bindings.begin(), b->bindings.end());
}
Var DataflowBlockRewriteObj::Add(const Variant<Binding, Expr>& item, const Optional<String>& name,
                                 bool is_dataflow_var) {
  builder->BeginDataflowBlock();
  if (auto binding = item.as<Binding>()) {
    builder->EmitNormalized(*binding);
  } else {
    String hint = name.value_or(is_dataflow_var ? "lv" : "gv");
    Expr expr = *item.as<Expr>();
    try {
      is_dataflow_var ? builder->Emit(expr, hint) : builder->EmitOutput(expr, hint);
    } catch (...) {
      builder->UnwindTo(0);
      throw;
    }
  }
  BindingBlock block = builder->EndBlock();
  bindings.insert(bindings.end(), block->bindings.begin(), block->bindings.end());
  return bindings.back()->var;
}
void DataflowBlockRewriteObj::RemoveUnused(const Var& var, bool allow_undefined) {
  const Object* id = var->vid.get();
  bool is_used = used_outside.count(id);
  auto place = bindings.end();
  for (auto it = bindings.begin(); it != bindings.end(); ++it) {
    is_used = is_used || UsedIds(*it).count(id);
    if ((*it)->var->vid.get() == id) place = it;
  }
  if (place == bindings.end()) {
    if (allow_undefined) return;
    TVM_FFI_THROW(ValueError) << "remove_unused: expected a variable of the block, got '"
                              << var->name_hint() << "'";
  }
  if (is_used) {
    TVM_FFI_THROW(ValueError) << "remove_unused: expected a variable that nobody uses, got '"
                              << var->name_hint() << "'";
  }
  bindings.erase(place);
}
void DataflowBlockRewriteObj::RemoveAllUnused() {
  std::unordered_set<const Object*> needed = used_outside;
  std::vector<Binding> kept;
  for (auto it = bindings.rbegin(); it != bindings.rend(); ++it) {
    if (!needed.count((*it)->var->vid.get())) continue;
    kept.push_back(*it);
    needed.merge(UsedIds(*it));
  }
  bindings.assign(kept.rbegin(), kept.rend());
}
Function DataflowBlockRewriteObj::MutatedFunction() const {
  DataflowBlock after = MutatedBlock();
  return As<Function>(BlockReplacer(dfb, after, replaced).VisitExpr(root_fn));
}

namespace {
TVM_REGISTER() {
  RegisterNode<DataflowBlockRewriteObj>("One dataflow block of a function changed step by step.");
  using Rewrite = DataflowBlockRewrite;
  Def(
      "relax.DataflowBlockRewrite.replace_all_uses",
      [](Rewrite r, Var from, Var to) { r->ReplaceAllUses(from, to); },
      "Uses new_var wherever old_var is used.", Arg("self"), Arg("old_var"), Arg("new_var"));
  Def(
      "relax.DataflowBlockRewrite._add",
      [](Rewrite r, Variant<Binding, Expr> item, Optional<String> name, bool is_dfvar) {
        return r->Add(item, name, is_dfvar);
      },
      "", Arg("self"), Arg("expr"), Arg("name"), Arg("is_dfvar"));
  Def(
      "relax.DataflowBlockRewrite.remove_unused",
      [](Rewrite r, Var var, bool allow_undef) { r->RemoveUnused(var, allow_undef); },
      "Removes the binding of a variable that nobody uses.", Arg("self"), Arg("var"),
      Arg("allow_undef", false));
  Def(
      "relax.DataflowBlockRewrite.remove_all_unused", [](Rewrite r) { r->RemoveAllUnused(); },
      "Removes all bindings that nobody uses.", Arg("self"));
  Def(
      "relax.DataflowBlockRewrite.mutated_dfb", [](Rewrite r) { return r->MutatedBlock(); },
      "The block as it is now.", Arg("self"));
  Def(
      "relax.DataflowBlockRewrite.mutated_root_fn", [](Rewrite r) { return r->MutatedFunction(); },
      "The function as it is now.", Arg("self"));
}
}  // namespace
}  // namespace tvm::relax
