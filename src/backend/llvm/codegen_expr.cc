// SPDX-License-Identifier: Apache-2.0
// Expressions: constants, arithmetic with a defined result for every input, conversions, vectors.
#include <llvm/IR/Intrinsics.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Target/TargetMachine.h>

#include <bit>
#include <cmath>

#include "backend/llvm/codegen.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"

namespace tvm::codegen {
using llvm::CmpInst;
using llvm::Instruction;
using llvm::Intrinsic::ID;
using Value = llvm::Value;

// ---- leaves -------------------------------------------------------------------------------------
Value* FunctionGen::Emit(const PrimExprObj* op) {
  Unsupported(
      "expected an expression that lowering leaves, got " + std::string(String(op->GetTypeKey())),
      op->span);
}
Value* FunctionGen::Emit(const VarObj* op) {
  auto it = vars_.find(op);
  if (it == vars_.end()) {
    TVM_FFI_THROW(ValueError) << "LLVM code generation: the variable " << View(op->name_hint)
                              << " is used but not defined in " << function_->getName().str();
  }
  return it->second;
}
Value* FunctionGen::Emit(const IntImmObj* op) {
  if (op->dtype.is_handle()) {
    return b_.CreateIntToPtr(b_.getInt64(op->value), gen_.ptr);
  }
  return llvm::ConstantInt::get(gen_.TypeOf(op->dtype), op->value, op->dtype.is_int());
}
Value* FunctionGen::Emit(const FloatImmObj* op) {
  return llvm::ConstantFP::get(gen_.TypeOf(op->dtype), op->value);
}
Value* FunctionGen::Emit(const StringImmObj* op) { return gen_.Text(View(op->value)); }
Value* FunctionGen::Emit(const LetObj* op) {
  Value* value = Gen(op->value);
  vars_[op->var.get()] = value;
  if (NonNegative(op->value)) nonnegative_vars_.insert(op->var.get());
  return Gen(op->body);
}

// ---- arithmetic ---------------------------------------------------------------------------------
Value* FunctionGen::Arithmetic(Instruction::BinaryOps integer, Instruction::BinaryOps real,
                               const BinaryOpFields* op) {
  Value *a = Gen(op->a), *b = Gen(op->b);
  if (op->dtype.is_float()) {
    Value* v = b_.CreateBinOp(real, a, b);
    if (op == reduction_) {
      // The order of a reduction is free, which is what vectorising it needs.
      if (auto* made = llvm::dyn_cast<llvm::Instruction>(v)) made->setHasAllowReassoc(true);
    }
    return v;
  }
  if (op->dtype.is_handle()) Unsupported("arithmetic on handles", op->span);
  bool index = op->dtype.is_index() && IsIndex(a) && IsIndex(b);
  if (!index) return b_.CreateBinOp(integer, a, b);
  bool swap = llvm::Instruction::isCommutative(integer) && b < a;
  return Once(integer, swap ? b : a, swap ? a : b, [&] {
    Value* v = b_.CreateBinOp(integer, a, b);
    if (auto* made = llvm::dyn_cast<llvm::BinaryOperator>(v); made && made != a && made != b)
      made->setHasNoSignedWrap(true);
    return MarkIndex(v, true);
  });
}
Value* FunctionGen::Emit(const AddObj* op) {
  return Arithmetic(Instruction::Add, Instruction::FAdd, op);
}
Value* FunctionGen::Emit(const SubObj* op) {
  return Arithmetic(Instruction::Sub, Instruction::FSub, op);
}
Value* FunctionGen::Emit(const MulObj* op) {
  return Arithmetic(Instruction::Mul, Instruction::FMul, op);
}

bool FunctionGen::NonNegative(const PrimExpr& e) const {
  if (!e.dtype().is_index()) return e.dtype().is_uint();
  if (auto* c = e.as<IntImmObj>()) return c->value >= 0;
  if (auto* v = e.as<VarObj>()) return nonnegative_vars_.count(v);
  auto both = [&](const BinaryOpFields* op) { return NonNegative(op->a) && NonNegative(op->b); };
  if (auto* n = e.as<AddObj>()) return both(n);
  if (auto* n = e.as<MulObj>()) return both(n);
  if (auto* n = e.as<MinObj>()) return both(n);
  if (auto* n = e.as<FloorDivObj>()) return both(n);
  if (auto* n = e.as<DivObj>()) return both(n);
  if (auto* n = e.as<MaxObj>()) return NonNegative(n->a) || NonNegative(n->b);
  if (auto* n = e.as<FloorModObj>()) return NonNegative(n->b);
  if (auto* n = e.as<ModObj>()) return NonNegative(n->a);
  if (auto* n = e.as<CastObj>())
    return n->value.dtype().bits() <= n->dtype.bits() && n->value.dtype().is_index() &&
           NonNegative(n->value);
  return false;
}

/// The remainder with the sign of `a`. A quotient that is far from the precision of its type is
/// right but for being rounded up to the next number, and one multiply-add has no rounded digits;
/// what is left for the C library is large quotients, infinities and NaN.
Value* FunctionGen::TruncatedRemainder(Value* a, Value* b) {
  llvm::Type *type = a->getType(), *scalar = type->getScalarType();
  const llvm::Triple& triple = gen_.machine.getTargetTriple();
  bool has_fma = triple.isAArch64() ||
                 (triple.isX86() && gen_.machine.getMCSubtargetInfo()->checkFeatures("+fma"));
  if (!has_fma || !(scalar->isFloatTy() || scalar->isDoubleTy())) return b_.CreateFRem(a, b);
  auto size = [&](Value* v) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v); };
  auto signed_as_a = [&](Value* v) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, v, a);
  };
  Value* q = b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, b_.CreateFDiv(a, b));
  Value* r = b_.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {b_.CreateFNeg(q), b, a});
  Value* is_beyond = b_.CreateFCmpUNE(signed_as_a(r), r);
  r = signed_as_a(b_.CreateSelect(is_beyond, b_.CreateFAdd(r, signed_as_a(b)), r));
  double most = scalar->isFloatTy() ? 0x1p22 : 0x1p51;
  Value* is_easy = b_.CreateAnd(b_.CreateFCmpOLT(size(q), llvm::ConstantFP::get(type, most)),
                                b_.CreateFCmpOLT(size(b), llvm::ConstantFP::getInfinity(type)));
  auto *from = b_.GetInsertBlock(), *rare = Block("remainder.rare"), *end = Block("remainder.end");
  if (type->isVectorTy()) is_easy = b_.CreateAndReduce(is_easy);
  Branch(is_easy, true, end, rare);
  b_.SetInsertPoint(rare);
  Value* exact = b_.CreateFRem(a, b);
  b_.CreateBr(end);
  b_.SetInsertPoint(end);
  auto* phi = b_.CreatePHI(type, 2);
  phi->addIncoming(r, from);
  phi->addIncoming(exact, rare);
  return phi;
}
Value* FunctionGen::FloatRemainder(Value* a, Value* b, bool floor) {
  Value* r = TruncatedRemainder(a, b);
  if (!floor) return r;
  // The remainder takes the sign of the divisor; a zero one too.
  Value* zero = llvm::Constant::getNullValue(a->getType());
  Value* differ = b_.CreateXor(b_.CreateFCmpOLT(r, zero), b_.CreateFCmpOLT(b, zero));
  Value* moved = b_.CreateSelect(differ, b_.CreateFAdd(r, b), r);
  Value* is_zero = b_.CreateFCmpOEQ(r, zero);
  return b_.CreateSelect(is_zero, b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, zero, b),
                         moved);
}

