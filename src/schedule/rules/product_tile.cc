// SPDX-License-Identifier: Apache-2.0
// Tiles by the multiply-adds that they do for each operand that is loaded.
#include "schedule/rules/product_tile.h"

#include <algorithm>

#include "tvm/arith/analyzer.h"
#include "tvm/expr/op.h"

namespace tvm::tir {
namespace {
/// Rows whose multiply-adds, two vectors in a cycle, take as long as a vector of the second cache.
double RowsPerFarVector(const Machine& machine) {
  return 2.0 * machine->vector_bits / 8 / cost::kSecondCacheBytes;
}
bool RowsCollide(const BlockLook& look, TileAxes axes, const Machine& machine) {
  return std::any_of(look.accesses.begin(), look.accesses.end(), [&](const Access& access) {
    return !access.is_store && !access.Moves(axes.column) && access.Collides(axes.row, machine);
  });
}
/// Rows, or of those whose number is not known, the largest tile that divides them.
int64_t RowsOf(const Axis& axis) {
  int64_t rows = axis.size.value_or(cost::kMostRows);
  while (!axis.size && rows > 1 && SizeOf(axis, rows) == 1) --rows;
  return rows;
}
}  // namespace

Tile ChooseTile(const Area& area, int64_t most_lanes, const Machine& machine) {
  // Three quarters of the registers accumulate; the rest holds operands.
  int64_t accumulators = machine->vector_registers * 3 / 4;
  int64_t most_rows = area.rows_collide ? machine->l1_ways : accumulators;
  Tile best;
  for (int64_t lanes = most_lanes; lanes >= 1; --lanes) {
    if (area.columns % lanes != 0) continue;
    bool along_lines = area.columns == lanes;
    int64_t places = along_lines ? area.lines : area.columns / lanes;
    for (int64_t most = 1; most <= cost::kMostVectors; ++most) {
      Tile tile{1, LargestDivisor(places, most), lanes};
      if (area.columns != lanes && most > 1 && tile.vectors * lanes > area.close) break;
      // Beside the sums there is room for a row of vectors and what they are multiplied by; a
      // single row needs none.
      int64_t room = (machine->vector_registers - 1 - tile.vectors) / tile.vectors;
      tile.rows = LargestDivisor(area.rows, std::min({most_rows, accumulators / tile.vectors,
                                                      std::max<int64_t>(1, room)}));
      double used = static_cast<double>(tile.rows * tile.vectors);
      bool are_apart = along_lines && lanes == most_lanes;  // (pieces of a vector cost more anyway)
      double of_vectors = LoadsOf(lanes, machine) * (are_apart ? cost::kApart : 1);
      double loads =
          static_cast<double>(tile.rows) + static_cast<double>(tile.vectors) * of_vectors;
      tile.score = static_cast<double>(lanes) * std::min(1.0, used / cost::kChains) * used / loads;
      // Columns that the first cache does not hold until the next rows come from the second.
      int64_t panel_bytes = tile.vectors * lanes * area.column_bytes;
      if (tile.rows < area.rows && panel_bytes > machine->l1_bytes / 2)
        tile.score *= std::min(1.0, static_cast<double>(tile.rows) / RowsPerFarVector(machine));
      if (tile.score > best.score) best = tile;
    }
  }
  return best;
}
bool HasManyChains(const Tile& tile) {
  return static_cast<double>(tile.rows * tile.vectors) >= cost::kManyChains;
}
bool RowsMove(const BlockLook& look, TileAxes axes, size_t axis) {
  return std::any_of(look.accesses.begin(), look.accesses.end(), [&](const Access& access) {
    return !access.is_store && !access.Moves(axes.column) && access.Moves(axis);
  });
}
std::optional<TileAxes> FindTileAxes(const BlockLook& look) {
  std::optional<size_t> row, column = look.Column();
  if (!column) return std::nullopt;
  bool reads_vectors = false;
  for (const Access& access : look.accesses) {
    if (!look.IsOperand(access)) continue;
    if (!access.StepsBy(*column, 0) && !access.StepsBy(*column, 1)) return std::nullopt;
    reads_vectors |= access.StepsBy(*column, 1);
  }
  if (!reads_vectors) return std::nullopt;
  for (size_t i = 0; i < look.axes.size(); ++i) {
    const Axis& axis = look.axes[i];
    if (i == *column || !axis.spatial || axis.reduce || axis.size == 1) continue;
    bool reuses = true;
    for (const Access& access : look.accesses) {
      if (!look.IsOperand(access)) continue;
      if (access.StepsBy(*column, 1) && access.Moves(i)) reuses = false;
    }
    // Enough of them for any tile are enough: then the inner axis, whose steps are the smaller.
    auto size = [&](size_t i) {
      return std::min(cost::kMostRows, look.axes[i].size.value_or(cost::kMostRows));
    };
    if (reuses && (!row || size(i) >= size(*row))) row = i;
  }
  if (!row) return std::nullopt;
  TileAxes axes{*row, *column, std::nullopt};
  for (size_t i = 0; i < look.axes.size(); ++i) {
    const Axis& axis = look.axes[i];
    if (i == *row || i == *column || !axis.spatial || axis.reduce || !axis.size) continue;
    if (*axis.size > 1 && !RowsMove(look, axes, i)) axes.line = i;
  }
  return axes;
}
bool FitsSecondCache(const BlockLook& look, TileAxes axes, const Machine& machine) {
  double bytes = 0;
  for (const Access& access : look.accesses) {
    if (access.is_store || !access.StepsBy(axes.column, 1)) continue;
    double elements = 1;
    for (const PrimExpr& extent : access.buffer->shape) {
      elements *= static_cast<double>(AsConstInt(extent).value_or(machine->l2_bytes));
    }
    bytes += elements * access.buffer->dtype.bits() / 8;
  }
  return bytes <= static_cast<double>(machine->l2_bytes) / 2;
}
int64_t CloseColumns(const BlockLook& look, const Machine& machine) {
  int64_t depth = look.Size([](const Axis& a) { return a.reduce; }).value_or(cost::kEven);
  return machine->l2_bytes / 2 / (std::max<int64_t>(1, depth) * std::max(1, look.widest_bits / 8));
}
int64_t SizeOf(const Axis& axis, int64_t divisor) {
  if (axis.size) return *axis.size;
  PrimExpr rest = floormod(axis.extent, MakeConst(axis.extent.dtype(), divisor));
  return arith::Analyzer().CanProveEqual(rest, MakeZero(axis.extent.dtype())) ? divisor : 1;
}
Tile IdealTile(const BlockLook& look, TileAxes axes, const Machine& machine) {
  return ChooseTile(
      {cost::kEven, cost::kEven, 1, RowsCollide(look, axes, machine), CloseColumns(look, machine)},
      machine->Lanes(look.widest_bits), machine);
}
Area AreaOf(const BlockLook& look, TileAxes axes, const Tile& ideal, const Machine& machine) {
  int64_t depth = look.Size([](const Axis& a) { return a.reduce; }).value_or(0);
  return {RowsOf(look.axes[axes.row]),
          SizeOf(look.axes[axes.column], ideal.vectors * ideal.lanes),
          axes.line ? *look.axes[*axes.line].size : 1,
          RowsCollide(look, axes, machine),
          CloseColumns(look, machine),
          depth * look.widest_bits / 8};
}
}  // namespace tvm::tir
