// SPDX-License-Identifier: Apache-2.0
// Rules for comparisons. Before them x > y is turned into y < x, x != y into !(x == y), and x <= c
// into x < c + 1; afterwards the readable spellings come back.
#include "arith/rewrite/tables.h"

namespace tvm::arith {

Rules EqualRules() {
  TVM_WILDCARDS();
  return {
      {x == x, true},
      {x + c1 == c2, x == c2 - c1},
      {c1 - x == c2, x == c1 - c2},
      {x + c1 == y + c2, x == y + (c2 - c1)},
      {x * c1 == c2, x == floordiv(c2, c1), c1 != 0 && floormod(c2, c1) == 0, kIndex},
      {x * c1 == c2, false, c1 != 0 && floormod(c2, c1) != 0, kIndex},
      {x * c1 == y * c1, x == y, c1 != 0, kIndex},
      {x * y == 0, x == 0 || y == 0, kIndex},
      {floordiv(x, c1) == c2, x < c1 * c2 + c1, c1 > 0 && x >= c1 * c2, kIndex},
      {floordiv(x, c1) == c2, c1 * c2 <= x, c1 > 0 && x < c1 * c2 + c1, kIndex},
      {x - y == 0, x == y},
      {x + y == x, y == 0},
      {x - y == x, y == 0},
      {x + z == y + z, x == y},
      {x - z == y - z, x == y},
      {z - x == z - y, x == y},
      {min(x, y) == x, x <= y},
      {max(x, y) == x, y <= x},
      {min(x, y) == max(x, y), x == y},
      {min(x, c1) == c2, x == c2, c2 < c1},
      {min(x, c1) == c2, false, c1 < c2},
      {min(x, c1) == c1, c1 <= x},
      {max(x, c1) == c2, x == c2, c1 < c2},
      {max(x, c1) == c2, false, c2 < c1},
      {max(x, c1) == c1, x <= c1},
      {select(p, x, y) == x, p || x == y},
  };
}

Rules LessRules() {
  TVM_WILDCARDS();
  return {
      {x < x, false},
      {x + c1 < c2, x < c2 - c1, true, kIndex},
      {c1 < x + c2, c1 - c2 < x, true, kIndex},
      {c1 - x < c2, c1 - c2 < x, true, kIndex},
      {c1 < c2 - x, x < c2 - c1, true, kIndex},
      {c1 - x < c2 - y, y < x + (c2 - c1), true, kIndex},
      {x + c1 < y + c2, x < y + (c2 - c1), true, kIndex},
      {x + c1 < y, x < y + (0 - c1), true, kIndex},
      {c1 - x < y + c2, c1 - c2 < x + y, true, kIndex},
      {x + c1 < c2 - y, x + y < c2 - c1, true, kIndex},
      {x < c1 - x, x < floordiv(c1 + 1, 2), true, kIndex},
      {c1 - x < x, floordiv(c1, 2) < x, true, kIndex},
      {x + y < x, y < 0, kIndex},
      {x < x + y, 0 < y, kIndex},
      {x < x - y, y < 0, kIndex},
      {x - y < x, 0 < y, kIndex},
      {x + z < y + z, x < y, kIndex},
      {x + z < (y + z) + c1, x < y + c1, kIndex},
      {x < (x + y) + c1, 0 - c1 < y, true, kIndex},
      {x - z < y - z, x < y, kIndex},
      {z - x < z - y, y < x, kIndex},
      {x - y < 0, x < y, kIndex},
      {0 < x - y, y < x, kIndex},
      {x - y < c1, x < y + c1, kIndex},
      {c1 < x - y, y + c1 < x, kIndex},
      {x * c1 < y * c1, x < y, c1 > 0, kIndex},
      {x * c1 < y * c1, y < x, c1 < 0, kIndex},
      {x * z < y * z, x < y, z > 0, kIndex},
      {x * z < z, x < 1, z > 0, kIndex},
      {z < x * z, 1 < x, z > 0, kIndex},
      {x * c1 < c2, x < floordiv(c2 - 1, c1) + 1, c1 > 0, kIndex},
      {x * c1 < c2, floordiv(c2, c1) < x, c1 < 0, kIndex},
      {c2 < x * c1, floordiv(c2, c1) < x, c1 > 0, kIndex},
      {c2 < x * c1, x < 0 - floordiv(c2, 0 - c1), c1 < 0, kIndex},
      {y < x * c1, 0 < x, c1 > 0 && y >= 0 && y < c1, kIndex},
      {x * c1 < y, x < 1, c1 > 0 && y > 0 && y <= c1, kIndex},
      {x * c1 + y < z * c1, x < z, c1 > 0 && y >= 0 && y < c1, kIndex},
      {x * c1 + y < c2, x < floordiv(c2, c1), c1 > 0 && floormod(c2, c1) == 0 && y >= 0 && y < c1,
       kIndex},
      {x * z + y < w * z, x < w, y >= 0 && y < z, kIndex},
      {x * c1 < y * c1 + c2, x < y + floordiv(c2 - 1, c1) + 1, c1 > 0, kIndex},
      {floordiv(x, c1) < c2, x < c1 * c2, c1 > 0, kFits},
      {c1 < floordiv(x, c2), (c1 + 1) * c2 - 1 < x, c2 > 0, kFits},
      {x < floordiv(x, c1) * c1, false, c1 > 0, kIndex},
      {floordiv(x, c1) * c1 < x, 0 < floormod(x, c1), c1 > 0, kIndex},
      {x < floordiv(x, c1) * c1 + c2, true, c1 > 0 && c2 >= c1, kIndex},
      {x < floordiv(x + c2, c1) * c1 + c3, true, c1 > 0 && c2 - c1 + c3 >= 0, kIndex},
      {floordiv(x, y) * y < x + c1, true, y > 0 && c1 > 0, kIndex},
      {floormod(x, y) < y, 0 < y},
      {y < floormod(x, y), y < 0},
      {min(x, c1) < c2, x < c2, c1 >= c2},
      {max(x, c1) < c2, x < c2, c1 < c2},
      {c1 < min(x, c2), c1 < x, c1 < c2},
      {c1 < max(x, c2), c1 < x, c1 >= c2},
      {min(x, y) < z, x < z, y >= z},
      {max(x, y) < z, x < z, y < z},
      {z < min(x, y), z < x, z < y},
      {z < max(x, y), z < x, y <= z},
      {min(x, y) < z, true, x < z},
      {max(x, y) < z, false, x >= z},
      {z < min(x, y), false, x <= z},
      {z < max(x, y), true, z < x},
      {min(x, y) < x + c1, true, c1 > 0, kIndex},
      {max(x, y) < x + c1, false, c1 <= 0, kIndex},
      {min(x, y) < x, y < x},
      {max(x, y) < x, false},
      {x < min(x, y), false},
      {x < max(x, y), x < y},
      {min(x, y) < max(x, y), !(x == y)},
      {max(x, y) < min(x, y), false},
      {min(x + c1, y) < x, y < x, c1 >= 0, kIndex},
      {min(x, y) + c1 < x, true, c1 < 0, kIndex},
      {select(p, x, y) < x, !p && y < x},
      {x < select(p, x, y), !p && x < y},
  };
}

Rules LessEqualRules() {
  TVM_WILDCARDS();
  return {
      {x <= x, true},
      {min(x, y) <= x, true},
      {x <= max(x, y), true},
      {x <= min(x, y), x <= y},
      {max(x, y) <= x, y <= x},
      {min(x, y) <= max(x, y), true},
      {min(x, c1) <= y, true, c1 <= y},
      {x <= max(y, c1), true, x <= c1},
  };
}

}  // namespace tvm::arith
