// SPDX-License-Identifier: Apache-2.0
// Runs virtual threads in turn, statement by statement.
#include <unordered_set>

#include "../any_stmt.h"
#include "../element_pointer.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
/// Variables and memory inside the region that differ between virtual threads: what is computed
/// from the thread's index, and memory that is written with such values, at such places or under
/// such conditions. Grows until nothing more is found.
struct Dependence : Visitor<Dependence, VarObj, BufferLoadObj, BufferStoreObj, LetStmtObj, LetObj,
                            AllocateObj, IfThenElseObj, ForObj, WhileObj, CallObj, DeclBufferObj> {
  std::unordered_set<const VarObj*> tainted, allocated;
  bool changed = true, found = false;
  int conditions = 0;  // around that are tainted

  Dependence(const Var& index, const Stmt& body) {
    tainted.insert(index.get());
    while (changed) {
      changed = false;
      (*this)(body);
    }
  }
  void Taint(const VarObj* v) { changed |= tainted.insert(v).second; }
  bool Of(const ObjectRef& node) {
    bool before = std::exchange(found, false);
    (*this)(node);
    bool result = std::exchange(found, before);
    found |= result;
    return result;
  }
  void Visit(const VarObj* op) { found |= tainted.count(op) > 0; }
  void Visit(const DeclBufferObj* op) { (*this)(op->body); }
  void Visit(const BufferLoadObj* op) {
    (*this)(op->buffer->data);
    for (const PrimExpr& i : op->indices) (*this)(i);
  }
  void Visit(const BufferStoreObj* op) {
    bool varies = conditions > 0 || Of(op->value);
    for (const PrimExpr& i : op->indices) varies |= Of(i);
    if (varies && allocated.count(op->buffer->data.get())) Taint(op->buffer->data.get());
    (*this)(op->buffer->data);
  }
  /// An opaque call may write what it has a pointer to.
  void Visit(const CallObj* op) {
    bool varies = conditions > 0;
    for (const PrimExpr& arg : op->args) varies |= Of(arg);
    if (!varies || EffectOf(op->op) <= CallEffectKind::kReadState) return;
    for (const PrimExpr& arg : op->args) {
      PostOrderVisit(arg, [&](const ObjectRef& node) {
        auto* v = node.as<VarObj>();
        if (v && allocated.count(v)) Taint(v);
      });
    }
  }
  void Visit(const LetStmtObj* op) {
    if (Of(op->value)) Taint(op->var.get());
    (*this)(op->body);
  }
  void Visit(const LetObj* op) {
    if (Of(op->value)) Taint(op->var.get());
    (*this)(op->body);
  }
  void Visit(const AllocateObj* op) {
    allocated.insert(op->buffer_var.get());
    (*this)(op->body);
  }
  template <class F>
  void Under(bool condition, F&& body) {
    conditions += condition;
    body();
    conditions -= condition;
  }
  void Visit(const IfThenElseObj* op) {
    Under(Of(op->condition), [&] {
      (*this)(op->then_case);
      if (op->else_case.has_value()) (*this)(op->else_case.value());
    });
  }
  void Visit(const ForObj* op) {
    bool min = Of(op->min), extent = Of(op->extent);
    if (min || extent) Taint(op->loop_var.get());
    Under(min || extent, [&] { (*this)(op->body); });
  }
  void Visit(const WhileObj* op) {
    Under(Of(op->condition), [&] { (*this)(op->body); });
  }
};

