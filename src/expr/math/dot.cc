// SPDX-License-Identifier: Apache-2.0
// Dot products in words, by the instructions of the machine and as arithmetic.
#include "tvm/expr/dot.h"

#include <algorithm>

namespace tvm {
using namespace tir;
namespace {
using Kind = MachineInstruction::Kind;

Kind KindOf(const RelaxExpr& op) {
  return op.same_as(builtin::dot_bytes())    ? Kind::kDotBytes
         : op.same_as(builtin::dot_shorts()) ? Kind::kDotShorts
                                             : Kind::kDotBfloat16;
}
bool Fits(const MachineInstruction& row, Kind kind, DataType a, DataType b) {
  auto fits = [](char kind, DataType t) { return t.is_uint() == (kind == 'u'); };
  return row.kind == kind && fits(row.operands[0], a) && fits(row.operands[1], b);
}
/// The instruction for vectors of `lanes` words: the widest one that they fill, or else the
/// narrowest.
const MachineInstruction* Choose(const Machine& machine, const RelaxExpr& op, DataType a,
                                 DataType b, int lanes) {
  const MachineInstruction* best = nullptr;
  Kind kind = KindOf(op);
  for (const MachineInstruction* row : machine->instructions) {
    if (!Fits(*row, kind, a, b)) continue;
    best = row;
    if (row->lanes / 2 < lanes) break;
  }
  return best;
}
/// Number `i` of the elements of `bits` bits in each word, as what a product of them is.
PrimExpr Element(const PrimExpr& word, int i, int bits, DataType product) {
  DataType t = word.dtype();
  auto shift = [&](int by) { return MakeConst(t, by); };
  PrimExpr high = shift_left(word, shift(32 - bits * (i + 1)));
  if (!product.is_float()) return cast(product, shift_right(high, shift(32 - bits)));
  PrimExpr mask = MakeConst(t, int64_t{0xffff0000});
  return reinterpret(product, i == 0 ? high : bitwise_and(word, mask));
}
PrimExpr Plain(const CallObj* call) {
  int bits = call->Is(builtin::dot_bytes()) ? 8 : 16;
  PrimExpr sum;
  for (int i = 0; i < 32 / bits; ++i) {
    PrimExpr product =
        Element(call->args[0], i, bits, call->dtype) * Element(call->args[1], i, bits, call->dtype);
    sum = sum.defined() ? sum + product : product;
  }
  return sum;
}
/// Lanes [begin, begin + count) of a vector or number; the first lane again where it has fewer.
PrimExpr Lanes(const PrimExpr& x, int begin, int count) {
  if (x.dtype().is_scalar()) return Broadcast(x, IntImm::Int32(count));
  if (auto* same = x.as<BroadcastObj>()) return Broadcast(same->value, IntImm::Int32(count));
  if (begin == 0 && count == x.dtype().lanes()) return x;
  Array<PrimExpr> indices;
  for (int i = begin; i < begin + count; ++i)
    indices.push_back(IntImm::Int32(i < x.dtype().lanes() ? i : 0));
  return Shuffle({x}, indices);
}
}  // namespace

bool IsDot(const RelaxExpr& op) {
  return op.same_as(builtin::dot_bytes()) || op.same_as(builtin::dot_shorts()) ||
         op.same_as(builtin::dot_bfloat16());
}
bool HasDot(const Machine& machine, const Op& op, DataType a, DataType b) {
  return Choose(machine, op, a, b, 1) || Choose(machine, op, b, a, 1);
}
PrimExpr ExpandDot(const CallObj* call, Optional<PrimExpr> sum, const Target& target) {
  std::string got;
  bool is_wrong = call->args.size() != 2;
  for (const PrimExpr& e : call->args) {
    DataType t = e.dtype();
    got += (got.empty() ? "" : ", ") + std::string(t.str());
    is_wrong |= !t.is_integer() || t.bits() != 32 || t.is_scalable();
  }
  if (is_wrong) {
    TVM_FFI_THROW(TypeError) << Any(call->op).cast<Op>()->name
                             << ": expected two integers of 32 bits, got " << got;
  }
  PrimExpr a = call->args[0], b = call->args[1];
  int lanes = call->dtype.lanes();
  const MachineInstruction* row = nullptr;
  if (target.defined()) {
    const Machine& machine = Machine::Of(target);
    row = Choose(machine, call->op, a.dtype(), b.dtype(), lanes);
    if (!row) {
      row = Choose(machine, call->op, b.dtype(), a.dtype(), lanes);
      std::swap(a, b);
    }
  }
  if (!row) {
    PrimExpr plain = Plain(call);
    return sum.has_value() ? sum.value() + plain : plain;
  }
  DataType t = call->dtype.with_lanes(row->lanes);
  auto words = [&](const PrimExpr& x, int begin) {
    PrimExpr piece = Lanes(x, begin, row->lanes);
    bool is_bytes = row->kind == Kind::kDotBytes;
    return is_bytes ? reinterpret(DataType::Int(8, 4 * row->lanes), piece) : piece;
  };
  Array<PrimExpr> pieces, order;
  for (int begin = 0; begin < lanes; begin += row->lanes) {
    Array<PrimExpr> args = {StringImm(row->intrinsic)};
    PrimExpr before = sum.has_value() ? Lanes(sum.value(), begin, row->lanes) : MakeZero(t);
    if (row->accumulates) args.push_back(before);
    args.push_back(words(a, begin));
    args.push_back(words(b, begin));
    PrimExpr piece = Call(t, builtin::call_llvm_pure_intrin(), args);
    pieces.push_back(row->accumulates || !sum.has_value() ? piece : before + piece);
  }
  if (lanes == row->lanes) return pieces[0];
  for (int i = 0; i < lanes; ++i) order.push_back(IntImm::Int32(i));
  return Shuffle(pieces, order);
}
}  // namespace tvm
