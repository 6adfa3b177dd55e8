// SPDX-License-Identifier: Apache-2.0
// Symbolic shapes at run time: a heap holds the values of variables and of expressions of them;
// matching fills it, making shapes reads it.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "lowering.h"
#include "relax/analysis/symbolic_vars.h"
#include "tir/text.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/structural.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/infer.h"
#include "tvm/relax/transform.h"
#include "tvm/tir/function.h"

namespace tvm::relax {
namespace {
// The codes of vm.builtin.match_shape and vm.builtin.make_shape.
enum MatchCode : int64_t { kAssertEqualToImm, kStoreToHeap, kNoOp, kAssertEqualToLoad };
enum MakeCode : int64_t { kUseImm, kLoad };

// ---- the heap ---------------------------------------------------------------------------------
/// A variable or an expression of variables, and where its value is.
struct Slot {
  PrimExpr expr;
  int64_t index;
  std::vector<Slot*> users;  // of a variable: the expressions with it
  size_t missing = 0;        // of an expression: how many of its variables have no value yet
  bool known = false;        // the heap has the value here
  std::string origin;        // of a variable: where its value came from, for errors
};
/// The slots of a function. What becomes known in a branch is not known behind it.
class ShapeHeap {
 public:
  int64_t size() const { return static_cast<int64_t>(slots_.size()); }
  /// Makes room for an expression that the function needs.
  void Add(const PrimExpr& e) {
    if (e.as<IntImmObj>() || by_expr_.count(e)) return;
    Slot* slot = New(e);
    if (e.as<tir::VarObj>()) return;
    VisitVars(e, [&](const tir::VarObj* used) {
      auto var = ffi::GetRef<tir::Var>(used);
      Add(var);
      std::vector<Slot*>& users = by_expr_.at(var)->users;
      if (!users.empty() && users.back() == slot) return;  // a second use in the same expression
      users.push_back(slot);
      ++slot->missing;
    });
    // Nothing to wait for: n - n as somebody may have written it, with no variable left.
    if (slot->missing == 0) ready_.push_back(slot);
  }
  Slot* At(const PrimExpr& e) const { return by_expr_.at(e); }
  /// The variable has a value from here on.
  void Define(Slot* slot) {
    MarkKnown(slot);
    for (Slot* user : slot->users) {
      if (--user->missing == 0) ready_.push_back(user);
    }
  }
  /// Expressions that can be computed now; they are known when that is done.
  std::vector<Slot*> TakeReady() {
    for (Slot* slot : ready_) MarkKnown(slot);
    return std::exchange(ready_, {});
  }
  size_t Mark() const { return log_.size(); }
  void ForgetSince(size_t mark) {
    for (; log_.size() > mark; log_.pop_back()) {
      log_.back()->known = false;
      for (Slot* user : log_.back()->users) ++user->missing;
    }
  }

 private:
  Slot* New(const PrimExpr& e) {
    slots_.push_back(std::make_unique<Slot>(Slot{e, size(), {}, 0, false, ""}));
    by_expr_.emplace(e, slots_.back().get());
    return slots_.back().get();
  }
  void MarkKnown(Slot* slot) {
    slot->known = true;
    log_.push_back(slot);
  }
  std::vector<std::unique_ptr<Slot>> slots_;
  std::unordered_map<PrimExpr, Slot*, StructuralHasher, StructuralEquals> by_expr_;
  std::vector<Slot*> ready_, log_;
};

/// Finds the expressions whose values a function needs.
class SlotFinder : public ExprVisitor {
 public:
  explicit SlotFinder(ShapeHeap* heap) : heap_(heap) {}
  void Add(const StructInfo& info) {
    VisitSymbolicExprs(info, [&](const PrimExpr& e, SymbolicExpr place) {
      if (place != SymbolicExpr::kInFunction) heap_->Add(e);
    });
  }
  void VisitExpr_(const ShapeExprObj* op) final {
    for (const PrimExpr& e : op->values) heap_->Add(e);
  }
  void VisitExpr_(const PrimValueObj* op) final {
    if (!op->value.as<FloatImmObj>()) heap_->Add(op->value);
  }
  void VisitBinding_(const MatchCastObj* binding) final {
    Add(binding->struct_info);
    ExprVisitor::VisitBinding_(binding);
  }

