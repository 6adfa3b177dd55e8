// SPDX-License-Identifier: Apache-2.0
// Blocks whose iterations are independent: elementwise, broadcasting, transposing.
#include <algorithm>
#include <set>

#include "schedule/rules/look.h"
#include "tvm/arith/analyzer.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"

namespace tvm::tir {
namespace {
/// The axis along which the result is contiguous, or the last one.
size_t ContiguousAxis(const BlockLook& look) {
  const Access& store = look.Store();
  for (size_t i = look.axes.size(); i-- > 0;) {
    if (store.StepsBy(i, 1) && look.axes[i].size != 1) return i;
  }
  return look.axes.size() - 1;
}
// ---- divided axes -------------------------------------------------------------------------------
/// After how many iterations an index begins anew, smallest first: of an iterator `c` in
/// `A[c // 64, c // 16 % 4, c % 16]` 16 and 64. None where they do not divide each other.
std::vector<int64_t> PeriodsOf(const BlockLook& look, const Axis& axis) {
  // What the iterator is divided by; 0: it is something else.
  auto divisor = [&](const PrimExpr& e) {
    auto* div = e.as<FloorDivObj>();
    if (div && div->a.same_as(axis.iter)) return AsConstInt(div->b).value_or(0);
    return int64_t{e.same_as(axis.iter)};
  };
  std::set<int64_t> periods;
  PostOrderVisit(look.block->body, [&](const ObjectRef& node) {
    if (auto e = node.as<PrimExpr>()) periods.insert(divisor(*e));
    if (auto* mod = node.as<FloorModObj>())
      periods.insert(divisor(mod->a) * AsConstInt(mod->b).value_or(0));
  });
  std::vector<int64_t> found;
  for (int64_t period : periods) {
    if (period <= 1 || period >= *axis.size) continue;
    if (*axis.size % period != 0 || (!found.empty() && period % found.back() != 0)) return {};
    found.push_back(period);
  }
  return found;
}
/// Makes several axes of those whose iterators are divided, as where channels lie in blocks, so
/// that every access moves by equal steps along all of them. False where that does not help.
bool SplitDivided(const Schedule& sch, const BlockLook& look) {
  auto are_linear = [](const BlockLook& look) {
    return std::all_of(look.accesses.begin(), look.accesses.end(),
                       [](const Access& access) { return access.linear; });
  };
  if (are_linear(look)) return false;
  Array<Var> from;
  Array<PrimExpr> to;
  for (const Axis& axis : look.axes) {
    if (!axis.iter.defined()) return false;
    from.push_back(axis.iter);
    PrimExpr rest = axis.iter;
    std::vector<int64_t> periods = axis.size ? PeriodsOf(look, axis) : std::vector<int64_t>();
    for (size_t i = periods.size(); i-- > 0;) {
      PrimExpr period = MakeConst(axis.iter.dtype(), periods[i]);
      to.push_back(floordiv(rest, period));
      rest = floormod(rest, period);
    }
    to.push_back(rest);
  }
  if (to.size() == from.size()) return false;
  sch.TransformBlockLayout(look.rv, IndexMap(from, to, {}));
  return are_linear(LookAt(sch, look.rv));
}
/// Whether the two innermost axes, which SplitDivided made of one, are a run of what is written,
/// and repeat elements of runs that are read: `A[i // 2]`.
bool RepeatsElements(const BlockLook& look, const Machine& machine) {
  size_t repeat = look.axes.size() - 1;
  if (repeat == 0 || !look.axes[repeat].size || !look.axes[repeat - 1].size) return false;
  int64_t times = *look.axes[repeat].size;
  if (times < 2 || machine->Lanes(look.widest_bits) % times != 0) return false;
  return std::all_of(look.accesses.begin(), look.accesses.end(), [&](const Access& access) {
    if (access.is_store) return access.StepsBy(repeat, 1) && access.StepsBy(repeat - 1, times);
    bool runs = access.StepsBy(repeat - 1, 1) || access.StepsBy(repeat - 1, 0);
    return access.StepsBy(repeat, 0) && runs;
  });
}
// ---- axes in parts ------------------------------------------------------------------------------
/// Where indices of what is read, along an axis, begin to move in another way, smallest first: as
/// at the margins of an image that is continued by its reflection.
std::vector<int64_t> TurnsOf(const BlockLook& look, const Axis& axis) {
  constexpr size_t kMostTurns = 4;
  if (!axis.iter.defined() || !axis.size || *axis.size < 2) return {};
  std::set<int64_t> turns;
  arith::Analyzer analyzer;
  auto add = [&](const PrimExpr& condition) {
    auto holds = [&](int64_t i) {
      PrimExpr at = Substitute(condition, {{axis.iter, MakeConst(axis.iter.dtype(), i)}});
      return AsConstInt(analyzer.Simplify(at));
    };
    auto first = holds(0), last = holds(*axis.size - 1);
    if (!first || !last || first == last) return;
    int64_t low = 0, high = *axis.size - 1;  // where it is as at first, and where it is not
    while (high - low > 1) {
      int64_t middle = (low + high) / 2;
      (holds(middle) == first ? low : high) = middle;
    }
    turns.insert(high);
  };
  for (const BufferRegion& read : look.block->reads) {
    for (const Range& range : read->region) {
      PostOrderVisit(range->min, [&](const ObjectRef& node) {
        if (auto* choice = node.as<SelectObj>()) add(choice->condition);
        if (auto* least = node.as<MinObj>()) add(least->a < least->b);
        if (auto* most = node.as<MaxObj>()) add(most->a < most->b);
      });
    }
  }
  if (turns.size() > kMostTurns) return {};
  return {turns.begin(), turns.end()};
}
/// Cuts a run where indices turn; the parts along which memory is contiguous become vectors.
void VectorizeParts(const Schedule& sch, const LoopRV& run, const std::vector<int64_t>& turns,
                    const Machine& machine) {
  Array<Optional<PrimExpr>> sizes;
  int64_t begin = 0;
  for (int64_t turn : turns) {
    sizes.push_back(MakeConst(sch.Get(run)->extent.dtype(), turn - begin));
    begin = turn;
  }
  sizes.push_back(std::nullopt);
  for (const LoopRV& part : sch.LoopPartition(run, sizes)) {
    for (const BlockRV& block : sch.GetChildBlocks(part)) {
      BlockLook look = LookAt(sch, block);
      bool is_near = look.simple && !look.axes.empty();
      for (const Access& access : look.accesses)
        is_near = is_near && access.IsNear(look.axes.size() - 1);
      if (is_near) Vectorized(sch, part, machine->Lanes(look.widest_bits), Rest::kOwnLoop);
    }
  }
}
// ---- transposing --------------------------------------------------------------------------------
/// What is read contiguously along another axis than what is written: squares go through registers.
struct Transpose {
  size_t written, read;  // axes
  int64_t operand;       // among what the block reads
};
std::optional<Transpose> FindTranspose(const BlockLook& look) {
  std::optional<Transpose> found;
  size_t written = ContiguousAxis(look);
  for (const Access& access : look.accesses) {
    if (access.is_store || access.IsNear(written)) continue;
    for (size_t i = 0; i < look.axes.size(); ++i) {
      if (i == written || !access.StepsBy(i, 1) || look.axes[i].size == 1) continue;
      if (found) return std::nullopt;
      for (size_t r = 0; r < look.block->reads.size(); ++r) {
        if (look.block->reads[r]->buffer.same_as(access.buffer))
          found = Transpose{written, i, static_cast<int64_t>(r)};
      }
    }
  }
  return found;
}
/// Transposes the squares where they are copied, by as few shuffles as there can be; false where
/// there is no such intrinsic, or what is read lies in another way than in the last two dimensions.
bool TransposeByShuffles(const Schedule& sch, const BlockRV& copy, int64_t side) {
  Buffer buffer = sch.Get(copy)->writes[0]->buffer;
  size_t rank = buffer->shape.size();
  if (rank < 2) return false;
  return Attempt(sch, [&] {
    Array<Var> from;
    Array<PrimExpr> to;
    for (size_t i = 0; i < rank; ++i) {
      from.push_back(Var("d" + std::to_string(i), buffer->shape[i].dtype()));
      to.push_back(from.back());
    }
    to.Set(rank - 2, from[rank - 1]);
    to.Set(rank - 1, from[rank - 2]);
    sch.TransformLayout(copy, Array<Any>{String("write"), int64_t{0}}, IndexMap(from, to, {}));
    Array<LoopRV> loops = sch.GetLoops(copy);
    sch.Tensorize(loops[loops.size() - 2],
                  "transpose_" + std::to_string(side) + "_" + buffer->dtype.str());
    return true;
  });
}
/// Whether what is read and written together is more than caches hold: squares then follow what is
/// read, and go to memory past the caches, which would read every line before it is overwritten.
bool IsFar(const BlockLook& look, const Machine& machine) {
  int64_t bytes = 0;
  for (const Access& access : look.accesses) {
    int64_t size = access.buffer->dtype.bits() / 8;
    for (const PrimExpr& extent : access.buffer->shape) size *= AsConstInt(extent).value_or(1);
    bytes += size;
  }
  return bytes >= (machine->l3_bytes > 0 ? machine->l3_bytes / 2 : cost::kBeyondCaches);
}
/// [outer, panels of rows: parallel] [columns] [squares] [square, unrolled] [lanes], or, by
/// columns, [outer, columns: parallel] [panels of rows] and so on. Far from the caches columns
/// come in panels instead.
bool Transposed(const Schedule& sch, const BlockRV& block, const Machine& machine, Share share) {
  BlockLook look = LookAt(sch, block);
  auto transpose = FindTranspose(look);
  if (!transpose || !look.simple || !machine->takes_vectors) return false;
  // What a division into squares leaves over has smaller ones.
  int64_t side = std::min<int64_t>(cost::kLargestSquare, machine->Lanes(look.widest_bits));
  for (size_t axis : {transpose->written, transpose->read}) {
    while (side > cost::kSmallestSquare && look.axes[axis].size.value_or(side) < side) side /= 2;
  }
  auto again = [&](const BlockRV& part) { ScheduleSpatial(sch, part, machine, share); };
  for (size_t axis : {transpose->written, transpose->read}) {
    if (look.axes[axis].size.value_or(side) < side) return false;
    if (Parted(sch, look, axis, side, again)) return true;
  }
  // As many squares next to each other as leave every thread something to do: what they read is one
  // run, or what they write. What a division by them leaves over has fewer.
  bool is_far = IsFar(look, machine);
  size_t along = is_far ? transpose->written : transpose->read;
  int64_t squares = 1;
  if (auto size = look.axes[along].size) {
    int64_t most = std::clamp<int64_t>(*size / (side * 2 * machine->cores), 1,
                                       is_far ? cost::kFarSquares : cost::kSquares);
    squares = LargestDivisor(*size / side, most);
    if (2 * squares <= most && Parted(sch, look, along, side * most, again)) return true;
  }
  BlockRV copy = sch.CacheRead(block, transpose->operand, "global");
  Array<LoopRV> outer, order;
  for (size_t i = 0; i < look.axes.size(); ++i) {
    if (i != transpose->written && i != transpose->read) outer.push_back(look.axes[i].loop);
  }
  auto split = [&](size_t axis) {
    int64_t together = axis == along ? squares : 1;
    return sch.Split(look.axes[axis].loop, {std::nullopt, PrimExpr(together), PrimExpr(side)});
  };
  Array<LoopRV> rows = split(transpose->read), columns = split(transpose->written);
  LoopRV among[] = {rows[0], columns[0]};
  if (is_far || share == Share::kColumns) std::swap(among[0], among[1]);
  outer.push_back(among[0]);
  order = outer;
  LoopRV square = is_far ? columns[1] : rows[1];
  for (const LoopRV& loop : {among[1], is_far ? rows[1] : columns[1], square, rows[2], columns[2]})
    order.push_back(loop);
  sch.Reorder(order);
  sch.ComputeAt(copy, square, /*preserve_unit_loops=*/true);
  if (!TransposeByShuffles(sch, copy, side)) {
    Array<LoopRV> filling = sch.GetLoops(copy);
    for (size_t i = outer.size() + 3; i + 1 < filling.size(); ++i) sch.Unroll(filling[i]);
    sch.Vectorize(filling.back());
  }
  if (is_far) sch.Annotate(among[1], "nontemporal_store", int64_t{1});
  sch.Unroll(rows[2]);
  sch.Vectorize(columns[2]);
  std::optional<double> work = look.TotalWork();
  ParallelIfWorth(sch, FuseToShare(sch, outer, machine), machine, work);
  return true;
}
}  // namespace

void ScheduleSpatial(const Schedule& sch, const BlockRV& block, const Machine& machine,
                     Share share) {
  BlockLook look = LookAt(sch, block);
  if (look.axes.empty()) return;
  if (Attempt(sch, [&] { return SplitDivided(sch, look); })) look = LookAt(sch, block);
  if (Attempt(sch, [&] { return Transposed(sch, block, machine, share); })) return;
  std::optional<double> work = look.TotalWork();

  size_t inner = ContiguousAxis(look);
  if (inner + 1 < look.axes.size()) {
    bool done = Attempt(sch, [&] {
      Array<LoopRV> order;
      for (size_t i = 0; i < look.axes.size(); ++i) {
        if (i != inner) order.push_back(look.axes[i].loop);
      }
      order.push_back(look.axes[inner].loop);
      sch.Reorder(order);
      return true;
    });
    if (done) look = LookAt(sch, block);
  }
  // The loops that are one run of memory for every access become one: no rest at the end of rows.
  // (In one of unknown length the rows could not be told apart.)
  size_t first = look.axes.size() - 1;
  auto is_known = [&](size_t i) { return look.axes[i].size.has_value(); };
  bool repeats = machine->takes_vectors && RepeatsElements(look, machine);
  if (repeats) --first;
  // What is chosen by the place, as in a concatenation, stays the same along a vector.
  auto chooses = [&](size_t i) {
    auto run = look.Size([&](const Axis& axis) {
      return &axis - look.axes.data() > static_cast<std::ptrdiff_t>(i);
    });
    return run >= machine->Lanes(look.widest_bits) && look.ChoosesAlong(i);
  };
  while (first > 0 && is_known(first) && is_known(first - 1) && look.Collapses(first - 1) &&
         !chooses(first - 1))
    --first;
  std::vector<int64_t> turns;
  if (first + 1 == look.axes.size()) turns = TurnsOf(look, look.axes[first]);
  Array<LoopRV> outer_loops, inner_loops;
  for (size_t i = 0; i < look.axes.size(); ++i) {
    (i < first ? outer_loops : inner_loops).push_back(look.axes[i].loop);
  }
  LoopRV run = FuseAll(sch, inner_loops);
  bool contiguous = look.simple && machine->takes_vectors;
  for (const Access& access : look.accesses)
    contiguous &= repeats || access.IsNear(look.axes.size() - 1);
  // Threads share the rows, or, where these are few, the vectors of a row, too. (Many rows first:
  // the parts that vectors may leave of a row would hide what belongs to it.)
  LoopRV rows, around = run;
  bool are_few = true;
  if (!outer_loops.empty()) {
    rows = FuseToShare(sch, outer_loops, machine);
    auto count = AsConstInt(sch.Get(rows)->extent);
    are_few = count && *count < cost::kTasksPerCore * machine->cores;
    if (!are_few) ParallelIfWorth(sch, rows, machine, work);
  }
  if (!contiguous && look.simple && machine->takes_vectors && !turns.empty()) {
    Attempt(sch, [&] {
      VectorizeParts(sch, run, turns, machine);
      around = LoopRV();
      return true;
    });
  } else if (contiguous) {
    Attempt(sch, [&] {
      around = Vectorized(sch, run, machine->Lanes(look.widest_bits), Rest::kOwnLoop);
      return true;
    });
  }
  if (!are_few) return;
  // (A run that is left to the compiler stays one, or it would have to be told from row to row.)
  if (rows.defined() && !around.same_as(run)) {
    if (!around.defined() || !Attempt(sch, [&] {
          around = sch.Fuse({rows, around});
          return true;
        }))
      around = rows;
  }
  if (around.defined()) ParallelIfWorth(sch, around, machine, work);
}
}  // namespace tvm::tir
