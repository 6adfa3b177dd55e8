// SPDX-License-Identifier: Apache-2.0
// Products of small numbers: factors packed into words that an instruction multiplies at once.
#include "schedule/rules/look.h"
#include "tvm/expr/dot.h"

namespace tvm::tir {

std::vector<const Access*> FactorsOf(const BlockLook& look) {
  std::vector<const Access*> factors;
  for (const Access& access : look.accesses) {
    if (look.IsOperand(access)) factors.push_back(&access);
  }
  return factors;
}
Array<BlockRV> InlineResult(const Schedule& sch, const BlockRV& block) {
  Array<BlockRV> left;
  for (const BlockRV& result : sch.GetConsumers(block)) {
    bool is_inline = Attempt(sch, [&] {
      if (sch.GetConsumers(result).size() != 1) return false;
      sch.ComputeInline(result);
      return true;
    });
    if (!is_inline) left.push_back(result);
  }
  return left;
}

namespace {
/// What multiplies the factors of a block, and which of them is stored shifted.
struct Way {
  const char* instruction;
  int64_t shifted = -1;
};
/// How many sums of a factor there are.
int64_t SumsOf(const BlockLook& look, const Access& factor) {
  int64_t sums = 1;
  for (size_t i = 0; i < look.axes.size(); ++i) {
    if (!look.axes[i].reduce && factor.Moves(i)) sums *= look.axes[i].size.value_or(cost::kEven);
  }
  return sums;
}
bool IsByte(DataType t) { return t.is_integer() && t.bits() == 8; }
bool IsShort(DataType t) { return IsByte(t) || t == DataType::Int(16); }
bool IsSmallFloat(DataType t) { return t.is_float() && t.bits() >= 8 && t.bits() <= 32; }
std::optional<Way> FindWay(const BlockLook& look, const Machine& machine) {
  std::vector<const Access*> factors = FactorsOf(look);
  if (factors.size() != 2) return std::nullopt;
  DataType a = factors[0]->buffer->dtype, b = factors[1]->buffer->dtype;
  DataType s = DataType::Int(32), u = DataType::UInt(32);
  auto word = [&](DataType t) { return t.is_uint() ? u : s; };
  if (IsByte(a) && IsByte(b)) {
    if (HasDot(machine, builtin::dot_bytes(), word(a), word(b))) return Way{"dot_bytes"};
    // The sums of the other factor are few where it is the smaller one.
    if (a.code() == b.code() && HasDot(machine, builtin::dot_bytes(), u, s))
      return Way{"dot_bytes", SumsOf(look, *factors[1]) <= SumsOf(look, *factors[0]) ? 0 : 1};
  }
  if (IsShort(a) && IsShort(b) && HasDot(machine, builtin::dot_shorts(), s, s))
    return Way{"dot_shorts"};
  if (a.is_bfloat16() && b.is_bfloat16() && HasDot(machine, builtin::dot_bfloat16(), u, u))
    return Way{"dot_bfloat16"};
  if (IsSmallFloat(a) && IsSmallFloat(b) && std::min(a.bits(), b.bits()) < 32)
    return Way{"float32"};
  return std::nullopt;
}
/// The paddings of the block's iterators with which tiles come out even, of rows, columns or both.
std::vector<Array<int64_t>> PaddingsOf(const BlockLook& look, const Machine& machine) {
  auto at = look.Column();
  const Axis *row = nullptr, *column = at ? &look.axes[*at] : nullptr;
  for (size_t i = 0; at && i < look.axes.size(); ++i) {
    bool reuses = look.axes[i].spatial && !look.axes[i].reduce && i != *at;
    for (const Access* factor : FactorsOf(look)) reuses &= !factor->Moves(*at) || !factor->Moves(i);
    auto size = [](const Axis& axis) { return axis.size.value_or(INT32_MAX); };
    if (reuses && (!row || size(look.axes[i]) > size(*row))) row = &look.axes[i];
  }
  std::vector<Array<int64_t>> paddings;
  if (row) {
    auto [rows, columns] = EvenSides(row->size, column->size, machine->Lanes(32), machine);
    for (const auto& [r, c] : {std::pair{rows, columns}, {rows, int64_t{1}}, {int64_t{1}, columns}})
      paddings.push_back(look.block->iter_vars.Map([&](const IterVar& iter) {
        return iter->var.same_as(row->iter) ? r : iter->var.same_as(column->iter) ? c : 1;
      }));
  }
  paddings.push_back({});
  return paddings;
}
/// Whether a product reads words across its columns: it will be given a copy that lies otherwise.
bool IsTransposed(const Schedule& sch, const BlockRV& packing, const BlockRV& product) {
  BlockLook look = LookAt(sch, product);
  Buffer words = sch.Get(packing)->writes[0]->buffer;
  for (size_t i = 0; i < look.axes.size(); ++i) {
    if (!look.axes[i].spatial || !look.Store().StepsBy(i, 1)) continue;
    for (const Access& access : look.accesses) {
      if (access.buffer.same_as(words) && access.Moves(i) && !access.StepsBy(i, 1)) return true;
    }
  }
  return false;
}
/// Words that only a copy reads, square by square, are packed for each square: they need not go
/// through memory.
bool PackedInSquares(const Schedule& sch, const BlockRV& packing, const Machine& machine) {
  Array<BlockRV> readers = sch.GetConsumers(packing);
  if (readers.size() != 1 || LookAt(sch, readers[0]).has_reduction) return false;
  LoopRV square;
  for (const LoopRV& loop : sch.GetLoops(readers[0])) {
    ForKind kind = sch.Get(loop)->kind;
    if (kind == ForKind::kSerial || kind == ForKind::kParallel) square = loop;
  }
  if (!square.defined()) return false;
  sch.ComputeAt(packing, square);
  VectorizeInner(sch, packing, machine);
  return true;
}
/// Whether enough results share each factor to pay for packing it.
bool PaysToPack(const BlockLook& look) {
  std::vector<const Access*> factors = FactorsOf(look);
  return std::all_of(factors.begin(), factors.end(), [&](const Access* factor) {
    auto sharing = look.Size([&](const Axis& axis) {
      return !axis.reduce && !factor->Moves(static_cast<size_t>(&axis - look.axes.data()));
    });
    return !sharing || *sharing >= cost::kResultsToPack;
  });
}
/// A sum of products in a shorter type of floats that is not packed: it is accumulated in float32
/// all the same.
bool SummedInFloat32(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  BlockLook look = LookAt(sch, block);
  DataType t = look.Store().buffer->dtype;
  if (!look.simple || !t.is_float() || t.bits() >= 32) return false;
  Array<BlockRV> made = sch.PackProducts(look.rv, "float32");
  sch.ComputeInline(made[0]);
  sch.ComputeInline(made[1]);
  Array<BlockRV> results = InlineResult(sch, look.rv);
  ScheduleReduction(sch, look.rv, machine);
  for (const BlockRV& result : results) {
    // Where it runs in the loops of the sum it is scheduled already.
    bool is_apart = sch.GetChildBlocks(sch.GetLoops(result)[0]).size() == 1;
    if (is_apart) ScheduleSpatial(sch, result, machine);
  }
  return true;
}
}  // namespace

void SchedulePacking(const Schedule& sch, const BlockRV& packing, const Machine& machine) {
  if (!Attempt(sch, [&] { return PackedInSquares(sch, packing, machine); }))
    ScheduleSpatial(sch, packing, machine);
}
Array<BlockRV> PackSmallProduct(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  BlockLook look = LookAt(sch, block);
  if (!look.simple || !machine->takes_vectors) return {};
  auto way = FindWay(look, machine);
  if (!way || !PaysToPack(look)) return {};
  for (const Array<int64_t>& padding : PaddingsOf(look, machine)) {
    Array<BlockRV> made;
    bool fits = Attempt(sch, [&] {
      made = sch.PackProducts(block, way->instruction, way->shifted, padding);
      return made.size() >= 2;
    });
    if (!fits) continue;
    if (way->shifted >= 0) ScheduleReduction(sch, made[2], machine);
    InlineResult(sch, block);
    return {made[0], made[1]};
  }
  return {};
}
namespace {
/// The factors packed, and all as any product.
bool InWords(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  Array<BlockRV> words = PackSmallProduct(sch, block, machine), copies, transposed;
  if (words.empty()) return false;
  for (const BlockRV& packing : words)
    (IsTransposed(sch, packing, block) ? transposed : copies).push_back(packing);
  if (!ScheduleProductOf(sch, block, copies, machine)) return false;
  for (const BlockRV& packing : transposed) SchedulePacking(sch, packing, machine);
  return true;
}
}  // namespace

bool ScheduleWords(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  BlockLook look = LookAt(sch, block);
  if (!look.simple || !machine->takes_vectors) return false;
  auto way = FindWay(look, machine);
  if (!way || way->shifted >= 0) return false;
  if (sch.PackProducts(block, way->instruction).size() >= 2) return false;
  InlineResult(sch, block);
  ScheduleReduction(sch, block, machine);
  return true;
}
bool ScheduleDotProduct(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  return Attempt(sch, [&] { return ScheduleTileProduct(sch, block, machine); }) ||
         Attempt(sch, [&] { return InWords(sch, block, machine); }) ||
         SummedInFloat32(sch, block, machine);
}
}  // namespace tvm::tir
