// SPDX-License-Identifier: Apache-2.0
// Overlaps the iterations of a loop: statements of different stages belong to different iterations.
#include <algorithm>
#include <set>

#include "../any_stmt.h"
#include "../text.h"
#include "tvm/arith/analyzer.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/analysis.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
constexpr const char* kStage = "software_pipeline_stage";
constexpr const char* kOrder = "software_pipeline_order";
constexpr const char* kAsync = "software_pipeline_async_stages";

/// One statement of the loop.
struct StagedStmt {
  Stmt stmt;
  int stage, order;
  bool is_async = false;
};
/// Which buffers a statement writes, and which it uses at all.
struct UseFinder : Visitor<UseFinder, BufferLoadObj, BufferStoreObj, VarObj, BlockObj> {
  std::set<const VarObj*> written, used;
  void Visit(const BufferLoadObj* op) {
    used.insert(op->buffer->data.get());
    for (const PrimExpr& i : op->indices) (*this)(i);
  }
  void Visit(const BufferStoreObj* op) {
    written.insert(op->buffer->data.get());
    used.insert(op->buffer->data.get());
    (*this)(op->value);
    for (const PrimExpr& i : op->indices) (*this)(i);
  }
  /// A pointer: the memory may be read and written.
  void Visit(const VarObj* op) {
    if (op->dtype.is_handle()) {
      written.insert(op);
      used.insert(op);
    }
  }
  void Visit(const BlockObj* op) {  // regions are no accesses
    if (op->init.has_value()) (*this)(op->init.value());
    (*this)(op->body);
  }
};

/// Accesses of one version of each buffer that has several.
struct VersionSelector
    : Mutator<VersionSelector, BufferLoadObj, BufferStoreObj, BufferRegionObj, CallObj, VarObj> {
  const std::unordered_map<const BufferObj*, Buffer>& versioned;
  PrimExpr iteration;
  std::unordered_map<const VarObj*, const BufferObj*> owner;
  explicit VersionSelector(const std::unordered_map<const BufferObj*, Buffer>& versioned)
      : versioned(versioned) {
    for (const auto& [from, to] : versioned) owner[from->data.get()] = from;
  }
  const Buffer* Find(const Buffer& b) const {
    auto it = versioned.find(b.get());
    return it == versioned.end() ? nullptr : &it->second;
  }
  PrimExpr Version(const Buffer& to) const {
    return floormod(iteration, cast(iteration.dtype(), to->shape[0]));
  }
  Array<PrimExpr> Prepend(const Buffer& to, const Array<PrimExpr>& indices) {
    Array<PrimExpr> result{Version(to)};
    for (const PrimExpr& i : indices) result.push_back(Mutate(i));
    return result;
  }
  ObjectRef Rewrite(const BufferLoadObj* op) {
    const Buffer* to = Find(op->buffer);
    return to ? ObjectRef(BufferLoad(*to, Prepend(*to, op->indices), op->predicate, op->span))
              : MapChildren(op, *this);
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    const Buffer* to = Find(op->buffer);
    if (!to) return MapChildren(op, *this);
    return BufferStore(*to, Mutate(op->value), Prepend(*to, op->indices), op->predicate, op->span);
  }
  ObjectRef Rewrite(const BufferRegionObj* op) {
    const Buffer* to = Find(op->buffer);
    if (!to) return MapChildren(op, *this);
    Array<Range> region{Range::FromMinExtent(Version(*to), MakeConst(iteration.dtype(), 1))};
    for (const Range& r : op->region) region.push_back(Mutate(r));
    return BufferRegion(*to, region);
  }
  ObjectRef Rewrite(const CallObj* op) {
    auto* data = op->Is(builtin::tvm_access_ptr()) ? op->args[1].as<VarObj>() : nullptr;
    auto it = data ? owner.find(data) : owner.end();
    if (it == owner.end()) return MapChildren(op, *this);
    const Buffer& to = versioned.at(it->second);
    PrimExpr size = MakeConst(op->args[2].dtype(), 1);
    for (const PrimExpr& e : it->second->shape) size = size * cast(size.dtype(), e);
    Array<PrimExpr> args = op->args;
    args.Set(1, to->data);
    args.Set(2, Mutate(op->args[2]) + cast(size.dtype(), Version(to)) * size);
    return Call(op->dtype, op->op, args, op->span);
  }
  ObjectRef Rewrite(const VarObj* op) {
    if (auto it = owner.find(op); it != owner.end()) {
      TVM_FFI_THROW(ValueError) << "InjectSoftwarePipeline: expected buffer " << it->second->name
                                << ", of which the pipeline needs several versions, to be used "
                                   "by its elements or tvm_access_ptr only";
    }
    return ffi::GetRef<ObjectRef>(op);
  }
};

