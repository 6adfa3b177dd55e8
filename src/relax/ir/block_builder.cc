// SPDX-License-Identifier: Apache-2.0
// BlockBuilder: the module, names, scopes, blocks and bindings. normalize.cc has the normal form.
#include "tvm/relax/block_builder.h"

#include <algorithm>
#include <functional>

#include "ir/structural_equal.h"
#include "relax/analysis/symbolic_vars.h"
#include "relax/ir/builder_impl.h"
#include "tir/text.h"
#include "tvm/ir/structural.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {

// ---- names ------------------------------------------------------------------------------------
namespace {
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool StaysInName(char c) { return isalnum(static_cast<unsigned char>(c)) || c == '_'; }
}  // namespace
bool IsIdentifier(std::string_view name) {
  return std::all_of(name.begin(), name.end(), &StaysInName);
}

void NameTable::Take(std::string_view name) {
  if (last_.find(name) != last_.end()) return;
  last_.emplace(name, 0);
  some_end_in_digit_ |= !name.empty() && IsDigit(name.back());
}
bool NameTable::IsNumbered(std::string_view name) const {
  int64_t number = 0, unit = 1;
  for (size_t at = name.size(); at-- > 1 && IsDigit(name[at]) && unit < 1000000000; unit *= 10) {
    number += (name[at] - '0') * unit;
    auto it = name[at] == '0' ? last_.end() : last_.find(name.substr(0, at));
    if (it != last_.end() && number <= it->second) return true;
  }
  return false;
}
bool NameTable::IsTaken(std::string_view name) const {
  return last_.find(name) != last_.end() || IsNumbered(name);
}
String NameTable::Unique(std::string_view hint) {
  std::string name;
  if (!IsIdentifier(hint)) {
    name = hint;
    std::replace_if(name.begin(), name.end(), std::not_fn(&StaysInName), '_');
    hint = name;
  }
  auto it = last_.find(hint);
  if (it == last_.end()) {
    bool is_numbered = IsNumbered(hint);
    Take(hint);
    if (!is_numbered) return std::string(hint);
    it = last_.find(hint);
  }
  for (;;) {
    std::string fresh = it->first + std::to_string(it->second + 1);
    bool is_taken = some_end_in_digit_ && IsTaken(fresh);
    ++it->second;
    if (!is_taken) return fresh;
  }
}

// ---- state ------------------------------------------------------------------------------------
BlockBuilderObj::Impl::Impl(const Optional<IRModule>& start, bool apply_f_normalize)
    : mod(start ? start.value() : IRModule(Map<GlobalVar, BaseFunc>())),
      owns_mod(!start),
      apply_f_normalize(apply_f_normalize) {}