Value* FunctionGen::Divide(const BinaryOpFields* op, bool floor, bool remainder) {
  Value *a = Gen(op->a), *b = Gen(op->b);
  DataType t = op->dtype;
  if (!t.is_index() || !IsIndex(a) || !IsIndex(b)) return Divide(op, a, b, floor, remainder);
  unsigned kind = remainder ? llvm::Instruction::SRem : llvm::Instruction::SDiv;
  unsigned how = floor ? llvm::Instruction::OtherOpsEnd : 0;  // no instruction's number
  return Once(kind + how, a, b, [&] { return Divide(op, a, b, floor, remainder); });
}
Value* FunctionGen::Divide(const BinaryOpFields* op, Value* a, Value* b, bool floor,
                           bool remainder) {
  DataType t = op->dtype;
  if (t.is_float()) {
    if (remainder) return FloatRemainder(a, b, floor);
    Value* q = b_.CreateFDiv(a, b);
    return floor ? b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, q) : q;
  }
  if (!t.is_integer()) Unsupported("expected numbers to divide, got " + t.str(), op->span);
  bool index = t.is_index() && IsIndex(a) && IsIndex(b);
  bool is_signed = t.is_int();
  bool positive = is_signed && NonNegative(op->a) && NonNegative(op->b);
  Value *zero = Lane(t, 0), *one = Lane(t, 1), *minus = Lane(t, ~uint64_t{0});

  auto* constant = llvm::dyn_cast<llvm::Constant>(b);
  auto* divisor =
      constant ? llvm::dyn_cast_or_null<llvm::ConstantInt>(
                     constant->getType()->isVectorTy() ? constant->getSplatValue() : constant)
               : nullptr;
  if (divisor && divisor->isZero()) return zero;
  if (divisor && is_signed && divisor->isMinusOne()) return remainder ? zero : b_.CreateNeg(a);
  if (divisor && is_signed && floor && divisor->getValue().isPowerOf2() && !divisor->isNegative()) {
    if (remainder) return MarkIndex(b_.CreateAnd(a, b_.CreateSub(b, one)), index);
    return MarkIndex(b_.CreateAShr(a, Lane(t, divisor->getValue().logBase2())), index);
  }
  Value *is_zero = nullptr, *is_minus = nullptr, *safe = b;
  if (!divisor) {
    is_zero = b_.CreateICmpEQ(b, zero);
    Value* special = is_zero;
    // The smallest number divided by -1 would trap.
    if (is_signed && !positive) {
      is_minus = b_.CreateICmpEQ(b, minus);
      special = b_.CreateOr(is_zero, is_minus);
    }
    safe = b_.CreateSelect(special, one, b);
  }
  Value* result;
  if (!is_signed || positive) {
    result = remainder ? b_.CreateURem(a, safe) : b_.CreateUDiv(a, safe);
  } else if (!floor) {
    result = remainder ? b_.CreateSRem(a, safe) : b_.CreateSDiv(a, safe);
  } else {
    Value* r = b_.CreateSRem(a, safe);
    Value* differ =
        b_.CreateAnd(b_.CreateICmpNE(r, zero), b_.CreateICmpSLT(b_.CreateXor(r, safe), zero));
    if (remainder) {
      result = b_.CreateSelect(differ, b_.CreateAdd(r, safe), r);
    } else {
      result = b_.CreateAdd(b_.CreateSDiv(a, safe), b_.CreateSExt(differ, a->getType()));
    }
  }
  if (!divisor) {
    if (remainder) {
      // x mod 1 is 0 already, which is right for 0 and -1 as well.
    } else {
      if (is_minus) result = b_.CreateSelect(is_minus, b_.CreateNeg(a), result);
      result = b_.CreateSelect(is_zero, zero, result);
    }
  }
  return MarkIndex(result, index);
}
Value* FunctionGen::Emit(const DivObj* op) { return Divide(op, false, false); }
Value* FunctionGen::Emit(const ModObj* op) { return Divide(op, false, true); }
Value* FunctionGen::Emit(const FloorDivObj* op) { return Divide(op, true, false); }
Value* FunctionGen::Emit(const FloorModObj* op) { return Divide(op, true, true); }

