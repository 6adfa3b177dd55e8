// SPDX-License-Identifier: Apache-2.0
// Reductions on GPUs: which rule a block gets, those along memory, in which threads share a result,
// and what is made of results in the same kernel.
#include <algorithm>
#include <bit>

#include "schedule/rules/gpu.h"
#include "tir/analysis/reduction.h"
#include "tvm/arith/analyzer.h"
#include "tvm/arith/pattern.h"
#include "tvm/expr/substitute.h"

namespace tvm::tir::gpu {

LoopRV BindGrid(const Schedule& sch, const LoopRV& loop, int64_t threads) {
  if (auto size = AsConstInt(sch.Get(loop)->extent))
    threads = std::clamp<int64_t>(*size, 1, threads);
  Array<LoopRV> parts = sch.Split(loop, {std::nullopt, Int(threads)});
  sch.Bind(parts[0], "blockIdx.x");
  sch.Bind(parts[1], "threadIdx.x");
  return parts[1];
}
namespace {
/// Whether a buffer is accessed along an iterator, element by element, or not at all along it. In
/// contrast to Access this sees through indices that are loaded.
bool LiesAlong(const Array<PrimExpr>& indices, const Var& iter, bool* moves) {
  auto is_iter = [&](const VarObj* v) { return v == iter.get(); };
  for (size_t i = 0; i + 1 < indices.size(); ++i) {
    if (UsesVar(indices[i], is_iter)) return false;
  }
  *moves = !indices.empty() && UsesVar(indices.back(), is_iter);
  if (!*moves) return true;
  Array<PrimExpr> steps = arith::DetectLinearEquation(indices.back(), {iter});
  return !steps.empty() && IsOne(steps[0]);
}
/// Whether loaded indices are all that keeps a block from being vectors.
bool IsGather(const BlockLook& look) {
  auto* store = look.block->body.as<BufferStoreObj>();
  if (!store || look.has_reduction) return false;
  bool plain = true;
  PostOrderVisit(store->value, [&](const ObjectRef& node) { plain &= !node.as<CallObj>(); });
  return plain;
}
}  // namespace

int64_t LanesAlong(const BlockLook& look, size_t axis) {
  const Axis& along = look.axes[axis];
  if (!along.size || (!look.simple && (!IsGather(look) || !along.iter.defined()))) return 1;
  int64_t widest = 1;
  bool fits = true;
  auto note = [&](const Buffer& buffer, bool moves, bool steps_by_one) {
    fits &= !moves || steps_by_one;
    if (moves) widest = std::max(widest, BytesOf(buffer));
  };
  if (look.simple) {
    for (const Access& access : look.accesses)
      note(access.buffer, access.Moves(axis), access.StepsBy(axis, 1));
  } else {
    PostOrderVisit(look.block->body, [&](const ObjectRef& node) {
      auto* load = node.as<BufferLoadObj>();
      auto* store = node.as<BufferStoreObj>();
      if (!load && !store) return;
      bool moves = true;
      bool lies = LiesAlong(load ? load->indices : store->indices, along.iter, &moves);
      note(load ? load->buffer : store->buffer, moves || !lies, lies);
    });
  }
  if (!fits) return 1;
  int64_t lanes = std::max<int64_t>(1, kVectorBytes / widest);
  while (*along.size % lanes != 0) lanes /= 2;
  return lanes;
}
int64_t ThreadsFor(std::optional<int64_t> length) {
  constexpr int64_t kElements = 8;
  if (!length) return kThreads;
  auto wanted = static_cast<uint64_t>(std::max<int64_t>(*length / kElements, 1));
  return std::clamp<int64_t>(static_cast<int64_t>(std::bit_ceil(wanted)), kWarp, kMostThreads);
}
bool IsRowReduction(const BlockLook& look) {
  size_t last = look.axes.size();
  for (size_t i = 0; i < look.axes.size(); ++i) {
    if (look.axes[i].reduce) last = i;
  }
  auto length = look.Size([](const Axis& a) { return a.reduce; });
  if (length && *length < kWarp) return false;
  // What is read most decides: in a product with a vector that is the matrix.
  const Access* most = nullptr;
  auto moving = [&](const Access& access) {
    size_t count = 0;
    for (size_t i = 0; i < look.axes.size(); ++i)
      count += access.Moves(i) && look.axes[i].size != 1;
    return count;
  };
  for (const Access& access : look.accesses) {
    if (look.IsOperand(access) && (!most || moving(access) > moving(*most))) most = &access;
  }
  return most && most->StepsBy(last, 1);
}

bool ReadsInPlace(const BlockLook& look, const Buffer& buffer) {
  bool found = false, in_place = true;
  PostOrderVisit(look.block->body, [&](const ObjectRef& node) {
    auto* load = node.as<BufferLoadObj>();
    if (!load || !load->buffer.same_as(buffer)) return;
    found = true;
    in_place &= load->indices.size() == look.axes.size();
    for (size_t i = 0; in_place && i < look.axes.size(); ++i) {
      const Axis& axis = look.axes[i];
      in_place &=
          load->indices[i].same_as(axis.iter) || (axis.size == 1 && IsZero(load->indices[i]));
    }
  });
  return found && in_place;
}
SumAxes AxesOf(const BlockLook& look) {
  SumAxes axes;
  for (const Axis& axis : look.axes)
    (axis.reduce ? axes.reduced : axes.spatial).push_back(axis.loop);
  return axes;
}
bool IsReduced(const Axis& axis) { return axis.reduce; }
bool IsKept(const Axis& axis) { return !axis.reduce; }

BlockRV InParts(const Schedule& sch, const BlockLook& look, int64_t most) {
  SumAxes axes = AxesOf(look);
  // Of the outermost loop: what is read stays in lines.
  auto length = AsConstInt(sch.Get(axes.reduced[0])->extent);
  int64_t parts = length ? LargestDivisor(*length, most) : 1;
  if (parts <= 1) return BlockRV();
  Array<LoopRV> order = axes.spatial;
  for (const LoopRV& loop : axes.reduced) order.push_back(loop);
  if (order.size() > 1) sch.Reorder(order);
  return sch.RFactor(sch.Split(axes.reduced[0], {Int(parts), std::nullopt})[0], 0);
}
std::optional<BlockRV> LastStepOf(const Schedule& sch, const BlockRV& block) {
  Array<BlockRV> users = sch.GetConsumers(block);
  if (users.size() != 1 || sch.Get(block)->writes.size() != 1) return std::nullopt;
  BlockLook look = LookAt(sch, users[0]);
  const BlockRealizeObj* realize = sch.state().realize({sch.IdOf(users[0])});
  if (look.has_reduction || !IsTrue(realize->predicate) || !RunsThroughItsDomain(look) ||
      !ReadsInPlace(look, sch.Get(block)->writes[0]->buffer))
    return std::nullopt;
  return users[0];
}
void JoinLastStep(const Schedule& sch, const BlockRV& block, const LoopRV& result,
                  const char* thread, int64_t threads) {
  auto user = LastStepOf(sch, block);
  if (!user) return;
  Attempt(sch, [&] {
    sch.ReverseComputeAt(*user, result, true);
    sch.SetScope(block, 0, "local");
    if (!thread) return true;
    Array<LoopRV> own;
    bool is_inside = false;
    for (const LoopRV& loop : sch.GetLoops(*user)) {
      if (is_inside) own.push_back(loop);
      is_inside |= sch.IdOf(loop) == sch.IdOf(result);
    }
    LoopRV one = own.empty() ? sch.AddUnitLoop(*user) : FuseAll(sch, own);
    sch.Bind(sch.Split(one, {std::nullopt, Int(threads)})[1], thread);
    return true;
  });
}

namespace {
// ---- along memory -------------------------------------------------------------------------------
/// Few sums, which are long: parts of them are summed up first.
bool ScheduleLongRows(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  constexpr int64_t kShortest = 8192, kBlocksOfCore = 8;
  BlockLook look = LookAt(sch, block);
  auto results = look.Size(IsKept), length = look.Size(IsReduced);
  if (!results || !length || *results == 0 || *results > 2 * machine->cores) return false;
  int64_t wanted = machine->cores * kBlocksOfCore / *results;
  BlockRV parts = InParts(sch, look, std::min(wanted, *length / kShortest));
  return parts.defined() && ScheduleBlock(sch, parts, machine) &&
         ScheduleBlock(sch, block, machine);
}
/// The loop over results: blocks or, where a warp is enough for one, several in a block. Returns
/// the loop that one result is inside of.
LoopRV BindRows(const Schedule& sch, const LoopRV& outer, int64_t threads) {
  constexpr int64_t kRows = 8;
  auto rows = AsConstInt(sch.Get(outer)->extent);
  if (threads != kWarp || !rows || *rows % kRows != 0) {
    sch.Bind(outer, "blockIdx.x");
    return outer;
  }
  Array<LoopRV> split = sch.Split(outer, {std::nullopt, Int(kRows)});
  sch.Bind(split[0], "blockIdx.x");
  sch.Bind(split[1], "threadIdx.y");
  return split[1];
}
/// Each thread sums up vectors, which wait in registers, and then threads their sums.
bool ScheduleVectorRows(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  constexpr int64_t kRowsOfCore = 16;
  BlockLook look = LookAt(sch, block);
  SumAxes axes = AxesOf(look);
  auto results = look.Size(IsKept), length = look.Size(IsReduced);
  if (axes.reduced.size() != 1 || axes.spatial.empty() || !results || !length) return false;
  size_t last = 0;
  while (!look.axes[last].reduce) ++last;
  // With many results a warp is enough for each, and needs no barriers.
  bool has_many = *results >= machine->cores * kRowsOfCore;
  int64_t threads = has_many ? kWarp : ThreadsFor(length);
  int64_t lanes = LanesAlong(look, last);
  while (threads > kWarp && *length < 2 * lanes * threads) threads /= 2;  // two vectors for each
  while (lanes > 1 && *length % (lanes * threads) != 0) lanes /= 2;
  if (lanes == 1) return false;
  Array<LoopRV> order = axes.spatial;
  order.push_back(axes.reduced[0]);
  sch.Reorder(order);
  FuseAll(sch, axes.spatial);
  Array<LoopRV> parts = sch.Split(axes.reduced[0], {std::nullopt, Int(threads), Int(lanes)});
  sch.Reorder({parts[1], parts[0], parts[2]});
  BlockRV sums = sch.RFactor(parts[1], 0);
  sch.SetScope(sums, 0, "local");
  Array<LoopRV> own = sch.GetLoops(block);
  if (own.size() != 2) return false;
  LoopRV row = BindRows(sch, own[0], threads);
  sch.Bind(own[1], "threadIdx.x");
  sch.ComputeAt(sums, row, true);
  BlockLook inner = LookAt(sch, sums);
  size_t n = inner.axes.size();
  if (n < 3 || !inner.axes[n - 1].reduce || !inner.axes[n - 2].reduce) return false;
  for (const Axis& axis : inner.axes) {
    if (axis.size == threads && !axis.reduce && sch.Get(axis.loop)->kind == ForKind::kSerial) {
      sch.Bind(axis.loop, "threadIdx.x");
      break;
    }
  }
  for (size_t i = 0; i < inner.block->reads.size(); ++i) {
    BlockRV copy = sch.CacheRead(sums, static_cast<int64_t>(i), "local");
    sch.ComputeAt(copy, inner.axes[n - 2].loop, true);
    sch.Vectorize(sch.GetLoops(copy).back());
  }
  sch.Unroll(inner.axes[n - 1].loop);
  sch.DecomposeReduction(sums, inner.axes[n - 2].loop);
  JoinLastStep(sch, block, row, "threadIdx.x", threads);
  return true;
}
void ScheduleRows(const Schedule& sch, const BlockLook& look, const LoopRV& outer,
                  const Array<LoopRV>& reduced) {
  int64_t threads = ThreadsFor(look.Size(IsReduced));
  Array<LoopRV> parts = sch.Split(FuseAll(sch, reduced), {std::nullopt, Int(threads)});
  LoopRV row = BindRows(sch, outer, threads);
  sch.Bind(parts[1], "threadIdx.x");
  JoinLastStep(sch, look.rv, row, "threadIdx.x", threads);
}
}  // namespace

void ScheduleSum(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  BlockLook look = LookAt(sch, block);
  bool along = IsRowReduction(look);
  // Threads share what they know how to put together: argmax that looks at NaN is not among it.
  Reduction form;
  bool is_shared = WhyNoReducer(look.block.get(), &form).empty();
  using Part = bool (*)(const Schedule&, const BlockRV&, const Machine&);
  static constexpr Part kRows[] = {ScheduleLongRows, ScheduleVectorRows};
  static constexpr Part kColumns[] = {ScheduleTallColumns, ScheduleFewColumns};
  for (Part part : along ? kRows : kColumns) {
    if (is_shared && Attempt(sch, [&] { return part(sch, block, machine); })) return;
  }
  SumAxes axes = AxesOf(look);
  Array<LoopRV> order = axes.spatial;
  for (const LoopRV& loop : axes.reduced) order.push_back(loop);
  if (order.size() > 1) sch.Reorder(order);
  LoopRV outer =
      axes.spatial.empty() ? sch.AddUnitLoop(axes.reduced[0]) : FuseAll(sch, axes.spatial);
  if (!is_shared) {
    BindGrid(sch, outer, kThreads);
  } else if (along) {
    ScheduleRows(sch, look, outer, axes.reduced);
  } else {
    ScheduleColumns(sch, look, outer, axes.reduced, machine);
  }
}

}  // namespace tvm::tir::gpu