 private:
  ShapeHeap* heap_;
};

// ---- one function -----------------------------------------------------------------------------
class ShapeLowerer : public ExprMutator {
 public:
  /// Functions that compute on the heap go into `functions`.
  ShapeLowerer(const IRModule& mod, BlockBuilder functions, String name, bool with_context)
      : ExprMutator(WithoutFunctions(mod)),
        functions_(std::move(functions)),
        name_(std::move(name)),
        with_context_(with_context) {}

  /// Whether the pass has been here: a heap comes first, then something is checked or matched.
  static bool IsLowered(const Function& func) {
    if (func->body->blocks.empty() || func->body->blocks[0]->bindings.size() < 2) return false;
    const Array<Binding>& bindings = func->body->blocks[0]->bindings;
    auto* heap = ValueOf(bindings[0]).as<CallObj>();
    auto* check = ValueOf(bindings[1]).as<CallObj>();
    auto calls = [](const Expr& callee, std::string_view name) {
      auto* packed = callee.as<ExternFuncObj>();
      return packed && View(packed->global_symbol).starts_with(name);
    };
    const LoweredOps& ops = LoweredOps::Get();
    bool has_heap =
        heap && (heap->Is(ops.null_value) || (heap->Is(ops.call_with_vm) &&
                                              calls(heap->args[0], "vm.builtin.alloc_shape_heap")));
    return has_heap && check &&
           (calls(check->op, "vm.builtin.check_") || calls(check->op, "vm.builtin.match_"));
  }
  Function Lower(const Function& func) {
    SlotFinder finder(&heap_);
    for (const Var& param : func->params) finder.Add(GetStructInfo(param));
    finder.VisitExpr(func->body);
    finder.Add(func->ret_struct_info);
    builder_->BeginScope(func->params);
    builder_->BeginSequence();
    EmitHeap();
    for (const Var& param : func->params) {
      SetContext("argument '" + std::string(param->name_hint()) + "'", GetStructInfo(param));
      Check(param, GetStructInfo(param), ObjectStructInfo::Get());
    }
    MatchAll();
    CheckRanges(func);
    for (const BindingBlock& block : func->body->blocks) VisitBindingBlock(block);
    Expr result = builder_->NormalizeArgument(VisitExpr(func->body->body));
    MatchReturn(func, result);
    SeqExpr body = MakeSeq(func->body, builder_->EndSequence(), result);
    builder_->EndScope();
    return Function(func->params, body, func->ret_struct_info, func->is_pure, func->attrs,
                    func->span);
  }

  // ---- uses -----------------------------------------------------------------------------------
  Expr VisitExpr_(const ShapeExprObj* op) final {
    std::vector<int64_t> codes;
    bool is_constant = true;
    for (const PrimExpr& e : op->values) {
      auto value = AsConstInt(e);
      is_constant = is_constant && value;
      codes.push_back(value ? kUseImm : kLoad);
      codes.push_back(value ? *value : KnownSlot(e)->index);
    }
    if (is_constant) return ffi::GetRef<Expr>(op);
    auto it = shapes_.find(codes);
    if (it != shapes_.end()) return it->second;
    Array<Expr> args = {heap_var_, PrimValue::Int64(static_cast<int64_t>(op->values.size()))};
    for (int64_t code : codes) args.push_back(PrimValue::Int64(code));
    ShapeStructInfo info(static_cast<int64_t>(op->values.size()));
    Var made = builder_->Emit(CallPacked("vm.builtin.make_shape", args, info), "shape");
    shape_log_.push_back(shapes_.emplace(codes, made).first);
    return made;
  }
  Expr VisitExpr_(const PrimValueObj* op) final {
    const PrimExpr& value = op->value;
    if (value.as<IntImmObj>() || value.as<FloatImmObj>()) return ffi::GetRef<Expr>(op);
    CheckInteger(value);
    return CallPacked(
        "vm.builtin.make_prim_value",
        {heap_var_, PrimValue::Int64(kLoad), PrimValue::Int64(KnownSlot(value)->index)},
        PrimStructInfo(value.dtype()));
  }
  Expr VisitExpr_(const IfObj* op) final {
    Expr cond = VisitExpr(op->cond);
    auto branch = [&](const SeqExpr& seq) {
      size_t known = heap_.Mark(), shapes = shape_log_.size();
      SeqExpr result = VisitWithNewScope(seq);
      heap_.ForgetSince(known);
      for (; shape_log_.size() > shapes; shape_log_.pop_back()) shapes_.erase(shape_log_.back());
      return result;
    };
    SeqExpr yes = branch(op->true_branch), no = branch(op->false_branch);
    return If(cond, yes, no, op->span);
  }
  Expr VisitExpr_(const FunctionObj*) final {
    TVM_FFI_THROW(ValueError) << "VMShapeLower: expected no local functions (LambdaLift takes them "
                                 "out), got one in '"
                              << name_ << "'";
    TVM_FFI_UNREACHABLE();
  }

