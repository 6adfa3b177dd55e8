// SPDX-License-Identifier: Apache-2.0
// Statements that all languages write alike: bindings, stores, control flow.
#include "backend/source/function.h"
#include "tvm/expr/op.h"

namespace tvm::codegen::source {

FunctionWriter::FunctionWriter(FileWriter& file, const FunctionInfo& info)
    : file_(file), info_(info) {
  VariableFacts facts;
  facts(info.func->body);
  shape_vars_ = std::move(facts.shape_vars);
  nonnegative_vars_ = std::move(facts.nonnegative);
}

// ---- text ---------------------------------------------------------------------------------------
void FunctionWriter::Line(const std::string& text) {
  code_ += std::string(2 * static_cast<size_t>(indent_), ' ') + text + "\n";
}
std::string FunctionWriter::Name(std::string_view hint) {
  std::string base = Identifier(hint), name = base;
  if (base.rfind("tvm_", 0) == 0 || base.rfind("TVM", 0) == 0) name = base = "v_" + base;
  for (int& next = next_suffix_[base]; file_.IsReserved(name) || !names_.insert(name).second;) {
    name = base + "_" + std::to_string(++next);
  }
  return name;
}
std::string FunctionWriter::Bind(const Var& var, bool index, bool nonnegative) {
  Value v;
  v.text = Name(View(var->name_hint));
  v.index = index;
  v.nonnegative = nonnegative;
  vars_[var.get()] = v;
  if (DataType element = ElementTypeOf(var); !element.is_void()) element_[var.get()] = element;
  return v.text;
}
bool FunctionWriter::Block(const std::string& head, const Stmt& body) {
  Line(head + " {");
  size_t texts = text_order_.size();
  bool before = std::exchange(ended_, false);
  ++indent_;
  BlockBody(body);
  --indent_;
  ForgetTexts(texts);
  return std::exchange(ended_, before);
}

// ---- bindings -----------------------------------------------------------------------------------
void FunctionWriter::Emit(const StmtObj* op) {
  Unsupported("expected a statement that lowering leaves, got " +
                  std::string(ffi::String(op->GetTypeKey())),
              op->span);
}
std::string FunctionWriter::Declare(const LetStmtObj* op) {
  Value value = Gen(op->value);
  bool index = op->var.dtype().is_index() && (value.index || shape_vars_.count(op->var.get()));
  std::string name =
      Bind(op->var, index, value.nonnegative || nonnegative_vars_.count(op->var.get()));
  std::string type = PointerType(op->var);
  bool is_pointer = element_.count(op->var.get());
  Line(type + " " + name + " = " + (is_pointer ? "(" + type + ")" + value.At(kUnary) : value.text) +
       ";");
  return name;
}
void FunctionWriter::Emit(const LetStmtObj* op) {
  Declare(op);
  Gen(op->body);
}
void FunctionWriter::Emit(const SeqStmtObj* op) {
  for (const Stmt& s : op->seq) {
    Gen(s);
    if (ended_) return;  // what follows ret, break or continue
  }
}
void FunctionWriter::Emit(const DeclBufferObj* op) { Gen(op->body); }
void FunctionWriter::Emit(const AttrStmtObj* op) {
  if (View(op->attr_key) == tir::attr::kVolatile) {
    if (auto var = op->node.as<VarObj>()) volatile_vars_.insert(var);
  }
  Gen(op->body);
}
void FunctionWriter::Emit(const EvaluateObj* op) {
  if (!op->value.as<IntImmObj>()) Gen(op->value);
}
void FunctionWriter::Emit(const BufferStoreObj* op) {
  if (op->indices.size() != 1) {
    Unsupported("expected FlattenBuffer to leave one index of " + std::string(op->buffer->name) +
                    ", got " + std::to_string(op->indices.size()),
                op->span);
  }
  std::vector<Value> v = GenAll({op->value, op->indices[0]});
  DataType t = op->buffer->dtype;
  Place place = ElementOf(op->buffer, v[1]);
  if (IsPacked(t)) {
    Line(file_.Helper("packed_store") + "(" + place.address + ", " + place.index + ", " +
         std::to_string(t.bits()) + ", " + v[0].text + ");");
  } else if (place.lvalue.empty()) {
    DataType held = t.is_bool() ? DataType::UInt(8) : t;
    Line(file_.Helper("store", held) + "(" + place.address + ", " + v[0].text + ");");
  } else {
    Line(place.lvalue + " = " + v[0].text + ";");
  }
  ++effects_;
}

// ---- control flow -------------------------------------------------------------------------------
void FunctionWriter::Emit(const IfThenElseObj* op) {
  Value cond = Gen(op->condition);
  bool yes = Block("if (" + cond.text + ")", op->then_case), no = false;
  if (op->else_case) no = Block("} else", *op->else_case);
  Line("}");
  ended_ = yes && no;
}
void FunctionWriter::Emit(const WhileObj* op) {
  Value cond;
  std::string statements = Capture([&] { cond = Gen(op->condition); });
  loops_.push_back(Held());
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
void FunctionWriter::Emit(const ForObj* op) {
  if (op->kind == ForKind::kVectorized) {
    Unsupported("expected VectorizeLoop to have lowered the loop over " +
                    std::string(op->loop_var->name_hint),
                op->span);
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
void FunctionWriter::EmitLoop(const ForObj* op, const Value& begin, const std::string& end,
                              const std::string& step) {
  std::string name = Bind(op->loop_var, true, begin.nonnegative);
  loops_.push_back(Held());
  BeforeLoop(op);
  Block("for (" + TypeName(op->loop_var.dtype()) + " " + name + " = " + begin.text + "; " + name +
            " < " + end + "; " + (step.empty() ? "++" + name : name + " += " + step) + ")",
        op->body);
  loops_.pop_back();
  Line("}");
}

void FunctionWriter::Emit(const AllocateConstObj* op) {
  if (!op->data) Unsupported("expected AllocateConst to hold its data", op->span);
  const DLTensor* tensor = op->data.value().GetDLTensorPtr();
  const char* bytes = static_cast<const char*>(tensor->data) + tensor->byte_offset;
  DataType t = op->dtype.element();
  std::string name = file_.UniqueGlobal("tvm_const_" + Identifier(View(op->buffer_var->name_hint)));
  std::string type = MemoryName(t);
  file_.AddTop(ConstantArray(type, name, NumberList(t, bytes, ffi::GetDataSize(*tensor))));
  std::string local = Bind(op->buffer_var);
  element_[op->buffer_var.get()] = t;
  Line(type + "* " + local + " = (" + type + "*)" + name + ";");
  Gen(op->body);
}

}  // namespace tvm::codegen::source