namespace {
uint64_t OutlineOf(const BaseFunc& func) {
  return OnDeepStack([&] { return OutlineHash(func); });
}
std::string SymbolOf(const BaseFunc& func) {
  auto symbol = func->GetAttr<String>(attr::kGlobalSymbol);
  return symbol ? std::string(symbol.value()) : "";
}
}  // namespace
IRModuleObj* BlockBuilderObj::Impl::Own() {
  if (!std::exchange(owns_mod, true)) mod = IRModule(mod->functions, mod->attrs, mod->global_infos);
  return const_cast<IRModuleObj*>(mod.get());
}
void BlockBuilderObj::Impl::IndexFunction(const GlobalVar& var, const BaseFunc& func) {
  function_names.Take(View(var->name_hint));
  alike[SymbolOf(func)].without_outline.push_back(var);
}
void BlockBuilderObj::Impl::AddOutline(const GlobalVar& var, uint64_t outline) {
  outlines.emplace(var.get(), outline);
  by_outline.emplace(outline, var);
}
std::optional<uint64_t> BlockBuilderObj::Impl::OutlineAmong(Alike* alike, const BaseFunc& func) {
  if (alike->without_outline.empty() && !alike->has_outlines) return {};
  alike->has_outlines = true;
  for (const GlobalVar& var : std::exchange(alike->without_outline, {})) {
    if (mod->functions.count(var) && !outlines.count(var.get()))
      AddOutline(var, OutlineOf(mod->Lookup(var)));
  }
  return OutlineOf(func);
}
void BlockBuilderObj::Impl::RemoveOutline(const GlobalVar& var) {
  auto known = outlines.find(var.get());
  if (known == outlines.end()) return;
  auto [begin, end] = by_outline.equal_range(known->second);
  outlines.erase(known);
  by_outline.erase(
      std::find_if(begin, end, [&](const auto& item) { return item.second.same_as(var); }));
}
void BlockBuilderObj::Impl::IndexFunctions() {
  if (std::exchange(is_indexed, true)) return;
  for (const auto& [var, func] : mod->functions) IndexFunction(var, func);
}
String BlockBuilderObj::Impl::UniqueName(std::string_view hint) {
  for (const Id& id : without_name) var_names.Take(View(id->name_hint));
  without_name.clear();
  return var_names.Unique(hint);
}
BlockBuilderObj::Impl::Frame& BlockBuilderObj::Impl::Top() {
  if (frames.empty()) {
    TVM_FFI_THROW(RuntimeError) << "BlockBuilder: expected an open function or block to emit into, "
                                   "got none";
  }
  return frames.back();
}
void BlockBuilderObj::Impl::Define(const StructInfo& info) {
  VisitSymbolicExprs(info, [&](const PrimExpr& e, SymbolicExpr place) {
    auto* var = e.as<tir::VarObj>();
    if (place != SymbolicExpr::kInFunction && var && !scopes.empty())
      scopes.back().defined.push_back(var);
    if (place == SymbolicExpr::kDim && !e.as<IntImmObj>()) not_negative.push_back(e);
  });
}
void BlockBuilderObj::Impl::Flush(Frame* frame) {
  if (frame->bindings.empty()) return;
  frame->finished.push_back(
      BindingBlock(Array<Binding>(std::make_move_iterator(frame->bindings.begin()),
                                  std::make_move_iterator(frame->bindings.end()))));
  frame->bindings.clear();
}
Var BlockBuilderObj::Impl::NewVar(bool is_dataflow, const String& name_hint,
                                  const StructInfo& info) {
  std::string_view hint = View(name_hint);
  if (hint.empty()) hint = is_dataflow ? "lv" : "gv";
  Id id(UniqueName(hint));
  return is_dataflow ? DataflowVar(id, info) : Var(id, info);
}
void BlockBuilderObj::Impl::Push(const Binding& binding) {
  Frame& frame = Top();
  if (!frame.is_dataflow && binding->var.as<DataflowVarObj>()) {
    TVM_FFI_THROW(ValueError) << "BlockBuilder: Malformed AST: expected dataflow variables in "
                                 "dataflow blocks only, got '"
                              << binding->var->name_hint() << "' in a plain block";
  }
  if (auto* cast = binding.as<MatchCastObj>()) Define(cast->struct_info);
  without_value.push_back(binding);
  frame.bindings.push_back(binding);
}

BlockBuilderObj::BlockBuilderObj() : impl_(new Impl(std::nullopt, true)) {}
BlockBuilderObj::BlockBuilderObj(const BlockBuilderObj& other)
    : impl_(new Impl(other.impl_->mod, other.impl_->apply_f_normalize)) {}
BlockBuilderObj::~BlockBuilderObj() = default;
BlockBuilder BlockBuilder::Create(const Optional<IRModule>& mod, bool apply_f_normalize) {
  return New<BlockBuilder>([&](BlockBuilderObj* n) {
    n->impl_ = std::make_unique<BlockBuilderObj::Impl>(mod, apply_f_normalize);
  });
}
arith::Analyzer* BlockBuilderObj::analyzer() const {
  if (!impl_->analyzer) impl_->analyzer = std::make_unique<arith::Analyzer>();
  for (const PrimExpr& e : impl_->not_negative) impl_->analyzer->MarkGlobalNonNeg(e);
  impl_->not_negative.clear();
  return impl_->analyzer.get();
}