  // ---- definitions ----------------------------------------------------------------------------
  void VisitBinding_(const VarBindingObj* binding) final {
    if (IsClaim(binding->value)) claims_.insert(binding->var->vid.get());
    ExprMutator::VisitBinding_(binding);
  }
  void VisitBinding_(const MatchCastObj* binding) final {
    StructInfo known = GetStructInfo(binding->value);
    Expr value = builder_->NormalizeArgument(VisitExpr(binding->value));
    SetContext("match_cast of '" + std::string(binding->var->name_hint()) + "'",
               binding->struct_info);
    Check(value, binding->struct_info, IsClaim(binding->value) ? ObjectStructInfo::Get() : known);
    MatchAll();
    builder_->EmitNormalized(VarBinding(binding->var, value, binding->span));
  }

 private:
  void EmitHeap() {
    if (heap_.size() == 0) {
      heap_var_ = builder_->Emit(Call(LoweredOps::Get().null_value, {}), "shape_heap");
      return;
    }
    Call alloc(LoweredOps::Get().call_with_vm,
               {ExternFunc("vm.builtin.alloc_shape_heap"), Tuple({PrimValue::Int64(heap_.size())})},
               {}, {TensorStructInfo(DataType::Int(64), 1)});
    heap_var_ = builder_->Emit(alloc, "shape_heap");
  }
  /// What is checked from here on.
  void SetContext(const std::string& what, const StructInfo& info) {
    what_ = what;
    if (!with_context_) return;
    std::string text = tir::TextOf(info);  // behind declarations of its variables
    context_ = std::string(name_) + ": " + what + " of " + text.substr(text.rfind('\n') + 1) + ":";
  }
  /// A value of the heap that another one has to equal, and whose it is.
  std::string OriginText(const PrimExpr& e) const {
    if (e.as<tir::VarObj>()) return tir::TextOf(e) + " (" + heap_.At(e)->origin + ")";
    std::vector<std::string> origins;
    VisitVars(e, [&](const tir::VarObj* var) {
      std::string text =
          std::string(var->name_hint) + ": " + heap_.At(ffi::GetRef<tir::Var>(var))->origin;
      if (std::find(origins.begin(), origins.end(), text) == origins.end()) origins.push_back(text);
    });
    std::string text;
    for (const std::string& origin : origins) text += (text.empty() ? "" : ", ") + origin;
    return tir::TextOf(e) + " (" + text + ")";
  }
  void CheckInteger(const PrimExpr& e) const {
    if (e.dtype().is_int() || e.dtype().is_uint() || e.dtype().is_bool()) return;
    TVM_FFI_THROW(ValueError) << "VMShapeLower: expected an integer as symbolic value, got "
                              << tir::TextOf(e) << " of " << e.dtype() << " in '" << name_ << "'";
  }
  Slot* KnownSlot(const PrimExpr& e) const {
    Slot* slot = heap_.At(e);
    if (slot->known) return slot;
    TVM_FFI_THROW(ValueError) << "VMShapeLower: expected the variables of " << tir::TextOf(e)
                              << " to be defined before they are used, got one without a value in '"
                              << name_ << "'";
    TVM_FFI_UNREACHABLE();
  }
  void EmitPacked(const char* function, Array<Expr> args) {
    builder_->Emit(CallPacked(function, std::move(args), TupleStructInfo::Void()), "_");
  }