struct Pipeliner : Mutator<Pipeliner, ForObj, BlockObj> {
  arith::Analyzer analyzer;
  ffi::Map<Var, Buffer> buffer_of_data;

  ObjectRef Rewrite(const BlockObj* op) {
    for (const Buffer& b : op->alloc_buffers) buffer_of_data.Set(b->data, b);
    for (const MatchBufferRegion& m : op->match_buffers)
      buffer_of_data.Set(m->buffer->data, m->buffer);
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const ForObj* op) {
    For loop = Below<For>(op);
    if (!op->annotations.count(kStage)) {
      for (const char* key : {kOrder, kAsync}) {
        if (op->annotations.count(key))
          TVM_FFI_THROW(ValueError) << "InjectSoftwarePipeline: expected annotation " << kStage
                                    << " beside " << key << " of loop " << op->loop_var->name_hint;
      }
      return loop;
    }
    return Pipeline(loop);
  }
  std::vector<int> Numbers(const For& loop, const char* key) {
    std::vector<int> result;
    auto it = loop->annotations.find(key);
    if (it == loop->annotations.end()) return result;
    auto list = (*it).second.try_cast<Array<Any>>();
    if (!list) {
      TVM_FFI_THROW(TypeError) << "InjectSoftwarePipeline: expected a list of integers for " << key
                               << ", got " << (*it).second.GetTypeKey();
    }
    for (const Any& e : *list) {
      std::optional<int64_t> value = e.try_cast<int64_t>();
      if (auto expr = e.try_cast<PrimExpr>(); !value && expr) value = AsConstInt(*expr);
      if (!value || *value < 0) {
        TVM_FFI_THROW(ValueError) << "InjectSoftwarePipeline: expected integers from 0 on in "
                                  << key << ", got another value";
      }
      result.push_back(static_cast<int>(*value));
    }
    return result;
  }
  std::vector<StagedStmt> Steps(const For& loop, const Array<Stmt>& stmts) {
    std::vector<int> stages = Numbers(loop, kStage), orders = Numbers(loop, kOrder),
                     async = Numbers(loop, kAsync);
    if (orders.empty())
      for (size_t i = 0; i < stages.size(); ++i) orders.push_back(static_cast<int>(i));
    if (stages.size() != stmts.size() || orders.size() != stmts.size()) {
      TVM_FFI_THROW(ValueError) << "InjectSoftwarePipeline: expected a stage and a place in the "
                                   "order for each of the "
                                << stmts.size() << " statements of loop "
                                << loop->loop_var->name_hint << ", got " << stages.size() << " and "
                                << orders.size();
    }
    std::vector<StagedStmt> steps;
    std::vector<bool> taken(stmts.size());
    for (size_t i = 0; i < stmts.size(); ++i) {
      if (orders[i] >= static_cast<int>(stmts.size()) || taken[orders[i]]) {
        TVM_FFI_THROW(ValueError) << "InjectSoftwarePipeline: expected " << kOrder
                                  << " to have each number below " << stmts.size() << " once, got "
                                  << orders[i] << " twice or too large";
      }
      taken[orders[i]] = true;
      bool is_async = std::find(async.begin(), async.end(), stages[i]) != async.end();
      steps.push_back({stmts[i], stages[i], orders[i], is_async});
    }
    return steps;
  }
  Stmt Pipeline(For loop) {
    auto* realize = loop->body.as<BlockRealizeObj>();
    if (realize && !IsTrue(realize->predicate)) {
      TVM_FFI_THROW(ValueError) << "InjectSoftwarePipeline: expected the block of loop "
                                << loop->loop_var->name_hint << " to run in each iteration, got "
                                << "the condition " << TextOf(realize->predicate);
    }
    const Stmt& body = realize ? realize->block->body : loop->body;
    auto* seq = body.as<SeqStmtObj>();
    Array<Stmt> stmts = seq ? seq->seq : Array<Stmt>{body};
    std::vector<StagedStmt> steps = Steps(loop, stmts);
    Array<Buffer> buffers = realize ? realize->block->alloc_buffers : Array<Buffer>();

    // ---- how many iterations need a buffer at the same time
    std::vector<UseFinder> uses(steps.size());
    for (size_t i = 0; i < steps.size(); ++i) uses[i](steps[i].stmt);
    CheckOrder(loop, steps, uses);
    std::unordered_map<const BufferObj*, Buffer> versioned;
    Array<Buffer> allocated;
    for (const Buffer& b : buffers) {
      int count = Versions(b->data.get(), steps, uses);
      if (count > 1) versioned[b.get()] = WithVersions(b, count);
      allocated.push_back(count > 1 ? versioned[b.get()] : b);
    }
    // ---- the loop in three parts
    std::vector<size_t> order(steps.size());
    for (size_t i = 0; i < order.size(); ++i) order[steps[i].order] = i;
    int last = 0;
    for (const StagedStmt& s : steps) last = std::max(last, s.stage);
    DataType t = loop->loop_var.dtype();
    PrimExpr n = loop->extent;
    auto number = [&](int64_t v) { return MakeConst(t, v); };
    bool is_long = analyzer.CanProve(n >= number(last));
    // Runs the steps of time `time`; `after_end` says by how much it is beyond the last iteration.
    auto at = [&](const PrimExpr& time, std::optional<int> before, std::optional<int> after_end) {
      Array<Stmt> result;
      for (size_t k = 0; k < order.size();) {
        size_t i = order[k];
        // Asynchronous statements of one stage that follow each other are one group.
        size_t end = k + 1;
        while (steps[i].is_async && end < order.size() && steps[order[end]].stage == steps[i].stage)
          ++end;
        Array<Stmt> group;
        for (size_t j = k; j < end; ++j) {
          const StagedStmt& s = steps[order[j]];
          if ((before && s.stage > *before) || (after_end && s.stage <= *after_end)) continue;
          PrimExpr iteration = analyzer.Simplify(time - number(s.stage));
          VersionSelector select(versioned);
          select.iteration = iteration;
          PrimExpr value = analyzer.Simplify(loop->min + iteration);
          Stmt stmt = Substitute(select.Mutate(s.stmt), [&](const Var& v) {
            return v.same_as(loop->loop_var) ? value : PrimExpr();
          });
          stmt = Waiting(stmt, order[j], steps, uses, after_end);
          PrimExpr guard = const_true();
          if (before && !is_long) guard = iteration < n;
          if (after_end && !is_long)
            guard = iteration >= number(0) && n + number(*after_end) >= number(last);
          group.push_back(IsTrue(guard) ? stmt : IfThenElse(guard, stmt));
        }
        if (!group.empty()) {
          Stmt stmt = SeqStmt::Flatten(group);
          if (steps[i].is_async) {
            stmt = AttrStmt(0, "async_scope", PrimExpr(1), stmt);
            stmt = AttrStmt(0, "async_commit_queue_scope", PrimExpr(steps[i].stage), stmt);
          }
          result.push_back(stmt);
        }
        k = end;
      }
      return SeqStmt::Flatten(result);
    };
    Array<Stmt> parts;
    for (int p = 0; p < last; ++p) parts.push_back(at(number(p), p, {}));
    PrimExpr rest = analyzer.Simplify(n - number(last));
    if (!AsConstInt(rest) || *AsConstInt(rest) > 0) {
      Var var = loop->loop_var.CopyWithSuffix("");
      For steady = loop;
      auto* f = Edit(&steady);
      f->loop_var = var;
      f->min = number(0);
      f->extent = rest;
      f->body = at(analyzer.Simplify(var + number(last)), {}, {});
      for (const char* key : {kStage, kOrder, kAsync}) f->annotations.erase(key);
      parts.push_back(steady);
    }
    for (int e = 0; e < last; ++e) parts.push_back(at(analyzer.Simplify(n + number(e)), {}, e));
    Stmt result = SeqStmt::Flatten(parts);
    if (!realize) return result;
    Block block({}, {}, {}, realize->block->name_hint, result, {}, allocated, {},
                realize->block->annotations);
    for (const Buffer& b : allocated) buffer_of_data.Set(b->data, b);
    Array<Array<BufferRegion>> access = GetBlockReadWriteRegion(block, buffer_of_data);
    auto* b = Edit(&block);
    b->reads = access[0];
    b->writes = access[1];
    return BlockRealize({}, const_true(), block);
  }
  /// A statement must not run before one whose results it uses.
  static void CheckOrder(const For& loop, const std::vector<StagedStmt>& steps,
                         const std::vector<UseFinder>& uses) {
    for (size_t i = 0; i < steps.size(); ++i) {
      for (size_t j = i + 1; j < steps.size(); ++j) {
        bool depends = false;
        for (const VarObj* v : uses[i].written) depends |= uses[j].used.count(v) > 0;
        if (!depends) continue;
        bool in_order = steps[i].stage < steps[j].stage ||
                        (steps[i].stage == steps[j].stage && steps[i].order < steps[j].order);
        if (!in_order) {
          TVM_FFI_THROW(ValueError)
              << "InjectSoftwarePipeline: expected statement " << j << " of loop "
              << loop->loop_var->name_hint << ", which uses what statement " << i
              << " writes, in a later stage or later in the order, got stage " << steps[j].stage
              << " after stage " << steps[i].stage;
        }
      }
    }
  }
  static int Versions(const VarObj* data, const std::vector<StagedStmt>& steps,
                      const std::vector<UseFinder>& uses) {
    int first = INT_MAX, last = -1, first_order = INT_MAX, last_order = -1;
    for (size_t i = 0; i < steps.size(); ++i) {
      if (uses[i].written.count(data) && steps[i].stage <= first) {
        first_order =
            steps[i].stage < first ? steps[i].order : std::min(first_order, steps[i].order);
        first = steps[i].stage;
      }
    }
    for (size_t i = 0; i < steps.size(); ++i) {
      if (uses[i].used.count(data) && steps[i].stage >= last) {
        last_order = steps[i].stage > last ? steps[i].order : std::max(last_order, steps[i].order);
        last = steps[i].stage;
      }
    }
    if (last < 0 || first > last) return 1;
    // Read before the next one is written: that one may take its place.
    bool frees = last > first && last_order < first_order;
    return last - first + (frees ? 0 : 1);
  }
  static Buffer WithVersions(Buffer b, int count) {
    auto* n = Edit(&b);
    Array<PrimExpr> shape{PrimExpr(count)}, strides;
    for (const PrimExpr& e : n->shape) shape.push_back(e);
    if (!n->strides.empty()) {
      strides.push_back(n->strides[0] * n->shape[0]);
      for (const PrimExpr& e : n->strides) strides.push_back(e);
    }
    n->shape = shape;
    n->strides = strides;
    return b;
  }
  /// Waits for the asynchronous statements whose results `stmt` uses; those of later iterations may
  /// still run.
  static Stmt Waiting(Stmt stmt, size_t i, const std::vector<StagedStmt>& steps,
                      const std::vector<UseFinder>& uses, std::optional<int> after_end) {
    std::set<int> stages;
    for (size_t p = 0; p < steps.size(); ++p) {
      if (!steps[p].is_async || steps[p].stage == steps[i].stage) continue;
      for (const VarObj* v : uses[p].written) {
        if (uses[i].used.count(v)) stages.insert(steps[p].stage);
      }
    }
    for (int stage : stages) {
      int order = INT_MAX;
      for (const StagedStmt& p : steps) {
        if (p.is_async && p.stage == stage) order = std::min(order, p.order);
      }
      int begun = -stage - (order > steps[i].order ? 1 : 0);  // newest iteration, at time 0
      int needed = -steps[i].stage;
      if (after_end) {
        begun = std::min(begun + *after_end, -1);
        needed += *after_end;
      }
      stmt = AttrStmt(0, "async_wait_inflight_count", PrimExpr(begun - needed), stmt);
      stmt = AttrStmt(0, "async_wait_queue_scope", PrimExpr(stage), stmt);
    }
    return stmt;
  }
};
}  // namespace

