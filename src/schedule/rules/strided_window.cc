// SPDX-License-Identifier: Apache-2.0
// Convolutions whose window moves by several elements: vectors along the filters. Along the results
// a vector would be elements apart, and their copies, one for every place of the window, are many
// times what they are copied from.
//
//   for n, o, i, j: out[n, o, i, j] += padded[n, c, 2 * i + y, 2 * j + x] * W[o, c, y, x]   -->
//   for n, i, j, o: last[n, i, j, o] += …                   # W is transposed
//   for n, o, i, j: out[n, o, i, j] = last[n, i, j, o]
#include <algorithm>

#include "schedule/rules/look.h"
#include "tvm/expr/op.h"

namespace tvm::tir {
namespace {
/// Elements that an access touches, counted as often as an iteration of another axis does.
std::optional<int64_t> CopiedElements(const BlockLook& look, const Access& access) {
  return look.Size(
      [&](const Axis& axis) { return access.Moves(static_cast<size_t>(&axis - &look.axes[0])); });
}
/// The operand that would be copied, several times, for vectors along the results.
const Access* FindStrided(const BlockLook& look, size_t column) {
  for (const Access& access : look.accesses) {
    if (!look.IsOperand(access) || !access.linear || !access.Moves(column)) continue;
    if (access.StepsBy(column, 1)) continue;
    auto copied = CopiedElements(look, access);
    int64_t elements = 1;
    for (const PrimExpr& extent : access.buffer->shape) elements *= AsConstInt(extent).value_or(0);
    if (copied && elements > 0 && *copied > elements) return &access;
  }
  return nullptr;
}
/// The longest axis of the results along which other operands move, which do not along the columns,
/// and the strided one does not.
std::optional<size_t> FindFilters(const BlockLook& look, size_t column, const Access& strided) {
  std::optional<size_t> found;
  for (size_t i = 0; i < look.axes.size(); ++i) {
    const Axis& axis = look.axes[i];
    if (axis.reduce || !axis.spatial || !axis.size || !axis.iter.defined()) continue;
    bool fits = !strided.Moves(i);
    for (const Access& access : look.accesses) {
      if (look.IsOperand(access) && &access != &strided)
        fits &= access.linear && access.Moves(i) && !access.Moves(column);
    }
    if (fits && (!found || *axis.size > *look.axes[*found].size)) found = i;
  }
  return found;
}
/// Whether transposing the filters and the results takes less than copying what windows see.
bool IsWorthTransposing(const BlockLook& look, const Access& strided) {
  int64_t elements = look.Size([](const Axis& axis) { return !axis.reduce; }).value_or(0);
  for (const Access& access : look.accesses) {
    if (look.IsOperand(access) && &access != &strided)
      elements += CopiedElements(look, access).value_or(0);
  }
  return elements < *CopiedElements(look, strided);
}
/// The layout of the results with the dimension of an iterator last; undefined where it has none.
IndexMap WithLast(const BlockLook& look, const Var& iter) {
  const BufferRegion& written = look.block->writes[0];
  Array<Var> from;
  Array<PrimExpr> to, last;
  for (const Range& range : written->region) {
    from.push_back(Var("d" + std::to_string(from.size()), range->min.dtype()));
    (range->min.same_as(iter) ? last : to).push_back(from.back());
  }
  if (last.size() != 1) return IndexMap();
  to.push_back(last[0]);
  return IndexMap(from, to, {});
}
}  // namespace

bool ScheduleStridedWindow(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  BlockLook look = LookAt(sch, block);
  auto column = look.Column();
  if (!look.simple || !machine->takes_vectors || !column || !look.Size()) return false;
  const Access* strided = FindStrided(look, *column);
  if (!strided || look.block->writes.size() != 1) return false;
  auto filters = FindFilters(look, *column, *strided);
  if (!filters || *look.axes[*filters].size < machine->Lanes(look.widest_bits)) return false;
  IndexMap layout = WithLast(look, look.axes[*filters].iter);
  if (!layout.defined() || !IsWorthTransposing(look, *strided)) return false;
  bool is_result = sch.GetConsumers(block).empty();
  BlockRV transpose = sch.CacheWrite(block, 0, "global");
  sch.TransformLayout(block, Array<Any>{String("write"), int64_t{0}}, layout);
  sch.CacheWrite(block, 0, "global");  // tiles come from registers as they are
  if (!ScheduleProduct(sch, block, machine)) return false;
  if (is_result) {
    ScheduleSpatial(sch, transpose, machine);
  } else {
    sch.ComputeInline(transpose);
  }
  return true;
}
}  // namespace tvm::tir
