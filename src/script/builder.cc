// SPDX-License-Identifier: Apache-2.0
// What the Python builder of programs tells nodes after they are made: names and places.
#include "tvm/script/language.h"

namespace tvm::script {

TypeTable<NameHandler>& NameHandlers() {
  static auto* table = new TypeTable<NameHandler>();
  return *table;
}
TypeTable<SpanHandler>& SpanHandlers() {
  static auto* table = new TypeTable<SpanHandler>();
  return *table;
}

namespace {

void SetName(const ObjectRef& node, const String& name) {
  if (NameHandler handler = NameHandlers().Find(node->type_index())) handler(node.get(), name);
}

/// A node that is known already, or used in many places, keeps what it has.
void SetSpan(const ObjectRef& node, const SourceName& source, int64_t line, int64_t column,
             int64_t end_line, int64_t end_column) {
  Optional<Span> span;
  ObjectRef next = node;
  while (next.defined()) {
    ObjectRef current = std::exchange(next, ObjectRef());
    SpanHandler handler = SpanHandlers().Find(current->type_index());
    const Optional<Span>* field = handler ? handler(current.get(), &next) : nullptr;
    if (!field || field->has_value()) return;
    if (!span.has_value()) {
      span = New<Span>([&](SpanObj* n) {
        n->source_name = source;
        n->line = line;
        n->column = column;
        n->end_line = end_line;
        n->end_column = end_column;
      });
    }
    const_cast<Optional<Span>&>(*field) = span;
  }
}

TVM_REGISTER() {
  SpanHandlers().Set(BaseExprObj::RuntimeTypeIndex(), [](const Object* node, ObjectRef*) {
    return &static_cast<const BaseExprObj*>(node)->span;
  });
  Def("script._set_name", &SetName, "Names a variable or buffer that has no name.", Arg("node"),
      Arg("name"));
  Def("script._set_span", &SetSpan, "Says where in the text a node comes from.", Arg("node"),
      Arg("source"), Arg("line"), Arg("column"), Arg("end_line"), Arg("end_column"));
}
}  // namespace
}  // namespace tvm::script
