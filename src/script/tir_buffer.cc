// SPDX-License-Identifier: Apache-2.0
// How buffers are declared, and the types and variables they need.
#include "printer.h"
#include "tvm/expr/op.h"
#include "tvm/ir/structural.h"

namespace tvm::script {
using namespace tir;

void Printer::Annotation(const Type& type) {
  if (auto* prim = type.as<PrimTypeObj>()) {
    Tir(prim->dtype.is_void() ? "void" : prim->dtype.str());
  } else if (auto* pointer = type.as<PointerTypeObj>()) {
    Tir("handle");
    List list(*this, "(", ")");
    auto* element = pointer->element_type.as<PrimTypeObj>();
    list.Item();
    if (element)
      Quote(element->dtype.is_void() ? "void" : element->dtype.str());
    else
      Value(pointer->element_type);
    if (pointer->storage_scope != "global" && pointer->storage_scope != "") {
      list.Item().Quote(View(pointer->storage_scope));
    }
  } else {
    Value(type);
  }
}
void Printer::MakeVar(const VarObj* var) {
  Annotation(var->type_annotation);
  if (out_.back() != ')') *this << "()";
  if (var->IsInstance<SizeVarObj>()) {
    out_.pop_back();
    *this << "is_size_var=True)";
  }
}
void Printer::DefineVar(const VarObj* var) {
  Begin();
  *this << Define(var, var->name_hint) << " = ";
  MakeVar(var);
  End();
}
void Printer::DefineVarsOf(const BufferObj* buffer) {
  struct Vars : Visitor<Vars, VarObj> {
    Printer* p;
    void Visit(const VarObj* var) {
      if (!p->Known(var)) p->DefineVar(var);
    }
  } vars;
  vars.p = this;
  for (const auto* exprs : {&buffer->shape, &buffer->strides}) {
    for (const PrimExpr& e : *exprs) vars(e);
  }
  vars(buffer->elem_offset);
}

namespace {
/// Whether a buffer made without data gets a variable of this type.
bool HasDefaultData(const BufferObj* b) {
  auto* pointer = b->data->type_annotation.as<PointerTypeObj>();
  auto* element = pointer->element_type.as<PrimTypeObj>();
  return element && element->dtype == b->dtype && !b->data->IsInstance<SizeVarObj>();
}
bool HasDefaultOffset(const BufferObj* b) {
  auto* offset = b->elem_offset.as<IntImmObj>();
  return offset && offset->value == 0 && offset->dtype == b->IndexType();
}
}  // namespace

/// The arguments after the shape that differ from the defaults, with the data where it is given.
void Printer::BufferArgs(List& list, const BufferObj* b, bool with_data) {
  list.Item().Tuple(b->shape);
  if (with_data || b->dtype != config->buffer_dtype) list.Item().Quote(b->dtype.str());
  if (with_data && Known(b->data.get())) list.Keyword("data").Expr(b->data);
  if (!b->strides.empty()) {
    list.Keyword("strides").Tuple(b->strides);
  }
  if (!HasDefaultOffset(b) || b->offset_factor != 1)
    list.Keyword("elem_offset").Expr(b->elem_offset);
  auto scope = ffi::GetRef<Buffer>(b).scope();
  if (scope != "global" && scope != "" && !(with_data && Known(b->data.get()))) {
    list.Keyword("scope").Quote(View(scope));
  }
  if (b->data_alignment != 64) list.Keyword("align") << b->data_alignment;
  if (b->offset_factor != 1) list.Keyword("offset_factor") << b->offset_factor;
  if (b->buffer_type == BufferType::kAutoBroadcast) list.Keyword("buffer_type").Quote("auto");
  if (!b->axis_separators.empty()) {
    list.Keyword("axis_separators");
    List items(*this, "[", "]");
    for (const IntImm& separator : b->axis_separators) items.Item() << separator->value;
  }
}
void Printer::DefineBuffer(const BufferObj* b, std::string_view function, const ObjectRef& source) {
  DefineVarsOf(b);
  bool with_data = function == "Buffer" || function == "decl_buffer";
  if (!HasDefaultData(b) && !Known(b->data.get())) DefineVar(b->data.get());
  Begin();
  size_t begin = out_.size();
  // A copy: naming another object may move the table of names.
  std::string name = Define(b, b->name);
  *this << name << " = ";
  Tir(function);
  {
    List list(*this, "(", ")");
    if (source.defined()) list.Item().Node(source.get());
    if (!with_data && Known(b->data.get())) {
      BufferArgs(list, b, false);
      list.Keyword("data").Expr(b->data);
    } else {
      BufferArgs(list, b, with_data);
    }
  }
  End();
  if (Marks()) AddMark(b, nullptr, begin, begin + name.size());
  DefineAs(b->data.get(), name + ".data");
}
void Printer::DeclareBuffer(const DeclBufferObj* n, bool allocates) {
  const BufferObj* b = n->buffer.get();
  DefineVarsOf(b);
  if (!allocates) Name(b->data.get());
  Scoped(
      b, b->name,
      [&] {
        Tir("decl_buffer");
        {
          List list(*this, "(", ")");
          BufferArgs(list, b, true);
        }
        DefineAs(b->data.get(), Name(b, b->name) + ".data");
      },
      n->body);
}

}  // namespace tvm::script
