// SPDX-License-Identifier: Apache-2.0
// Fills a buffer for the next iteration while this one uses it.
#include "../any_stmt.h"
#include "../element_pointer.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
constexpr const char* kScope = "double_buffer_scope";

/// A buffer with two halves: accesses go to the one that `half` selects.
struct HalfSelector : Mutator<HalfSelector, BufferLoadObj, BufferStoreObj, DeclBufferObj, CallObj,
                              AttrStmtObj, VarObj> {
  const VarObj* data;
  PrimExpr size, half;
  std::unordered_map<const BufferObj*, Buffer>* buffers;

  Buffer Doubled(const Buffer& b) {
    Buffer& result = (*buffers)[b.get()];
    if (!result.defined()) {
      if (b->shape.size() != 1) {
        TVM_FFI_THROW(ValueError) << "InjectDoubleBuffer: expected buffer " << b->name
                                  << " with one dimension, run FlattenBuffer first";
      }
      result = b;
      Edit(&result)->shape = {b->shape[0] * PrimExpr(2)};
    }
    return result;
  }
  PrimExpr Shift(const PrimExpr& i) {
    PrimExpr offset = cast(i.dtype().element(), half * cast(half.dtype(), size));
    return i.dtype().is_scalar() ? offset + i : Broadcast(offset, PrimExpr(i.dtype().lanes())) + i;
  }
  ObjectRef Rewrite(const BufferLoadObj* op) {
    if (op->buffer->data.get() != data) return MapChildren(op, *this);
    return BufferLoad(Doubled(op->buffer), {Shift(Mutate(op->indices[0]))}, op->predicate,
                      op->span);
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    if (op->buffer->data.get() != data) return MapChildren(op, *this);
    return BufferStore(Doubled(op->buffer), Mutate(op->value), {Shift(Mutate(op->indices[0]))},
                       op->predicate, op->span);
  }
  ObjectRef Rewrite(const DeclBufferObj* op) {
    if (op->buffer->data.get() != data) return MapChildren(op, *this);
    return DeclBuffer(Doubled(op->buffer), Mutate(op->body), op->span);
  }
  ObjectRef Rewrite(const CallObj* op) {
    if (!op->Is(builtin::tvm_access_ptr()) || op->args[1].get() != data)
      return MapChildren(op, *this);
    Array<PrimExpr> args = op->args;
    args.Set(2, Shift(Mutate(args[2])));
    return Call(op->dtype, op->op, args, op->span);
  }
  ObjectRef Rewrite(const AttrStmtObj* op) {
    if (op->node.as<VarObj>() != data) return MapChildren(op, *this);
    return AttrStmt(op->node, op->attr_key, Mutate(op->value), Mutate(op->body), op->span);
  }
  /// Whoever gets the pointer uses the half of this iteration.
  ObjectRef Rewrite(const VarObj* op) {
    auto var = ffi::GetRef<Var>(op);
    if (op != data) return var;
    PrimExpr pointer = ElementPointer(var, var, Shift(MakeZero(half.dtype())));
    if (!pointer.defined()) {
      TVM_FFI_THROW(ValueError) << "InjectDoubleBuffer: expected a type of what " << op->name_hint
                                << " points to";
    }
    return pointer;
  }
};

/// What is known of the buffers marked, while the program is rewritten from the inside out.
struct Doubler : Mutator<Doubler, AllocateObj, DeclBufferObj, AttrStmtObj, ForObj> {
  int64_t split;
  struct Memory {
    PrimExpr size;
    std::unordered_map<const BufferObj*, Buffer> buffers;
    Allocate hoisted;                  // an allocation inside of the loop
    std::vector<DeclBuffer> declared;  // views of it
    bool is_doubled = false;
  };
  std::unordered_map<const VarObj*, Memory> memory;
  std::unordered_map<const VarObj*, bool> marked;

