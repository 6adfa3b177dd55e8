// SPDX-License-Identifier: Apache-2.0
// Repeats the bodies of short loops.
#include "../any_stmt.h"
#include "../contents.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
/// A copy of a body for one value of the loop variable. What the value makes constant is computed
/// at once: simplifying every copy later costs more.
struct Copy : Mutator<Copy, VarObj, AddObj, SubObj, MulObj> {
  const VarObj* var;
  PrimExpr value;
  Copy(const Var& var, PrimExpr value) : var(var.get()), value(std::move(value)) {}
  ObjectRef Rewrite(const VarObj* op) { return op == var ? value : ffi::GetRef<PrimExpr>(op); }
  template <class Ref, class Obj>
  ObjectRef Computed(const Obj* op, PrimExpr (*make)(PrimExpr, PrimExpr, Optional<Span>)) {
    Ref result = Below<Ref>(op);
    bool has_new_constant = result.get() != op && (AsConstInt(result->a) || AsConstInt(result->b));
    return has_new_constant ? make(result->a, result->b, op->span) : PrimExpr(result);
  }
  ObjectRef Rewrite(const AddObj* op) { return Computed<Add>(op, &add); }
  ObjectRef Rewrite(const SubObj* op) { return Computed<Sub>(op, &sub); }
  ObjectRef Rewrite(const MulObj* op) { return Computed<Mul>(op, &mul); }
};

/// Steps count stores and evaluated expressions; a loop may be unrolled when the copies of its body
/// have at most auto_max_step of them.
struct Unroller : Mutator<Unroller, AttrStmtObj, ForObj, BufferStoreObj, EvaluateObj, SeqStmtObj> {
  int64_t auto_max_step, auto_max_depth, auto_max_extent;
  bool explicit_unroll, unroll_local_access;
  // Of the statement just rewritten.
  int64_t loops_inside = 0, unrolled_inside = 0, steps = 0;
  bool made_copies = false;
  std::unordered_map<const VarObj*, bool> local;  // loop variables that index local memory

