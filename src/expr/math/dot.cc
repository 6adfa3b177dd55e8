// SPDX-License-Identifier: Apache-2.0
// Dot products in words: one row for each instruction, and as arithmetic.
#include "tvm/expr/dot.h"

#include <algorithm>

namespace tvm {
using namespace tir;
namespace {
struct Instruction {
  Op op;
  const char* operands;  // "us": bytes of the first word are unsigned, those of the second signed
  const char* feature;   // of the processor
  int lanes;             // words
  const char* name;      // of LLVM's intrinsic
  bool adds;             // to its first argument
};
/// Of those for the same operands the wider ones first.
const std::vector<Instruction>& Instructions() {
  using namespace builtin;
  static const std::vector<Instruction> rows = {
      {dot_bytes(), "us", "avx512vnni", 16, "llvm.x86.avx512.vpdpbusd.512", true},
      {dot_bytes(), "us", "avx512vnni", 8, "llvm.x86.avx512.vpdpbusd.256", true},
      {dot_bytes(), "us", "avx512vnni", 4, "llvm.x86.avx512.vpdpbusd.128", true},
      {dot_bytes(), "us", "avxvnni", 8, "llvm.x86.avx512.vpdpbusd.256", true},
      {dot_bytes(), "us", "avxvnni", 4, "llvm.x86.avx512.vpdpbusd.128", true},
      {dot_bytes(), "ss", "avxvnniint8", 8, "llvm.x86.avx2.vpdpbssd.256", true},
      {dot_bytes(), "ss", "avxvnniint8", 4, "llvm.x86.avx2.vpdpbssd.128", true},
      {dot_bytes(), "uu", "avxvnniint8", 8, "llvm.x86.avx2.vpdpbuud.256", true},
      {dot_bytes(), "uu", "avxvnniint8", 4, "llvm.x86.avx2.vpdpbuud.128", true},
      {dot_bytes(), "ss", "dotprod", 4, "llvm.aarch64.neon.sdot", true},
      {dot_bytes(), "uu", "dotprod", 4, "llvm.aarch64.neon.udot", true},
      {dot_bytes(), "us", "i8mm", 4, "llvm.aarch64.neon.usdot", true},
      {dot_shorts(), "ss", "avx512bw", 16, "llvm.x86.avx512.pmaddw.d.512", false},
      {dot_shorts(), "ss", "avx2", 8, "llvm.x86.avx2.pmadd.wd", false},
      {dot_shorts(), "ss", "sse2", 4, "llvm.x86.sse2.pmadd.wd", false},
      {dot_bfloat16(), "uu", "avx512bf16", 16, "llvm.x86.avx512bf16.dpbf16ps.512", true},
      {dot_bfloat16(), "uu", "avx512bf16", 8, "llvm.x86.avx512bf16.dpbf16ps.256", true},
      {dot_bfloat16(), "uu", "avx512bf16", 4, "llvm.x86.avx512bf16.dpbf16ps.128", true},
  };
  return rows;
}
bool Fits(const Instruction& row, const RelaxExpr& op, DataType a, DataType b) {
  auto fits = [](char kind, DataType t) { return t.is_uint() == (kind == 'u'); };
  return row.op.same_as(op) && fits(row.operands[0], a) && fits(row.operands[1], b);
}
/// The rows that a target has. Asking for features takes long; functions of one module have one
/// target.
const std::vector<const Instruction*>& Available(const Target& target) {
  static thread_local std::pair<Target, std::vector<const Instruction*>> last;
  if (last.first.defined() && last.first.same_as(target)) return last.second;
  last = {target, {}};
  if (!target.defined() || target->kind->name != "llvm") return last.second;
  // Who turns AVX-512 off does not name all of its parts.
  auto has = [&](const Instruction& row) {
    bool is_avx512 = std::string_view(row.feature).substr(0, 6) == "avx512";
    const char* base = row.lanes == 16 ? "avx512f" : "avx512vl";
    return target->HasFeature(row.feature) &&
           (!is_avx512 || (target->HasFeature("avx512f") && target->HasFeature(base)));
  };
  for (const Instruction& row : Instructions()) {
    if (has(row)) last.second.push_back(&row);
  }
  return last.second;
}
/// The instruction for vectors of `lanes` words: the widest one that they fill, or else the
/// narrowest.
const Instruction* Choose(const Target& target, const RelaxExpr& op, DataType a, DataType b,
                          int lanes) {
  const Instruction* best = nullptr;
  for (const Instruction* row : Available(target)) {
    if (!Fits(*row, op, a, b)) continue;
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
bool HasDot(const Target& target, const Op& op, DataType a, DataType b) {
  return Choose(target, op, a, b, 1) || Choose(target, op, b, a, 1);
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
  const Instruction* row = Choose(target, call->op, a.dtype(), b.dtype(), lanes);
  if (!row) {
    row = Choose(target, call->op, b.dtype(), a.dtype(), lanes);
    std::swap(a, b);
  }
  if (!row) {
    PrimExpr plain = Plain(call);
    return sum.has_value() ? sum.value() + plain : plain;
  }
  DataType t = call->dtype.with_lanes(row->lanes);
  auto words = [&](const PrimExpr& x, int begin) {
    PrimExpr piece = Lanes(x, begin, row->lanes);
    bool is_bytes = row->op.same_as(builtin::dot_bytes());
    return is_bytes ? reinterpret(DataType::Int(8, 4 * row->lanes), piece) : piece;
  };
  Array<PrimExpr> pieces, order;
  for (int begin = 0; begin < lanes; begin += row->lanes) {
    Array<PrimExpr> args = {StringImm(row->name)};
    PrimExpr before = sum.has_value() ? Lanes(sum.value(), begin, row->lanes) : MakeZero(t);
    if (row->adds) args.push_back(before);
    args.push_back(words(a, begin)), args.push_back(words(b, begin));
    PrimExpr piece = Call(t, builtin::call_llvm_pure_intrin(), args);
    pieces.push_back(row->adds || !sum.has_value() ? piece : before + piece);
  }
  if (lanes == row->lanes) return pieces[0];
  for (int i = 0; i < lanes; ++i) order.push_back(IntImm::Int32(i));
  return Shuffle(pieces, order);
}
}  // namespace tvm
