// SPDX-License-Identifier: Apache-2.0
// Functions and statements: bindings, control flow, memory of a function, parallel loops.
#include <algorithm>

#include "backend/c/codegen.h"
#include "tvm/expr/op.h"

namespace tvm::codegen::c {

// ---- the function -------------------------------------------------------------------------------
FunctionText::FunctionText(ModuleText& module, const FunctionInfo& info)
    : module_(module), info_(info) {
  VariableFacts facts;
  facts(info.func->body);
  shape_vars_ = std::move(facts.shape_vars);
  nonnegative_vars_ = std::move(facts.nonnegative);
}
std::string FunctionText::Define() {
  const Array<Var>& params = info_.func->params;
  bool noalias = info_.func->HasNonzeroAttr(tir::attr::kNoAlias);
  auto is_handle = [&](size_t i) { return i < params.size() && params[i].dtype().is_handle(); };
  if (info_.packed && !(params.size() == 4 && is_handle(0) && is_handle(1) && is_handle(3) &&
                        params[2].dtype() == DataType::Int(32))) {
    Unsupported(
        "expected the parameters (self: handle, args: handle, num_args: int32, result: handle) for "
        "the packed function " +
        module_.SymbolOf(info_));
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
      vars_[var.get()].text = "(void*)" + name, vars_[var.get()].level = kUnary;
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

// ---- text ---------------------------------------------------------------------------------------
void FunctionText::Line(const std::string& text) {
  code_ += std::string(2 * static_cast<size_t>(indent_), ' ') + text + "\n";
}
std::string FunctionText::Name(std::string_view hint) {
  std::string base = Identifier(hint), name = base;
  if (base.rfind("tvm_", 0) == 0 || base.rfind("TVM", 0) == 0) name = base = "v_" + base;
  for (int& next = next_suffix_[base];
       module_.reserved().count(name) || !names_.insert(name).second;) {
    name = base + "_" + std::to_string(++next);
  }
  return name;
}
std::string FunctionText::Bind(const Var& var, bool index, bool nonnegative) {
  Value v;
  v.text = Name(View(var->name_hint)), v.index = index, v.nonnegative = nonnegative;
  vars_[var.get()] = v;
  if (auto* pointer = var->type_annotation.as<PointerTypeObj>()) {
    auto* element = pointer->element_type.as<PrimTypeObj>();
    if (element && !element->dtype.is_void() && !element->dtype.is_handle())
      element_[var.get()] = element->dtype.element();
  }
  return v.text;
}
std::string FunctionText::PointerType(const Var& var) const {
  auto* pointer = var->type_annotation.as<PointerTypeObj>();
  auto* element = pointer ? pointer->element_type.as<PrimTypeObj>() : nullptr;
  if (element && !element->dtype.is_void() && !element->dtype.is_handle())
    return MemoryName(element->dtype.element()) + "*";
  return TypeName(var.dtype());
}
bool FunctionText::Block(const std::string& head, const Stmt& body) {
  Line(head + " {");
  // Memory that a branch gives back before it leaves is still there for what follows.
  std::vector<std::string> outer = workspaces_;
  size_t texts = text_order_.size();
  bool before = std::exchange(ended_, false);
  ++indent_;
  Gen(body);
  --indent_;
  workspaces_ = std::move(outer);
  ForgetTexts(texts);
  return std::exchange(ended_, before);
}

// ---- leaving ------------------------------------------------------------------------------------
void FunctionText::Leave(const std::string& status) {
  bool has_status = info_.packed || info_.internal || info_.result.is_void() || in_parallel_;
  if (!has_status) {
    Unsupported("expected a function with a result that other libraries may call not to raise: " +
                module_.SymbolOf(info_));
  }
  FreeWorkspaces(0);
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
void FunctionText::FreeWorkspaces(size_t down_to) {
  for (size_t i = workspaces_.size(); i > down_to; --i)
    Line("tvm_free_workspace(" + workspaces_[i - 1] + ");");
}

// ---- bindings -----------------------------------------------------------------------------------
void FunctionText::Emit(const StmtObj* op) {
  Unsupported("expected a statement that lowering leaves, got " +
                  std::string(ffi::String(op->GetTypeKey())),
              op->span);
}
void FunctionText::Emit(const LetStmtObj* op) {
  Value value = Gen(op->value);
  bool index = op->var.dtype().is_index() && (value.index || shape_vars_.count(op->var.get()));
  std::string name =
      Bind(op->var, index, value.nonnegative || nonnegative_vars_.count(op->var.get()));
  std::string type = PointerType(op->var);
  bool is_pointer = element_.count(op->var.get());
  Line(type + " " + name + " = " + (is_pointer ? "(" + type + ")" + value.At(kUnary) : value.text) +
       ";");
  auto* call = op->value.as<CallObj>();
  bool owns = call && call->Is(builtin::TVMBackendAllocWorkspace());
  // Freed by a statement of the body; and here, where an error or a jump leaves the body before.
  if (owns) workspaces_.push_back(name);
  Gen(op->body);
  if (owns) std::erase(workspaces_, name);
}
void FunctionText::Emit(const SeqStmtObj* op) {
  for (const Stmt& s : op->seq) {
    Gen(s);
    if (ended_) return;  // what follows ret, break or continue
  }
}
void FunctionText::Emit(const DeclBufferObj* op) { Gen(op->body); }
void FunctionText::Emit(const AttrStmtObj* op) {
  if (View(op->attr_key) == tir::attr::kVolatile) {
    if (auto var = op->node.as<VarObj>()) volatile_vars_.insert(var);
  }
  Gen(op->body);
}
void FunctionText::Emit(const EvaluateObj* op) {
  if (!op->value.as<IntImmObj>()) Gen(op->value);
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
void FunctionText::Emit(const BufferStoreObj* op) {
  if (op->indices.size() != 1) {
    Unsupported("expected FlattenBuffer to leave one index of " + std::string(op->buffer->name) +
                    ", got " + std::to_string(op->indices.size()),
                op->span);
  }
  std::vector<Value> v = GenAll({op->value, op->indices[0]});
  DataType t = op->buffer->dtype;
  Place place = ElementOf(op->buffer, v[1]);
  if (IsPacked(t)) {
    Line(module_.Helper("packed_store") + "(" + place.address + ", " + place.index + ", " +
         std::to_string(t.bits()) + ", " + v[0].text + ");");
  } else if (place.lvalue.empty()) {
    DataType held = t.is_bool() ? DataType::UInt(8) : t;
    Line(module_.Helper("store", held) + "(" + place.address + ", " + v[0].text + ");");
  } else {
    Line(place.lvalue + " = " + v[0].text + ";");
  }
  ++effects_;
}

// ---- control flow -------------------------------------------------------------------------------
void FunctionText::Emit(const IfThenElseObj* op) {
  // A failing call leaves by itself: no need to ask for its status again.
  if (auto* call = StatusCheck(op); call && module_.IsStatus(call)) {
    Gen(ffi::GetRef<PrimExpr>(call));
    return;
  }
  Value cond = Gen(op->condition);
  bool yes = Block("if (" + cond.text + ")", op->then_case), no = false;
  if (op->else_case) no = Block("} else", *op->else_case);
  Line("}");
  ended_ = yes && no;
}
void FunctionText::Emit(const WhileObj* op) {
  Value cond;
  std::string statements = Capture([&] { cond = Gen(op->condition); });
  loops_.push_back(workspaces_.size());
  if (statements.empty()) {
    Block("while (" + cond.text + ")", op->body);
  } else {
    std::string body = Capture([&] {
      --indent_;
      Block("for (;;)", op->body);
      ++indent_;
    });
    size_t first = body.find('\n') + 1;
    code_ += body.substr(0, first) + statements;
    ++indent_;
    Line("if (!" + cond.At(kUnary) + ") break;");
    --indent_;
    code_ += body.substr(first);
  }
  loops_.pop_back();
  Line("}");
}
void FunctionText::Emit(const ForObj* op) {
  switch (op->kind) {
    case ForKind::kParallel:
      if (!WritesPartsOfBytes(op->body)) return EmitParallel(op);
      break;
    case ForKind::kThreadBinding:
      Unsupported("a loop bound to GPU threads on a CPU", op->span);
    case ForKind::kVectorized:
      Unsupported("expected VectorizeLoop to have lowered the loop over " +
                      std::string(op->loop_var->name_hint),
                  op->span);
    default:
      break;
  }
  std::vector<PrimExpr> bounds = {op->min, op->extent};
  if (op->step) bounds.push_back(*op->step);
  std::vector<Value> v = GenAll(bounds);
  DataType t = op->loop_var.dtype();
  std::string end = IsConstInt(op->min, 0) ? v[1].text : v[0].At(kSum) + " + " + v[1].At(kProduct);
  // Evaluated once: the body may change what the bounds depend on.
  if (v[0].reads || v[1].reads) {
    v[0] = Keep(v[0], t, "begin");
    Value sum;
    sum.text = IsConstInt(op->min, 0) ? v[1].text : v[0].text + " + " + v[1].At(kProduct);
    end = Keep(sum, t, "end", true).text;
  }
  EmitLoop(op, v[0], end, op->step ? Keep(v[2], t, "step").text : "");
}
void FunctionText::EmitLoop(const ForObj* op, const Value& begin, const std::string& end,
                            const std::string& step) {
  std::string name = Bind(op->loop_var, true, begin.nonnegative);
  loops_.push_back(workspaces_.size());
  Block("for (" + TypeName(op->loop_var.dtype()) + " " + name + " = " + begin.text + "; " + name +
            " < " + end + "; " + (step.empty() ? "++" + name : name + " += " + step) + ")",
        op->body);
  loops_.pop_back();
  Line("}");
}

// The body becomes a function of its own, which the runtime calls once per task.
void FunctionText::EmitParallel(const ForObj* op) {
  std::vector<PrimExpr> bounds = {op->min, op->extent};
  if (op->step) bounds.push_back(*op->step);
  std::vector<Value> v = GenAll(bounds);
  std::vector<Var> captures = CapturesOf(op, vars_);
  DataType t = op->loop_var.dtype();
  std::string index = TypeName(t);
  std::string task = module_.UniqueGlobal(module_.SymbolOf(info_) + "for_" +
                                          Identifier(View(op->loop_var->name_hint)));

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
  begin.text = first, begin.nonnegative = v[0].nonnegative;
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
  function.text = Quoted(module_.SymbolOf(info_));
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
void FunctionText::Emit(const AllocateConstObj* op) {
  if (!op->data) Unsupported("expected AllocateConst to hold its data", op->span);
  const DLTensor* tensor = op->data.value().GetDLTensorPtr();
  const char* bytes = static_cast<const char*>(tensor->data) + tensor->byte_offset;
  size_t size = ffi::GetDataSize(*tensor);
  DataType t = op->dtype.element();
  std::string name =
      module_.UniqueGlobal("tvm_const_" + Identifier(View(op->buffer_var->name_hint)));
  std::string text, type = MemoryName(t);
  auto list = [&](auto number) {
    constexpr size_t kPerLine = 12;
    using T = decltype(number);
    for (size_t i = 0; i < size / sizeof(T); ++i) {
      std::memcpy(&number, bytes + i * sizeof(T), sizeof(T));
      std::string one = std::is_floating_point_v<T>
                            ? Number(t, static_cast<double>(number)).text
                            : Number(t.is_integer() ? t : DataType::UInt(8 * sizeof(T)),
                                     static_cast<int64_t>(number))
                                  .text;
      text += (i % kPerLine == 0 ? "\n    " : " ") + one + ",";
    }
  };
  // Signed numbers keep their sign in int64.
  bool is_int = t.is_int() && !IsPacked(t);
  if (t.is_float() && t.bits() == 32) {
    list(float{});
  } else if (t.is_float() && t.bits() == 64) {
    list(double{});
  } else if (type == "uint8_t" || HolderBits(t) == 8) {
    is_int ? list(int8_t{}) : list(uint8_t{});
  } else if (HolderBits(t) == 16) {
    is_int ? list(int16_t{}) : list(uint16_t{});
  } else if (HolderBits(t) == 32) {
    is_int ? list(int32_t{}) : list(uint32_t{});
  } else {
    is_int ? list(int64_t{}) : list(uint64_t{});
  }
  module_.AddTop("\nstatic const " + type + " " + name + "[] TVM_ALIGNED(64) = {" + text +
                 "\n};\n");
  std::string local = Bind(op->buffer_var);
  element_[op->buffer_var.get()] = t;
  Line(type + "* " + local + " = (" + type + "*)" + name + ";");
  Gen(op->body);
}

}  // namespace tvm::codegen::c
