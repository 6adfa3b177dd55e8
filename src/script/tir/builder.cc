// SPDX-License-Identifier: Apache-2.0
// What the Python builder of TIR needs from C++.
#include "script/tir/range.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/script/language.h"
#include "tvm/tir/function.h"

namespace tvm::script {
using namespace tir;

namespace {
/// e as a sum of something and a constant.
std::pair<PrimExpr, int64_t> WithoutConstant(const PrimExpr& e) {
  if (auto* sum = e.as<AddObj>()) {
    if (auto c = AsConstInt(sum->b)) return {sum->a, *c};
  } else if (auto* difference = e.as<SubObj>()) {
    if (auto c = AsConstInt(difference->b)) return {difference->a, -*c};
  }
  return {e, 0};
}
}  // namespace

PrimExpr ExtentOf(PrimExpr begin, PrimExpr end) {
  if (begin.dtype() != end.dtype()) MatchTypes(&begin, &end, "range");
  if (IsZero(begin)) return end;
  if (auto* sum = end.as<AddObj>(); sum && ExprDeepEqual(sum->a, begin)) return sum->b;
  auto [first, before] = WithoutConstant(begin);
  auto [last, after] = WithoutConstant(end);
  if (ExprDeepEqual(first, last)) return MakeConst(end.dtype(), after - before);
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

void NameVar(const VarObj* var, const String& name) { SetIfEmpty(var->name_hint, name); }
void NameIterVar(const IterVarObj* iter, const String& name) { NameVar(iter->var.get(), name); }
void NameBuffer(const BufferObj* buffer, const String& name) {
  SetIfEmpty(buffer->name, name);
  NameVar(buffer->data.get(), name);
}

const Optional<Span>* SpanOfStmt(const Object* node, ObjectRef* also) {
  Stmt stmt = ffi::GetRef<Stmt>(static_cast<const StmtObj*>(node));
  if (auto* loop = stmt.as<ForObj>())
    *also = loop->body;
  else if (auto* realize = stmt.as<BlockRealizeObj>())
    *also = realize->block;
  else if (auto* allocate = stmt.as<AllocateObj>())
    *also = allocate->body;
  return &static_cast<const StmtObj*>(node)->span;
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
  DefName<VarObj, &NameVar>();
  DefName<IterVarObj, &NameIterVar>();
  DefName<BufferObj, &NameBuffer>();
  SpanHandlers().Set(StmtObj::RuntimeTypeIndex(), &SpanOfStmt);
  SpanHandlers().Set(VarObj::RuntimeTypeIndex(),
                     [](const Object*, ObjectRef*) -> const Optional<Span>* { return nullptr; });
  Def("script._buffer", &MakeBuffer, "A buffer without a name.", Arg("data"), Arg("dtype"),
      Arg("shape"), Arg("strides"), Arg("elem_offset"), Arg("align"), Arg("offset_factor"),
      Arg("buffer_type"), Arg("axis_separators"));
  Def("script._extent", &ExtentOf, "end - begin.", Arg("begin"), Arg("end"));
  Def("script._has_block", &HasBlock, "Whether the statement holds a block.", Arg("stmt"));
}
}  // namespace
}  // namespace tvm::script