  // ---- checks ---------------------------------------------------------------------------------
  /// What has still to be matched: a value and its dimensions, or a scalar.
  struct Todo {
    Expr value;
    std::vector<std::optional<PrimExpr>> exprs;  // those that are done are gone
    bool is_scalar;
    std::string what, context;
    Dims Open() const {
      Dims open;
      for (const auto& e : exprs) {
        if (e) open.push_back(*e);
      }
      return open;
    }
  };
  void PutOff(const Expr& value, const Array<PrimExpr>& exprs, bool is_scalar = false) {
    todo_.push_back({value, {exprs.begin(), exprs.end()}, is_scalar, what_, context_});
  }
  /// Emits checks that the value is of the kind that `info` says, where `known` does not imply it;
  /// its dimensions are matched later.
  void Check(const Expr& value, const StructInfo& info, const StructInfo& known) {
    if (auto* tensor = info.as<TensorStructInfoObj>()) {
      auto* have = known.as<TensorStructInfoObj>();
      bool checked = have && (tensor->ndim < 0 || have->ndim == tensor->ndim) &&
                     (tensor->dtype.is_void() || have->dtype == tensor->dtype);
      if (!checked) {
        Array<Expr> args = {value, PrimValue::Int64(tensor->ndim)};
        if (!tensor->dtype.is_void()) args.push_back(DataTypeImm(tensor->dtype));
        args.push_back(StringImm(context_));
        EmitPacked("vm.builtin.check_tensor_info", args);
      }
      if (auto dims = tensor->Dims()) PutOff(value, dims.value());
    } else if (auto* shape = info.as<ShapeStructInfoObj>()) {
      auto* have = known.as<ShapeStructInfoObj>();
      if (!have || (shape->ndim >= 0 && have->ndim != shape->ndim))
        EmitPacked("vm.builtin.check_shape_info",
                   {value, PrimValue::Int64(shape->ndim), StringImm(context_)});
      if (shape->values) PutOff(value, shape->values.value());
    } else if (auto* prim = info.as<PrimStructInfoObj>()) {
      auto* have = known.as<PrimStructInfoObj>();
      if (!have || have->dtype != prim->dtype)
        EmitPacked("vm.builtin.check_prim_value_info",
                   {value, DataTypeImm(prim->dtype), StringImm(context_)});
      if (prim->value) {
        CheckInteger(prim->value.value());
        PutOff(value, {prim->value.value()}, true);
      }
    } else if (auto* tuple = info.as<TupleStructInfoObj>()) {
      auto* have = known.as<TupleStructInfoObj>();
      if (have && have->fields.size() != tuple->fields.size()) have = nullptr;
      if (!have)
        EmitPacked("vm.builtin.check_tuple_info",
                   {value, PrimValue::Int64(static_cast<int64_t>(tuple->fields.size())),
                    StringImm(context_)});
      Recurse([&] { CheckFields(value, tuple, have); });
    } else if (info.as<FuncStructInfoObj>() && !known.as<FuncStructInfoObj>()) {
      EmitPacked("vm.builtin.check_func_info", {value, StringImm(context_)});
    }
  }
  void CheckFields(const Expr& value, const TupleStructInfoObj* info,
                   const TupleStructInfoObj* known) {
    auto* fields = value.as<TupleObj>();
    for (size_t i = 0; i < info->fields.size(); ++i) {
      const StructInfo& field = info->fields[i];
      StructInfo have = known ? StructInfo(known->fields[i]) : ObjectStructInfo::Get();
      if (field.as<ObjectStructInfoObj>()) continue;
      // An item of a value of unknown kind is one of a tuple now that this is checked.
      Expr item = fields ? Expr(fields->fields[i]) : [&] {
        TupleGetItem get(value, static_cast<int64_t>(i));
        if (!get->struct_info_) UpdateStructInfo(get, field);
        return Expr(builder_->Emit(get));
      }();
      Check(item, field, have);
    }
  }