// ---- module -----------------------------------------------------------------------------------
IRModule BlockBuilderObj::GetModule() const {
  const IRModule& mod = impl_->mod;
  return IRModule(mod->functions, mod->attrs, mod->global_infos);
}
const IRModule& BlockBuilderObj::module() const { return impl_->mod; }
IRModule BlockBuilderObj::Finalize() { return NormalizeGlobalVar(GetModule()); }
GlobalVar BlockBuilderObj::AddFunction(const BaseFunc& func, const String& name_hint) {
  impl_->IndexFunctions();
  Impl::Alike& alike = impl_->alike[SymbolOf(func)];
  std::optional<uint64_t> outline = impl_->OutlineAmong(&alike, func);
  GlobalVar found;
  if (outline) {
    auto [begin, end] = impl_->by_outline.equal_range(*outline);
    for (auto it = begin; it != end; ++it) {
      const GlobalVar& var = it->second;
      if (found.defined() && View(found->name_hint) < View(var->name_hint)) continue;
      if (StructuralEqual(impl_->mod->Lookup(var), func)) found = var;
    }
  }
  if (found.defined()) return found;
  GlobalVar var(impl_->function_names.Unique(View(name_hint)));
  UpdateStructInfo(var, GetStructInfo(func));
  impl_->Own()->Update(var, func);
  if (outline) {
    impl_->AddOutline(var, *outline);
  } else {
    alike.without_outline.push_back(var);
  }
  return var;
}
void BlockBuilderObj::UpdateFunction(const GlobalVar& var, const BaseFunc& func) {
  GlobalVar before = impl_->mod->FindGlobalVar(var->name_hint);
  if (before.defined()) impl_->RemoveOutline(before);
  UpdateStructInfo(var, GetStructInfo(func));
  impl_->Own()->Update(var, func);
  if (impl_->is_indexed) impl_->IndexFunction(var, func);
}

// ---- scopes and blocks ------------------------------------------------------------------------
void BlockBuilderObj::BeginScope(const Optional<Array<Var>>& params) {
  impl_->scopes.push_back({{}, params});
  if (!params) return;
  for (const Var& param : params.value()) {
    if (param->struct_info_) impl_->Define(param->struct_info_.value());
  }
}
void BlockBuilderObj::BeginScopeWith(const Array<tir::Var>& shape_vars) {
  Array<PrimExpr> dims(shape_vars.begin(), shape_vars.end());
  BeginScope(Array<Var>{Var("shape_vars", ShapeStructInfo(dims))});
}
void BlockBuilderObj::EndScope() {
  if (impl_->scopes.empty()) {
    TVM_FFI_THROW(RuntimeError) << "BlockBuilder: expected an open scope to end, got none";
  }
  impl_->scopes.pop_back();
  if (!impl_->scopes.empty()) return;
  // What was known belongs to that function, and questions take longer the more is known.
  impl_->analyzer.reset();
  impl_->not_negative.clear();
}
void BlockBuilderObj::BeginBindingBlock() { impl_->frames.emplace_back(); }
void BlockBuilderObj::BeginDataflowBlock() { impl_->frames.emplace_back().is_dataflow = true; }
void BlockBuilderObj::BeginSequence() { impl_->frames.emplace_back().is_sequence = true; }
BindingBlock BlockBuilderObj::EndBlock() {
  Impl::Frame& frame = impl_->Top();
  if (frame.is_sequence) {
    TVM_FFI_THROW(RuntimeError)
        << "BlockBuilder: expected a block to end, got a sequence of blocks";
  }
  Array<Binding> bindings(std::make_move_iterator(frame.bindings.begin()),
                          std::make_move_iterator(frame.bindings.end()));
  BindingBlock block = frame.is_dataflow ? DataflowBlock(bindings) : BindingBlock(bindings);
  impl_->frames.pop_back();
  return block;
}
void BlockBuilderObj::CloseBlock() {
  BindingBlock block = EndBlock();
  if (block->bindings.empty()) return;
  Impl::Frame& around = impl_->Top();
  if (!around.is_sequence) {
    TVM_FFI_THROW(RuntimeError)
        << "BlockBuilder: expected a function around the dataflow block, got another block";
  }
  impl_->Flush(&around);
  around.finished.push_back(block);
}
void BlockBuilderObj::AppendBlock(const BindingBlock& block) {
  if (block.as<DataflowBlockObj>() && !CurrentBlockIsDataflow()) {
    BeginDataflowBlock();
    for (const Binding& binding : block->bindings) EmitNormalized(binding);
    return CloseBlock();
  }
  for (const Binding& binding : block->bindings) EmitNormalized(binding);
}
Array<BindingBlock> BlockBuilderObj::EndSequence() {
  Impl::Frame& frame = impl_->Top();
  if (!frame.is_sequence) {
    TVM_FFI_THROW(RuntimeError)
        << "BlockBuilder: expected a sequence of blocks to end, got a block";
  }
  return impl_->CloseSequence();
}
bool BlockBuilderObj::CurrentBlockIsDataflow() const {
  return !impl_->frames.empty() && impl_->frames.back().is_dataflow;
}
size_t BlockBuilderObj::Depth() const { return impl_->frames.size(); }
void BlockBuilderObj::UnwindTo(size_t depth) {
  while (impl_->frames.size() > depth) impl_->frames.pop_back();
}
/// Neighbouring blocks of one kind become one.
Array<BindingBlock> BlockBuilderObj::Impl::CloseSequence() {
  Frame& frame = Top();
  Flush(&frame);
  Array<BindingBlock> merged;
  std::vector<Binding> bindings;
  for (size_t i = 0; i < frame.finished.size(); ++i) {
    const BindingBlock block = frame.finished[i];
    bool joins_next =
        i + 1 < frame.finished.size() && frame.finished[i + 1]->type_index() == block->type_index();
    if (bindings.empty() && !joins_next) {
      merged.push_back(block);
      continue;
    }
    bindings.insert(bindings.end(), block->bindings.begin(), block->bindings.end());
    if (joins_next) continue;
    Array<Binding> all(bindings.begin(), bindings.end());
    merged.push_back(block.as<DataflowBlockObj>() ? DataflowBlock(all) : BindingBlock(all));
    bindings.clear();
  }
  frames.pop_back();
  return merged;
}

