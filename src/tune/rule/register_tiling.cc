// SPDX-License-Identifier: Apache-2.0
// Products with a tile of the result in registers, as the default rules schedule them, with every
// size a choice:
//   for i0, j0 in parallel(…): for j1:             the tiles of a stretch of columns
//     C_local[…] = 0
//     for k0: for k1 in unroll(K):
//       for i2 in unroll(I): for j2 in unroll(J): for j3 in vectorized(L): C_local[…] += …
//     C[…] = C_local[…]
// What is read along the columns is read as it lies in memory, or copied into an order in which a
// tile's elements are next to each other.
#include <numeric>

#include "schedule/rules/look.h"
#include "tune/rule/blocks.h"
#include "tvm/expr/op.h"

namespace tvm::tune {
namespace {
using namespace tir;

Array<int64_t> DivisorsUpTo(int64_t n, int64_t most) {
  Array<int64_t> result;
  for (int64_t d = 1; d <= std::min(n, most); ++d)
    if (n % d == 0) result.push_back(d);
  return result;
}

/// One way to tile: the axes of the tile, how many vectors it is wide, whether the operand that is
/// read along the columns is copied first.
struct Shape {
  size_t row, column;
  int64_t vectors, lanes;
  bool packed;
};

struct RegisterTilingObj : ScheduleRuleObj {
  int64_t max_vectors = 4, max_row_axes = 2;
  Optional<Target> target;
  static void Fields(auto&& def) {
    def("max_vectors", &RegisterTilingObj::max_vectors, Default(4));
    def("max_row_axes", &RegisterTilingObj::max_row_axes, Default(2));
  }
  void Initialize(const TuneContext& context) final { target = context->target; }

  Array<Schedule> Apply(const Schedule& sch, const BlockRV& block) final {
    BlockView view(sch, block);
    if (view.is_root || view.has_blocks || view.axes.empty() || !view.HasConstantExtents() ||
        !view.HasReuse() || IsScheduled(view) || !view.IsAlone(sch) || !target.has_value())
      return {sch};
    if (view.HasMixedLoop()) return {sch};
    const Machine& machine = Machine::Of(target.value());
    if (!machine->takes_vectors) return {sch};
    Array<Schedule> result = {sch};
    Schedule look_at = sch.Copy();
    Array<BlockRV> words;  // where small numbers are packed for instructions that multiply several
    Try([&] { words = PackSmallProduct(look_at, block, machine); });
    BlockLook look = LookAt(look_at, block);
    for (const Shape& shape : Shapes(look, machine)) {
      Schedule copy = look_at.Copy();
      bool is_tiled = Try([&] {
        Tile(copy, block, shape, machine);
        for (const BlockRV& packing : words) ScheduleSpatial(copy, packing, machine);
      });
      if (is_tiled) result.push_back(copy);
    }
    return result;
  }