  // ---- matching -------------------------------------------------------------------------------
  /// Matches everything that was put off: variables first, then what is computed of them.
  void MatchAll() {
    std::vector<Todo> todo = std::exchange(todo_, {});
    while (true) {
      bool progress = ComputeReady();
      std::vector<Todo> later;
      for (Todo& item : todo) {
        progress |= MatchOnce(&item);
        bool is_done = std::none_of(item.exprs.begin(), item.exprs.end(),
                                    [](const auto& e) { return e.has_value(); });
        if (!is_done) later.push_back(std::move(item));
      }
      if (later.empty()) break;
      if (!progress) {
        TVM_FFI_THROW(ValueError)
            << "VMShapeLower: expected each variable to stand alone as some dimension, got only "
            << Show(later[0].Open()) << " for one of '" << name_ << "'";
      }
      todo = std::move(later);
    }
    ComputeReady();
  }
  /// One call for what has a value, or gets one here; returns whether there was something.
  bool MatchOnce(Todo* item) {
    Array<Expr> codes;
    bool is_useful = false;
    std::string context = item->context, empty_lines;  // a line for each axis that others decide
    for (size_t axis = 0; axis < item->exprs.size(); ++axis) {
      std::optional<PrimExpr>& e = item->exprs[axis];
      int64_t code = kNoOp, operand = 0;
      if (e) std::tie(code, operand) = CodeOf(*e);
      if (code == kStoreToHeap) {
        heap_.At(*e)->origin =
            (item->is_scalar ? "" : "shape[" + std::to_string(axis) + "] of ") + item->what;
      }
      empty_lines += "\n";
      if (code == kAssertEqualToLoad && with_context_)
        context += std::exchange(empty_lines, "") + OriginText(*e);
      if (code != kNoOp) {
        e = std::nullopt;
        is_useful = true;
      }
      codes.push_back(PrimValue::Int64(code));
      codes.push_back(PrimValue::Int64(operand));
    }
    if (!is_useful) return false;
    Array<Expr> args = {item->value, heap_var_};
    if (!item->is_scalar)
      args.push_back(PrimValue::Int64(static_cast<int64_t>(item->exprs.size())));
    args.insert(args.end(), codes.begin(), codes.end());
    args.push_back(StringImm(context));
    EmitPacked(item->is_scalar ? "vm.builtin.match_prim_value" : "vm.builtin.match_shape", args);
    return true;
  }
  std::pair<int64_t, int64_t> CodeOf(const PrimExpr& e) {
    if (auto value = AsConstInt(e)) return {kAssertEqualToImm, *value};
    Slot* slot = heap_.At(e);
    if (slot->known) return {kAssertEqualToLoad, slot->index};
    if (!e.as<tir::VarObj>()) return {kNoOp, 0};
    heap_.Define(slot);
    return {kStoreToHeap, slot->index};
  }
  /// One function computes all expressions whose variables have values now.
  bool ComputeReady() {
    std::vector<Slot*> ready = heap_.TakeReady();
    if (ready.empty()) return false;
    auto by_index = [](const Slot* a, const Slot* b) { return a->index < b->index; };
    std::sort(ready.begin(), ready.end(), by_index);
    tir::Buffer heap = tir::Buffer::Decl({Dim(heap_.size())}, DataType::Int(64), "H");
    tir::Var handle("var_H", DataType::Handle());
    Array<tir::Stmt> stores;
    for (const Slot* slot : ready) {
      PrimExpr value = tir::Substitute(slot->expr, [&](const tir::Var& var) -> PrimExpr {
        PrimExpr load = tir::BufferLoad(heap, {Dim(heap_.At(var)->index)});
        return cast(var.dtype(), load);
      });
      stores.push_back(tir::BufferStore(heap, cast(DataType::Int(64), value), {Dim(slot->index)}));
    }
    tir::PrimFunc func({handle}, tir::SeqStmt::Flatten(stores), TupleType::Void(), {{handle, heap}},
                       HostFunctionAttrs());
    builder_->Emit(Call(functions_->AddFunction(func, "shape_func"), {heap_var_}), "_");
    return true;
  }
  /// Memory is planned, and code simplified, for the ranges that a function declares.
  void CheckRanges(const Function& func) {
    using Bounds = Map<String, int64_t>;
    Bounds lower = func->GetAttr<Bounds>("tir_var_lower_bound").value_or({});
    Bounds upper = func->GetAttr<Bounds>("tir_var_upper_bound").value_or({});
    if (lower.empty() && upper.empty()) return;
    std::unordered_set<const Object*> seen;
    for (const Var& param : func->params) {
      for (const tir::Var& var : TIRVarsInStructInfo(GetStructInfo(param))) {
        int64_t low = lower.Get(var->name_hint).value_or(0);
        int64_t high = upper.Get(var->name_hint).value_or(std::numeric_limits<int64_t>::max());
        // Exporters say 2 of a size that is neither 0 nor 1, with which programs work as well.
        if (low <= 2) low = 0;
        bool is_open = low == 0 && !upper.count(var->name_hint);
        if (is_open || !seen.insert(var.get()).second) continue;
        const Slot* slot = KnownSlot(var);
        std::string context = std::string(name_) + ": " + slot->origin + ": ";
        EmitPacked("vm.builtin.check_range",
                   {heap_var_, PrimValue::Int64(slot->index), PrimValue::Int64(low),
                    PrimValue::Int64(high), StringImm(with_context_ ? context : "")});
      }
    }
  }
  void MatchReturn(const Function& func, const Expr& result) {
    const Expr& before = func->body->body;
    StructInfo known = IsClaim(before) ? ObjectStructInfo::Get() : GetStructInfo(before);
    if (IsBaseOf(func->ret_struct_info, known)) return;
    SetContext("return value", func->ret_struct_info);
    Check(result, func->ret_struct_info, known);
    MatchAll();
  }
  /// Whether what is known of the value was only said, and nobody has looked yet.
  bool IsClaim(const Expr& value) const {
    if (auto* var = value.as<VarObj>()) return claims_.count(var->vid.get());
    if (auto* tuple = value.as<TupleObj>()) {
      return Recurse([&] {
        return std::any_of(tuple->fields.begin(), tuple->fields.end(),
                           [&](const Expr& field) { return IsClaim(field); });
      });
    }
    if (auto* item = value.as<TupleGetItemObj>()) return IsClaim(item->tuple_value);
    auto* call = value.as<CallObj>();
    if (!call) return value.as<IfObj>();
    if (auto* packed = call->op.as<ExternFuncObj>())
      return View(packed->global_symbol) != "vm.builtin.reshape";  // it checks
    const LoweredOps& ops = LoweredOps::Get();
    return !call->op.as<GlobalVarObj>() && !call->Is(ops.new_tensor) &&
           !call->Is(ops.alloc_tensor) && !call->Is(ops.vm_alloc_tensor);
  }