PrimFunc InjectSoftwarePipeline(PrimFunc func) {
  auto annotated = [](const ForObj* op) { return !op->annotations.empty(); };
  if (!AnyStmt<ForObj>(func->body, annotated)) return func;
  Pipeliner pipeline;
  for (const auto& [param, b] : func->buffer_map) pipeline.buffer_of_data.Set(b->data, b);
  Stmt body = pipeline.Mutate(func->body);
  if (body.same_as(func->body)) return func;
  return ConvertSSA(WithBody(std::move(func), body));
}
TVM_PASS(
    tir, InjectSoftwarePipeline,
    R"(Overlaps the iterations of loops with the annotation software_pipeline_stage, which has a number for each statement: in one round of the new loop a statement of stage s does iteration i - s. software_pipeline_order gives the order inside a round. Buffers of the loop's block get as many versions as iterations need them at once. Statements of the stages in software_pipeline_async_stages are marked async_scope, their users wait for them (async_wait_queue_scope, async_wait_inflight_count).

before(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for i in T.serial(16, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
        with T.block():
            T.reads(A[i])
            T.writes(C[i])
            B = T.alloc_buffer((1,))
            with T.block():
                T.reads(A[i])
                T.writes(B[0])
                B[0] = A[i] * 2.0
            with T.block():
                T.reads(B[0])
                T.writes(C[i])
                C[i] = B[0] + 1.0
after:
    with T.block("root"):
        T.reads()
        T.writes()
        with T.block():
            T.reads(A[0:16])
            T.writes(C[0:16])
            B = T.alloc_buffer((2, 1))
            with T.block():
                T.reads(A[0])
                T.writes(B[0, 0])
                B[0, 0] = A[0] * 2.0
            for i in range(15):
                with T.block():
                    T.reads(A[i + 1])
                    T.writes(B[(i + 1) % 2, 0])
                    B[(i + 1) % 2, 0] = A[i + 1] * 2.0
                with T.block():
                    T.reads(B[i % 2, 0])
                    T.writes(C[i])
                    C[i] = B[i % 2, 0] + 1.0
            with T.block():
                T.reads(B[1, 0])
                T.writes(C[15])
                C[15] = B[1, 0] + 1.0)")
}  // namespace tvm::tir