 private:
  std::vector<Shape> Shapes(const BlockLook& look, const Machine& machine) const {
    std::vector<Shape> shapes;
    auto spatial = [&](size_t i) { return look.axes[i].spatial && !look.axes[i].reduce; };
    std::optional<size_t> column = look.Column();
    if (!look.simple || !column) return shapes;
    for (const Access& access : look.accesses)
      if (look.IsOperand(access) && !access.StepsBy(*column, 0) && !access.StepsBy(*column, 1))
        return shapes;
    // The longest axes along which something is used again; of equal ones those inside.
    std::vector<size_t> rows;
    for (size_t i = 0; i < look.axes.size(); ++i) {
      if (i == *column || !spatial(i) || look.axes[i].size.value_or(1) == 1) continue;
      bool reuses = false;
      for (const Access& access : look.accesses)
        reuses |= look.IsOperand(access) && !access.Moves(i);
      if (reuses) rows.insert(rows.begin(), i);
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [&](size_t a, size_t b) { return *look.axes[a].size > *look.axes[b].size; });
    if (static_cast<int64_t>(rows.size()) > max_row_axes) rows.resize(max_row_axes);
    int64_t lanes = machine->Lanes(look.widest_bits), columns = *look.axes[*column].size;
    while (lanes > 1 && columns % lanes != 0) lanes /= 2;
    if (lanes < 4) return shapes;
    for (size_t row : rows) {
      for (int64_t vectors : DivisorsUpTo(columns / lanes, max_vectors)) {
        shapes.push_back({row, *column, vectors, lanes, false});
        if (*look.axes[row].size >= 32) shapes.push_back({row, *column, vectors, lanes, true});
      }
    }
    return shapes;
  }
  /// Copies what is read along the columns so that the elements of a tile lie together.
  static void Pack(const Schedule& sch, const BlockRV& block, const Shape& shape,
                   const Machine& machine) {
    BlockLook look = LookAt(sch, block);
    auto width = IntImm::Int32(shape.vectors * shape.lanes);
    Array<Var> iters;
    for (const IterVar& iter : look.block->iter_vars) iters.push_back(iter->var);
    for (const Access& access : look.accesses) {
      if (!look.IsOperand(access) || !access.StepsBy(shape.column, 1)) continue;
      const Var& column = look.axes[shape.column].iter;
      Array<PrimExpr> order;
      for (size_t i = 0; i < look.axes.size(); ++i) {
        if (!look.axes[i].iter.defined()) TVM_FFI_THROW(ValueError) << "no plain loops";
        if (i != shape.column && access.Moves(i)) order.push_back(look.axes[i].iter);
      }
      order.insert(order.begin(), floordiv(column, width));
      order.push_back(floormod(column, width));
      for (size_t r = 0; r < look.block->reads.size(); ++r) {
        if (!look.block->reads[r]->buffer.same_as(access.buffer)) continue;
        BlockRV copy = sch.ReindexCacheRead(block, static_cast<int64_t>(r), "global",
                                            IndexMap(iters, order, {}));
        ScheduleSpatial(sch, copy, machine);
        return;
      }
    }
    TVM_FFI_THROW(ValueError) << "nothing to copy";
  }
  void Tile(const Schedule& sch, const BlockRV& block, const Shape& shape, const Machine& machine) {
    if (shape.packed) Pack(sch, block, shape, machine);
    BlockLook look = LookAt(sch, block);
    Array<BlockRV> consumers = sch.GetConsumers(block);
    if (consumers.size() > 1) TVM_FFI_THROW(ValueError) << "several consumers";
    BlockRV epilogue;
    if (consumers.empty()) {
      epilogue = sch.CacheWrite(block, 0, "local");
    } else {
      epilogue = consumers[0];
      sch.SetScope(block, 0, "local");
    }
    Array<LoopRV> outer, reduction, inner;
    LoopRV stretches, column_tiles, row_tiles;
    for (size_t i = 0; i < look.axes.size(); ++i) {
      const Axis& axis = look.axes[i];
      if (i == shape.row) {
        // All vector registers but those for the operands: more would spill.
        int64_t most = (machine->vector_registers - shape.vectors - 1) / shape.vectors;
        Var rows = Choose(sch, DivisorsUpTo(*axis.size, std::max<int64_t>(most, 1)));
        Array<LoopRV> parts = sch.Split(axis.loop, {std::nullopt, rows});
        row_tiles = parts[0];
        inner.insert(inner.begin(), parts[1]);
      } else if (i == shape.column) {
        Var close = Choose(sch, DivisorsUpTo(*axis.size / (shape.vectors * shape.lanes), 64));
        Array<LoopRV> parts = sch.Split(
            axis.loop, {std::nullopt, close, PrimExpr(shape.vectors), PrimExpr(shape.lanes)});
        stretches = parts[0];
        column_tiles = parts[1];
        inner.push_back(parts[2]);
        inner.push_back(parts[3]);
      } else {
        (axis.reduce ? reduction : outer).push_back(axis.loop);
      }
    }
    // The last loop of the reduction twice in a row: more of it is code that takes long to compile
    // and runs no faster, as a tile fills the registers already. All of a short one, such as a
    // window, whose places the rows of a tile share.
    constexpr int64_t kWindow = 7;
    int64_t last = ConstantExtent(sch.Get(reduction.back()).get());
    Var steps = Choose(sch, DivisorsUpTo(last, last <= kWindow ? last : 2));
    Array<LoopRV> parts = sch.Split(reduction.back(), {std::nullopt, steps});
    reduction.Set(static_cast<int64_t>(reduction.size()) - 1, parts[0]);
    inner.insert(inner.begin(), parts[1]);
    outer.push_back(stretches);
    outer.push_back(row_tiles);
    Array<LoopRV> order = outer;
    order.push_back(column_tiles);
    for (const LoopRV& loop : reduction) order.push_back(loop);
    for (const LoopRV& loop : inner) order.push_back(loop);
    sch.Reorder(order);
    sch.ReverseComputeAt(epilogue, column_tiles, /*preserve_unit_loops=*/true);
    sch.Split(sch.GetLoops(epilogue).back(), {PrimExpr(shape.vectors), PrimExpr(shape.lanes)});
    BlockRV init = sch.DecomposeReduction(block, reduction[0]);
    for (const BlockRV& part : {init, block, epilogue}) {
      Array<LoopRV> loops = sch.GetLoops(part);
      sch.Vectorize(loops.back());
      size_t above = outer.size() + 1 + (part.same_as(block) ? reduction.size() : 0);
      for (size_t i = above; i + 1 < loops.size(); ++i) sch.Unroll(loops[i]);
    }
    // Few large jobs, or each tile one.
    LoopRV jobs = outer.size() == 1 ? outer[0] : sch.Fuse(outer);
    sch.Parallel(jobs);
  }

 public:
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("meta_schedule.RegisterTiling", RegisterTilingObj,
                                    ScheduleRuleObj);
};
TVM_REGISTER() {
  RegisterNode<RegisterTilingObj>(
      "Products with a tile of the result in registers: its height and width, stretches of "
      "columns, steps of the reduction, copied operands.");
}
}  // namespace
}  // namespace tvm::tune
