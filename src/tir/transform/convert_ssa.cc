// SPDX-License-Identifier: Apache-2.0
// Gives every definition a variable of its own.
#include <map>
#include <unordered_set>

#include "tvm/ir/transform.h"
#include "tvm/tir/analysis.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
/// A variable met a second time as a definition is replaced below that definition. Buffers that
/// depend on a replaced variable are replaced with it, so the mutator's own memory of buffers is
/// bypassed.
struct SsaConverter : Mutator<SsaConverter, VarObj, ForObj, LetStmtObj, LetObj, AllocateObj,
                              AllocateConstObj, BlockObj, AttrStmtObj, BufferLoadObj,
                              BufferStoreObj, DeclBufferObj, BufferRegionObj> {
  std::unordered_set<const VarObj*> defined;
  std::unordered_set<const VarObj*> elsewhere;            // in other functions
  std::unordered_set<const VarObj*> in_scope;             // of blocks
  std::optional<std::unordered_set<const VarObj*>> free;  // of `root`, once they are asked for
  Stmt root;
  std::unordered_map<const VarObj*, std::vector<Var>> renamed;  // innermost last
  int active = 0;                                               // renamings in force
  std::map<std::vector<const Object*>, Buffer> buffers;         // by buffer and what it depends on
  struct Scope;
  Scope* function = nullptr;

  Var Current(const Var& v) {
    auto it = renamed.find(v.get());
    return it == renamed.end() || it->second.empty() ? v : it->second.back();
  }
  bool IsFree(const Var& var) {
    if (!free) {
      free.emplace();
      for (const Var& v : UndefinedVars(root)) free->insert(v.get());
    }
    return free->count(var.get()) > 0;
  }
  ObjectRef Rewrite(const VarObj* op) { return Current(ffi::GetRef<Var>(op)); }

  struct Scope {
    SsaConverter* self;
    std::vector<const VarObj*> vars, views;
    explicit Scope(SsaConverter* s) : self(s) {}
    ~Scope() {
      for (const VarObj* v : vars) {
        self->renamed[v].pop_back();
        --self->active;
      }
      for (const VarObj* v : views) self->in_scope.erase(v);
    }
    /// A view defines the strides and the offset that are variables not known outside of it.
    void DefineView(const Buffer& view) {
      Define(view->data);
      Array<PrimExpr> fields = view->strides;
      fields.push_back(view->elem_offset);
      for (const PrimExpr& e : fields) {
        auto var = e.as<Var>();
        if (!var || self->IsFree(*var) || !self->in_scope.insert(var->get()).second) continue;
        views.push_back(var->get());
        Define(*var);
      }
    }
    void Define(const Var& v) {
      if (self->defined.insert(v.get()).second) return;
      self->renamed[v.get()].push_back(v.CopyWithSuffix(""));
      vars.push_back(v.get());
      ++self->active;
    }
  };
  /// The buffer with renamed variables; one object for each combination of them.
  Buffer Renamed(const Buffer& buffer) {
    if (active == 0) return buffer;
    std::vector<const Object*> key{buffer.get()};
    auto add = [&](const ObjectRef& e) {
      struct Vars : Visitor<Vars, VarObj> {
        SsaConverter* self;
        std::vector<const Object*>* key;
        bool changes = false;
        void Visit(const VarObj* v) {
          Var now = self->Current(ffi::GetRef<Var>(v));
          changes |= now.get() != v;
          key->push_back(now.get());
        }
      } visit;
      visit.self = this;
      visit.key = &key;
      visit(e);
      return visit.changes;
    };
    bool changes = add(buffer->data);
    for (const PrimExpr& e : buffer->shape) changes |= add(e);
    for (const PrimExpr& e : buffer->strides) changes |= add(e);
    changes |= add(buffer->elem_offset);
    if (!changes) return buffer;
    Buffer& result = buffers[key];
    if (!result.defined()) result = Any(MapChildren(buffer.get(), *this)).cast<Buffer>();
    return result;
  }
  template <class T>
  ObjectRef MapWithBuffer(const T* op) {
    return MapChildren(op, [&](const ObjectRef& child) -> ObjectRef {
      if (child->type_index() == BufferObj::RuntimeTypeIndex())
        return Renamed(Any(child).cast<Buffer>());
      return (*this)(child);
    });
  }
  template <class T>
  ObjectRef Binding(const T* op, const Var& var) {
    Scope scope(this);
    // The value is outside of the scope, and evaluated before.
    if constexpr (requires { op->value; }) {
      PrimExpr value = Mutate(op->value);
      scope.Define(var);
      auto body = Mutate(op->body);
      Var now = Current(var);
      if (value.same_as(op->value) && body.same_as(op->body) && now.same_as(var))
        return ffi::GetRef<ObjectRef>(op);
      if constexpr (std::is_same_v<T, LetObj>)
        return Let(now, value, body, op->span);
      else
        return LetStmt(now, value, body, op->span);
    } else {
      scope.Define(var);
      return MapChildren(op, *this);
    }
  }
  ObjectRef Rewrite(const ForObj* op) { return Binding(op, op->loop_var); }
  ObjectRef Rewrite(const LetStmtObj* op) { return Binding(op, op->var); }
  ObjectRef Rewrite(const LetObj* op) { return Binding(op, op->var); }
  ObjectRef Rewrite(const AllocateObj* op) { return Binding(op, op->buffer_var); }
  ObjectRef Rewrite(const AllocateConstObj* op) { return Binding(op, op->buffer_var); }
  ObjectRef Rewrite(const AttrStmtObj* op) {
    auto iv = op->node.as<IterVar>();
    if (op->attr_key != attr::kThreadExtent || !iv) return MapChildren(op, *this);
    // One thread index may be named by several attributes of one launch.
    const Var& var = (*iv)->var;
    if (elsewhere.count(var.get()) && Current(var).same_as(var))
      function->Define(var);
    else
      defined.insert(var.get());
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const BlockObj* op) {
    Scope scope(this);
    for (const IterVar& iv : op->iter_vars) scope.Define(iv->var);
    for (const Buffer& b : op->alloc_buffers) scope.Define(b->data);
    for (const MatchBufferRegion& m : op->match_buffers) scope.DefineView(m->buffer);
    if (scope.vars.empty() && active == 0) return MapChildren(op, *this);
    return MapChildren(op, [&](const ObjectRef& child) -> ObjectRef {
      if (auto* b = child.as<BufferObj>()) return Renamed(ffi::GetRef<Buffer>(b));
      if (auto* iv = child.as<IterVarObj>()) return MapChildren(iv, *this);
      if (auto* m = child.as<MatchBufferRegionObj>()) {
        return MatchBufferRegion(Renamed(m->buffer), Mutate(m->source));
      }
      return (*this)(child);
    });
  }
  ObjectRef Rewrite(const BufferLoadObj* op) { return MapWithBuffer(op); }
  ObjectRef Rewrite(const BufferStoreObj* op) { return MapWithBuffer(op); }
  ObjectRef Rewrite(const DeclBufferObj* op) { return MapWithBuffer(op); }
  ObjectRef Rewrite(const BufferRegionObj* op) { return MapWithBuffer(op); }
};
}  // namespace