Value* FunctionGen::MinMax(const BinaryOpFields* op, bool max) {
  Value *a = Gen(op->a), *b = Gen(op->b);
  if (op->dtype.is_float()) {
    if (op == reduction_) {
      // LLVM vectorises reductions in this form; which of equal zeros comes out is free as well.
      llvm::FastMathFlags flags = b_.getFastMathFlags();
      flags.setNoSignedZeros(true);
      return b_.CreateBinaryIntrinsic(max ? llvm::Intrinsic::maximum : llvm::Intrinsic::minimum, a,
                                      b, flags);
    }
    // b when it wins or is NaN, else a: for a constant b this is one instruction of x86, whose min
    // and max give their second operand when the comparison does not hold.
    Value* wins = max ? b_.CreateFCmpOGT(b, a) : b_.CreateFCmpOLT(b, a);
    Value* best = b_.CreateSelect(wins, b, a);
    Value* is_nan = b_.CreateFCmpUNO(b, b);
    auto* known = llvm::dyn_cast<llvm::Constant>(is_nan);
    return known && known->isNullValue() ? best : b_.CreateSelect(is_nan, b, best);
  }
  bool index = op->dtype.is_index() && IsIndex(a) && IsIndex(b);
  if (op->dtype.is_bool()) return max ? b_.CreateOr(a, b) : b_.CreateAnd(a, b);
  ID id = op->dtype.is_int() ? (max ? llvm::Intrinsic::smax : llvm::Intrinsic::smin)
                             : (max ? llvm::Intrinsic::umax : llvm::Intrinsic::umin);
  return MarkIndex(b_.CreateBinaryIntrinsic(id, a, b), index);
}
Value* FunctionGen::Emit(const MinObj* op) { return MinMax(op, false); }
Value* FunctionGen::Emit(const MaxObj* op) { return MinMax(op, true); }

