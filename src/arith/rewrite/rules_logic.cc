// SPDX-License-Identifier: Apache-2.0
// Rules for conditions and selections.
#include "arith/rewrite/tables.h"

namespace tvm::arith {

Rules NotRules() {
  TVM_WILDCARDS();
  return {
      {!!p, p},
      {!(x < y), y <= x},
      {!(x <= y), y < x},
      {!(p && q), !p || !q},
      {!(p || q), !p && !q},
  };
}

Rules AndRules() {
  TVM_WILDCARDS();
  return {
      {p && p, p},
      {p && !p, false},
      {(p && q) && p, p && q},
      {(p && q) && !p, false},
      {(p || q) && p, p},
      {(p || q) && !p, q && !p},
      {(p || q) && (p || r), p || (q && r)},
      {(p || q) && (p || !q), p},
      {x < c1 && x < c2, x < min(c1, c2)},
      {c1 < x && c2 < x, max(c1, c2) < x},
      {x < c1 && c2 < x, false, c2 + 1 >= c1},
      {x < c1 && c2 < x, x == c1 - 1, c2 + 2 == c1, kFits},
      {(p && x < c1) && c2 < x, false, c2 + 1 >= c1},
      {(p && c2 < x) && x < c1, false, c2 + 1 >= c1},
      {(p && x < c1) && x < c2, p && x < min(c1, c2)},
      {(p && c1 < x) && c2 < x, p && max(c1, c2) < x},
      {x == c1 && x == c2, false, c1 != c2},
      {x == c1 && !(x == c2), x == c1, c1 != c2},
      {x == c1 && x < c2, x == c1, c1 < c2},
      {x == c1 && x < c2, false, c1 >= c2},
      {x == c1 && c2 < x, x == c1, c2 < c1},
      {x == c1 && c2 < x, false, c2 >= c1},
      {floordiv(x, c1) == c2 && floormod(x, c1) == c3, x == c1 * c2 + c3,
       c1 > 0 && c3 >= 0 && c3 < c1, kFits},
      {floordiv(x, c1) == y && floormod(x, c1) == c3, x == y * c1 + c3,
       c1 > 0 && c3 >= 0 && c3 < c1, kIndex},
      {floordiv(x, c1) == c2 && floormod(x, c1) < c3, c1 * c2 <= x && x < c1 * c2 + c3,
       c1 > 0 && c3 > 0 && c3 < c1, kFits},
      // The first or last residue that the second condition allows.
      {x < c1 && floormod(x, c2) < c3, x < floordiv(c1 - 1, c2) * c2 + c3 && floormod(x, c2) < c3,
       c2 > 0 && c3 > 0 && floormod(c1 - 1, c2) >= c3, kFits},
      {c1 < x && floormod(x, c2) < c3,
       floordiv(c1 + 1, c2) * c2 + (c2 - 1) < x && floormod(x, c2) < c3,
       c2 > 0 && c3 > 0 && floormod(c1 + 1, c2) >= c3, kFits},
      {z * c1 < x + c2 && x < z * c1 + c3, z == floordiv(x + (c2 - 1), c1),
       c1 > 0 && c2 + c3 == c1 + 1, kIndex},
      {x < y && y < x, false},
      {x < y && y <= x, false},
      {x < y && x <= y, x < y},
      {x <= y && y <= x, x == y},
      {x == y && x < y, false},
      {x == y && x <= y, x == y},
      {!(x == y) && x < y, x < y},
      {!(x == y) && x <= y, x < y},
  };
}

Rules OrRules() {
  TVM_WILDCARDS();
  return {
      {p || p, p},
      {p || !p, true},
      {(p || q) || p, p || q},
      {(p || q) || !p, true},
      {(p && q) || p, p},
      {(p && q) || !p, q || !p},
      {(p && q) || (p && r), p && (q || r)},
      {(p && q) || (p && !q), p},
      {x < c1 || x < c2, x < max(c1, c2)},
      {c1 < x || c2 < x, min(c1, c2) < x},
      {x < c1 || c2 < x, true, c2 < c1},
      {x < c1 || c2 < x, !(x == c1), c2 == c1},
      {x == c1 || !(x == c2), !(x == c2), c1 != c2},
      {x == c1 || x < c2, x < c2, c1 < c2},
      {x == c1 || x < c2, x < c2 + 1, c1 == c2, kFits},
      {x == c1 || c2 < x, c2 < x, c2 < c1},
      {x == c1 || c2 < x, c2 - 1 < x, c1 == c2, kFits},
      {!(x == c1) || x < c2, true, c1 < c2},
      {!(x == c1) || c2 < x, true, c2 < c1},
      {x < y || y < x, !(x == y)},
      {x < y || y <= x, true},
      {x < y || x <= y, x <= y},
      {x <= y || y <= x, true},
      {x == y || x < y, x <= y},
      {x == y || x <= y, x <= y},
      {!(x == y) || x < y, !(x == y)},
      {!(x == y) || x <= y, true},
  };
}

Rules SelectRules() {
  TVM_WILDCARDS();
  return {
      {select(p, u, u), u},
      {select(!p, u, v), select(p, v, u)},
      {select(p, true, false), p},
      {select(p, false, true), !p},
      {select(p, true, q), p || q},
      {select(p, q, false), p && q},
      {select(p, false, q), !p && q},
      {select(p, q, true), !p || q},
      {select(x < y, x, y), min(x, y)},
      {select(x < y, y, x), max(x, y)},
      {select(x <= y, x, y), min(x, y)},
      {select(x <= y, y, x), max(x, y)},
      {select(x == y, x, y), y},
      {select(x == y, y, x), x},
      {select(p, select(q, u, v), v), select(p && q, u, v)},
      {select(p, u, select(q, u, v)), select(p || q, u, v)},
  };
}

}  // namespace tvm::arith
