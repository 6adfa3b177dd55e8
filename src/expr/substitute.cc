// SPDX-License-Identifier: Apache-2.0
// Replacing variables, and the generic walks.
#include "tvm/expr/substitute.h"

#include <vector>

#include "tvm/ir/structural.h"

namespace tvm::tir {
namespace {
struct Substituter : Mutator<Substituter, VarObj> {
  const VarMap& map;
  explicit Substituter(const VarMap& map) : map(map) {}
  ObjectRef Rewrite(const VarObj* var) {
    Var ref = ffi::GetRef<Var>(var);
    PrimExpr value = map(ref);
    return value.defined() ? ObjectRef(value) : ObjectRef(ref);
  }
};
struct PostOrder : Visitor<PostOrder, Object> {
  const std::function<void(const ObjectRef&)>& visit;
  explicit PostOrder(const std::function<void(const ObjectRef&)>& visit) : visit(visit) {}
  void Visit(const Object* node) {
    VisitChildren(node, *this);
    visit(ffi::GetRef<ObjectRef>(node));
  }
};
struct PreOrder : Visitor<PreOrder, Object> {
  const std::function<bool(const ObjectRef&)>& visit;
  explicit PreOrder(const std::function<bool(const ObjectRef&)>& visit) : visit(visit) {}
  void Visit(const Object* node) {
    if (visit(ffi::GetRef<ObjectRef>(node))) VisitChildren(node, *this);
  }
};
struct VarFinder : Visitor<VarFinder, VarObj> {
  const std::function<bool(const VarObj*)>& pred;
  bool found = false;
  explicit VarFinder(const std::function<bool(const VarObj*)>& pred) : pred(pred) {}
  void Visit(const VarObj* var) { found = found || pred(var); }
};
}  // namespace

ObjectRef SubstituteNode(const ObjectRef& node, const VarMap& map) {
  return Substituter(map)(node);
}

bool UsesVar(const ObjectRef& node, const std::function<bool(const VarObj*)>& pred) {
  VarFinder finder(pred);
  if (node.defined()) finder(node);
  return finder.found;
}
void PostOrderVisit(const ObjectRef& node, const std::function<void(const ObjectRef&)>& visit) {
  PostOrder walk(visit);
  walk(node);
}
void PreOrderVisit(const ObjectRef& node, const std::function<bool(const ObjectRef&)>& visit) {
  PreOrder walk(visit);
  walk(node);
}
namespace {
/// What an expression reads from, in order.
std::vector<const Object*> Sources(const PrimExpr& expr) {
  std::vector<const Object*> found;
  PreOrderVisit(expr, [&](const ObjectRef& node) {
    if (auto* load = node.as<BufferLoadObj>()) found.push_back(load->buffer.get());
    if (auto* load = node.as<ProducerLoadObj>()) found.push_back(load->producer.get());
    return true;
  });
  return found;
}
}  // namespace
bool ExprDeepEqual(const PrimExpr& a, const PrimExpr& b) {
  if (a.same_as(b)) return true;
  if (a->type_index() != b->type_index() || a.dtype() != b.dtype()) return false;
  // Structural equality takes two free buffers of one shape for the same: a buffer defines its
  // data pointer. Here they are different memory.
  return StructuralEqual(a, b) && Sources(a) == Sources(b);
}
}  // namespace tvm::tir
