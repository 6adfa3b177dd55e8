// SPDX-License-Identifier: Apache-2.0
// Replacing variables, and the generic walks.
#include "tvm/expr/substitute.h"

#include <algorithm>
#include <vector>

#include "ir/once.h"
#include "tvm/ir/structural.h"

namespace tvm::tir {
namespace {
struct Substituter : Mutator<Substituter, VarObj, PrimExprObj> {
  const VarMap& map;
  SharedMemo<ObjectRef> done;
  explicit Substituter(const VarMap& map) : map(map) {}
  ObjectRef Rewrite(const VarObj* var) {
    Var ref = ffi::GetRef<Var>(var);
    PrimExpr value = map(ref);
    return value.defined() ? ObjectRef(value) : ObjectRef(ref);
  }
  ObjectRef Rewrite(const PrimExprObj* op) {
    if (ObjectRef* known = done.Find(op)) return *known;
    ObjectRef result = MapChildren(op, *this);
    done.Keep(op, result);
    return result;
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
struct VarFinder : Visitor<VarFinder, VarObj, PrimExprObj> {
  const std::function<bool(const VarObj*)>& pred;
  Once once;
  bool found = false;
  explicit VarFinder(const std::function<bool(const VarObj*)>& pred) : pred(pred) {}
  void Visit(const VarObj* var) { found = found || pred(var); }
  void Visit(const PrimExprObj* op) {
    if (!found && once(op)) VisitChildren(op, *this);
  }
};
}  // namespace

ObjectRef SubstituteNode(const ObjectRef& node, const VarMap& map) {
  return Substituter(map)(node);
}

bool UsesVar(const ObjectRef& node, const std::function<bool(const VarObj*)>& pred) {
  VarFinder finder(pred);
  if (node.defined()) VisitObject(node, finder);  // also the elements of an array
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
/// What an expression reads from, in the order of the first uses.
std::vector<const Object*> Sources(const PrimExpr& expr) {
  std::vector<const Object*> found;
  Once once;
  auto add = [&](const Object* source) {
    if (std::find(found.begin(), found.end(), source) == found.end()) found.push_back(source);
  };
  PreOrderVisit(expr, [&](const ObjectRef& node) {
    if (auto* load = node.as<BufferLoadObj>()) add(load->buffer.get());
    if (auto* load = node.as<ProducerLoadObj>()) add(load->producer.get());
    return once(node.get());
  });
  return found;
}
/// Whether nodes of this type are equal when their types and their children are, and bind nothing.
bool IsItsChildren(int32_t type) {
  static const auto* types = [] {
    auto* list = new std::vector<bool>;
    auto add = [&](int32_t index) {
      if (list->size() <= static_cast<size_t>(index)) list->resize(index + 1);
      (*list)[index] = true;
    };
#define ROW(Name) add(Name##Obj::RuntimeTypeIndex())
    ROW(Add), ROW(Sub), ROW(Mul), ROW(Div), ROW(Mod), ROW(FloorDiv), ROW(FloorMod), ROW(Min),
        ROW(Max), ROW(EQ), ROW(NE), ROW(LT), ROW(LE), ROW(GT), ROW(GE), ROW(And), ROW(Or), ROW(Not),
        ROW(Select), ROW(Cast), ROW(Ramp), ROW(Broadcast), ROW(Call), ROW(BufferLoad);
#undef ROW
    return list;
  }();
  return static_cast<size_t>(type) < types->size() && (*types)[type];
}
/// One comparison of expressions.
struct DeepEqual {
  SharedMemo<const Object*> equal_to;

  bool Children(const ObjectRef& a, const ObjectRef& b) {
    if (a.same_as(b)) return true;
    if (!a.defined() || !b.defined() || a->type_index() != b->type_index()) return false;
    if (auto* x = a.as<PrimExprObj>())
      return Exprs(ffi::GetRef<PrimExpr>(x), ffi::GetRef<PrimExpr>(b.as<PrimExprObj>()));
    if (a.as<BufferObj>()) return false;
    auto *x = a.as<ffi::ArrayObj>(), *y = b.as<ffi::ArrayObj>();
    if (!x) return StructuralEqual(a, b);
    return std::equal(x->begin(), x->end(), y->begin(), y->end(), [&](const Any& m, const Any& n) {
      return Children(m.cast<ObjectRef>(), n.cast<ObjectRef>());
    });
  }
  bool Exprs(const PrimExpr& a, const PrimExpr& b) {
    if (a.same_as(b)) return true;
    if (a->type_index() != b->type_index() || a.dtype() != b.dtype()) return false;
    if (a->IsInstance<VarObj>()) return false;
    if (auto* x = a.as<IntImmObj>()) return x->value == b.as<IntImmObj>()->value;
    if (!IsItsChildren(a->type_index())) {
      // Structural equality takes two free buffers of one shape for the same: a buffer defines its
      // data pointer. Here they are different memory.
      return StructuralEqual(a, b) && Sources(a) == Sources(b);
    }
    if (const Object** known = equal_to.Find(a.get()); known && *known == b.get()) return true;
    bool is_equal = Recurse([&] {
      for (const Child& c : InfoOf(a->type_index()).children) {
        auto at = [&](const PrimExpr& e) -> const ObjectRef& {
          return *reinterpret_cast<const ObjectRef*>(reinterpret_cast<const char*>(e.get()) +
                                                     c.offset);
        };
        if (!Children(at(a), at(b))) return false;
      }
      return true;
    });
    if (is_equal) equal_to.Keep(a.get(), b.get());
    return is_equal;
  }
};
}  // namespace
bool ExprDeepEqual(const PrimExpr& a, const PrimExpr& b) { return DeepEqual().Exprs(a, b); }
}  // namespace tvm::tir
