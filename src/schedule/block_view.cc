// SPDX-License-Identifier: Apache-2.0
// Views of blocks, and their face in Python.
#include "schedule/block_view.h"

#include <algorithm>

#include "schedule/rules/costs.h"
#include "tvm/arith/pattern.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/function.h"

namespace tvm::tir {
BlockView::BlockView(const Schedule& sch, const BlockRV& rv) {
  const State& state = sch.state();
  BlockId id{sch.IdOf(rv)};
  realize = ffi::GetRef<BlockRealize>(state.realize(id));
  block = realize->block;
  is_root = state.parent(id) == kNoNode;
  has_blocks = !state.ChildBlocks(id).empty();
  is_spatial = !block->iter_vars.empty();
  for (const IterVar& iter : block->iter_vars) {
    is_spatial &= iter->iter_type == IterVarType::kDataPar;
    has_reduction |= iter->iter_type == IterVarType::kCommReduce;
  }
  has_reduction |= block->init.has_value();
  for (LoopId loop : state.LoopsAbove(id)) {
    const ForObj* node = state.loop(loop);
    Axis axis{node, node->loop_var, node->extent, AsConstInt(node->extent)};
    axis.use = UseOf(ffi::GetRef<For>(node), realize);
    if (axis.use & kOther) axis.use = (axis.use & ~kOther) | kReduce;
    axis.spatial = axis.use & kSpatial;
    axis.reduce = axis.use & ~kSpatial;
    for (size_t i = 0; i < realize->iter_values.size(); ++i) {
      if (realize->iter_values[i].same_as(axis.var)) axis.iter = block->iter_vars[i]->var;
    }
    has_reduction |= axis.reduce;
    axes.push_back(std::move(axis));
  }
}

double BlockView::Iterations(LoopUse use) const {
  double n = 1;
  for (const Axis& axis : axes) {
    if (axis.use == use) n *= static_cast<double>(std::max<int64_t>(1, axis.size.value_or(1)));
  }
  return n;
}
bool BlockView::HasConstantExtents() const {
  return std::all_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.size >= 1; });
}
bool BlockView::HasMixedLoop() const {
  return std::any_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.use == kMixed; });
}
bool BlockView::HasReuse() const {
  if (!has_reduction) return false;
  for (const BufferRegion& read : ReadsOf(block.get())) {
    for (const IterVar& iter : block->iter_vars) {
      if (iter->iter_type != IterVarType::kDataPar || !iter->dom.has_value()) continue;
      if (AsConstInt(iter->dom.value()->extent).value_or(2) < 2) continue;
      auto moves = [&](const Range& r) {
        return UsesVar(r->min, [&](const VarObj* v) { return v == iter->var.get(); });
      };
      if (std::none_of(read->region.begin(), read->region.end(), moves)) return true;
    }
  }
  return false;
}
bool BlockView::IsAlone(const Schedule& sch) const {
  const State& state = sch.state();
  return std::all_of(axes.begin(), axes.end(), [&](const Axis& axis) {
    return axis.node->kind == ForKind::kSerial && axis.node->annotations.empty() &&
           state.ChildBlocks(state.Find(axis.node)).size() == 1;
  });
}
bool BlockView::Moves(const PrimExpr& index, size_t axis) const {
  const VarObj* loop = axes[axis].var.get();
  for (size_t i = 0; i < block->iter_vars.size(); ++i) {
    const VarObj* iter = block->iter_vars[i]->var.get();
    if (UsesVar(realize->iter_values[i], [&](const VarObj* v) { return v == loop; }) &&
        UsesVar(index, [&](const VarObj* v) { return v == iter; }))
      return true;
  }
  return false;
}
bool BlockView::StayInRow(const Array<BufferRegion>& regions, size_t axis) const {
  for (const BufferRegion& region : regions) {
    for (size_t d = 0; d + 1 < region->region.size(); ++d) {
      if (Moves(region->region[d]->min, axis)) return false;
    }
  }
  return true;
}

bool Access::Collides(size_t axis, const Machine& machine) const {
  auto step = linear ? AsConstInt(steps[axis]) : std::nullopt;
  int64_t period = machine->l1_bytes / machine->l1_ways;
  return step && *step != 0 && *step * Bytes() % period == 0;
}
bool Access::IsNear(size_t axis) const {
  auto step = linear ? AsConstInt(steps[axis]) : std::nullopt;
  return step && *step >= 0 && *step <= (is_store ? 1 : cost::kNear);
}

