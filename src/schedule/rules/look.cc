// SPDX-License-Identifier: Apache-2.0
// Looking at a block: axes, accesses, cost.
#include "schedule/rules/look.h"

#include <algorithm>

#include "schedule/analysis.h"
#include "tvm/arith/analyzer.h"
#include "tvm/arith/pattern.h"
#include "tvm/expr/substitute.h"
#include "tvm/tir/analysis.h"

namespace tvm::tir {
namespace {
/// Counts operations and finds what keeps a body from being vectors.
struct BodyLook : Visitor<BodyLook, PrimExprObj, StmtObj, CallObj, BufferLoadObj, BufferStoreObj,
                          BlockObj, CastObj> {
  BlockLook* out;
  std::function<PrimExpr(PrimExpr)> in_loops;
  Array<Var> loop_vars;
  arith::Analyzer analyzer;

  /// What is known of the loops is only asked for where indices are divided.
  void BindLoops() {
    for (size_t i = 0; i < loop_vars.size() && !is_bound; ++i) {
      const Axis& axis = out->axes[i];
      analyzer.Bind(axis.var, Range::FromMinExtent(MakeZero(axis.var.dtype()), axis.extent));
    }
    is_bound = true;
  }
  bool is_bound = false;
  bool IsAlways(const PrimExpr& condition) {
    BindLoops();
    return analyzer.CanProve(in_loops(condition));
  }
  void Count(DataType t) {
    out->work += 1;
    if (t.is_float() || t.is_bfloat16() || t.is_integer())
      out->widest_bits = std::max<int>(out->widest_bits, t.bits());
  }
  void Visit(const PrimExprObj* e) { Count(e->dtype), VisitChildren(e, *this); }
  void Visit(const CastObj* e) { Count(e->dtype), VisitChildren(e, *this); }
  void Visit(const StmtObj* s) {
    out->simple = false;
    VisitChildren(s, *this);
  }
  void Visit(const BlockObj* block) {
    if (block != out->block.get()) out->simple = false;
    if (block->init.has_value()) (*this)(block->init.value());
    (*this)(block->body);
  }
  void Visit(const CallObj* call) {
    Count(call->dtype);
    bool known = call->op.as<OpObj>() != nullptr;
    bool pure = SideEffect(ffi::GetRef<Call>(call)) <= CallEffectKind::kReadState;
    if (!known || !pure || call->Is(builtin::call_extern()) ||
        call->Is(builtin::call_pure_extern()))
      out->simple = false;
    // What is known to be taken costs nothing: padding by nothing is a copy.
    if (call->Is(builtin::if_then_else()) && IsAlways(call->args[0])) return (*this)(call->args[1]);
    out->work += cost::kCall;
    VisitChildren(call, *this);
  }
  void Visit(const BufferLoadObj* load) {
    Add(load->buffer, load->indices, false);
    out->widest_bits = std::max<int>(out->widest_bits, load->buffer->dtype.bits());
    for (const PrimExpr& i : load->indices) Indices(i);
  }
  void Visit(const BufferStoreObj* store) {
    Add(store->buffer, store->indices, true);
    for (const PrimExpr& i : store->indices) Indices(i);
    (*this)(store->value);
  }
  /// Indices are not work, unless they are loaded.
  void Indices(const PrimExpr& index) {
    PostOrderVisit(index, [&](const ObjectRef& node) {
      if (auto* load = node.as<BufferLoadObj>()) {
        Add(load->buffer, load->indices, false);
        out->simple = false;
      }
    });
  }
  void Add(const Buffer& buffer, const Array<PrimExpr>& indices, bool is_store) {
    out->work += 1;
    Access access{buffer, is_store, true, std::vector<PrimExpr>(loop_vars.size(), PrimExpr(0))};
    PrimExpr stride(1);
    for (size_t i = indices.size(); i-- > 0 && access.linear;) {
      if (!buffer->strides.empty()) stride = buffer->strides[i];
      auto* word = indices[i].as<RampObj>();  // a few elements at once
      PrimExpr index = in_loops(word ? word->base : indices[i]);
      auto step = [&](size_t v, const PrimExpr& by) {
        access.steps[v] = analyzer.Simplify(access.steps[v] + by);
      };
      if (index.as<VarObj>()) {  // mostly it is a loop
        for (size_t v = 0; v < loop_vars.size(); ++v) {
          if (index.same_as(loop_vars[v])) step(v, stride);
        }
      } else {
        Array<PrimExpr> parts = arith::DetectLinearEquation(index, loop_vars);
        if (parts.empty()) {
          BindLoops();
          parts = arith::DetectLinearEquation(analyzer.Simplify(index), loop_vars);
        }
        access.linear = !parts.empty();
        for (size_t v = 0; access.linear && v < loop_vars.size(); ++v) {
          if (!IsZero(parts[v])) step(v, parts[v] * stride);
        }
      }
      stride = stride * buffer->shape[i];
    }
    if (auto* word = indices.empty() ? nullptr : indices.back().as<RampObj>())
      CountWords(word, &access);
    out->accesses.push_back(std::move(access));
  }
  /// Steps in words, where all of them are whole ones.
  void CountWords(const RampObj* word, Access* access) {
    auto lanes = AsConstInt(word->lanes);
    if (!access->linear || !lanes || !IsOne(word->stride)) return;
    std::vector<PrimExpr> steps = access->steps;
    for (PrimExpr& step : steps) {
      PrimExpr by = MakeConst(step.dtype(), *lanes);
      if (!analyzer.CanProveEqual(floormod(step, by), MakeZero(step.dtype()))) return;
      step = analyzer.Simplify(floordiv(step, by));
    }
    access->steps = steps;
    access->word = *lanes;
  }
};
}  // namespace

BlockLook LookAt(const Schedule& sch, const BlockRV& rv) {
  BlockLook look;
  look.rv = rv;
  const State& state = sch.state();
  BlockId id{sch.IdOf(rv)};
  const BlockRealizeObj* realize = state.realize(id);
  look.block = realize->block;

  BodyLook body;
  body.out = &look;
  Map<Var, PrimExpr> values;
  for (size_t i = 0; i < realize->iter_values.size(); ++i) {
    values.Set(look.block->iter_vars[i]->var, realize->iter_values[i]);
  }
  for (const LoopRV& loop : sch.GetLoops(rv)) {
    For node = sch.Get(loop);
    Axis axis{loop, node->loop_var, node->extent, AsConstInt(node->extent), /*iter=*/{}};
    int use = UseOf(node, ffi::GetRef<BlockRealize>(realize));
    axis.spatial = use & kSpatial;
    axis.reduce = use & ~kSpatial;
    for (size_t i = 0; i < realize->iter_values.size(); ++i) {
      if (realize->iter_values[i].same_as(node->loop_var))
        axis.iter = look.block->iter_vars[i]->var;
    }
    look.has_reduction |= axis.reduce;
    body.loop_vars.push_back(node->loop_var);
    look.axes.push_back(std::move(axis));
  }
  look.has_reduction |= look.block->init.has_value();
  body.in_loops = [&](PrimExpr e) {
    auto var = e.as<Var>();
    if (!var) return Substitute(e, values);
    return values.count(*var) ? values[*var] : e;
  };
  body(look.block);
  if (!IsTrue(realize->predicate)) look.simple = false;
  return look;
}

std::optional<int64_t> BlockLook::Size(const std::function<bool(const Axis&)>& which) const {
  int64_t size = 1;
  for (const Axis& axis : axes) {
    if (!which(axis)) continue;
    if (!axis.size) return std::nullopt;
    size *= *axis.size;
  }
  return size;
}
bool BlockLook::IsEmpty() const {
  return std::any_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.size == 0; });
}
std::optional<double> BlockLook::TotalWork() const {
  auto size = Size();
  return size ? std::optional(work * static_cast<double>(*size)) : std::nullopt;
}
bool BlockLook::Collapses(size_t outer) const {
  arith::Analyzer analyzer;
  return std::all_of(accesses.begin(), accesses.end(), [&](const Access& access) {
    return access.linear && analyzer.CanProveEqual(access.steps[outer], access.steps[outer + 1] *
                                                                            axes[outer + 1].extent);
  });
}
const Access& BlockLook::Store() const {
  for (const Access& access : accesses) {
    if (access.is_store) return access;
  }
  TVM_FFI_THROW(InternalError) << "default rules: expected a block that stores something";
  TVM_FFI_UNREACHABLE();
}
std::optional<size_t> BlockLook::Column() const {
  std::optional<size_t> column;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!axes[i].spatial || axes[i].reduce || !Store().StepsBy(i, 1)) continue;
    // One element is along every axis: rather the axis that is longer, if vectors fit there.
    bool stays = column && axes[i].size == 1 &&
                 std::all_of(accesses.begin(), accesses.end(),
                             [&](const Access& access) { return access.IsNear(*column); });
    if (!stays) column = i;
  }
  return column;
}

bool Attempt(const Schedule& sch, const std::function<bool()>& attempt) {
  // Copies of a schedule share what they have in common.
  ScheduleObj* self = sch.get();
  State state = self->state->value;
  auto symbols = self->symbols;
  auto insts = self->insts;
  auto decisions = self->decisions;
  try {
    if (attempt()) return true;
  } catch (const ffi::Error& error) {
    if (error.kind() != "ScheduleError") throw;
  }
  self->state->value = state;
  self->symbols = symbols;
  self->insts = insts;
  self->decisions = decisions;
  return false;
}
}  // namespace tvm::tir