Stmt ConvertSSA(Stmt stmt) {
  SsaConverter convert;
  convert.root = stmt;
  return convert.Mutate(stmt);
}
namespace {
/// Separates the function also from those that defined the variables `elsewhere`, and adds its own
/// to them.
PrimFunc ConvertSSA(PrimFunc func, std::unordered_set<const VarObj*>* elsewhere) {
  SsaConverter convert;
  convert.root = func->body;
  convert.defined = convert.elsewhere = std::move(*elsewhere);
  {
    SsaConverter::Scope scope(&convert);
    convert.function = &scope;
    std::unordered_set<const VarObj*> own;
    auto define = [&](const PrimExpr& e) {
      if (auto var = e.as<Var>(); var && own.insert(var->get()).second) scope.Define(*var);
    };
    for (const Var& p : func->params) define(p);
    for (const auto& [param, b] : func->buffer_map) {
      define(b->data);
      define(b->elem_offset);
      for (const PrimExpr& e : b->shape) define(e);
      for (const PrimExpr& e : b->strides) define(e);
    }
    if (!scope.vars.empty()) {
      Map<Var, Buffer> buffer_map;
      for (const auto& [param, b] : func->buffer_map)
        buffer_map.Set(convert.Current(param), convert.Renamed(b));
      auto* n = Edit(&func);
      n->params = n->params.Map([&](const Var& p) { return convert.Current(p); });
      n->buffer_map = buffer_map;
    }
    func = RewriteBody(std::move(func), convert);
  }
  *elsewhere = std::move(convert.defined);
  return func;
}
IRModule ConvertModuleSSA(IRModule mod) {
  std::unordered_set<const VarObj*> elsewhere;
  IRModule result = mod;
  for (const auto& [var, func] : mod->Sorted()) {
    auto* f = func.as<PrimFuncObj>();
    if (!f) continue;
    PrimFunc after = ConvertSSA(ffi::GetRef<PrimFunc>(f), &elsewhere);
    if (after.get() != f) Edit(&result)->Update(var, after);
  }
  return result;
}
}  // namespace
PrimFunc ConvertSSA(PrimFunc func) {
  std::unordered_set<const VarObj*> elsewhere;
  return ConvertSSA(std::move(func), &elsewhere);
}

namespace {
TVM_REGISTER() {
  ::tvm::transform::DefPass("tir.transform.ConvertSSA", &ConvertModuleSSA,
                            R"(Gives every definition in a module a variable of its own.

before(A: T.Buffer((16,), "float32")):
    i = T.int32()
    with T.LetStmt(T.int32(1), var=i):
        A[i] = 1.0
    with T.LetStmt(T.int32(2), var=i):
        A[i] = 1.0
after:
    with T.LetStmt(1) as i:
        A[i] = T.float32(1)
    i: T.int32 = 2
    A[i] = T.float32(1))",
                            {});
}
}  // namespace
}  // namespace tvm::tir