// ---- comparison and logic -----------------------------------------------------------------------
Value* FunctionGen::Compare(CmpInst::Predicate s, CmpInst::Predicate u, CmpInst::Predicate f,
                            const BinaryOpFields* op) {
  Value *a = Gen(op->a), *b = Gen(op->b);
  DataType t = op->a.dtype();
  if (t.is_float()) return b_.CreateFCmp(f, a, b);
  return b_.CreateICmp(t.is_int() ? s : u, a, b);
}
#define COMPARE(Name, s, u, f)                              \
  Value* FunctionGen::Emit(const Name##Obj* op) {           \
    return Compare(CmpInst::s, CmpInst::u, CmpInst::f, op); \
  }
COMPARE(EQ, ICMP_EQ, ICMP_EQ, FCMP_OEQ)
COMPARE(NE, ICMP_NE, ICMP_NE, FCMP_UNE)
COMPARE(LT, ICMP_SLT, ICMP_ULT, FCMP_OLT)
COMPARE(LE, ICMP_SLE, ICMP_ULE, FCMP_OLE)
COMPARE(GT, ICMP_SGT, ICMP_UGT, FCMP_OGT)
COMPARE(GE, ICMP_SGE, ICMP_UGE, FCMP_OGE)
#undef COMPARE
namespace {
/// Whether evaluating has no effect and cannot fail, so that it may be done needlessly.
struct Speculatable : Visitor<Speculatable, BufferLoadObj, CallObj> {
  bool result = true;
  void Visit(const BufferLoadObj*) { result = false; }
  void Visit(const CallObj* op) {
    if (EffectOf(op->op) > CallEffectKind::kPure) result = false;
    if (op->op.as<OpObj>() && op->Is(builtin::call_pure_extern())) result = false;
    if (result) VisitChildren(op, *this);
  }
};
/// Whether an expression costs enough to be worth a branch around it.
bool IsLong(const PrimExpr& e) {
  constexpr int kWorthABranch = 40;
  int nodes = 0;
  PostOrderVisit(e, [&](const ObjectRef&) { ++nodes; });
  return nodes > kWorthABranch;
}
bool CanSpeculate(const PrimExpr& e) {
  Speculatable s;
  s(e);
  return s.result;
}
}  // namespace
// The second operand of scalar logic is evaluated only when it decides: it may be a load that the
// first one guards.
Value* FunctionGen::Logic(const BinaryOpFields* op, bool conjunction) {
  Value* a = Gen(op->a);
  if (op->dtype.is_vector() || CanSpeculate(op->b)) {
    Value* b = Gen(op->b);
    return conjunction ? b_.CreateAnd(a, b) : b_.CreateOr(a, b);
  }
  auto *from = b_.GetInsertBlock(), *more = Block("logic.rhs"), *end = Block("logic.end");
  b_.CreateCondBr(a, conjunction ? more : end, conjunction ? end : more);
  b_.SetInsertPoint(more);
  Value* b = Gen(op->b);
  auto* last = b_.GetInsertBlock();
  b_.CreateBr(end);
  b_.SetInsertPoint(end);
  auto* phi = b_.CreatePHI(gen_.i1, 2);
  phi->addIncoming(b_.getInt1(!conjunction), from);
  phi->addIncoming(b, last);
  return phi;
}
Value* FunctionGen::Emit(const AndObj* op) { return Logic(op, true); }
Value* FunctionGen::Emit(const OrObj* op) { return Logic(op, false); }
Value* FunctionGen::Emit(const NotObj* op) { return b_.CreateNot(Gen(op->a)); }
Value* FunctionGen::Emit(const SelectObj* op) {
  Value *c = Gen(op->condition), *t = Gen(op->true_value), *f = Gen(op->false_value);
  return MarkIndex(b_.CreateSelect(c, t, f), op->dtype.is_index() && IsIndex(t) && IsIndex(f));
}
Value* FunctionGen::IfThenElseValue(const CallObj* op) {
  bool likely = false;
  Value* cond = CondOf(op->args[0], &likely);
  if (cond->getType()->isVectorTy() && likely) {
    // Most vectors have no lane that needs the other value.
    Value* t = Gen(op->args[1]);
    auto *from = b_.GetInsertBlock(), *rare = Block("if.rare"), *end = Block("if.end");
    Branch(b_.CreateAndReduce(cond), likely, end, rare);
    b_.SetInsertPoint(rare);
    Value* f = Gen(op->args[2]);
    Value* mixed = b_.CreateSelect(cond, t, f);
    rare = b_.GetInsertBlock();
    b_.CreateBr(end);
    b_.SetInsertPoint(end);
    auto* phi = b_.CreatePHI(t->getType(), 2);
    phi->addIncoming(t, from);
    phi->addIncoming(mixed, rare);
    return phi;
  }
  bool is_rare = likely && gen_.options.opt_level >= 2 && IsLong(op->args[2]);
  bool cheap = !is_rare && CanSpeculate(op->args[1]) && CanSpeculate(op->args[2]);
  if (cond->getType()->isVectorTy() || cheap) {
    Value* t = Gen(op->args[1]);
    Value* f = Gen(op->args[2]);
    return MarkIndex(b_.CreateSelect(cond, t, f), op->dtype.is_index() && IsIndex(t) && IsIndex(f));
  }
  auto *yes = Block("if.true"), *no = Block("if.false"), *end = Block("if.end");
  Branch(cond, likely, yes, no);
  b_.SetInsertPoint(yes);
  Value* t = Gen(op->args[1]);
  yes = b_.GetInsertBlock();
  b_.CreateBr(end);
  b_.SetInsertPoint(no);
  Value* f = is_rare && CanSpeculate(op->args[2]) ? RareValue(op->args[2]) : Gen(op->args[2]);
  no = b_.GetInsertBlock();
  b_.CreateBr(end);
  b_.SetInsertPoint(end);
  auto* phi = b_.CreatePHI(t->getType(), 2);
  phi->addIncoming(t, yes);
  phi->addIncoming(f, no);
  return phi;
}

