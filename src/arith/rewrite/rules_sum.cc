// SPDX-License-Identifier: Apache-2.0
// Rules for sums, differences and products. Most hold in modular arithmetic. Constants move
// outwards and to the right; x - c is x + (-c) here. That is why what is taken out of a sum is no
// constant where one would be left inside: x * c + c stays as it is.
#include "arith/rewrite/tables.h"

namespace tvm::arith {

Rules AddRules() {
  TVM_WILDCARDS();
  return {
      {(x + c1) + c2, x + (c1 + c2)},
      {(c1 - x) + c2, (c1 + c2) - x},
      {(x - y) + y, x},
      {(x - y) + (y - z), x - z},
      {(x - y) + (z - x), z - y},
      {(x + y) + (z - y), x + z},
      {x + (0 - y), x - y},
      {(c1 - x) + y, (y - x) + c1},
      {(x + c1) + y, (x + y) + c1},
      {(0 - x) + (0 - y), 0 - (x + y)},
      {x + y * c1, x - y * (0 - c1), c1 < 0, kFits},
      {x + x, x * 2},
      {n * y + n, (y + 1) * n},
      {x * y + x * z, (y + z) * x},
      {(n + y) + n * z, y + (z + 1) * n},
      {(x + y * z) + y * w, x + (z + w) * y},
      {(x - y * z) + y * w, x + (w - z) * y},
      {(x + n * z) + n, x + (z + 1) * n},
      {(x + y) + x, y + x * 2},
      {min(x, y) + max(x, y), x + y},
      {(z + min(x, y)) + max(x, y), z + (x + y)},
      {min(x - z, y) + z, min(x, y + z), kIndex},
      {max(x - z, y) + z, max(x, y + z), kIndex},
      {min(x + c1, y) + c2, min(x, y + c2), c1 + c2 == 0, kIndex},
      {max(x + c1, y) + c2, max(x, y + c2), c1 + c2 == 0, kIndex},
      {floordiv(x, y) * y + floormod(x, y), x, y != 0},
      {truncdiv(x, y) * y + truncmod(x, y), x, y != 0},
      {(z + floordiv(x, y) * y) + floormod(x, y), z + x, y != 0},
      {(z + floormod(x, y)) + floordiv(x, y) * y, z + x, y != 0},
      {floordiv(x, 2) + floormod(x, 2), floordiv(x + 1, 2), kIndex},
      {floormod(x, 2) + floormod(x + 1, 2), 1},
      {floordiv(floormod(x, c1) + y, c1) + floordiv(x, c1), floordiv(x + y, c1), c1 > 0, kIndex},
      {floordiv(x, c1) * c2 + floormod(x, c1) * c3, x * c3, c2 == c1 * c3 && c1 != 0, kFits},
      {floordiv(x, c1) * c1 + floormod(z, c1), x, c1 > 0 && floormod(x - z, c1) == 0, kIndex},
      {(w + floordiv(x, c1) * c1) + floormod(z, c1), w + x, c1 > 0 && floormod(x - z, c1) == 0,
       kIndex},
      {select(p, x, y) + select(p, z, w), select(p, x + z, y + w)},
  };
}

Rules SubRules() {
  TVM_WILDCARDS();
  return {
      {x - x, 0},
      {x - c1, x + (0 - c1), true, kFits},
      {c1 - (x + c2), (c1 - c2) - x},
      {c1 - (c2 - x), x + (c1 - c2)},
      {0 - x * c1, x * (0 - c1), true, kFits},
      {(x + y) - y, x},
      {x - (x + y), 0 - y},
      {(x + y) - (x + z), y - z},
      {(x + y) - (x - z), y + z},
      {(x - y) - x, 0 - y},
      {(x - y) - (x - z), z - y},
      {(x - y) - (z - y), x - z},
      {(x - y) - (x + z), 0 - (y + z)},
      {((x + y) + z) - x, y + z},
      {((x + y) + z) - (x + w), (y + z) - w},
      {((x + y) - z) - x, y - z},
      {x - (y - z), (x + z) - y},
      {(0 - x) - y, 0 - (x + y)},
      {(x + c1) - y, (x - y) + c1},
      {x - (y + c1), (x - y) + (0 - c1)},
      {x - y * c1, x + y * (0 - c1), c1 < 0, kFits},
      {n * y - n, (y + -1) * n, true, kFits},
      {n - n * y, (1 - y) * n},
      {x * y - x * z, (y - z) * x},
      {(x + y * z) - y * w, x + (z - w) * y},
      {(x + n) - n * w, x + (1 - w) * n},
      {(x + n * z) - n, x + (z + -1) * n, true, kFits},
      {min(x, y) - min(y, x), 0},
      {max(x, y) - max(y, x), 0},
      {(x + y) - min(x, y), max(x, y)},
      {(x + y) - max(x, y), min(x, y)},
      {min(x, y) - x, min(0, y - x), kIndex},
      {max(x, y) - x, max(0, y - x), kIndex},
      {n - min(n, y), max(0, n - y), kIndex},
      {n - max(n, y), min(0, n - y), kIndex},
      {min(x + y, z) - x, min(y, z - x), kIndex},
      {max(x + y, z) - x, max(y, z - x), kIndex},
      {x - min(x + y, z), max(0 - y, x - z), kIndex},
      {x - max(x + y, z), min(0 - y, x - z), kIndex},
      {min(x + c1, y) - min(x, z), c1, y - z == c1, kIndex},
      {max(x + c1, y) - max(x, z), c1, y - z == c1, kIndex},
      {x - floordiv(x, y) * y, floormod(x, y), y != 0},
      {x - truncdiv(x, y) * y, truncmod(x, y), y != 0},
      {(z + x) - floordiv(x, y) * y, z + floormod(x, y), y != 0},
      {x - floordiv(x + y, c1) * c1, floormod(x + y, c1) - y, c1 != 0},
      {x - floordiv(x - y, c1) * c1, floormod(x - y, c1) + y, c1 != 0},
      {floordiv(x + y, c1) * c1 - x, y - floormod(x + y, c1), c1 != 0},
      {floordiv(x - y, c1) * c1 - x, (0 - y) - floormod(x - y, c1), c1 != 0},
      {floordiv(x, c1) * c1 - x, 0 - floormod(x, c1), c1 != 0},
      {x * c3 - floordiv(x + y, c1) * c2, (floormod(x + y, c1) - y) * c3, c2 == c1 * c3 && c1 != 0,
       kFits},
      {x - floormod(x, y), floordiv(x, y) * y, y != 0},
      {x - truncmod(x, y), truncdiv(x, y) * y, y != 0},
      {x * c3 - floordiv(x, c1) * c2, floormod(x, c1) * c3, c2 == c1 * c3 && c1 != 0, kFits},
      {floordiv(x + c1, c3) - floordiv(x + c2, c3),
       floordiv(floormod(x + floormod(c2, c3), c3) + (c1 - c2), c3), c3 > 0, kIndex},
      {floordiv(x + c1, c3) - floordiv(x, c3), floordiv(floormod(x, c3) + c1, c3), c3 > 0, kIndex},
      {floordiv(x, c3) - floordiv(x + c1, c3), 0 - floordiv(floormod(x, c3) + c1, c3), c3 > 0,
       kIndex},
      {floordiv(x + y, c3) - floordiv(x, c3), floordiv(floormod(x, c3) + y, c3), c3 > 0, kIndex},
      {select(p, x, y) - select(p, z, w), select(p, x - z, y - w)},
      {select(p, x, y) - x, select(p, 0, y - x)},
      {select(p, x, y) - y, select(p, x - y, 0)},
  };
}

Rules MulRules() {
  TVM_WILDCARDS();
  return {
      {(x + c1) * c2, x * c2 + c1 * c2},
      {(0 - x) * c1, x * (0 - c1), true, kFits},
      {(c1 - x) * c2, c1 * c2 - x * c2},
      {(x * c1) * c2, x * (c1 * c2)},
      {(x * c1) * y, (x * y) * c1},
      {(0 - x) * y, 0 - x * y},
      {(x - y) * c1, (y - x) * (0 - c1), c1 < 0, kFits},
      {min(x, y) * max(x, y), x * y},
  };
}

}  // namespace tvm::arith
