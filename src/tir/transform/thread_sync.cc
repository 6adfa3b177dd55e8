// SPDX-License-Identifier: Apache-2.0
// Inserts barriers between accesses of shared memory that belong to different threads.
#include "../any_stmt.h"
#include "../text.h"
#include "tvm/arith/analyzer.h"
#include "tvm/arith/iter_affine_map.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
using Loops = std::vector<std::pair<Var, Range>>;

struct Access {
  Buffer buffer;  // undefined: any element of the memory
  Var data;
  Array<PrimExpr> indices;
  bool is_write;
  Loops loops;  // inside the kernel, outermost first
};
/// What a statement touches before its first barrier and after its last one; without a barrier both
/// are everything.
struct Summary {
  std::vector<Access> head, tail;
  bool has_barrier = false;

  void Append(const Summary& next) {
    if (!has_barrier) head.insert(head.end(), next.head.begin(), next.head.end());
    if (next.has_barrier) {
      tail = next.tail;
      has_barrier = true;
    } else
      tail.insert(tail.end(), next.tail.begin(), next.tail.end());
  }
  /// A statement that may not run orders nothing.
  void MayNotRun() {
    if (!has_barrier) return;
    head.insert(head.end(), tail.begin(), tail.end());
    tail = head;
    has_barrier = false;
  }
};

/// The accesses of one statement, in no order: a statement that races with itself cannot be mended.
struct AccessFinder
    : Visitor<AccessFinder, BufferLoadObj, BufferStoreObj, CallObj, VarObj, BufferObj> {
  const String& scope;
  const Loops& loops;
  std::vector<Access> found;
  AccessFinder(const String& scope, const Loops& loops) : scope(scope), loops(loops) {}

  void Add(const Buffer& buffer, const Var& data, const Array<PrimExpr>& indices, bool is_write) {
    if (ScopeOf(data.get()) == scope) found.push_back({buffer, data, indices, is_write, loops});
  }
  void Visit(const BufferLoadObj* op) {
    Add(op->buffer, op->buffer->data, op->indices, false);
    for (const PrimExpr& i : op->indices) (*this)(i);
  }
  void Visit(const BufferStoreObj* op) {
    Add(op->buffer, op->buffer->data, op->indices, true);
    (*this)(op->value);
    for (const PrimExpr& i : op->indices) (*this)(i);
  }
  void Visit(const CallObj* op) {
    if (op->Is(builtin::tvm_access_ptr())) {
      auto* data = op->args[1].as<VarObj>();
      auto mask = AsConstInt(op->args[4]).value_or(3);
      if (data && (mask & 1)) Add({}, ffi::GetRef<Var>(data), {}, false);
      if (data && (mask & 2)) Add({}, ffi::GetRef<Var>(data), {}, true);
      return;
    }
    auto* load = op->Is(builtin::address_of()) ? op->args[0].as<BufferLoadObj>() : nullptr;
    if (load) return Visit(load->buffer->data.get());
    // Instructions of a whole warp: each thread gives what it holds itself.
    bool is_own = scope == "warp" && (op->Is(builtin::ptx_mma()) || op->Is(builtin::ptx_mma_sp()) ||
                                      op->Is(builtin::ptx_ldmatrix()) ||
                                      op->Is(builtin::mma_fill()) || op->Is(builtin::mma_store()));
    if (!is_own) VisitChildren(op, *this);
  }
  void Visit(const VarObj* op) { Add({}, ffi::GetRef<Var>(op), {}, true); }
  void Visit(const BufferObj*) {}
};

