// SPDX-License-Identifier: Apache-2.0
// Rules for min and max. One list serves both: `lo` is the node a row is about, `hi` its dual.
#include "arith/rewrite/tables.h"

namespace tvm::arith {
namespace {
using Make = Pat (*)(const Pat&, const Pat&);

/// `less_is_first`: whether lo(a, b) is the smaller one.
Rules LatticeRules(Make lo, Make hi, bool less_is_first) {
  TVM_WILDCARDS();
  auto before = [&](const Pat& a, const Pat& b) { return less_is_first ? a <= b : b <= a; };
  return {
      {lo(x, x), x},
      {lo(x, y), x, before(x, y)},
      {lo(x, y), y, before(y, x)},
      {lo(lo(x, c1), c2), lo(x, lo(c1, c2))},
      {lo(lo(x, y), x), lo(x, y)},
      {lo(lo(x, y), lo(x, z)), lo(lo(y, z), x)},
      {lo(lo(lo(x, y), z), x), lo(lo(x, y), z)},
      {lo(hi(x, y), x), x},
      {lo(hi(x, y), lo(x, z)), lo(x, z)},
      {lo(hi(x, y), hi(x, z)), hi(lo(y, z), x)},
      {lo(hi(x, c1), c2), c2, before(c2, c1)},
      {lo(x + z, y + z), lo(x, y) + z, kIndex},
      {lo(x + z, z), lo(x, 0) + z, kIndex},
      {lo(x - z, y - z), lo(x, y) - z, kIndex},
      {lo(z - x, z - y), z - hi(x, y), kIndex},
      {lo(z - x, z), z - hi(x, 0), kIndex},
      {lo(x + c1, y + c2), lo(x, y + (c2 - c1)) + c1, c1 < c2, kIndex},
      {lo(x + c1, c2), lo(x, c2 - c1) + c1, true, kIndex},
      {lo(c1 - x, c2), c1 - hi(x, c1 - c2), true, kIndex},
      {lo(x * c1, y * c1), lo(x, y) * c1, c1 > 0, kIndex},
      {lo(x * c1, y * c1), hi(x, y) * c1, c1 < 0, kIndex},
      {lo(x * z, y * z), lo(x, y) * z, z > 0, kIndex},
      {lo(x * c1, c2), lo(x, floordiv(c2, c1)) * c1, c1 > 0 && floormod(c2, c1) == 0, kIndex},
      {lo(x * c1, c2), hi(x, floordiv(c2, c1)) * c1, c1 < 0 && floormod(c2, c1) == 0, kIndex},
      {lo(floordiv(x, c1), floordiv(y, c1)), floordiv(lo(x, y), c1), c1 > 0, kFits},
      {lo(floordiv(x, c1), floordiv(y, c1)), floordiv(hi(x, y), c1), c1 < 0, kIndex},
      {lo(truncdiv(x, c1), truncdiv(y, c1)), truncdiv(lo(x, y), c1), c1 > 0, kFits},
      {lo(truncdiv(x, c1), truncdiv(y, c1)), truncdiv(hi(x, y), c1), c1 < 0, kIndex},
      {lo(floordiv(x, c1), c2), c2,
       less_is_first ? c1 > 0 && x >= c1 * c2 : c1 > 0 && x < (c2 + 1) * c1, kFits},
      {lo(select(p, x, y), select(p, z, w)), select(p, lo(x, z), lo(y, w))},
  };
}
}  // namespace

Rules MinRules() {
  TVM_WILDCARDS();
  Rules rules = LatticeRules(&min, &max, true);
  rules.insert(rules.end(),
               {
                   {min(floordiv(x, c1) * c1, x), floordiv(x, c1) * c1, c1 > 0, kIndex},
                   {min(floordiv(x + c2, c1) * c1, x), x, c1 > 0 && c2 == c1 - 1, kIndex},
                   {min(floordiv(x + c2, c1) * c1, max(x, c1)), max(x, c1),
                    c1 > 0 && c2 == c1 - 1 && x > 0, kIndex},
               });
  return rules;
}
Rules MaxRules() {
  TVM_WILDCARDS();
  Rules rules = LatticeRules(&max, &min, false);
  rules.insert(rules.end(), {
                                {max(floordiv(x, c1) * c1, x), x, c1 > 0, kIndex},
                                {max(floordiv(x + c2, c1) * c1, x), floordiv(x + c2, c1) * c1,
                                 c1 > 0 && c2 == c1 - 1, kIndex},
                            });
  return rules;
}

}  // namespace tvm::arith
