// SPDX-License-Identifier: Apache-2.0
// Replacing bodies, wrapping statements, fresh definitions, and the walks that Python uses.
#include "tvm/tir/stmt_functor.h"

#include <unordered_set>

#include "ir/once.h"
#include "tvm/expr/substitute.h"

namespace tvm::tir {

PrimFunc WithBody(PrimFunc func, Stmt body) {
  if (!body.same_as(func->body)) Edit(&func)->body = std::move(body);
  return func;
}

namespace {
template <class Ref>
Stmt SetBody(const Stmt& stmt, Stmt body) {
  Ref copy = Any(stmt).cast<Ref>();
  Edit(&copy)->body = std::move(body);
  return copy;
}
}  // namespace

Stmt MergeNest(const std::vector<Stmt>& nest, Stmt body) {
  for (auto it = nest.rbegin(); it != nest.rend(); ++it) {
    const Stmt& s = *it;
    if (s.as<ForObj>())
      body = SetBody<For>(s, body);
    else if (s.as<LetStmtObj>())
      body = SetBody<LetStmt>(s, body);
    else if (s.as<AttrStmtObj>())
      body = SetBody<AttrStmt>(s, body);
    else if (s.as<AllocateObj>())
      body = SetBody<Allocate>(s, body);
    else if (s.as<DeclBufferObj>())
      body = SetBody<DeclBuffer>(s, body);
    else if (s.as<AssertStmtObj>())
      body = SetBody<AssertStmt>(s, body);
    else if (auto* i = s.as<IfThenElseObj>())
      body = IfThenElse(i->condition, body, {}, i->span);
    else
      TVM_FFI_THROW(InternalError) << "MergeNest: " << s.GetTypeKey() << " has no single body";
  }
  return body;
}

namespace {
/// Gives new objects to whatever the program defines. Fields marked Binds say where variables are
/// defined; buffers and iterators are mapped once by the mutator itself.
struct Renewer : Mutator<Renewer, VarObj, BufferObj, ForObj, LetStmtObj, LetObj, AllocateObj,
                         AllocateConstObj, BlockObj, DeclBufferObj, BufferRealizeObj, AttrStmtObj,
                         ReduceObj, CommReducerObj, PrimFuncObj> {
  std::unordered_map<const VarObj*, Var> vars;
  std::unordered_set<const BufferObj*> defined;

  void Define(const Var& var) { vars[var.get()] = var.CopyWithSuffix(""); }
  void Define(const Buffer& buffer) {
    if (!defined.insert(buffer.get()).second) return;
    auto define_var = [&](const PrimExpr& e) {
      if (auto* v = e.as<VarObj>(); v && !vars.count(v)) Define(ffi::GetRef<Var>(v));
    };
    if (!vars.count(buffer->data.get())) Define(buffer->data);
    for (const PrimExpr& e : buffer->shape) define_var(e);
    for (const PrimExpr& e : buffer->strides) define_var(e);
    define_var(buffer->elem_offset);
  }
  ObjectRef Rewrite(const VarObj* op) {
    auto it = vars.find(op);
    return it == vars.end() ? ffi::GetRef<ObjectRef>(op) : ObjectRef(it->second);
  }
  ObjectRef Rewrite(const BufferObj* op) {
    Buffer buffer = Below<Buffer>(op);
    if (defined.count(op) && buffer.get() == op) buffer = Any(CopyNode(op)).cast<Buffer>();
    return buffer;
  }
  ObjectRef Rewrite(const ForObj* op) { return Define(op->loop_var), MapChildren(op, *this); }
  ObjectRef Rewrite(const LetStmtObj* op) { return Define(op->var), MapChildren(op, *this); }
  ObjectRef Rewrite(const LetObj* op) { return Define(op->var), MapChildren(op, *this); }
  ObjectRef Rewrite(const AllocateObj* op) {
    Define(op->buffer_var);
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const AllocateConstObj* op) {
    Define(op->buffer_var);
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const BlockObj* op) {
    for (const IterVar& iv : op->iter_vars) Define(iv->var);
    for (const Buffer& b : op->alloc_buffers) Define(b);
    for (const MatchBufferRegion& m : op->match_buffers) Define(m->buffer);
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const DeclBufferObj* op) {
    // A view of memory that exists already: only the view is new.
    defined.insert(op->buffer.get());
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const BufferRealizeObj* op) {
    Define(op->buffer);
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const AttrStmtObj* op) {
    if (auto iv = op->node.as<IterVar>();
        iv && op->attr_key == attr::kThreadExtent && !vars.count((*iv)->var.get()))
      Define((*iv)->var);
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const ReduceObj* op) {
    for (const IterVar& iv : op->axis) Define(iv->var);
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const CommReducerObj* op) {
    for (const Var& v : op->lhs) Define(v);
    for (const Var& v : op->rhs) Define(v);
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const PrimFuncObj* op) {
    for (const Var& p : op->params) Define(p);
    for (const auto& [param, buffer] : op->buffer_map) Define(buffer);
    return MapChildren(op, *this);
  }
};
}  // namespace

PrimFunc RenewDefs(const PrimFunc& func) { return Renewer().Mutate(func); }

// ---- callbacks --------------------------------------------------------------------------------
namespace {
struct Transformer : Mutator<Transformer, StmtObj, PrimExprObj> {
  const Optional<Function>& preorder;
  const Optional<Function>& postorder;
  std::unordered_set<int32_t> enabled;  // empty: all
  SharedMemo<ObjectRef> done;