struct BarrierInserter
    : Mutator<BarrierInserter, AttrStmtObj, SeqStmtObj, ForObj, WhileObj, IfThenElseObj, LetStmtObj,
              BufferStoreObj, EvaluateObj, AssertStmtObj, AllocateObj> {
  String scope;
  bool is_global;
  arith::Analyzer analyzer;
  Loops threads, blocks;                           // of the kernel
  Loops loops;                                     // around the current statement
  std::unordered_map<const VarObj*, bool> varies;  // lets that differ between threads
  bool in_kernel = false;
  int divergent = 0;  // conditions around that differ between threads
  Summary summary;    // of the statement just rewritten

  // ---- conflicts ------------------------------------------------------------------------------
  /// Whether two accesses may be of one element by two threads; `depth` loops are at the same
  /// iteration for both.
  bool Conflicts(const Access& a, const Access& b, size_t depth) {
    if (!a.data.same_as(b.data) || !(a.is_write || b.is_write)) return false;
    if (!a.buffer.defined() || !a.buffer.same_as(b.buffer)) return true;
    return !IsSameThread(a, b, depth) && !IsDisjoint(a, b, depth);
  }
  bool Conflicts(const Summary& a, const Summary& b, size_t depth) {
    for (const Access& x : a.tail) {
      for (const Access& y : b.head) {
        if (Conflicts(x, y, depth)) return true;
      }
    }
    return false;
  }
  ffi::Map<Var, Range> Domain(const Access& a, size_t depth) const {
    ffi::Map<Var, Range> result;
    for (const auto& [var, range] : threads) result.Set(var, range);
    if (is_global) {
      for (const auto& [var, range] : blocks) result.Set(var, range);
    }
    for (size_t i = depth; i < a.loops.size(); ++i) result.Set(a.loops[i].first, a.loops[i].second);
    return result;
  }
  /// The same index expression, different for any two threads: one element has one thread.
  bool IsSameThread(const Access& a, const Access& b, size_t depth) {
    if (a.loops.size() != b.loops.size()) return false;
    ffi::Map<Var, PrimExpr> renamed;
    for (size_t i = depth; i < a.loops.size(); ++i) {
      if (!analyzer.CanProveEqual(a.loops[i].second->extent, b.loops[i].second->extent) ||
          !analyzer.CanProveEqual(a.loops[i].second->min, b.loops[i].second->min))
        return false;
      renamed.Set(b.loops[i].first, a.loops[i].first);
    }
    // A vector is a loop over its lanes.
    ffi::Map<Var, Range> domain = Domain(a, depth);
    Array<PrimExpr> indices;
    for (size_t i = 0; i < a.indices.size(); ++i) {
      PrimExpr index = a.indices[i];
      if (!ExprDeepEqual(index, Substitute(b.indices[i], renamed))) return false;
      if (auto* ramp = index.as<RampObj>()) {
        Var lane("lane", ramp->base.dtype());
        domain.Set(lane,
                   Range::FromMinExtent(MakeZero(lane.dtype()), cast(lane.dtype(), ramp->lanes)));
        index = ramp->base + lane * ramp->stride;
      }
      if (!index.dtype().is_scalar()) return false;
      indices.push_back(index);
    }
    // Lets that differ between threads are not seen through.
    if (UsesVar(a.indices, [&](const VarObj* v) { return varies.count(v) > 0; })) return false;
    return IsOneToOne(indices, domain) || IsOneToOne(Digits(indices, domain), domain);
  }
  bool IsOneToOne(const Array<PrimExpr>& indices, const ffi::Map<Var, Range>& domain) {
    if (indices.empty()) return false;
    auto map = arith::DetectIterMap(indices, domain, const_true(), arith::IterMapLevel::kBijective,
                                    &analyzer);
    return !map->indices.empty();
  }
  /// Pieces of iterators that the indices tell apart, as numbers tell their digits; there may be
  /// gaps between them, such as the ends of padded rows. None where indices are no such numbers.
  Array<PrimExpr> Digits(const Array<PrimExpr>& indices, const ffi::Map<Var, Range>& domain) {
    Array<PrimExpr> digits;
    for (const PrimExpr& index : indices) {
      arith::IterSumExpr sum = arith::NormalizeToIterSum(index, domain, &analyzer);
      int64_t below = 0;  // what the smaller digits reach
      for (size_t i = sum->args.size(); i-- > 0;) {
        const arith::IterSplitExpr& piece = sum->args[i];
        auto scale = AsConstInt(piece->scale), extent = AsConstInt(piece->extent);
        if (!scale || !extent || *scale <= below) return {};
        below += *scale * (*extent - 1);
        arith::IterSplitExpr digit(piece->source, piece->lower_factor, piece->extent,
                                   MakeConst(index.dtype(), 1));
        digits.push_back(arith::NormalizeIterMapToExpr(digit));
      }
    }
    return digits;
  }
  bool IsDisjoint(const Access& a, const Access& b, size_t depth) {
    for (size_t i = 0; i < a.indices.size(); ++i) {
      arith::IntSet x = Elements(a, i, depth), y = Elements(b, i, depth);
      auto is_below = [&](const arith::IntSet& low, const arith::IntSet& high) {
        return low.HasUpperBound() && high.HasLowerBound() &&
               analyzer.CanProve(low.max() < high.min());
      };
      if (is_below(x, y) || is_below(y, x)) return true;
    }
    return false;
  }
  arith::IntSet Elements(const Access& a, size_t i, size_t depth) {
    arith::DomMap domain = arith::AsIntSets(Domain(a, depth));
    const PrimExpr& index = a.indices[i];
    if (index.dtype().is_scalar()) return arith::EvalSet(index, domain, &analyzer);
    auto* ramp = index.as<RampObj>();
    auto stride = ramp ? AsConstInt(ramp->stride) : std::nullopt;
    if (!stride || *stride < 0 || !AsConstInt(ramp->lanes)) return arith::IntSet::Everything();
    PrimExpr extent = MakeConst(ramp->base.dtype(), *stride * (*AsConstInt(ramp->lanes) - 1) + 1);
    return arith::EvalSet(Range::FromMinExtent(ramp->base, extent), domain);
  }

  // ---- statements -----------------------------------------------------------------------------
  Stmt Barrier() {
    if (divergent) {
      TVM_FFI_THROW(ValueError) << "ThreadSync: expected accesses of " << scope
                                << " memory by different threads to be ordered outside of "
                                   "conditions that depend on the thread";
    }
    Array<PrimExpr> args{StringImm(scope)};
    if (is_global) {
      PrimExpr is_first = const_true(), count = PrimExpr(1);
      for (const auto& [var, range] : threads)
        is_first = is_first && equal(var, MakeZero(var.dtype()));
      for (const auto& [var, range] : blocks) count = count * range->extent;
      args.push_back(is_first);
      args.push_back(count);
    }
    return Evaluate(Call(DataType::Int(32), builtin::tvm_storage_sync(), args));
  }
  bool Varies(const PrimExpr& e) {
    bool result = UsesVar(e, [&](const VarObj* v) {
      if (varies.count(v)) return true;
      auto is = [&](const auto& t) { return t.first.get() == v; };
      return std::any_of(threads.begin(), threads.end(), is) ||
             (is_global && std::any_of(blocks.begin(), blocks.end(), is));
    });
    PostOrderVisit(e, [&](const ObjectRef& node) {
      auto* load = node.as<BufferLoadObj>();
      if (load && load->buffer.scope() == "local") result = true;
    });
    return result;
  }
  Stmt Leaf(const StmtObj* op) {
    AccessFinder find(scope, loops);
    find(ffi::GetRef<ObjectRef>(op));
    summary = {find.found, find.found, false};
    return ffi::GetRef<Stmt>(op);
  }
  /// Accesses of expressions that are evaluated before a statement's body.
  Summary Of(const ObjectRef& e) {
    AccessFinder find(scope, loops);
    find(e);
    return {find.found, find.found, false};
  }
  ObjectRef Rewrite(const BufferStoreObj* op) { return Leaf(op); }
  ObjectRef Rewrite(const EvaluateObj* op) {
    auto* call = op->value.as<CallObj>();
    if (!call || !call->Is(builtin::tvm_storage_sync())) return Leaf(op);
    String which = call->args[0].as<StringImmObj>()->value;
    summary = {};
    // One barrier orders all kinds of shared memory.
    summary.has_barrier = which == scope || (IsSharedScope(which) && IsSharedScope(scope)) ||
                          which == "global" || (scope == "warp" && IsSharedScope(which));
    return ffi::GetRef<ObjectRef>(op);
  }
  ObjectRef Rewrite(const SeqStmtObj* op) {
    Array<Stmt> result;
    Summary all;
    for (const Stmt& child : op->seq) {
      Stmt stmt = Mutate(child);
      Summary next = std::move(summary);
      if (in_kernel && Conflicts(all, next, loops.size())) {
        result.push_back(Barrier());
        all.tail.clear();
        all.has_barrier = true;
      }
      all.Append(next);
      result.push_back(stmt);
    }
    summary = std::move(all);
    bool same = result.size() == op->seq.size();
    for (size_t i = 0; same && i < result.size(); ++i) same = result[i].same_as(op->seq[i]);
    return same ? ffi::GetRef<ObjectRef>(op) : ObjectRef(SeqStmt::Flatten(result, op->span));
  }
  /// A body that runs again and again: the end of one iteration meets the begin of the next.
  Stmt Repeated(const Stmt& body, bool may_not_run, size_t depth) {
    Stmt result = Mutate(body);
    if (in_kernel && Conflicts(summary, summary, depth)) {
      result = SeqStmt::Flatten({Barrier(), result});
      summary.head.clear();
      summary.has_barrier = true;
    }
    if (may_not_run) summary.MayNotRun();
    return result;
  }
  ObjectRef Rewrite(const ForObj* op) {
    Summary before = Of(Array<PrimExpr>{op->min, op->extent});
    bool differs = in_kernel && (Varies(op->min) || Varies(op->extent));
    size_t depth = loops.size();
    divergent += differs;
    loops.emplace_back(op->loop_var, Range::FromMinExtent(op->min, op->extent));
    if (differs) varies[op->loop_var.get()] = true;
    bool may_not_run = !analyzer.CanProve(op->extent > MakeZero(op->extent.dtype()));
    // A loop of one iteration meets itself never.
    Stmt body;
    if (IsOne(op->extent))
      body = Mutate(op->body);
    else
      body = Repeated(op->body, may_not_run, depth);
    loops.pop_back();
    divergent -= differs;
    before.Append(summary);
    summary = std::move(before);
    if (body.same_as(op->body)) return ffi::GetRef<ObjectRef>(op);
    For loop = ffi::GetRef<For>(op);
    Edit(&loop)->body = body;
    return loop;
  }
  ObjectRef Rewrite(const WhileObj* op) {
    bool differs = in_kernel && Varies(op->condition);
    divergent += differs;
    Stmt body = Repeated(op->body, true, loops.size());
    divergent -= differs;
    Summary condition = Of(op->condition);
    condition.Append(summary);
    summary = std::move(condition);
    return body.same_as(op->body) ? ffi::GetRef<ObjectRef>(op)
                                  : ObjectRef(While(op->condition, body, op->span));
  }
  ObjectRef Rewrite(const IfThenElseObj* op) {
    bool differs = in_kernel && Varies(op->condition);
    divergent += differs;
    Summary before = Of(op->condition);
    Stmt then_case = Mutate(op->then_case);
    summary.MayNotRun();
    Summary both = std::move(summary);
    summary = {};
    Optional<Stmt> else_case = op->else_case;
    if (else_case.has_value()) else_case = Mutate(else_case.value());
    summary.MayNotRun();
    divergent -= differs;
    both.Append(summary);
    before.Append(both);
    summary = std::move(before);
    bool same = then_case.same_as(op->then_case) &&
                (!else_case.has_value() || else_case.value().same_as(op->else_case.value()));
    return same ? ffi::GetRef<ObjectRef>(op)
                : ObjectRef(IfThenElse(op->condition, then_case, else_case, op->span));
  }
  template <class T>
  ObjectRef WithBodyOf(const T* op, Summary before) {
    Stmt body = Mutate(op->body);
    before.Append(summary);
    summary = std::move(before);
    if (body.same_as(op->body)) return ffi::GetRef<ObjectRef>(op);
    ObjectRef copy = CopyNode(op);
    const_cast<T*>(copy.as<T>())->body = body;
    return copy;
  }
  ObjectRef Rewrite(const LetStmtObj* op) {
    if (in_kernel && Varies(op->value)) varies[op->var.get()] = true;
    return WithBodyOf(op, Of(op->value));
  }
  /// A thread waits for its own asynchronous copies: what others copied is there after a barrier
  /// that follows the wait, wherever the copies began.
  ObjectRef AfterWait(const AttrStmtObj* op) {
    Stmt body = Mutate(op->body);
    if (in_kernel && !summary.head.empty()) {
      body = SeqStmt::Flatten({Barrier(), body});
      summary.head.clear();
      summary.has_barrier = true;
    }
    if (body.same_as(op->body)) return ffi::GetRef<ObjectRef>(op);
    return AttrStmt(op->node, op->attr_key, op->value, body, op->span);
  }
  ObjectRef Rewrite(const AssertStmtObj* op) { return WithBodyOf(op, Of(op->condition)); }
  ObjectRef Rewrite(const AllocateObj* op) { return WithBodyOf(op, Of(op->extents)); }
  ObjectRef Rewrite(const AttrStmtObj* op) {
    if (op->attr_key == kOwnBarriers) {
      summary = {};
      return ffi::GetRef<ObjectRef>(op);
    }
    if (op->attr_key == "async_wait_inflight_count") return AfterWait(op);
    const IterVarObj* iv = LaunchedThread(op);
    if (!iv) return WithBodyOf(op, Of(op->value));
    ThreadTag tag(iv->thread_tag);
    Loops& known = tag.kind == ThreadTag::kThread ? threads : blocks;
    bool is_outermost = !std::exchange(in_kernel, true);
    known.emplace_back(iv->var, Range::FromMinExtent(MakeZero(op->value.dtype()), op->value));
    analyzer.Bind(iv->var, known.back().second, true);
    ObjectRef result = WithBodyOf(op, {});
    known.pop_back();
    if (is_outermost) {
      in_kernel = false;
      summary = {};
    }
    return result;
  }
};
}  // namespace

PrimFunc ThreadSync(PrimFunc func, String storage_scope) {
  if (!HasAttr(func->body, attr::kThreadExtent)) return func;
  BarrierInserter insert;
  insert.scope = storage_scope;
  insert.is_global = storage_scope == "global";
  return RewriteBody(std::move(func), insert);
}
TVM_PASS(
    tir, ThreadSync,
    R"(Inserts barriers where a thread may touch memory of a scope that another thread of its block touched before, one of them writing. Accesses whose indices show that each element belongs to one thread need none.

options: storage_scope="shared"
before(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    i = T.launch_thread("threadIdx.x", 32)
    S_data = T.allocate([32], "float32", "shared")
    S = T.decl_buffer((32,), data=S_data, scope="shared")
    S[i] = A[i]
    S[i] = S[i] + 1.0
    B[i] = S[31 - i]
after:
    i = T.launch_thread("threadIdx.x", 32)
    S_data = T.allocate([32], "float32", "shared")
    S = T.decl_buffer((32,), data=S_data, scope="shared")
    S[i] = A[i]
    S[i] = S[i] + 1.0
    T.tvm_storage_sync("shared")
    B[i] = S[31 - i])",
    Arg("storage_scope"))
}  // namespace tvm::tir