// ---- bindings ---------------------------------------------------------------------------------
Var BlockBuilderObj::Emit(const Expr& expr, const String& name_hint) {
  impl_->Top();
  Expr value = Normalize(expr);
  Var var = impl_->NewVar(CurrentBlockIsDataflow(), name_hint, GetStructInfo(value));
  impl_->Push(VarBinding(var, value, expr->span));
  return var;
}
Var BlockBuilderObj::EmitOutput(const Expr& expr, const String& name_hint) {
  if (!CurrentBlockIsDataflow()) {
    TVM_FFI_THROW(RuntimeError) << "emit_output: expected to be inside of a dataflow block";
  }
  Expr value = Normalize(expr);
  Var var = impl_->NewVar(false, name_hint, GetStructInfo(value));
  impl_->Push(VarBinding(var, value, expr->span));
  return var;
}
Var BlockBuilderObj::EmitMatchCast(const Expr& value, const StructInfo& info,
                                   const String& name_hint) {
  impl_->Top();
  Expr normal = NormalizeArgument(value);
  StructInfo known = GetStructInfo(normal);
  if (StructInfoBaseCheck(info, known) == BaseCheckResult::kFailL0) {
    TVM_FFI_THROW(ValueError) << "match_cast: expected something that " << tir::TextOf(known)
                              << " can be, got " << tir::TextOf(info);
  }
  Var var = impl_->NewVar(CurrentBlockIsDataflow(), name_hint, info);
  impl_->Push(MatchCast(var, normal, info, value->span));
  return var;
}
void BlockBuilderObj::EmitNormalized(const Binding& binding) {
  impl_->without_name.push_back(binding->var->vid);
  impl_->Push(binding);
}
Optional<Expr> BlockBuilderObj::LookupBinding(const Var& var) const {
  for (const Binding& binding : impl_->without_value) {
    auto* bind = binding.as<VarBindingObj>();
    const Expr& value = bind ? bind->value : binding.as<MatchCastObj>()->value;
    const Id& id = binding->var->vid;
    impl_->values.insert_or_assign(id.get(), std::pair(id, value));
  }
  impl_->without_value.clear();
  auto it = impl_->values.find(var->vid.get());
  return it == impl_->values.end() ? Optional<Expr>() : it->second.second;
}
String BlockBuilderObj::GetUniqueName(const String& name) { return impl_->UniqueName(View(name)); }

Var WithStructInfo(const Var& var, const StructInfo& info) {
  if (var->struct_info_ && var->struct_info_.value().same_as(info)) return var;
  return var.as<DataflowVarObj>() ? DataflowVar(var->vid, info, var->span)
                                  : Var(var->vid, info, var->span);
}