  Transformer(const Optional<Function>& pre, const Optional<Function>& post,
              const Optional<Array<String>>& only)
      : preorder(pre), postorder(post) {
    if (!only.has_value()) return;
    for (const String& name : only.value()) {
      std::string key = name;
      // Operators are named without a node of their own in old scripts: "tir.Call" and "Call" are
      // one.
      if (key.find('.') == std::string::npos) key = "tir." + key;
      TVMFFIByteArray bytes{key.data(), key.size()};
      int32_t index;
      if (TVMFFITypeKeyToIndex(&bytes, &index) != 0) {
        ffi::details::MoveFromSafeCallRaised();
        TVM_FFI_THROW(ValueError)
            << "ir_transform: expected the type key of a node in only_enable, got '" << name << "'";
      }
      enabled.insert(index);
    }
  }
  template <class Ref>
  ObjectRef Apply(const Object* op) {
    ObjectRef node = ffi::GetRef<ObjectRef>(op);
    bool is_enabled = enabled.empty() || enabled.count(op->type_index());
    auto call = [&](const Function& fn, const ObjectRef& arg) -> Optional<Ref> {
      return OnHomeStack([&] { return fn(arg); }).template cast<Optional<Ref>>();
    };
    if (is_enabled && preorder.has_value()) {
      if (auto result = call(preorder.value(), node)) return *result;
    }
    node = MapChildren(op, *this);
    if (is_enabled && postorder.has_value()) {
      if (auto result = call(postorder.value(), node)) return *result;
    }
    return node;
  }
  ObjectRef Rewrite(const StmtObj* op) { return Apply<Stmt>(op); }
  ObjectRef Rewrite(const PrimExprObj* op) {
    if (ObjectRef* known = done.Find(op)) return *known;
    ObjectRef result = Apply<PrimExpr>(op);
    done.Keep(op, result);
    return result;
  }
};
}  // namespace

Stmt IRTransform(Stmt stmt, const Optional<Function>& preorder, const Optional<Function>& postorder,
                 const Optional<Array<String>>& only_enable) {
  Transformer transform(preorder, postorder, only_enable);
  return OnDeepStack([&] { return transform.Mutate(stmt); });
}

namespace {
/// Each node once, children first.
struct OnceVisitor : Visitor<OnceVisitor, Object> {
  Function fvisit;
  std::unordered_set<const Object*> seen;
  void Visit(const Object* op) {
    if (!seen.insert(op).second) return;
    VisitChildren(op, *this);
    OnHomeStack([&] { fvisit(ffi::GetRef<ObjectRef>(op)); });
  }
};
void VisitPost(ObjectRef node, Function fvisit) {
  OnceVisitor visit;
  visit.fvisit = fvisit;
  OnDeepStack([&] { visit(node); });
}
void VisitPre(ObjectRef node, Function fvisit) {
  std::unordered_set<const Object*> seen;
  OnDeepStack([&] {
    PreOrderVisit(node, [&](const ObjectRef& n) {
      if (!seen.insert(n.get()).second) return false;
      Any go_on = OnHomeStack([&] { return fvisit(n); });
      return go_on == nullptr || go_on.cast<bool>();
    });
  });
}
ObjectRef SubstituteAny(ObjectRef node, Map<Var, PrimExpr> vmap) {
  return OnDeepStack([&] { return Substitute(node, vmap); });
}

TVM_REGISTER() {
  Def("tir.stmt_functor.ir_transform", &IRTransform,
      "Rewrites a statement: preorder(node) gives a replacement whose children are left alone, or "
      "None; "
      "postorder(node) sees the node with its children rewritten. only_enable lists the type keys "
      "to pass.",
      Arg("stmt"), Arg("preorder"), Arg("postorder"), Arg("only_enable", nullptr));
  Def("tir.stmt_functor.post_order_visit", &VisitPost,
      "Calls fvisit on every node, once, children first.", Arg("stmt"), Arg("fvisit"));
  Def("tir.stmt_functor.pre_order_visit", &VisitPre,
      "Calls fvisit on every node, once, parents first; goes on below unless fvisit returns False.",
      Arg("stmt"), Arg("fvisit"));
  Def("tir.stmt_functor.substitute", &SubstituteAny, "The node with variables replaced.",
      Arg("node"), Arg("vmap"));
  Def(
      "tir.stmt_functor.renew_defs",
      [](PrimFunc func) { return OnDeepStack([&] { return RenewDefs(func); }); },
      "A copy of the function in which everything defined inside is new.", Arg("func"));
}
}  // namespace
}  // namespace tvm::tir
