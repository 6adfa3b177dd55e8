// SPDX-License-Identifier: Apache-2.0
// Keeps what the last iteration of a loop put into a buffer, in a circular one.
//
// The statement marked fills a window of the buffer that moves with a loop around it: element
// over * step + window of one dimension. What the windows of two iterations share has the same
// value in both, because the statement computes an element from nothing but its indices and what
// the loop does not change; so only the `step` new elements are computed.
#include <unordered_set>

#include "../any_stmt.h"
#include "tvm/arith/analyzer.h"
#include "tvm/arith/pattern.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/structural.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/analysis.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
constexpr const char* kScope = "rolling_buffer_scope";
using Loops = std::vector<const ForObj*>;

/// The buffer of one mark: where it is allocated, filled and read.
struct Window : Visitor<Window, AllocateObj, DeclBufferObj, ForObj, IfThenElseObj, WhileObj,
                        AttrStmtObj, BufferLoadObj, BufferStoreObj, VarObj> {
  const AttrStmtObj* mark;
  const VarObj* data;
  const std::unordered_set<const VarObj*>& rolled;  // buffers that have been done
  const AllocateObj* allocation = nullptr;
  const DeclBufferObj* declaration = nullptr;
  struct Read {
    const BufferLoadObj* load;
    Loops loops;
  };
  std::vector<Read> reads;
  const BufferStoreObj* store = nullptr;
  Loops store_loops;                 // around the store
  std::vector<PrimExpr> conditions;  // of the store, inside the mark

  // What `Roll` finds: over * step + window is the index of dimension `dim`.
  const ForObj *over = nullptr, *window = nullptr;
  size_t dim = 0;
  int64_t step = 0, size = 0;

  Window(const AttrStmtObj* mark, const Stmt& body, const std::unordered_set<const VarObj*>& rolled)
      : mark(mark), data(MarkedData(mark, "InjectRollingBuffer")), rolled(rolled) {
    (*this)(body);
    if (!allocation || !declaration) Refuse("to be allocated and declared around the mark");
    if (!store) Refuse("to be written by the statement marked");
    if (reads.empty()) Refuse("to be read after it is written");
    if (!StructuralEqual(allocation->extents, declaration->buffer->shape) ||
        !declaration->buffer->strides.empty() || !IsZero(declaration->buffer->elem_offset))
      Refuse("to be declared with the shape it is allocated with");
    Roll();
  }
  [[noreturn]] void Refuse(const std::string& expected) const {
    TVM_FFI_THROW(ValueError) << "InjectRollingBuffer: expected buffer " << data->name_hint << " "
                              << expected;
  }

  // ---- what is there
  Loops loops;              // around, from the allocation on
  bool is_guarded = false;  // inside a condition or a while loop
  bool is_marked = false;   // inside the statement marked
  bool is_filled = false;   // after it
  void Visit(const AllocateObj* op) {
    if (op->buffer_var.get() != data) return VisitChildren(op, *this);
    allocation = op;
    Loops outer = std::exchange(loops, {});
    bool guarded = std::exchange(is_guarded, false);
    (*this)(op->body);
    loops = outer;
    is_guarded = guarded;
  }
  void Visit(const DeclBufferObj* op) {
    if (op->buffer->data.get() != data) return VisitChildren(op, *this);
    if (declaration) Refuse("to be declared once");
    declaration = op;
    (*this)(op->body);
  }
  void Visit(const ForObj* op) {
    loops.push_back(op);
    VisitChildren(op, *this);
    loops.pop_back();
  }
  void Visit(const IfThenElseObj* op) {
    bool outer = std::exchange(is_guarded, true);
    if (is_marked) {
      if (op->else_case.has_value()) Refuse("to be written by one store, got one that has an else");
      conditions.push_back(op->condition);
    }
    VisitChildren(op, *this);
    is_guarded = outer;
  }
  void Visit(const WhileObj* op) {
    bool outer = std::exchange(is_guarded, true);
    VisitChildren(op, *this);
    is_guarded = outer;
  }
  void Visit(const AttrStmtObj* op) {
    if (op != mark) return VisitChildren(op, *this);
    if (is_guarded) Refuse("to be filled in every iteration, not under a condition");
    is_marked = true;
    (*this)(op->body);
    is_marked = false;
    is_filled = true;
  }
  void Visit(const BufferLoadObj* op) {
    for (const PrimExpr& i : op->indices) (*this)(i);
    if (op->buffer->data.get() != data) return;
    if (!is_filled) Refuse("to be read only after it is written in the same iteration");
    reads.push_back({op, loops});
  }
  void Visit(const BufferStoreObj* op) {
    (*this)(op->value);
    for (const PrimExpr& i : op->indices) (*this)(i);
    if (!is_marked && op->buffer->data.get() != data) return;
    if (!is_marked || store || op->buffer->data.get() != data || op->predicate.has_value() ||
        !op->value.dtype().is_scalar())
      Refuse("to be written by one store of single elements, which the mark is around");
    store = op;
    store_loops = loops;
  }
  void Visit(const VarObj* op) {
    if (op == data && allocation) Refuse("to be used by loads and stores only");
  }

  // ---- how it rolls
  void Roll() {
    size_t shared = store_loops.size();
    for (const Read& read : reads) {
      size_t same = 0;
      while (same < std::min(shared, read.loops.size()) && read.loops[same] == store_loops[same])
        ++same;
      shared = same;
    }
    Loops common(store_loops.begin(), store_loops.begin() + shared);
    Loops own(store_loops.begin() + shared, store_loops.end());
    for (const ForObj* loop : common) {
      if (loop->kind != ForKind::kSerial && loop->kind != ForKind::kUnrolled)
        Refuse("to be filled in serial loops, got loop " + std::string(loop->loop_var->name_hint));
    }
    for (size_t outer = 0; outer < common.size() && !over; ++outer) {
      for (const ForObj* inner : own) {
        if (Fits(common, outer, inner)) break;
      }
    }
    if (!over) {
      Refuse(
          "to be filled and read in a loop along which what one iteration writes overlaps with "
          "the next");
    }
    CheckSameValues();
    for (const Read& read : reads) CheckInside(read, common);
  }
  static bool Uses(const ObjectRef& node, const ForObj* loop) {
    return UsesVar(node, [&](const VarObj* v) { return v == loop->loop_var.get(); });
  }
  bool Fits(const Loops& common, size_t outer, const ForObj* inner) {
    const ForObj* loop = common[outer];
    auto count = AsConstInt(inner->extent);
    if (!count || !IsZero(inner->min) || !inner->HasTrivialStep() || !loop->HasTrivialStep())
      return false;
    std::optional<size_t> moved;
    for (size_t d = 0; d < store->indices.size(); ++d) {
      if (!Uses(store->indices[d], loop) && !Uses(store->indices[d], inner)) continue;
      if (moved) return false;
      moved = d;
    }
    if (!moved) return false;
    const PrimExpr& index = store->indices[*moved];
    Array<PrimExpr> parts = arith::DetectLinearEquation(index, {loop->loop_var, inner->loop_var});
    auto by = parts.empty() ? std::nullopt : AsConstInt(parts[0]);
    if (!by || *by <= 0 || *by >= *count || !IsOne(parts[1])) return false;
    // Other loops inside that move the dimension would make the window larger.
    for (size_t i = 0; i < store_loops.size(); ++i) {
      bool is_inside = i > outer && store_loops[i] != inner;
      if (is_inside && Uses(index, store_loops[i])) return false;
    }
    over = loop;
    window = inner;
    dim = *moved;
    step = *by;
    size = *count;
    return true;
  }
  /// An element has one value, whichever iteration computes it.
  void CheckSameValues() const {
    // The variables of the loops that give the indices, in terms of the element.
    Map<Var, PrimExpr> element;
    for (size_t d = 0; d < store->indices.size(); ++d) {
      for (auto loop = store_loops.rbegin(); loop != store_loops.rend(); ++loop) {
        const Var& var = (*loop)->loop_var;
        if (element.count(var) || !Uses(store->indices[d], *loop)) continue;
        Array<PrimExpr> parts = arith::DetectLinearEquation(store->indices[d], {var});
        if (parts.empty() || !IsOne(parts[0])) continue;
        element.Set(var, Var("element", store->indices[d].dtype()) - parts[1]);
        break;
      }
    }
    std::unordered_set<const VarObj*> bound{over->loop_var.get()};
    std::unordered_set<const VarObj*> written;
    bool jumps = false;
    PostOrderVisit(over->body, [&](const ObjectRef& node) {
      if (auto* loop = node.as<ForObj>()) bound.insert(loop->loop_var.get());
      if (auto* let = node.as<LetStmtObj>()) bound.insert(let->var.get());
      if (auto* other = node.as<BufferStoreObj>();
          other && !rolled.count(other->buffer->data.get()))
        written.insert(other->buffer->data.get());
      auto* call = node.as<CallObj>();
      jumps |= call && (call->Is(builtin::break_loop()) || call->Is(builtin::continue_loop()));
    });
    if (jumps) Refuse("to be filled in every iteration, not in a loop with break or continue");
    std::vector<PrimExpr> computed = conditions;
    computed.push_back(store->value);
    for (const PrimExpr& e : computed) {
      arith::Analyzer analyzer;
      PrimExpr value = e;
      for (size_t i = 0; i < element.size(); ++i) value = Substitute(value, element);
      if (UsesVar(SimplifyIndices(value, &analyzer),
                  [&](const VarObj* v) { return bound.count(v) > 0; }))
        Refuse("to get values that depend on nothing but the element");
      PostOrderVisit(e, [&](const ObjectRef& node) {
        if (auto* load = node.as<BufferLoadObj>(); load && written.count(load->buffer->data.get()))
          Refuse("to get values that loop " + std::string(over->loop_var->name_hint) +
                 " does not change, got a read of " + std::string(load->buffer->name));
      });
      if (SideEffect(e) > CallEffectKind::kReadState) Refuse("to get values without side effects");
    }
  }
  static PrimExpr SimplifyIndices(const PrimExpr& e, arith::Analyzer* analyzer) {
    struct Simplifier : Mutator<Simplifier, PrimExprObj> {
      arith::Analyzer* analyzer;
      ObjectRef Rewrite(const PrimExprObj* op) {
        PrimExpr e = ffi::GetRef<PrimExpr>(op);
        return e.dtype().is_index() ? analyzer->Simplify(e) : MapChildren(op, *this);
      }
    };
    Simplifier simplifier;
    simplifier.analyzer = analyzer;
    return simplifier.Mutate(analyzer->Simplify(e));
  }
  /// What is read lies in the window of the iteration.
  void CheckInside(const Read& read, const Loops& common) const {
    arith::Analyzer analyzer;
    for (const ForObj* loop : common) analyzer.Bind(loop->loop_var, DomainOf(loop));
    Map<Var, Range> below;
    for (size_t i = common.size(); i < read.loops.size(); ++i)
      below.Set(read.loops[i]->loop_var, DomainOf(read.loops[i]));
    Array<Range> point;
    for (const PrimExpr& i : read.load->indices)
      point.push_back(Range::FromMinExtent(i, MakeConst(i.dtype(), 1)));
    arith::IntSet box = arith::EstimateRegionUpperBound(point, below, const_true(), &analyzer)[dim];
    PrimExpr first =
        Substitute(store->indices[dim],
                   Map<Var, PrimExpr>{{window->loop_var, MakeZero(window->loop_var.dtype())}});
    PrimExpr last = first + MakeConst(first.dtype(), size - 1);
    if (!box.HasLowerBound() || !box.HasUpperBound() || !analyzer.CanProve(first <= box.min()) ||
        !analyzer.CanProve(box.max() <= last))
      Refuse("to be read where the same iteration of loop " +
             std::string(over->loop_var->name_hint) + " writes it");
  }
  static Range DomainOf(const ForObj* loop) {
    return Range::FromMinExtent(loop->min, loop->extent);
  }
};

