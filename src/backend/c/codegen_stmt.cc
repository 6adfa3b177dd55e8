// SPDX-License-Identifier: Apache-2.0
// Functions and what leaves them: statuses, errors, memory of a function, parallel loops.
#include <algorithm>

#include "backend/c/codegen.h"
#include "tvm/expr/op.h"

namespace tvm::codegen::c {

// ---- the function -------------------------------------------------------------------------------
std::string FunctionText::Define() {
  const Array<Var>& params = info_.func->params;
  bool noalias = info_.func->HasNonzeroAttr(tir::attr::kNoAlias);
  auto is_handle = [&](size_t i) { return i < params.size() && params[i].dtype().is_handle(); };
  if (info_.packed && !(params.size() == 4 && is_handle(0) && is_handle(1) && is_handle(3) &&
                        params[2].dtype() == DataType::Int(32))) {
    Unsupported(
        "expected the parameters (self: handle, args: handle, num_args: int32, result: handle) for "
        "the packed function " +
        Symbol());
  }
  std::vector<std::string> list;
  for (size_t i = 0; i < params.size(); ++i) {
    const Var& var = params[i];
    if (var.dtype().is_vector()) Unsupported("a vector as a parameter of a function");
    bool is_size = shape_vars_.count(var.get()) && var.dtype().is_index();
    std::string name = Bind(var, is_size, nonnegative_vars_.count(var.get()));
    std::string type = PointerType(var);
    if (info_.packed && (i == 1 || i == 3)) {
      type = i == 1 ? "const TVMFFIAny*" : "TVMFFIAny*";
      any_arrays_[var.get()] = name;
      vars_[var.get()].text = "(void*)" + name;
      vars_[var.get()].level = kUnary;
    }
    bool restricted = noalias && element_.count(var.get()) && type.back() == '*';
    list.push_back(type + (restricted ? " TVM_RESTRICT " : " ") + name);
  }
  Gen(info_.func->body);
  if (!ended_) {
    bool has_status = info_.packed || info_.internal || info_.result.is_void();
    Line(has_status ? "return 0;" : "return (" + TypeName(info_.result) + ")0;");
  }
  std::string storage = info_.internal ? "static " : "TVM_EXPORT ";
  return "\n" + storage + module_.Prototype(info_, list) + " {\n" + locals_ + code_ + "}\n";
}

// ---- leaving ------------------------------------------------------------------------------------
void FunctionText::Leave(const std::string& status) {
  bool has_status = info_.packed || info_.internal || info_.result.is_void() || in_parallel_;
  if (!has_status) {
    Unsupported("expected a function with a result that other libraries may call not to raise: " +
                Symbol());
  }
  Release(0);
  Line("return " + status + ";");
  ended_ = true;
}
void FunctionText::Propagate(const std::string& status) {
  if (workspaces_.empty()) {
    Line("if (" + status + " != 0) return -1;");
    return;
  }
  Line("if (" + status + " != 0) {");
  ++indent_;
  bool before = ended_;
  Leave("-1");
  ended_ = before;
  --indent_;
  Line("}");
}
void FunctionText::Release(size_t down_to) {
  for (size_t i = workspaces_.size(); i > down_to; --i)
    Line("tvm_free_workspace(" + workspaces_[i - 1] + ");");
}

// ---- statements ---------------------------------------------------------------------------------
void FunctionText::BlockBody(const Stmt& body) {
  // Memory that a branch gives back before it leaves is still there for what follows.
  std::vector<std::string> outer = workspaces_;
  Gen(body);
  workspaces_ = std::move(outer);
}
void FunctionText::Emit(const LetStmtObj* op) {
  std::string name = Declare(op);
  auto* call = op->value.as<CallObj>();
  bool owns = call && call->Is(builtin::TVMBackendAllocWorkspace());
  // Freed by a statement of the body; and here, where an error or a jump leaves the body before.
  if (owns) workspaces_.push_back(name);
  Gen(op->body);
  if (owns) std::erase(workspaces_, name);
}
void FunctionText::Emit(const AssertStmtObj* op) {
  auto* text = op->message.as<StringImmObj>();
  if (!text) Unsupported("expected a text as the message of an assertion", op->span);
  auto [cls, message] = SplitErrorClass(std::string(text->value));
  Value ok = Gen(op->condition);
  Line("if (!" + ok.At(kUnary) + ") {");
  ++indent_;
  Value shown;
  shown.text = Quoted(message);
  Raise(cls, "%s", {shown}, {DataType::Handle()});
  ended_ = false;
  --indent_;
  Line("}");
  Gen(op->body);
}
void FunctionText::Emit(const IfThenElseObj* op) {
  // A failing call leaves by itself: no need to ask for its status again.
  if (auto* call = StatusCheck(op); call && module_.IsStatus(call)) {
    Gen(ffi::GetRef<PrimExpr>(call));
  } else {
    FunctionWriter::Emit(op);
  }
}
void FunctionText::Emit(const ForObj* op) {
  if (op->kind == ForKind::kThreadBinding)
    Unsupported("a loop bound to GPU threads on a CPU", op->span);
  if (op->kind == ForKind::kParallel && !WritesPartsOfBytes(op->body)) return EmitParallel(op);
  FunctionWriter::Emit(op);
}

// The body becomes a function of its own, which the runtime calls once per task.
void FunctionText::EmitParallel(const ForObj* op) {
  std::vector<PrimExpr> bounds = {op->min, op->extent};
  if (op->step) bounds.push_back(*op->step);
  std::vector<Value> v = GenAll(bounds);
  std::vector<Var> captures = CapturesOf(op, vars_);
  DataType t = op->loop_var.dtype();
  std::string index = TypeName(t);
  std::string task =
      module_.UniqueGlobal(Symbol() + "for_" + Identifier(View(op->loop_var->name_hint)));

  // struct members, how they are filled, and how the task takes them apart
  FunctionText inner(module_, info_);
  inner.in_parallel_ = true;
  inner.volatile_vars_ = volatile_vars_;
  std::string members = "  " + index + " tvm_begin, tvm_extent, tvm_step;\n", fill, take;
  std::string data = Name("closure");
  std::string names[] = {inner.Name("task_id"), inner.Name("group"), inner.Name("data"),
                         inner.Name("closure"), inner.Name("first"), inner.Name("last")};
  const auto& [task_id, group, raw, closure, first, last] = names;
  bool noalias = info_.func->HasNonzeroAttr(tir::attr::kNoAlias);
  for (const Var& var : captures) {
    const Value& outside = vars_.at(var.get());
    std::string name = inner.Bind(var, outside.index, outside.nonnegative);
    std::string type = PointerType(var);
    members += "  " + type + " " + name + ";\n";
    fill += std::string(2 * static_cast<size_t>(indent_), ' ') + data + "." + name + " = " +
            outside.text + ";\n";
    bool restricted = noalias && inner.element_.count(var.get());
    take += "  " + type + (restricted ? " TVM_RESTRICT " : " ") + name + " = " + closure + "->" +
            name + ";\n";
  }
  module_.Helper("launch");
  auto share = [&](const std::string& id) {
    return closure + "->tvm_begin + " + closure + "->tvm_step * (" + index + ")tvm_share(" + id +
           ", " + group + "->num_task, " + closure + "->tvm_extent, " + closure + "->tvm_step)";
  };
  Value begin;
  begin.text = first;
  begin.nonnegative = v[0].nonnegative;
  inner.EmitLoop(op, begin, last, op->step ? closure + "->tvm_step" : "");
  std::string structure = "struct " + task + "_closure";
  module_.AddTop("\n" + structure + " {\n" + members + "};\nstatic int32_t " + task + "(int32_t " +
                 task_id + ", tvm_task_group* " + group + ", void* " + raw + ") {\n  " + structure +
                 "* " + closure + " = (" + structure + "*)" + raw + ";\n" + take + "  " + index +
                 " " + first + " = " + share(task_id) + ";\n  " + index + " " + last + " = " +
                 share("(int64_t)" + task_id + " + 1") + ";\n" + inner.locals_ + inner.code_ +
                 "  return 0;\n}\n");

  Line(structure + " " + data + ";");
  Line(data + ".tvm_begin = " + v[0].text + ";");
  Line(data + ".tvm_extent = " + v[1].text + ";");
  Line(data + ".tvm_step = " + (op->step ? v[2].text : "1") + ";");
  code_ += fill;
  ++effects_;
  Propagate("tvm_launch(" + task + ", &" + data + ", " + data + ".tvm_extent)");
}

// ---- memory of the function ---------------------------------------------------------------------
void FunctionText::Emit(const AllocateObj* op) {
  if (auto* c = op->condition.as<IntImmObj>(); c && c->value == 0) {
    Bind(op->buffer_var);
    Line(PointerType(op->buffer_var) + " " + vars_[op->buffer_var.get()].text + " = NULL;");
    return Gen(op->body);
  }
  DataType t = op->dtype.element();
  int64_t count = op->ConstantSize();
  auto bytes_of = [&](uint64_t n) {
    return IsPacked(t) ? (n * t.bits() + 7) / 8 : n * (t.is_bool() ? 8 : HolderBits(t)) / 8;
  };
  std::string type = MemoryName(t);
  bool small = count > 0 && static_cast<uint64_t>(count) <= kMaxStackBuffer &&
               bytes_of(count) <= kMaxStackBuffer &&
               stack_bytes_ + bytes_of(count) <= kMaxStackBytes;
  if (small) {
    stack_bytes_ += bytes_of(count);
    std::string name = Bind(op->buffer_var);
    element_[op->buffer_var.get()] = t;
    uint64_t elements = IsPacked(t) ? bytes_of(count) : static_cast<uint64_t>(count);
    Line(type + " " + name + "[" + std::to_string(elements) + "] TVM_ALIGNED(64);");
    return Gen(op->body);
  }
  std::string bytes = "1";
  for (const PrimExpr& e : op->extents) bytes += " * (uint64_t)" + Gen(e).At(kUnary);
  Value size;
  size.text = IsPacked(t) ? "(" + bytes + " * " + std::to_string(t.bits()) + " + 7) / 8"
                          : bytes + " * sizeof(" + type + ")";
  size = Keep(size, DataType::UInt(64), "bytes", true);
  std::string name = Bind(op->buffer_var);
  element_[op->buffer_var.get()] = t;
  Line(type + "* " + name + " = (" + type + "*)" + module_.Helper("alloc_workspace") + "(" +
       size.text + ");");
  Line("if (" + name + " == NULL) {");
  ++indent_;
  Value function;
  function.text = Quoted(Symbol());
  Raise("MemoryError", "%s: cannot allocate %lld bytes of temporary memory", {function, size},
        {DataType::Handle(), DataType::UInt(64)});
  ended_ = false;
  --indent_;
  Line("}");
  workspaces_.push_back(name);
  Gen(op->body);
  workspaces_.pop_back();
  if (!ended_) Line("tvm_free_workspace(" + name + ");");
}
std::string FunctionText::ConstantArray(const std::string& type, const std::string& name,
                                        const std::string& list) const {
  return "\nstatic const " + type + " " + name + "[] TVM_ALIGNED(64) = {" + list + "\n};\n";
}

}  // namespace tvm::codegen::c