// ---- conversions --------------------------------------------------------------------------------
Value* FunctionGen::FloatToInt(Value* v, DataType from, DataType to) {
  llvm::Type* type = gen_.TypeOf(to);
  if (!gen_.machine.getTargetTriple().isX86()) {
    ID id = to.is_int() ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return b_.CreateIntrinsic(id, {type, v->getType()}, {v});
  }
  // x86 has no saturating instruction, and LLVM takes vectors apart for the intrinsic: limits by
  // minimum and maximum, which are instructions, and fix what they cannot express.
  if (from.bits() == 16) {
    from = from.with_bits(32);
    v = b_.CreateFPExt(v, gen_.TypeOf(from));
  }
  int magnitude = to.bits() - to.is_int();
  bool exact = magnitude <= (from.bits() == 32 ? 24 : 53);  // is the largest integer a float?
  auto number = [&](double x) { return llvm::ConstantFP::get(v->getType(), x); };
  double above = std::ldexp(1.0, magnitude);
  double most = exact               ? above - 1
                : from.bits() == 32 ? std::nextafter(static_cast<float>(above), 0.0f)
                                    : std::nextafter(above, 0.0);
  Value *low = number(to.is_int() ? -above : 0), *high = number(most);
  Value* real = b_.CreateSelect(b_.CreateFCmpUNO(v, v), number(0), v);
  Value* limited = b_.CreateSelect(b_.CreateFCmpOGT(real, low), real, low);
  limited = b_.CreateSelect(b_.CreateFCmpOLT(limited, high), limited, high);
  // Narrow results go through int32, for which there are vector instructions.
  DataType wide = to.bits() < 32 ? DataType::Int(32, to.raw_lanes()) : to;
  Value* i = wide.is_int() ? b_.CreateFPToSI(limited, gen_.TypeOf(wide))
                           : b_.CreateFPToUI(limited, gen_.TypeOf(wide));
  if (to.bits() < 32) i = b_.CreateTrunc(i, type);
  if (exact) return i;
  uint64_t largest =
      to.is_uint() && to.bits() == 64 ? ~uint64_t{0} : (uint64_t{1} << magnitude) - 1;
  return b_.CreateSelect(b_.CreateFCmpOGE(v, number(above)), Lane(to, largest), i);
}
Value* FunctionGen::Convert(Value* v, DataType from, DataType to) {
  if (from == to) return v;
  if (from.is_scalar() && to.is_vector()) return Splat(Convert(v, from, to.element()), to);
  llvm::Type* type = gen_.TypeOf(to);
  if (from.is_handle() || to.is_handle()) {
    if (from.is_handle() && to.is_handle()) return v;
    return to.is_handle() ? b_.CreateIntToPtr(v, type) : b_.CreatePtrToInt(v, type);
  }
  if (to.is_bool()) {
    Value* zero = llvm::Constant::getNullValue(v->getType());
    return from.is_float() ? b_.CreateFCmpUNE(v, zero) : b_.CreateICmpNE(v, zero);
  }
  if (from.is_float() && to.is_float()) return b_.CreateFPCast(v, type);
  if (from.is_float()) return FloatToInt(v, from, to);
  bool is_signed = from.is_int();
  if (to.is_float()) return is_signed ? b_.CreateSIToFP(v, type) : b_.CreateUIToFP(v, type);
  return b_.CreateIntCast(v, type, is_signed);
}
Value* FunctionGen::Emit(const CastObj* op) {
  Value* v = Gen(op->value);
  bool index = op->dtype.is_index() && op->value.dtype().is_index() && IsIndex(v);
  return MarkIndex(Convert(v, op->value.dtype(), op->dtype), index);
}
Value* FunctionGen::Reinterpret(const CallObj* op) {
  DataType from = op->args[0].dtype(), to = op->dtype;
  Value* v = Gen(op->args[0]);
  if (from.is_handle() || to.is_handle()) {
    return Convert(v, from, to);
  }
  return FromMemory(b_.CreateBitCast(ToMemory(v, from), gen_.MemoryType(to)), to);
}