struct ThreadInjector : Mutator<ThreadInjector, AllocateObj, DeclBufferObj, BufferLoadObj,
                                BufferStoreObj, CallObj, VarObj, EvaluateObj, LetStmtObj,
                                IfThenElseObj, ForObj, WhileObj, AttrStmtObj, AssertStmtObj> {
  const Dependence& depends;
  Var index;
  PrimExpr count;
  PrimExpr now;  // the index where the loop over threads is around already
  struct Memory {
    PrimExpr size;
    std::unordered_map<const BufferObj*, Buffer> buffers;
  };
  std::unordered_map<const VarObj*, Memory> memory;  // one piece for each thread

  ThreadInjector(const Dependence& depends, Var index, PrimExpr count)
      : depends(depends), index(std::move(index)), count(std::move(count)) {}

  bool Varies(const ObjectRef& node) const {
    return UsesVar(node, [&](const VarObj* v) { return depends.tainted.count(v) > 0; });
  }
  /// The statement once for each thread, unless a loop around does that already.
  template <class F>
  Stmt ForEach(bool varies, F&& make) {
    if (!varies || now.defined()) return make();
    auto n = AsConstInt(count);
    Var var = index.CopyWithSuffix("_s");
    now = var;
    Stmt body = make();
    now = PrimExpr();
    constexpr int64_t kUnrolled = 16;
    return For(var, MakeZero(var.dtype()), count,
               n && *n <= kUnrolled ? ForKind::kUnrolled : ForKind::kSerial, body);
  }
  ObjectRef Rewrite(const VarObj* op) {
    if (op == index.get() && now.defined()) return now;
    auto var = ffi::GetRef<Var>(op);
    Memory* m = Find(op);
    if (!m) return var;
    // Whoever gets the pointer uses the piece of this thread.
    PrimExpr pointer = ElementPointer(var, var, Shift(m, MakeZero(count.dtype())));
    if (!pointer.defined()) {
      TVM_FFI_THROW(ValueError) << "InjectVirtualThread: expected a type of what " << op->name_hint
                                << " points to";
    }
    return pointer;
  }
  ObjectRef Rewrite(const AllocateObj* op) {
    if (!depends.tainted.count(op->buffer_var.get())) return MapChildren(op, *this);
    if (now.defined()) return MapChildren(op, *this);  // inside the loop: fresh each time
    PrimExpr size = MakeConst(count.dtype(), 1);
    for (const PrimExpr& e : op->extents) size = size * cast(count.dtype(), Mutate(e));
    memory[op->buffer_var.get()].size = size;
    Stmt body = Mutate(op->body);
    return Allocate(op->buffer_var, op->dtype, {count * size}, op->condition, body, op->annotations,
                    op->span);
  }
  Memory* Find(const VarObj* data) {
    auto it = memory.find(data);
    return it == memory.end() ? nullptr : &it->second;
  }
  Buffer Widened(Memory* m, const Buffer& buffer) {
    Buffer& result = m->buffers[buffer.get()];
    if (result.defined()) return result;
    if (buffer->shape.size() != 1) {
      TVM_FFI_THROW(ValueError) << "InjectVirtualThread: expected buffer " << buffer->name
                                << " with one dimension, run FlattenBuffer first";
    }
    result = buffer;
    Edit(&result)->shape = {count * m->size};
    return result;
  }
  PrimExpr Shift(Memory* m, const PrimExpr& i) {
    PrimExpr offset = cast(i.dtype().element(), now * cast(now.dtype(), m->size));
    return i.dtype().is_scalar() ? i + offset : i + Broadcast(offset, PrimExpr(i.dtype().lanes()));
  }
  ObjectRef Rewrite(const DeclBufferObj* op) {
    Memory* m = Find(op->buffer->data.get());
    if (!m) return MapChildren(op, *this);
    return DeclBuffer(Widened(m, op->buffer), Mutate(op->body), op->span);
  }
  ObjectRef Rewrite(const BufferLoadObj* op) {
    Memory* m = Find(op->buffer->data.get());
    if (!m) return MapChildren(op, *this);
    return BufferLoad(Widened(m, op->buffer), {Shift(m, Mutate(op->indices[0]))},
                      op->predicate.has_value() ? Mutate(op->predicate.value()) : op->predicate,
                      op->span);
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    return ForEach(Varies(ffi::GetRef<ObjectRef>(op)), [&]() -> Stmt {
      Memory* m = Find(op->buffer->data.get());
      if (!m) return Below<BufferStore>(op);
      return BufferStore(
          Widened(m, op->buffer), Mutate(op->value), {Shift(m, Mutate(op->indices[0]))},
          op->predicate.has_value() ? Mutate(op->predicate.value()) : op->predicate, op->span);
    });
  }
  ObjectRef Rewrite(const CallObj* op) {
    if (op->Is(builtin::tvm_access_ptr())) {
      auto* data = op->args[1].as<VarObj>();
      if (Memory* m = data ? Find(data) : nullptr) {
        return Call(op->dtype, op->op,
                    {op->args[0], op->args[1], Shift(m, Mutate(op->args[2])), Mutate(op->args[3]),
                     op->args[4]},
                    op->span);
      }
    }
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const EvaluateObj* op) {
    return ForEach(Varies(op->value), [&] { return Below<Evaluate>(op); });
  }
  ObjectRef Rewrite(const LetStmtObj* op) {
    return ForEach(Varies(op->value), [&] { return Below<LetStmt>(op); });
  }
  ObjectRef Rewrite(const AssertStmtObj* op) {
    return ForEach(Varies(op->condition), [&] { return Below<AssertStmt>(op); });
  }
  ObjectRef Rewrite(const IfThenElseObj* op) {
    return ForEach(Varies(op->condition), [&] { return Below<IfThenElse>(op); });
  }
  ObjectRef Rewrite(const ForObj* op) {
    return ForEach(Varies(op->min) || Varies(op->extent), [&] { return Below<For>(op); });
  }
  ObjectRef Rewrite(const WhileObj* op) {
    return ForEach(Varies(op->condition), [&] { return Below<While>(op); });
  }
  ObjectRef Rewrite(const AttrStmtObj* op) {
    return ForEach(Varies(op->value), [&] {
      // A remark about memory names it, wherever its pieces are.
      auto* data = op->node.as<VarObj>();
      if (!data || !Find(data)) return Below<AttrStmt>(op);
      return AttrStmt(op->node, op->attr_key, Mutate(op->value), Mutate(op->body), op->span);
    });
  }
};