  /// Finds the marks first: allocations come before them. Only what begins a part of a loop is
  /// filled for the next iteration: a mark elsewhere (its loop had one iteration) means nothing.
  void Collect(const Stmt& body) {
    PostOrderVisit(body, [&](const ObjectRef& node) {
      if (auto* loop = node.as<ForObj>()) CollectIn(loop->body);
    });
  }
  void CollectIn(Stmt body) {
    const VarObj* inside = nullptr;  // allocated in the loop
    for (;;) {
      auto* allocate = body.as<AllocateObj>();
      auto* decl = body.as<DeclBufferObj>();
      if (!allocate && !decl) break;
      const VarObj* data = allocate ? allocate->buffer_var.get() : decl->buffer->data.get();
      if (inside && inside != data) return;
      inside = data;
      body = allocate ? allocate->body : decl->body;
    }
    auto* seq = body.as<SeqStmtObj>();
    const AttrStmtObj* mark = seq ? FirstMark(seq) : nullptr;
    if (mark && (!inside || inside == DataOf(mark))) marked[DataOf(mark)] = true;
  }
  static const AttrStmtObj* FirstMark(const SeqStmtObj* seq) {
    for (const Stmt& stmt : seq->seq) {
      auto* attr = stmt.as<AttrStmtObj>();
      if (attr && attr->attr_key == kScope) return attr;
    }
    return nullptr;
  }
  static const VarObj* DataOf(const AttrStmtObj* mark) {
    return MarkedData(mark, "InjectDoubleBuffer");
  }
  int depth = 0;  // loops around
  ObjectRef Rewrite(const AllocateObj* op) {
    if (!marked.count(op->buffer_var.get())) return MapChildren(op, *this);
    Memory& m = memory[op->buffer_var.get()];
    m.size = PrimExpr(1);
    for (const PrimExpr& e : op->extents) m.size = m.size * e;
    Stmt body = Mutate(op->body);
    if (!m.is_doubled && depth > 0) {
      // The loop that fills it is further out: the allocation has to be outside of it.
      m.hoisted = Allocate(op->buffer_var, op->dtype, {m.size * PrimExpr(2)}, op->condition,
                           Evaluate::Nothing(), op->annotations, op->span);
      return body;
    }
    PrimExpr count = m.is_doubled ? m.size * PrimExpr(2) : m.size;
    return Allocate(op->buffer_var, op->dtype, {count}, op->condition, body, op->annotations,
                    op->span);
  }
  ObjectRef Rewrite(const DeclBufferObj* op) {
    auto it = memory.find(op->buffer->data.get());
    Stmt body = Mutate(op->body);
    if (it == memory.end() || !it->second.hoisted.defined()) {
      if (it != memory.end() && it->second.buffers.count(op->buffer.get()))
        return DeclBuffer(it->second.buffers[op->buffer.get()], body, op->span);
      if (it != memory.end() && !it->second.is_doubled && depth > 0) {
        it->second.declared.push_back(DeclBuffer(op->buffer, Evaluate::Nothing()));
        return body;
      }
    }
    return body.same_as(op->body) ? ffi::GetRef<ObjectRef>(op)
                                  : ObjectRef(DeclBuffer(op->buffer, body, op->span));
  }
  ObjectRef Rewrite(const AttrStmtObj* op) { return MapChildren(op, *this); }