AccessReader::AccessReader(const BlockView* view) : view_(view) {
  for (size_t i = 0; i < view->realize->iter_values.size(); ++i)
    values_.Set(view->block->iter_vars[i]->var, view->realize->iter_values[i]);
  for (const Axis& axis : view->axes) loops_.push_back(axis.var);
}
void AccessReader::BindLoops() {
  if (is_bound_) return;
  is_bound_ = true;
  for (const Axis& axis : view_->axes)
    analyzer_.Bind(axis.var, Range::FromMinExtent(axis.node->min, axis.extent));
}
PrimExpr AccessReader::InLoops(const PrimExpr& e) const {
  auto var = e.as<Var>();
  if (!var) return Substitute(e, values_);
  return values_.count(*var) ? values_[*var] : e;
}
bool AccessReader::IsAlways(const PrimExpr& condition) {
  BindLoops();
  return analyzer_.CanProve(InLoops(condition));
}
Access AccessReader::Of(const Buffer& buffer, const Array<PrimExpr>& indices, bool is_store) {
  Access access{buffer, is_store, true, std::vector<PrimExpr>(loops_.size(), PrimExpr(0))};
  PrimExpr stride(1);
  for (size_t i = indices.size(); i-- > 0 && access.linear;) {
    if (!buffer->strides.empty()) stride = buffer->strides[i];
    auto* word = indices[i].as<RampObj>();  // a few elements at once
    PrimExpr index = InLoops(word ? word->base : indices[i]);
    auto step = [&](size_t v, const PrimExpr& by) {
      access.steps[v] = analyzer_.Simplify(access.steps[v] + by);
    };
    if (index.as<VarObj>()) {  // mostly it is a loop
      for (size_t v = 0; v < loops_.size(); ++v) {
        if (index.same_as(loops_[v])) step(v, stride);
      }
    } else {
      Array<PrimExpr> parts = arith::DetectLinearEquation(index, loops_);
      if (parts.empty()) {
        BindLoops();
        parts = arith::DetectLinearEquation(analyzer_.Simplify(index), loops_);
      }
      access.linear = !parts.empty();
      for (size_t v = 0; access.linear && v < loops_.size(); ++v) {
        if (!IsZero(parts[v])) step(v, parts[v] * stride);
      }
    }
    stride = stride * buffer->shape[i];
  }
  if (!access.linear && indices.size() > 1) AlongWhole(indices, &access);
  auto* word = indices.empty() ? nullptr : indices.back().as<RampObj>();
  if (word) CountWords(word, &access);
  return access;
}
void AccessReader::AlongWhole(const Array<PrimExpr>& indices, Access* access) {
  PrimExpr place(0), stride(1);
  for (size_t i = indices.size(); i-- > 0;) {
    if (indices[i].as<RampObj>()) return;
    if (!access->buffer->strides.empty()) stride = access->buffer->strides[i];
    place = place + InLoops(indices[i]) * stride;
    stride = stride * access->buffer->shape[i];
  }
  BindLoops();
  Array<PrimExpr> parts = arith::DetectLinearEquation(analyzer_.Simplify(place), loops_);
  if (parts.empty()) return;
  access->linear = true;
  access->steps.assign(parts.begin(), parts.begin() + static_cast<int64_t>(loops_.size()));
}
void AccessReader::CountWords(const RampObj* word, Access* access) {
  auto lanes = AsConstInt(word->lanes);
  if (!access->linear || !lanes || !IsOne(word->stride)) return;
  std::vector<PrimExpr> steps = access->steps;
  for (PrimExpr& step : steps) {
    PrimExpr by = MakeConst(step.dtype(), *lanes);
    if (!analyzer_.CanProveEqual(floormod(step, by), MakeZero(step.dtype()))) return;
    step = analyzer_.Simplify(floordiv(step, by));
  }
  access->steps = steps;
  access->word = *lanes;
}

namespace {
/// What a script sees: of each loop its variable, and whether it is "S" (spatial), "R" (reduction),
/// "SR" or "", then of each access its buffer, whether it is a store, and its steps, None where
/// they are not constant along the loops.
Array<Any> ViewForScript(Schedule sch, BlockRV rv) {
  BlockView view(sch, rv);
  Array<Var> loops;
  Array<String> uses;
  for (const Axis& axis : view.axes) {
    loops.push_back(axis.var);
    uses.push_back(std::string(axis.spatial ? "S" : "") + (axis.reduce ? "R" : ""));
  }
  Array<Any> accesses;
  AccessReader reader(&view);
  auto add = [&](const Buffer& buffer, const Array<PrimExpr>& indices, bool is_store) {
    Access access = reader.Of(buffer, indices, is_store);
    Any steps;
    if (access.linear) steps = Array<PrimExpr>(access.steps.begin(), access.steps.end());
    accesses.push_back(Array<Any>{buffer, is_store, steps});
  };
  PostOrderVisit(view.block->body, [&](const ObjectRef& node) {
    if (auto* load = node.as<BufferLoadObj>()) add(load->buffer, load->indices, false);
    if (auto* store = node.as<BufferStoreObj>()) add(store->buffer, store->indices, true);
  });
  return {loops, uses, accesses};
}
TVM_REGISTER() { Def("tir.schedule._block_view", &ViewForScript, "", Arg("sch"), Arg("block")); }
}  // namespace
}  // namespace tvm::tir
