// SPDX-License-Identifier: Apache-2.0
// How buffers are declared, and the types and variables they need.
#include "script/tir/tir.h"
#include "tvm/expr/op.h"
#include "tvm/ir/structural.h"

namespace tvm::script {
using namespace tir;

void PrintAnnotation(Printer& p, const Type& type) {
  if (auto* prim = type.as<PrimTypeObj>()) {
    Tir(p, prim->dtype.is_void() ? "void" : prim->dtype.str());
  } else if (auto* pointer = type.as<PointerTypeObj>()) {
    Tir(p, "handle");
    Printer::List list(p, "(", ")");
    auto* element = pointer->element_type.as<PrimTypeObj>();
    list.Item();
    if (element)
      p.Quote(element->dtype.is_void() ? "void" : element->dtype.str());
    else
      p.Value(pointer->element_type);
    if (pointer->storage_scope != "global" && pointer->storage_scope != "") {
      list.Item().Quote(View(pointer->storage_scope));
    }
  } else if (type.as<TensorMapTypeObj>()) {
    Tir(p, "handle");
    Printer::List(p, "(", ")").Item().Quote("tensormap");
  } else {
    p.Value(type);
  }
}
void PrintMakeVar(Printer& p, const VarObj* var) {
  PrintAnnotation(p, var->type_annotation);
  if (p.Last() != ')') p << "()";
  if (var->IsInstance<SizeVarObj>()) {
    p.Unprint();
    p << "is_size_var=True)";
  }
}
void DefineVar(Printer& p, const VarObj* var) {
  p.Begin();
  p << p.Define(var, var->name_hint) << " = ";
  PrintMakeVar(p, var);
  p.End();
}

namespace {
/// `x = T.int32()` for variables of the buffer that nothing has defined.
void DefineVarsOf(Printer& p, const BufferObj* buffer) {
  struct Vars : Visitor<Vars, VarObj> {
    Printer* p;
    void Visit(const VarObj* var) {
      if (!p->Known(var)) DefineVar(*p, var);
    }
  } vars;
  vars.p = &p;
  for (const auto* exprs : {&buffer->shape, &buffer->strides}) {
    for (const PrimExpr& e : *exprs) vars(e);
  }
  vars(buffer->elem_offset);
}
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
/// The arguments after the shape that differ from the defaults, with the data where it is given.
void BufferArgs(Printer& p, Printer::List& list, const BufferObj* b, bool with_data) {
  PrintTuple(list.Item(), b->shape);
  if (with_data || b->dtype != p.config->buffer_dtype) list.Item().Quote(b->dtype.str());
  if (with_data && p.Known(b->data.get())) PrintExpr(list.Keyword("data"), b->data);
  if (!b->strides.empty()) {
    PrintTuple(list.Keyword("strides"), b->strides);
  }
  if (!HasDefaultOffset(b) || b->offset_factor != 1)
    PrintExpr(list.Keyword("elem_offset"), b->elem_offset);
  auto scope = ffi::GetRef<Buffer>(b).scope();
  if (scope != "global" && scope != "" && !(with_data && p.Known(b->data.get()))) {
    list.Keyword("scope").Quote(View(scope));
  }
  if (b->data_alignment != 64) list.Keyword("align") << b->data_alignment;
  if (b->offset_factor != 1) list.Keyword("offset_factor") << b->offset_factor;
  if (b->buffer_type == BufferType::kAutoBroadcast) list.Keyword("buffer_type").Quote("auto");
  if (!b->axis_separators.empty()) {
    list.Keyword("axis_separators");
    Printer::List items(p, "[", "]");
    for (const IntImm& separator : b->axis_separators) items.Item() << separator->value;
  }
}
}  // namespace

void DefineBuffer(Printer& p, const BufferObj* b, std::string_view function,
                  const ObjectRef& source) {
  DefineVarsOf(p, b);
  bool with_data = function == "Buffer" || function == "decl_buffer";
  if (!HasDefaultData(b) && !p.Known(b->data.get())) DefineVar(p, b->data.get());
  p.Begin();
  size_t begin = p.Position();
  // A copy: naming another object may move the table of names.
  std::string name = p.Define(b, b->name);
  p << name << " = ";
  Tir(p, function);
  {
    Printer::List list(p, "(", ")");
    if (source.defined()) list.Item().Node(source.get());
    if (!with_data && p.Known(b->data.get())) {
      BufferArgs(p, list, b, false);
      PrintExpr(list.Keyword("data"), b->data);
    } else {
      BufferArgs(p, list, b, with_data);
    }
  }
  p.End();
  if (p.Marks()) p.AddMark(b, nullptr, begin, begin + name.size());
  p.DefineAs(b->data.get(), name + ".data");
}
void DeclareBuffer(Printer& p, const DeclBufferObj* n, bool allocates) {
  const BufferObj* b = n->buffer.get();
  DefineVarsOf(p, b);
  if (!allocates) NameOf(p, b->data.get());
  PrintScoped(
      p, b, b->name,
      [&] {
        Tir(p, "decl_buffer");
        {
          Printer::List list(p, "(", ")");
          BufferArgs(p, list, b, true);
        }
        p.DefineAs(b->data.get(), p.Name(b, b->name) + ".data");
      },
      n->body);
}

namespace {
void PrintBufferName(Printer& p, const BufferObj* n) { p << p.Name(n, n->name); }
void PrintWholeBuffer(Printer& p, const BufferObj* n) { DefineBuffer(p, n, "Buffer"); }
TVM_REGISTER() {
  DefPrint<BufferObj, &PrintBufferName>();
  DefPrintWhole<BufferObj, &PrintWholeBuffer>();
}
}  // namespace
}  // namespace tvm::script