  ObjectRef Rewrite(const ForObj* op) {
    ++depth;
    For loop = Below<For>(op);
    --depth;
    auto* seq = loop->body.as<SeqStmtObj>();
    if (!seq) return loop;
    const AttrStmtObj* mark = FirstMark(seq);
    return mark ? Double(loop, seq->seq, mark) : loop;
  }
  Stmt Double(For loop, const Array<Stmt>& stmts, const AttrStmtObj* mark) {
    const VarObj* data = DataOf(mark);
    auto it = memory.find(data);
    if (it == memory.end()) {
      TVM_FFI_THROW(ValueError) << "InjectDoubleBuffer: expected " << data->name_hint
                                << " to be allocated in the function";
    }
    Memory& m = it->second;
    m.is_doubled = true;
    DataType t = loop->loop_var.dtype();
    PrimExpr two = MakeConst(t, 2), one = MakeConst(t, 1), zero = MakeZero(t);
    HalfSelector select;
    select.data = data;
    select.size = m.size;
    select.buffers = &m.buffers;
    auto fill = [&](const PrimExpr& iteration, const PrimExpr& half) {
      select.half = half;
      PrimExpr value = loop->min + iteration;
      return select.Mutate(Substitute(mark->body, [&](const Var& v) {
        return v.same_as(loop->loop_var) ? value : PrimExpr();
      }));
    };
    Stmt first = fill(zero, zero);
    if (!AsConstInt(loop->extent) || *AsConstInt(loop->extent) < 1)
      first = IfThenElse(loop->extent > zero, first);
    PrimExpr at = loop->loop_var - loop->min;
    Array<Stmt> body;
    for (size_t i = 0; i < stmts.size(); ++i) {
      if (stmts[i].get() == mark) {
        body.push_back(
            IfThenElse(at + one < loop->extent, fill(at + one, floormod(at + one, two))));
      } else {
        select.half = floormod(at, two);
        body.push_back(select.Mutate(stmts[i]));
      }
    }
    Edit(&loop)->body = SeqStmt::Flatten(body);
    Stmt result = SeqStmt::Flatten({first, Split(loop)});
    for (auto d = m.declared.rbegin(); d != m.declared.rend(); ++d) {
      auto b = m.buffers.find((*d)->buffer.get());
      result = DeclBuffer(b == m.buffers.end() ? (*d)->buffer : b->second, result);
    }
    if (m.hoisted.defined()) {
      Allocate around = m.hoisted;
      Edit(&around)->body = result;
      m.hoisted = Allocate();
      result = around;
    }
    return result;
  }
  /// Runs `split` iterations at once, so that the halves become constants.
  Stmt Split(const For& loop) const {
    auto extent = AsConstInt(loop->extent);
    if (split <= 1 || !extent || *extent < split) return loop;
    DataType t = loop->loop_var.dtype();
    PrimExpr factor = MakeConst(t, split);
    auto with = [&](const PrimExpr& value) {
      return Substitute(loop->body, [&](const Var& v) {
        return v.same_as(loop->loop_var) ? loop->min + value : PrimExpr();
      });
    };
    Var outer = loop->loop_var.CopyWithSuffix("_outer");
    Array<Stmt> copies, result;
    for (int64_t i = 0; i < split; ++i) copies.push_back(with(outer * factor + MakeConst(t, i)));
    For main = loop;
    auto* f = Edit(&main);
    f->loop_var = outer;
    f->min = MakeZero(t);
    f->extent = MakeConst(t, *extent / split);
    f->body = SeqStmt::Flatten(copies);
    result.push_back(main);
    for (int64_t i = *extent / split * split; i < *extent; ++i)
      result.push_back(with(MakeConst(t, i)));
    return SeqStmt::Flatten(result);
  }
};
}  // namespace

PrimFunc InjectDoubleBuffer(PrimFunc func, int64_t split_loop) {
  if (!HasAttr(func->body, kScope)) return func;
  Doubler doubler;
  doubler.split = split_loop;
  doubler.Collect(func->body);
  if (doubler.marked.empty()) return func;
  return ConvertSSA(RewriteBody(std::move(func), doubler));
}
TVM_PASS(
    tir, InjectDoubleBuffer,
    R"(Gives buffers marked double_buffer_scope two halves: the statement marked fills one for the next iteration while this one uses the other. With split_loop that many iterations are copied, so that the halves are constants.

config: {"tir.InjectDoubleBuffer": {"split_loop": 1}}
before(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    B_data = T.allocate([4], "float32", "shared")
    B = T.decl_buffer((4,), data=B_data, scope="shared")
    for i in range(16):
        with T.attr(B_data, "double_buffer_scope", 1):
            for j in range(4):
                B[j] = A[i * 4 + j]
        for j in range(4):
            C[i * 4 + j] = B[j] + 1.0
after:
    B_data = T.allocate([8], "float32", "shared")
    B = T.decl_buffer((8,), data=B_data, scope="shared")
    for j in range(4):
        B[j] = A[j]
    for i in range(16):
        if i + 1 < 16:
            for j in range(4):
                B[(i + 1) % 2 * 4 + j] = A[(i + 1) * 4 + j]
        for j in range(4):
            C[i * 4 + j] = B[i % 2 * 4 + j] + 1.0)",
    Arg("split_loop", 1))
}  // namespace tvm::tir