/// Puts the circular buffer in place of the whole one.
struct Roller
    : Mutator<Roller, AllocateObj, DeclBufferObj, AttrStmtObj, BufferLoadObj, BufferStoreObj> {
  const Window& w;
  Buffer circular;
  explicit Roller(const Window& window) : w(window), circular(window.declaration->buffer) {
    Edit(&circular)->shape = Shortened(circular->shape);
  }
  Array<PrimExpr> Shortened(Array<PrimExpr> shape) const {
    shape.Set(w.dim, MakeConst(shape[w.dim].dtype(), w.size));
    return shape;
  }
  Array<PrimExpr> Place(Array<PrimExpr> indices) const {
    const PrimExpr& i = indices[w.dim];
    indices.Set(w.dim, floormod(i, MakeConst(i.dtype(), w.size)));
    return indices;
  }
  ObjectRef Rewrite(const AllocateObj* op) {
    if (op != w.allocation) return MapChildren(op, *this);
    return Allocate(op->buffer_var, op->dtype, Shortened(op->extents), op->condition,
                    Mutate(op->body), op->annotations, op->span);
  }
  ObjectRef Rewrite(const DeclBufferObj* op) {
    if (op != w.declaration) return MapChildren(op, *this);
    return DeclBuffer(circular, Mutate(op->body), op->span);
  }
  ObjectRef Rewrite(const AttrStmtObj* op) {
    return op == w.mark ? ObjectRef(Mutate(op->body)) : MapChildren(op, *this);
  }
  ObjectRef Rewrite(const BufferLoadObj* op) {
    BufferLoad load = Below<BufferLoad>(op);
    if (op->buffer->data.get() != w.data) return load;
    return BufferLoad(circular, Place(load->indices), load->predicate, op->span);
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    BufferStore store = Below<BufferStore>(op);
    if (op != w.store) return store;
    const Var &over = w.over->loop_var, &window = w.window->loop_var;
    PrimExpr is_new = over <= w.over->min || window >= MakeConst(window.dtype(), w.size - w.step);
    return IfThenElse(is_new,
                      BufferStore(circular, store->value, Place(store->indices), {}, op->span));
  }
};