namespace {
TVM_REGISTER() {
  RegisterNode<BlockBuilderObj>("Builds programs in normal form.");
#define METHOD(name, doc, call, params, ...)                       \
  Def(                                                             \
      "relax.BlockBuilder." name, [] params { return call; }, doc, \
      Arg("self") __VA_OPT__(, ) __VA_ARGS__)
  using B = BlockBuilder;
  Def(
      "relax.BlockBuilder._create",
      [](Optional<IRModule> mod, bool apply_f_normalize) {
        // The caller may change its module while the builder lives.
        if (mod)
          mod = IRModule(mod.value()->functions, mod.value()->attrs, mod.value()->global_infos);
        return BlockBuilder::Create(mod, apply_f_normalize);
      },
      "", Arg("mod", nullptr), Arg("apply_f_normalize", true));
  METHOD("get", "The module as it is now.", b->GetModule(), (B b));
  METHOD("finalize", "The module, with names of functions in order.", b->Finalize(), (B b));
  METHOD("add_func", "Adds a function, or finds an equal one.", b->AddFunction(f, name),
         (B b, BaseFunc f, String name), Arg("func"), Arg("func_name"));
  METHOD("update_func", "Replaces a function.", b->UpdateFunction(var, f),
         (B b, GlobalVar var, BaseFunc f), Arg("gv"), Arg("updated_func"));
  METHOD("begin_scope", "Symbolic variables of the parameters are known until end_scope.",
         b->BeginScope(params), (B b, Optional<Array<Var>> params), Arg("params", nullptr));
  METHOD("_begin_scope_with", "", b->BeginScopeWith(vars), (B b, Array<tir::Var> vars),
         Arg("shape_vars"));
  METHOD("end_scope", "Ends what begin_scope began.", b->EndScope(), (B b));
  METHOD("_begin_binding_block", "", b->BeginBindingBlock(), (B b));
  METHOD("_begin_dataflow_block", "", b->BeginDataflowBlock(), (B b));
  METHOD("_end_block", "The block that was open.", b->EndBlock(), (B b));
  METHOD("_close_block", "Ends the block and leaves it in the sequence.", b->CloseBlock(), (B b));
  METHOD("_append_block", "Adds a block to the sequence.", b->AppendBlock(block),
         (B b, BindingBlock block), Arg("block"));
  METHOD("_begin_sequence", "", b->BeginSequence(), (B b));
  METHOD("_end_sequence", "The blocks of the sequence.", b->EndSequence(), (B b));
  METHOD("current_block_is_dataflow", "Whether the open block is a dataflow block.",
         b->CurrentBlockIsDataflow(), (B b));
  METHOD("_depth", "", static_cast<int64_t>(b->Depth()), (B b));
  METHOD("_unwind_to", "", b->UnwindTo(depth), (B b, int64_t depth), Arg("depth"));
  METHOD("_emit", "Binds an expression to a new variable.", b->Emit(e, name.value_or(String())),
         (B b, Expr e, Optional<String> name), Arg("expr"), Arg("name_hint", nullptr));
  METHOD("_emit_output", "Binds an output of the dataflow block.", b->EmitOutput(e, name),
         (B b, Expr e, String name), Arg("output"), Arg("name_hint", String()));
  METHOD("_match_cast", "Binds a value with what is checked at run time.",
         b->EmitMatchCast(e, info, name), (B b, Expr e, StructInfo info, String name), Arg("value"),
         Arg("struct_info"), Arg("name_hint", String()));
  METHOD("emit_normalized", "Adds a binding that is in normal form.", b->EmitNormalized(binding),
         (B b, Binding binding), Arg("binding"));
  METHOD("lookup_binding", "The value of a variable, or None.", b->LookupBinding(var),
         (B b, Var var), Arg("var"));
  METHOD("normalize", "The expression in normal form.", b->Normalize(e), (B b, Expr e),
         Arg("expr"));
  METHOD("_normalize_argument", "The expression as a leaf.", b->NormalizeArgument(e), (B b, Expr e),
         Arg("expr"));
  METHOD("get_unique_name", "A name that is not taken.", b->GetUniqueName(name), (B b, String name),
         Arg("name_prefix"));
#undef METHOD
  Def("relax.MakeSeq", &MakeSeq, "The sequence in normal form, or the one before.", Arg("before"),
      Arg("blocks"), Arg("body"));
}
}  // namespace
}  // namespace tvm::relax