  ObjectRef Rewrite(const AttrStmtObj* op) {
    auto value = AsConstInt(op->value);
    if (op->attr_key == attr::kPragmaUnroll && value) {
      std::swap(*value, auto_max_step);
      Stmt body = Mutate(op->body);
      auto_max_step = *value;
      return body;
    }
    if (op->attr_key == attr::kPragmaUnrollExplicit && value) {
      bool before = std::exchange(explicit_unroll, *value != 0);
      Stmt body = Mutate(op->body);
      explicit_unroll = before;
      return body;
    }
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const ForObj* op) {
    int64_t outer_steps = std::exchange(steps, 0);
    int64_t outer_loops = std::exchange(loops_inside, 0),
            outer_unrolled = std::exchange(unrolled_inside, 0);
    For loop = Below<For>(op);
    auto extent = AsConstInt(loop->extent);
    // break and continue need their loop.
    bool jumps = op->annotations.count("irregular_loop_mark") || HasJumps(op->body);
    bool may = op->kind == ForKind::kSerial && !jumps && extent && *extent >= 0 &&
               loops_inside == 0 && unrolled_inside <= auto_max_depth;
    bool unroll = may && (*extent * steps <= auto_max_step || *extent <= auto_max_extent ||
                          (unroll_local_access && *extent * steps <= 4096 && IndexesLocal(loop)));
    bool asked = op->kind == ForKind::kUnrolled;
    Stmt result = loop;
    if (asked && (!extent || jumps)) {
      // A hint that cannot be followed: the loop stays.
      Edit(&loop)->kind = ForKind::kSerial;
      result = loop;
    } else if ((unroll || asked) && explicit_unroll) {
      result = Unrolled(loop, *extent);
    } else if (unroll) {
      Edit(&loop)->kind = ForKind::kUnrolled;  // left to code generation
      result = loop;
    }
    if (extent && (unroll || (asked && !jumps))) {
      steps *= *extent;
      unrolled_inside += 1;
    } else {
      loops_inside += 1;
    }
    steps += outer_steps;
    loops_inside += outer_loops;
    unrolled_inside = std::max(unrolled_inside, outer_unrolled);
    return result;
  }
  Stmt Unrolled(const For& loop, int64_t extent) {
    int64_t step = loop->step.has_value() ? AsConstInt(loop->step.value()).value_or(0) : 1;
    if (step <= 0) return loop;
    Array<Stmt> copies;
    for (int64_t i = 0; i < extent; i += step) {
      PrimExpr value = loop->min + MakeConst(loop->loop_var.dtype(), i);
      copies.push_back(Copy(loop->loop_var, value).Mutate(loop->body));
    }
    made_copies |= copies.size() > 1 && Defines(loop->body);
    return SeqStmt::Flatten(copies);
  }
  /// Whether a copy of the statement defines variables a second time.
  static bool Defines(const Stmt& body) {
    return ContentsOf(body)
        .Has<ForObj, LetStmtObj, LetObj, AllocateObj, AllocateConstObj, DeclBufferObj, AttrStmtObj,
             BlockObj, ReduceObj>();
  }
  static bool IndexesLocal(const For& loop) {
    bool found = false;
    auto check = [&](const Buffer& buffer, const Array<PrimExpr>& indices) {
      if (View(buffer.scope()).substr(0, 5) != "local") return;
      for (const PrimExpr& i : indices) {
        found |= UsesVar(i, [&](const VarObj* v) { return v == loop->loop_var.get(); });
      }
    };
    PostOrderVisit(loop->body, [&](const ObjectRef& node) {
      if (auto* load = node.as<BufferLoadObj>()) check(load->buffer, load->indices);
      if (auto* store = node.as<BufferStoreObj>()) check(store->buffer, store->indices);
    });
    return found;
  }
  ObjectRef Rewrite(const BufferStoreObj* op) { return ++steps, MapChildren(op, *this); }
  ObjectRef Rewrite(const EvaluateObj* op) { return ++steps, MapChildren(op, *this); }
  ObjectRef Rewrite(const SeqStmtObj* op) {
    // The statements beside each other do not nest: the deepest counts.
    int64_t deepest = 0;
    ObjectRef result = MapChildren(op, [&](const ObjectRef& child) {
      int64_t outer = std::exchange(unrolled_inside, 0);
      ObjectRef mapped = (*this)(child);
      deepest = std::max(deepest, unrolled_inside);
      unrolled_inside = outer;
      return mapped;
    });
    unrolled_inside = std::max(unrolled_inside, deepest);
    return result;
  }
};
}  // namespace

PrimFunc UnrollLoop(PrimFunc func, int64_t auto_max_step, int64_t auto_max_depth,
                    int64_t auto_max_extent, bool explicit_unroll, bool unroll_local_access) {
  Unroller unroll;
  unroll.auto_max_step = auto_max_step;
  unroll.auto_max_depth = auto_max_depth;
  unroll.auto_max_extent = auto_max_extent;
  unroll.explicit_unroll = explicit_unroll;
  unroll.unroll_local_access = unroll_local_access;
  func = RewriteBody(std::move(func), unroll);
  return unroll.made_copies ? ConvertSSA(std::move(func)) : func;
}
TVM_PASS(
    tir, UnrollLoop,
    R"(Repeats the bodies of loops marked T.unroll, and of short inner loops where an option or the attribute pragma_auto_unroll_max_step allows it.

before(A: T.Buffer((16,), "float32")):
    for i in T.unroll(3):
        A[i] = 1.0
after:
    A[0] = T.float32(1)
    A[1] = T.float32(1)
    A[2] = T.float32(1))",
    Arg("auto_max_step", 0), Arg("auto_max_depth", 8), Arg("auto_max_extent", 0),
    Arg("explicit_unroll", true), Arg("unroll_local_access", false))
}  // namespace tvm::tir
