// SPDX-License-Identifier: Apache-2.0
// Rules for quotients and remainders. x // 0 and x % 0 are 0, so x // x is 1 only for x != 0.
#include "arith/rewrite/tables.h"

namespace tvm::arith {

Rules FloorDivRules() {
  TVM_WILDCARDS();
  return {
      {floordiv(x, y), 0, x >= 0 && x < y, kFits},
      {floordiv(x, c1), -1, x < 0 && 0 - c1 <= x, kFits},
      {floordiv(x, x), 1, x != 0, kFits},
      {floordiv(floordiv(x, c1), c2), floordiv(x, c1 * c2), c1 > 0 && c2 > 0, kFits},
      {floordiv(floordiv(x, c1) + c2, c3), floordiv(x + c1 * c2, c1 * c3), c1 > 0 && c3 > 0,
       kIndex},
      {floordiv(x * c1, c2), x * floordiv(c1, c2), c2 != 0 && floormod(c1, c2) == 0, kIndex},
      {floordiv(x * c1, c2), floordiv(x, floordiv(c2, c1)), c1 > 0 && floormod(c2, c1) == 0,
       kIndex},
      {floordiv(x * c1, c2), x * floordiv(c1, c2),
       c2 > 0 && c1 > c2 && x >= 0 && x * floormod(c1, c2) < c2, kIndex},
      {floordiv(x * y, y), x, y != 0, kIndex},
      {floordiv((x * y) * z, y), x * z, y != 0, kIndex},
      {floordiv((x * y) * c1, y), x * c1, y != 0, kIndex},
      {floordiv(x * z, y * z), floordiv(x, y), z != 0, kIndex},
      {floordiv(x * c1 + y, c2), x * floordiv(c1, c2) + floordiv(y, c2),
       c2 > 0 && floormod(c1, c2) == 0, kIndex},
      {floordiv(y - x * c1, c2), floordiv(y, c2) - x * floordiv(c1, c2),
       c2 > 0 && floormod(c1, c2) == 0, kIndex},
      {floordiv(x * c1 - y, c2), x * floordiv(c1, c2) + floordiv(0 - y, c2),
       c2 > 0 && floormod(c1, c2) == 0, kIndex},
      {floordiv((x * c1 + y) + z, c2), x * floordiv(c1, c2) + floordiv(y + z, c2),
       c2 > 0 && floormod(c1, c2) == 0, kIndex},
      {floordiv((y - x * c1) + z, c2), floordiv(y + z, c2) - x * floordiv(c1, c2),
       c2 > 0 && floormod(c1, c2) == 0, kIndex},
      {floordiv((x * c1 + y) - z, c2), x * floordiv(c1, c2) + floordiv(y - z, c2),
       c2 > 0 && floormod(c1, c2) == 0, kIndex},
      {floordiv(x + c1, c2), floordiv(x, c2) + floordiv(c1, c2), c2 > 0 && floormod(c1, c2) == 0,
       kIndex},
      {floordiv(x * c1 + c3, c2), floordiv(x + floordiv(c3, c1), floordiv(c2, c1)),
       c1 > 1 && floormod(c2, c1) == 0 && c2 > 0, kIndex},
      {floordiv(x * c1 + y, c2), floordiv(x, floordiv(c2, c1)),
       c1 > 0 && floormod(c2, c1) == 0 && c2 > 0 && y >= 0 && y < c1, kIndex},
      {floordiv(x * c1 + y, c2), floordiv(x + floordiv(y, c1), floordiv(c2, c1)),
       c1 > 1 && floormod(c2, c1) == 0 && c2 > 0, kIndex},
      {floordiv(x * y + z, y), x + floordiv(z, y), y != 0, kIndex},
      {floordiv(z - x * y, y), floordiv(z, y) - x, y != 0, kIndex},
      {floordiv((x * y + z) + w, y), x + floordiv(z + w, y), y != 0, kIndex},
      {floordiv(x + y, y), floordiv(x, y) + 1, y != 0, kIndex},
      {floordiv(x * z + y, z * w), floordiv(x, w), z > 0 && y >= 0 && y < z && w > 0, kIndex},
      {floordiv(floormod(x, c1), c2), 0, c1 > 0 && c1 <= c2, kFits},
      {floordiv(floormod(x, 2) + 1, 2), floormod(x, 2)},
      {floordiv(min(x * c1, y), c2), min(x * floordiv(c1, c2), floordiv(y, c2)),
       c2 > 0 && floormod(c1, c2) == 0, kIndex},
      {floordiv(max(x * c1, y), c2), max(x * floordiv(c1, c2), floordiv(y, c2)),
       c2 > 0 && floormod(c1, c2) == 0, kIndex},
  };
}

Rules FloorModRules() {
  TVM_WILDCARDS();
  return {
      {floormod(x, y), x, x >= 0 && x < y, kFits},
      {floormod(x, x), 0},
      {floormod(x, -1), 0, kFits},
      {floormod(x, c1), x + c1, c1 > 0 && x < 0 && 0 - c1 <= x, kIndex},
      {floormod(floormod(x, c1), c2), floormod(x, c2), c1 > 0 && c2 > 0 && floormod(c1, c2) == 0,
       kFits},
      {floormod(x * c1, c2), 0, c2 != 0 && floormod(c1, c2) == 0, kIndex},
      {floormod(x * c1, c2), floormod(x, floordiv(c2, c1)) * c1,
       c1 > 1 && c2 > 0 && floormod(c2, c1) == 0, kIndex},
      {floormod(x * c1 + y, c2), floormod(y, c2), c2 > 0 && floormod(c1, c2) == 0, kIndex},
      {floormod(y - x * c1, c2), floormod(y, c2), c2 > 0 && floormod(c1, c2) == 0, kIndex},
      {floormod(x * c1 - y, c2), floormod(0 - y, c2), c2 > 0 && floormod(c1, c2) == 0, kIndex},
      {floormod((x * c1 + y) + z, c2), floormod(y + z, c2), c2 > 0 && floormod(c1, c2) == 0,
       kIndex},
      {floormod((y - x * c1) + z, c2), floormod(y + z, c2), c2 > 0 && floormod(c1, c2) == 0,
       kIndex},
      {floormod((x * c1 + y) - z, c2), floormod(y - z, c2), c2 > 0 && floormod(c1, c2) == 0,
       kIndex},
      {floormod(x + c1, c2), floormod(x + floormod(c1, c2), c2), c2 > 0 && (c1 < 0 || c1 >= c2),
       kIndex},
      {floormod(x * c1 + y, c2), floormod(x * floormod(c1, c2) + y, c2),
       c2 > 0 && (c1 <= 0 - c2 || c1 >= c2), kIndex},
      {floormod(x * c1 + y, c2), floormod(x, floordiv(c2, c1)) * c1 + y,
       c1 > 1 && c2 > 0 && floormod(c2, c1) == 0 && y >= 0 && y < c1, kIndex},
      {floormod(floormod(x, c1) + y, c2), floormod(x + y, c2),
       c1 > 0 && c2 > 0 && floormod(c1, c2) == 0, kIndex},
      {floormod(y - floormod(x, c1), c2), floormod(y - x, c2),
       c1 > 0 && c2 > 0 && floormod(c1, c2) == 0, kIndex},
      {floormod(floormod(x, c1) * c3 + y, c2), floormod(x * c3 + y, c2),
       c1 > 0 && c2 > 0 && floormod(c1 * c3, c2) == 0, kIndex},
      {floormod(x * y, y), 0, kIndex},
      {floormod((x * y) * z, y), 0, kIndex},
      {floormod(x * y + z, y), floormod(z, y), kIndex},
      {floormod(z - x * y, y), floormod(z, y), kIndex},
      {floormod((x * y + z) + w, y), floormod(z + w, y), kIndex},
      {floormod(x + y, y), floormod(x, y), kIndex},
      {floormod(x - y, y), floormod(x, y), kIndex},
      {floormod(x - floormod(x, y), y), 0, kIndex},
      {floormod(floormod(x, y), y), floormod(x, y), kFits},
  };
}

Rules TruncRules() {
  TVM_WILDCARDS();
  return {
      {truncdiv(x, y), floordiv(x, y), x >= 0 && y >= 0, kFits},
      {truncmod(x, y), floormod(x, y), x >= 0 && y >= 0, kFits},
      {truncdiv(x, x), 1, x != 0, kFits},
      {truncmod(x, x), 0},
      {truncmod(x, -1), 0, kFits},
      {truncdiv(x, y), 0, x > 0 - y && x < y, kFits},
      {truncmod(x, y), x, x > 0 - y && x < y, kFits},
      {truncdiv(truncdiv(x, c1), c2), truncdiv(x, c1 * c2), c1 > 0 && c2 > 0, kFits},
      {truncdiv(x * c1, c2), x * truncdiv(c1, c2), c2 != 0 && floormod(c1, c2) == 0, kIndex},
      {truncdiv(x * c1, c2), truncdiv(x, truncdiv(c2, c1)), c1 > 0 && floormod(c2, c1) == 0,
       kIndex},
      {truncdiv(x * y, y), x, y != 0, kIndex},
      {truncdiv(x * z, y * z), truncdiv(x, y), z != 0, kIndex},
      {truncmod(x * c1, c2), 0, c2 != 0 && floormod(c1, c2) == 0, kIndex},
      {truncmod(x * y, y), 0, kIndex},
      {truncmod(x, c1), truncmod(x, 0 - c1), c1 < 0, kFits},
      {truncmod(truncmod(x, c1), c2), truncmod(x, c2), c1 != 0 && c2 > 0 && floormod(c1, c2) == 0,
       kFits},
  };
}

}  // namespace tvm::arith