Value* FunctionGen::Shift(const CallObj* op, bool left) {
  DataType t = op->dtype;
  Value *a = Gen(op->args[0]), *s = Gen(op->args[1]);
  Value* inside = b_.CreateICmpULT(s, Lane(t, t.bits()));
  if (!left && t.is_int()) {
    return b_.CreateAShr(a, b_.CreateSelect(inside, s, Lane(t, t.bits() - 1)));
  }
  return b_.CreateSelect(inside, left ? b_.CreateShl(a, s) : b_.CreateLShr(a, s), Lane(t, 0));
}

// ---- vectors ------------------------------------------------------------------------------------
Value* FunctionGen::Splat(Value* scalar, DataType type) {
  return b_.CreateVectorSplat(llvm::ElementCount::get(type.lanes(), type.is_scalable()), scalar);
}
Value* FunctionGen::Emit(const BroadcastObj* op) { return Splat(Gen(op->value), op->dtype); }
Value* FunctionGen::Emit(const RampObj* op) {
  Value *base = Gen(op->base), *stride = Gen(op->stride);
  Value* steps = b_.CreateStepVector(gen_.TypeOf(op->dtype));
  return b_.CreateAdd(Splat(base, op->dtype), b_.CreateMul(steps, Splat(stride, op->dtype)));
}
Value* FunctionGen::Emit(const ShuffleObj* op) {
  std::vector<int> mask;
  for (const PrimExpr& i : op->indices) {
    auto* c = i.as<IntImmObj>();
    if (!c) Unsupported("expected constant indices of a shuffle", op->span);
    mask.push_back(static_cast<int>(c->value));
  }
  // All elements one after the other; LLVM sees through what is not used.
  std::vector<Value*> parts;
  std::vector<int> sizes;
  for (const PrimExpr& v : op->vectors) {
    parts.push_back(Gen(v));
    sizes.push_back(v.dtype().lanes());
  }
  auto element = [&](int index) -> Value* {
    size_t part = 0;
    while (part < parts.size() && index >= sizes[part]) index -= sizes[part++];
    if (part == parts.size() || index < 0) Unsupported("a shuffle index out of range", op->span);
    return sizes[part] == 1 && !parts[part]->getType()->isVectorTy()
               ? parts[part]
               : b_.CreateExtractElement(parts[part], index);
  };
  if (op->dtype.is_scalar()) return element(mask[0]);
  if (parts.size() <= 2 &&
      std::all_of(sizes.begin(), sizes.end(), [&](int s) { return s == sizes[0] && s > 1; })) {
    Value* second = parts.size() == 2 ? parts[1] : llvm::PoisonValue::get(parts[0]->getType());
    return b_.CreateShuffleVector(parts[0], second, mask);
  }
  Value* result = llvm::PoisonValue::get(gen_.TypeOf(op->dtype));
  for (size_t i = 0; i < mask.size(); ++i) {
    result = b_.CreateInsertElement(result, element(mask[i]), i);
  }
  return result;
}

}  // namespace tvm::codegen