  BlockBuilder functions_;
  String name_;
  bool with_context_;
  ShapeHeap heap_;
  Var heap_var_;
  std::string what_, context_;
  std::vector<Todo> todo_;
  std::map<std::vector<int64_t>, Var> shapes_;  // made already
  std::vector<std::map<std::vector<int64_t>, Var>::iterator> shape_log_;
  std::unordered_set<const Object*> claims_;
};

IRModule VMShapeLower(IRModule mod, bool emit_err_ctx) {
  BlockBuilder functions = BlockBuilder::Create(mod);
  std::vector<std::pair<GlobalVar, Function>> lowered;
  for (const auto& [var, base] : mod->Sorted()) {
    auto func = base.as<Function>();
    if (!func || ShapeLowerer::IsLowered(*func)) continue;
    ShapeLowerer lowerer(mod, functions, var->name_hint, emit_err_ctx);
    lowered.emplace_back(var, lowerer.Lower(*func));
  }
  Map<GlobalVar, BaseFunc> all = functions->GetModule()->functions;
  for (const auto& [var, func] : lowered) all.Set(var, func);
  return IRModule(all, mod->attrs, mod->global_infos);
}
}  // namespace
TVM_RELAX_PASS(VMShapeLower, 0,
               "Arguments are checked, their symbolic dimensions stored in a heap, and shapes made "
               "of it: vm.builtin.check_*, match_* and make_*; a function shape_func computes "
               "expressions of variables.",
               Arg("emit_err_ctx", true));
}  // namespace tvm::relax