struct VirtualThreads : Mutator<VirtualThreads, AttrStmtObj> {
  ObjectRef Rewrite(const AttrStmtObj* op) {
    AttrStmt region = Below<AttrStmt>(op);  // the innermost first
    auto iv = op->node.as<IterVar>();
    if (op->attr_key != attr::kVirtualThread || !iv) return region;
    Dependence depends((*iv)->var, region->body);
    return ThreadInjector(depends, (*iv)->var, region->value).Mutate(region->body);
  }
};
}  // namespace

PrimFunc InjectVirtualThread(PrimFunc func) {
  if (!HasAttr(func->body, attr::kVirtualThread)) return func;
  Stmt body = VirtualThreads().Mutate(func->body);
  if (body.same_as(func->body)) return func;
  return ConvertSSA(WithBody(std::move(func), body));
}
TVM_PASS(
    tir, InjectVirtualThread,
    R"(Runs the virtual threads of a region in turn, statement by statement; what does not depend on the thread runs once. Memory that differs between them gets a piece for each.

before(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    v = T.int32()
    with T.attr(T.iter_var(v, (0, 2), "ThreadIndex", "vthread"), "virtual_thread", 2):
        L_data = T.allocate([32], "float32", "local")
        L = T.decl_buffer((32,), data=L_data, scope="local")
        for i in range(32):
            L[i] = A[v * 32 + i]
            B[v * 32 + i] = L[i] + 1.0
after:
    L_data = T.allocate([64], "float32", "local")
    L = T.decl_buffer((64,), data=L_data, scope="local")
    for i in range(32):
        for v in T.unroll(2):
            L[i + v * 32] = A[v * 32 + i]
        for w in T.unroll(2):
            B[w * 32 + i] = L[i + w * 32] + 1.0)")
}  // namespace tvm::tir
