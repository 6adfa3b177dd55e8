// SPDX-License-Identifier: Apache-2.0
// What the Python builder of programs needs from C++.
#include "range.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/tir/function.h"

namespace tvm::script {
using namespace tir;

PrimExpr ExtentOf(PrimExpr begin, PrimExpr end) {
  if (begin.dtype() != end.dtype()) MatchTypes(&begin, &end, "range");
  if (IsZero(begin)) return end;
  if (auto* sum = end.as<AddObj>(); sum && ExprDeepEqual(sum->a, begin)) return sum->b;
  if (ExprDeepEqual(begin, end)) return MakeZero(end.dtype());
  return end - begin;
}
PrimExpr EndOf(const PrimExpr& begin, const PrimExpr& extent) {
  // What someone wrote as begin:end has the extent end - begin.
  if (auto* difference = extent.as<SubObj>();
      difference && ExprDeepEqual(ExtentOf(begin, difference->a), extent)) {
    return difference->a;
  }
  return begin + extent;
}

namespace {

/// Names what the builder made; what has a name keeps it.
void SetName(const ObjectRef& node, const String& name) {
  auto set = [&](const String& field) {
    if (field == "") const_cast<String&>(field) = name;
  };
  if (auto* var = node.as<VarObj>())
    set(var->name_hint);
  else if (auto* iter = node.as<IterVarObj>())
    set(iter->var->name_hint);
  else if (auto* buffer = node.as<BufferObj>())
    set(buffer->name), set(buffer->data->name_hint);
}

/// Says where in the text a node comes from, and what was made together with it; a node that is
/// known already, or used in many places, keeps what it has.
void SetSpan(const ObjectRef& node, const SourceName& source, int64_t line, int64_t column,
             int64_t end_line, int64_t end_column) {
  Optional<Span> span;
  auto set = [&](const Optional<Span>& field) {
    if (field.has_value()) return false;
    if (!span.has_value()) {
      span = New<Span>([&](SpanObj* n) {
        n->source_name = source, n->line = line, n->column = column;
        n->end_line = end_line, n->end_column = end_column;
      });
    }
    const_cast<Optional<Span>&>(field) = span;
    return true;
  };
  if (auto* expr = node.as<PrimExprObj>()) {
    if (!expr->IsInstance<VarObj>()) set(expr->span);
    return;
  }
  ObjectRef stmt = node;
  while (stmt.defined() && stmt.as<StmtObj>() && set(stmt.as<StmtObj>()->span)) {
    if (auto* loop = stmt.as<ForObj>())
      stmt = loop->body;
    else if (auto* realize = stmt.as<BlockRealizeObj>())
      stmt = realize->block;
    else if (auto* allocate = stmt.as<AllocateObj>())
      stmt = allocate->body;
    else
      break;
  }
}

bool HasBlock(const Stmt& stmt) {
  struct Finder : Visitor<Finder, BlockObj, PrimExprObj> {
    bool found = false;
    void Visit(const BlockObj*) { found = true; }
    void Visit(const PrimExprObj*) {}
  } finder;
  OnDeepStack([&] { finder(stmt); });
  return finder.found;
}

/// A buffer without a name; an offset that is not given is 0.
Buffer MakeBuffer(Var data, DataType dtype, Array<PrimExpr> shape, Array<PrimExpr> strides,
                  Optional<PrimExpr> elem_offset, int64_t align, int64_t offset_factor,
                  int64_t type, Array<int64_t> axis_separators) {
  return Buffer(data, dtype, shape, strides, elem_offset.value_or(PrimExpr()), "", align,
                offset_factor, static_cast<BufferType>(type),
                axis_separators.Map([](int64_t axis) { return IntImm::Int32(axis); }));
}

TVM_REGISTER() {
  Def("script._buffer", &MakeBuffer, "A buffer without a name.", Arg("data"), Arg("dtype"),
      Arg("shape"), Arg("strides"), Arg("elem_offset"), Arg("align"), Arg("offset_factor"),
      Arg("buffer_type"), Arg("axis_separators"));
  Def("script._set_name", &SetName, "Names a variable or buffer that has no name.", Arg("node"),
      Arg("name"));
  Def("script._set_span", &SetSpan, "Says where in the text a node comes from.", Arg("node"),
      Arg("source"), Arg("line"), Arg("column"), Arg("end_line"), Arg("end_column"));
  Def("script._extent", &ExtentOf, "end - begin.", Arg("begin"), Arg("end"));
  Def("script._has_block", &HasBlock, "Whether the statement holds a block.", Arg("stmt"));
}
}  // namespace
}  // namespace tvm::script