const AttrStmtObj* FindMark(const Stmt& body) {
  const AttrStmtObj* found = nullptr;
  PostOrderVisit(body, [&](const ObjectRef& node) {
    auto* attr = node.as<AttrStmtObj>();
    if (!found && attr && attr->attr_key == kScope) found = attr;
  });
  return found;
}
}  // namespace

PrimFunc InjectRollingBuffer(PrimFunc func) {
  std::unordered_set<const VarObj*> rolled;
  while (const AttrStmtObj* mark = FindMark(func->body)) {
    Window window(mark, func->body, rolled);
    Roller roller(window);
    Stmt body = roller.Mutate(func->body);
    func = WithBody(std::move(func), std::move(body));
    rolled.insert(window.data);
  }
  return func;
}
TVM_PASS(
    tir, InjectRollingBuffer,
    R"(Keeps what the last iteration of a loop put into a buffer where the next one needs it again. The statement marked rolling_buffer_scope fills a window of the buffer that moves with a loop around; the buffer becomes a circular one of the size of the window, and only what is new in an iteration is computed. Comes before FlattenBuffer. A buffer that does not roll is a ValueError that says why.

before(A: T.Buffer((12,), "float32"), C: T.Buffer((10,), "float32")):
    B_data = T.allocate([12], "float32", "global")
    B = T.decl_buffer((12,), data=B_data)
    for i in range(10):
        with T.attr(B_data, "rolling_buffer_scope", 1):
            for j in range(3):
                B[i + j] = A[i + j] * 2.0
        C[i] = B[i] + B[i + 1] + B[i + 2]
after:
    B_data = T.allocate([3], "float32", "global")
    B = T.decl_buffer((3,), data=B_data)
    for i in range(10):
        for j in range(3):
            if i <= 0 or j >= 2:
                B[(i + j) % 3] = A[i + j] * 2.0
        C[i] = B[i % 3] + B[(i + 1) % 3] + B[(i + 2) % 3])")
}  // namespace tvm::tir
