// SPDX-License-Identifier: Apache-2.0
// Which tile of a product stays in registers: for its sizes, and the caches of the machine.
#pragma once
#include "schedule/rules/look.h"

namespace tvm::tir {

/// A tile of the result that stays in registers: `rows` times `vectors` of `lanes` columns. Vectors
/// lie next to each other along the columns, or, where one is all columns, along the lines.
struct Tile {
  int64_t rows = 1, vectors = 1, lanes = 1;
  double score = 0;  // multiply-adds per operand loaded, as far as lanes and chains are filled
};
/// What tiles are cut from.
struct Area {
  int64_t rows, columns;
  int64_t lines = 1;
  bool rows_collide = false;    // in the first cache: all in the same few places
  int64_t close = cost::kEven;  // columns that stay in the second cache for all of the reduction
  int64_t column_bytes = 0;     // that are read for a column
};
/// The axes of a product: what is read along the columns is read again for every row. Lines are
/// other columns, where there are such.
struct TileAxes {
  size_t row, column;
  std::optional<size_t> line;
};
/// The axes of tiles, where a block is a product.
std::optional<TileAxes> FindTileAxes(const BlockLook& look);
/// Whether what is read along the rows, and not along the columns, moves along an axis.
bool RowsMove(const BlockLook& look, TileAxes axes, size_t axis);
/// Whether all that is read along the columns stays in the second cache: then each row of the other
/// operand is read once, for everything that uses it.
bool FitsSecondCache(const BlockLook& look, TileAxes axes, const Machine& machine);
/// How many columns the second cache holds for all of the reduction.
int64_t CloseColumns(const BlockLook& look, const Machine& machine);
/// A size with the divisors that matter: those of the extent, as far as they are known.
int64_t SizeOf(const Axis& axis, int64_t divisor);
/// What the tiles of a product are cut from.
Area AreaOf(const BlockLook& look, TileAxes axes, const Tile& ideal, const Machine& machine);
/// The tile of the best score.
Tile ChooseTile(const Area& area, int64_t most_lanes, const Machine& machine);
/// The tile of a product that all tiles divide.
Tile IdealTile(const BlockLook& look, TileAxes axes, const Machine& machine);
/// Whether a larger tile would be no faster.
bool HasManyChains(const Tile& tile);

}  // namespace tvm::tir
