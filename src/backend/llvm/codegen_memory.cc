// SPDX-License-Identifier: Apache-2.0
// Loads and stores: scalars, contiguous vectors, gathers, masks, and types packed below a byte.
#include <algorithm>
#include <bit>
#include <numeric>

#include "backend/llvm/codegen.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"

namespace tvm::codegen {
using Value = llvm::Value;

namespace {
/// A number that divides the value of an index for sure.
int64_t FactorOf(const PrimExpr& e) {
  constexpr int64_t kAny = 1 << 20;  // of zero
  if (auto* c = e.as<IntImmObj>()) return c->value == 0 ? kAny : std::gcd(c->value, kAny);
  if (auto* n = e.as<MulObj>()) return std::min(kAny, FactorOf(n->a) * FactorOf(n->b));
  if (auto* n = e.as<AddObj>()) return std::gcd(FactorOf(n->a), FactorOf(n->b));
  if (auto* n = e.as<SubObj>()) return std::gcd(FactorOf(n->a), FactorOf(n->b));
  if (auto* n = e.as<CastObj>(); n && n->dtype.is_index()) return FactorOf(n->value);
  return 1;
}
/// Ramp(base, 1, lanes)?
const RampObj* Contiguous(const PrimExpr& index) {
  auto* ramp = index.as<RampObj>();
  auto* stride = ramp ? ramp->stride.as<IntImmObj>() : nullptr;
  return stride && stride->value == 1 ? ramp : nullptr;
}
bool IsPacked(DataType t) { return t.is_integer() && t.bits() < 8; }
PrimExpr OnlyIndex(const Buffer& buffer, const Array<PrimExpr>& indices,
                   const Optional<Span>& span) {
  if (indices.size() != 1) {
    Unsupported("expected FlattenBuffer to leave one index of " + std::string(buffer->name) +
                    ", got " + std::to_string(indices.size()),
                span);
  }
  return indices[0];
}
}  // namespace

Value* FunctionGen::ToMemory(Value* v, DataType type) {
  return type.is_bool() ? b_.CreateZExt(v, gen_.MemoryType(type)) : v;
}
Value* FunctionGen::FromMemory(Value* v, DataType type) {
  return type.is_bool() ? b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType())) : v;
}
template <class I>
I* FunctionGen::Annotate(I* access, const Buffer& buffer) {
  if constexpr (requires { access->setVolatile(true); }) {
    if (volatile_vars_.count(buffer->data.get())) access->setVolatile(true);
  }
  return access;
}

Value* FunctionGen::ElementPointer(const Buffer& buffer, Value* index) {
  Value* base = Gen(buffer->data);
  llvm::Type* element = gen_.MemoryType(buffer->dtype);
  if (gen_.layout.getTypeAllocSize(element) != gen_.layout.getTypeStoreSize(element)) {
    Unsupported("expected elements of " + std::string(buffer->name) +
                " to lie side by side as in a tensor, got " + buffer->dtype.str() +
                ", which has gaps in memory; cast to a type of 8, 16, 32 or 64 bits");
  }
  // Offsets count in pointers' size: int32 indices are extended, which nsw lets LLVM move about.
  auto wide = [&](Value* v) {
    llvm::Type* t = v->getType()->getWithNewType(gen_.SizeType());
    if (v->getType()->getScalarSizeInBits() >= gen_.SizeType()->getBitWidth()) return v;
    return Once(llvm::Instruction::SExt, v, nullptr, [&] { return b_.CreateSExt(v, t); });
  };
  auto* offset = buffer->elem_offset.as<IntImmObj>();
  if (!offset || offset->value != 0) {
    base = b_.CreateInBoundsGEP(element, base, wide(Gen(buffer->elem_offset)));
  }
  return b_.CreateInBoundsGEP(element, base, wide(index));
}
Value* FunctionGen::ElementPointer(const Buffer& buffer, const PrimExpr& index) {
  auto pointer = [&](Value* at) {
    return Once(llvm::Instruction::GetElementPtr, buffer.get(), at,
                [&] { return ElementPointer(buffer, at); });
  };
  auto* sum = index.as<AddObj>();
  auto* constant = sum ? sum->b.as<IntImmObj>() : nullptr;
  // What is between an element and one before it is inside of the buffer as they are.
  bool is_inside = constant && constant->value > 0 && NonNegative(sum->a);
  Value* before = Gen(is_inside ? sum->a : index);
  if (!is_inside) return pointer(before);
  if (!IsIndex(before)) return pointer(Gen(index));
  int64_t element = gen_.layout.getTypeAllocSize(gen_.MemoryType(buffer->dtype)).getFixedValue();
  return b_.CreateGEP(gen_.i8, pointer(before), b_.getInt64(constant->value * element), "",
                      llvm::GEPNoWrapFlags::inBounds() | llvm::GEPNoWrapFlags::noUnsignedWrap());
}
llvm::Align FunctionGen::AlignOf(const Buffer& buffer, const PrimExpr& index, int lanes) const {
  int64_t element =
      gen_.layout.getTypeStoreSize(gen_.MemoryType(buffer->dtype.element())).getFixedValue();
  auto it = pointer_align_.find(buffer->data.get());
  int64_t known = it == pointer_align_.end() ? element : it->second;
  auto* offset = buffer->elem_offset.as<IntImmObj>();
  int64_t factor = FactorOf(index) * buffer->dtype.lanes();
  if (!offset || offset->value != 0)
    factor = std::gcd(factor, std::max<int64_t>(buffer->offset_factor, 1));
  // Natural alignment of one element always holds.
  return llvm::Align(std::max(std::gcd(known, factor * element), element & -element));
}

// ---- loads --------------------------------------------------------------------------------------
Value* FunctionGen::Emit(const BufferLoadObj* op) {
  PrimExpr index = OnlyIndex(op->buffer, op->indices, op->span);
  if (IsPacked(op->buffer->dtype)) return PackedLoad(op);
  if (index.dtype().is_vector()) return LoadVector(op);
  llvm::Type* type = gen_.MemoryType(op->dtype);
  Value* p = ElementPointer(op->buffer, index);
  llvm::Align align = AlignOf(op->buffer, index, op->dtype.lanes());
  if (op->predicate) {
    Value* mask = Gen(*op->predicate);
    if (!mask->getType()->isVectorTy()) Unsupported("a predicate on a scalar load", op->span);
    return FromMemory(b_.CreateMaskedLoad(type, p, align, mask, llvm::Constant::getNullValue(type)),
                      op->dtype);
  }
  return FromMemory(Annotate(b_.CreateAlignedLoad(type, p, align), op->buffer), op->dtype);
}
Value* FunctionGen::LoadVector(const BufferLoadObj* op) {
  PrimExpr index = op->indices[0];
  llvm::Type* type = gen_.MemoryType(op->dtype);
  Value* zeros = llvm::Constant::getNullValue(type);
  Value* mask = op->predicate ? Gen(*op->predicate) : nullptr;
  if (auto* ramp = Contiguous(index)) {
    Value* p = ElementPointer(op->buffer, ramp->base);
    llvm::Align align = AlignOf(op->buffer, ramp->base, op->dtype.lanes());
    if (mask) return FromMemory(b_.CreateMaskedLoad(type, p, align, mask, zeros), op->dtype);
    return FromMemory(Annotate(b_.CreateAlignedLoad(type, p, align), op->buffer), op->dtype);
  }
  if (op->buffer->dtype.is_vector()) Unsupported("a gather of vectors", op->span);
  if (auto* all = index.as<BroadcastObj>(); all && !mask) {
    Value* p = ElementPointer(op->buffer, all->value);
    DataType one = op->dtype.element();
    auto* load =
        Annotate(b_.CreateAlignedLoad(gen_.MemoryType(one), p, AlignOf(op->buffer, all->value, 1)),
                 op->buffer);
    return Splat(FromMemory(load, one), op->dtype);
  }
  // Backwards: one load, reversed. Small forward strides: the elements between belong to the
  // buffer.
  if (auto* ramp = index.as<RampObj>(); ramp && !mask && !op->dtype.is_scalable()) {
    auto* stride = ramp->stride.as<IntImmObj>();
    int lanes = op->dtype.lanes();
    if (stride && (stride->value == -1 || (stride->value >= 2 && stride->value <= 4))) {
      int step = static_cast<int>(stride->value), span = std::abs(step) * (lanes - 1) + 1;
      Value* base = Gen(ramp->base);
      if (step < 0) base = b_.CreateSub(base, llvm::ConstantInt::get(base->getType(), lanes - 1));
      auto* wide = llvm::FixedVectorType::get(type->getScalarType(), span);
      auto* load = Annotate(b_.CreateAlignedLoad(wide, ElementPointer(op->buffer, base),
                                                 AlignOf(op->buffer, IntImm::Int32(1), 1)),
                            op->buffer);
      std::vector<int> pick;
      for (int i = 0; i < lanes; ++i) pick.push_back(step < 0 ? lanes - 1 - i : i * step);
      return FromMemory(b_.CreateShuffleVector(load, pick), op->dtype);
    }
    // Other strides, element by element: faster than a gather, and elements of a buffer in
    // registers become shuffles.
    if (stride) {
      Value* base = Gen(ramp->base);
      Value* vector = llvm::PoisonValue::get(type);
      for (int i = 0; i < lanes; ++i) {
        Value* at = b_.CreateAdd(base, llvm::ConstantInt::get(base->getType(), i * stride->value));
        auto* load =
            Annotate(b_.CreateAlignedLoad(type->getScalarType(), ElementPointer(op->buffer, at),
                                          AlignOf(op->buffer, IntImm::Int32(1), 1)),
                     op->buffer);
        vector = b_.CreateInsertElement(vector, load, i);
      }
      return FromMemory(vector, op->dtype);
    }
  }
  if (Value* few = mask ? nullptr : LoadNear(op, type)) return FromMemory(few, op->dtype);
  Value* pointers = ElementPointer(op->buffer, index);
  return FromMemory(
      b_.CreateMaskedGather(type, pointers, AlignOf(op->buffer, IntImm::Int32(1), 1), mask, zeros),
      op->dtype);
}

Value* FunctionGen::LoadNear(const BufferLoadObj* op, llvm::Type* type) {
  auto* sum = op->indices[0].as<AddObj>();
  auto* place = sum ? sum->a.as<BroadcastObj>() : nullptr;
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  if (!vector) return nullptr;
  auto* distances = llvm::dyn_cast<llvm::Constant>(Gen(place ? sum->b : op->indices[0]));
  std::vector<int64_t> at;
  for (unsigned i = 0; distances && i < vector->getNumElements(); ++i) {
    auto* lane = llvm::dyn_cast_or_null<llvm::ConstantInt>(distances->getAggregateElement(i));
    if (!lane) return nullptr;
    at.push_back(lane->getSExtValue());
  }
  if (at.empty()) return nullptr;
  constexpr int64_t kMostSpan = 4;  // vectors
  auto [low, high] = std::minmax_element(at.begin(), at.end());
  int64_t first = *low, span = *high - first + 1;
  if (span > kMostSpan * static_cast<int64_t>(at.size())) return nullptr;
  Value* base = llvm::ConstantInt::getSigned(distances->getType()->getScalarType(), first);
  if (place) base = b_.CreateAdd(Gen(place->value), base);
  auto* wide = llvm::FixedVectorType::get(vector->getElementType(), static_cast<unsigned>(span));
  auto* load = Annotate(b_.CreateAlignedLoad(wide, ElementPointer(op->buffer, base),
                                             AlignOf(op->buffer, IntImm::Int32(1), 1)),
                        op->buffer);
  std::vector<int> pick;
  for (int64_t i : at) pick.push_back(static_cast<int>(i - first));
  return b_.CreateShuffleVector(load, pick);
}

// ---- reductions ----
bool FunctionGen::IsReduction(const BufferStoreObj* op, const PrimExpr& index) const {
  const Object* n = op->value.get();
  DataType t = op->value.dtype();
  if (loops_.empty() || !loops_.back().var || !t.is_scalar()) return false;
  if (!op->value.as<AddObj>() && !op->value.as<MulObj>() && !op->value.as<MaxObj>() &&
      !op->value.as<MinObj>())
    return false;
  auto* binary = static_cast<const BinaryOpFields*>(n);
  auto is_old = [&](const PrimExpr& e) {
    auto* load = e.as<BufferLoadObj>();
    return load && load->buffer.same_as(op->buffer) && ExprDeepEqual(load->indices[0], index);
  };
  if (!is_old(binary->a) && !is_old(binary->b)) return false;
  return !UsesVar(index, [&](const VarObj* v) { return v == loops_.back().var; });
}

// ---- stores -------------------------------------------------------------------------------------
void FunctionGen::Emit(const BufferStoreObj* op) {
  PrimExpr index = OnlyIndex(op->buffer, op->indices, op->span);
  if (IsPacked(op->buffer->dtype)) return PackedStore(op);
  if (IsReduction(op, index)) {
    reduction_ = op->value.get();
    loops_.back().reduces = true;
  }
  Value* value = ToMemory(Gen(op->value), op->value.dtype());
  if (index.dtype().is_vector()) return StoreVector(op, value);
  Value* p = ElementPointer(op->buffer, index);
  llvm::Align align = AlignOf(op->buffer, index, op->value.dtype().lanes());
  if (op->predicate) {
    Value* mask = Gen(*op->predicate);
    if (!mask->getType()->isVectorTy()) Unsupported("a predicate on a scalar store", op->span);
    b_.CreateMaskedStore(value, p, align, mask);
    return;
  }
  Store(value, p, align, op->buffer);
}
void FunctionGen::Store(Value* value, Value* pointer, llvm::Align align, const Buffer& buffer) {
  auto plain = [&] { Annotate(b_.CreateAlignedStore(value, pointer, align), buffer); };
  // Stores past the caches exist for whole, aligned vectors only; tensors are aligned as their
  // elements are, so that is asked at run time.
  uint64_t size = gen_.layout.getTypeStoreSize(value->getType()).getKnownMinValue();
  uint64_t whole = std::min<uint64_t>(64, std::bit_floor(size));
  bool is_stack = llvm::isa<llvm::AllocaInst>(Gen(buffer->data));
  if (streaming_loops_ == 0 || is_stack || size < 16 || size % whole != 0) return plain();
  Value* address = b_.CreatePtrToInt(pointer, gen_.SizeType());
  Value* rest = b_.CreateAnd(address, llvm::ConstantInt::get(gen_.SizeType(), whole - 1));
  auto *aligned = Block("stream"), *other = Block("stream.no"), *end = Block("stream.end");
  Branch(b_.CreateIsNull(rest), true, aligned, other);
  b_.SetInsertPoint(aligned);
  auto* store = Annotate(b_.CreateAlignedStore(value, pointer, llvm::Align(whole)), buffer);
  auto* one = llvm::ConstantAsMetadata::get(b_.getInt32(1));
  store->setMetadata(llvm::LLVMContext::MD_nontemporal, llvm::MDNode::get(gen_.context, one));
  b_.CreateBr(end);
  b_.SetInsertPoint(other);
  plain();
  b_.CreateBr(end);
  b_.SetInsertPoint(end);
}
void FunctionGen::StoreVector(const BufferStoreObj* op, Value* value) {
  PrimExpr index = op->indices[0];
  Value* mask = op->predicate ? Gen(*op->predicate) : nullptr;
  if (auto* ramp = Contiguous(index)) {
    Value* p = ElementPointer(op->buffer, ramp->base);
    llvm::Align align = AlignOf(op->buffer, ramp->base, op->value.dtype().lanes());
    if (mask) {
      b_.CreateMaskedStore(value, p, align, mask);
    } else {
      Store(value, p, align, op->buffer);
    }
    return;
  }
  if (op->buffer->dtype.is_vector()) Unsupported("a scatter of vectors", op->span);
  Value* pointers = ElementPointer(op->buffer, index);
  b_.CreateMaskedScatter(value, pointers, AlignOf(op->buffer, IntImm::Int32(1), 1), mask);
}

// ---- below a byte: element i is in bits [i * width, (i + 1) * width) of the memory, lowest first
// ----
PackedBits FunctionGen::PackedPlace(const Buffer& buffer, Value* index) {
  int bits = buffer->dtype.bits();
  if (buffer->dtype.is_vector()) {
    Unsupported("expected scalar elements below a byte, got " + buffer->dtype.str());
  }
  auto number = [&](int v) { return llvm::ConstantInt::get(gen_.SizeType(), v); };
  index = b_.CreateSExtOrTrunc(index, gen_.SizeType());
  auto* offset = buffer->elem_offset.as<IntImmObj>();
  if (!offset || offset->value != 0)
    index = b_.CreateAdd(index, b_.CreateSExtOrTrunc(Gen(buffer->elem_offset), gen_.SizeType()));
  Value *bit = b_.CreateNSWMul(index, number(bits)), *data = Gen(buffer->data);
  auto byte = [&](Value* bit) {
    return b_.CreateInBoundsGEP(gen_.i8, data, b_.CreateAShr(bit, number(3)));
  };
  Value* low = byte(bit);
  // 1, 2 or 4 bits never cross the end of a byte.
  Value* high = 8 % bits == 0 ? nullptr : byte(b_.CreateNSWAdd(bit, number(bits - 1)));
  return {low, high,
          b_.CreateTrunc(b_.CreateAnd(bit, number(7)), high ? b_.getInt16Ty() : gen_.i8)};
}
/// The byte of an element, or the two bytes where it begins and ends: twice the same one where both
/// are in one, whose second copy no bit of the element is in.
Value* FunctionGen::PackedWord(const PackedBits& place) {
  Value* low = b_.CreateLoad(gen_.i8, place.low);
  if (!place.high) return low;
  Value* high = b_.CreateZExt(b_.CreateLoad(gen_.i8, place.high), b_.getInt16Ty());
  return b_.CreateOr(b_.CreateZExt(low, b_.getInt16Ty()), b_.CreateShl(high, 8));
}
Value* FunctionGen::PackedLoad(const BufferLoadObj* op) {
  if (op->predicate) Unsupported("a predicate on elements below a byte", op->span);
  Value* index = Gen(op->indices[0]);
  llvm::Type* element = gen_.TypeOf(op->buffer->dtype);
  auto load = [&](Value* i) {
    PackedBits place = PackedPlace(op->buffer, i);
    return b_.CreateTrunc(b_.CreateLShr(PackedWord(place), place.shift), element);
  };
  if (!index->getType()->isVectorTy()) return load(index);
  Value* result = llvm::PoisonValue::get(gen_.TypeOf(op->dtype));
  for (int i = 0; i < op->dtype.lanes(); ++i) {
    result = b_.CreateInsertElement(result, load(b_.CreateExtractElement(index, i)), i);
  }
  return result;
}
void FunctionGen::PackedStore(const BufferStoreObj* op) {
  if (op->predicate) Unsupported("a predicate on elements below a byte", op->span);
  Value *value = Gen(op->value), *index = Gen(op->indices[0]);
  auto store = [&](Value* i, Value* v) {
    PackedBits place = PackedPlace(op->buffer, i);
    Value* word = PackedWord(place);
    llvm::Type* type = word->getType();
    Value* mask = llvm::ConstantInt::get(type, (1 << op->buffer->dtype.bits()) - 1);
    Value* others = b_.CreateAnd(word, b_.CreateNot(b_.CreateShl(mask, place.shift)));
    word = b_.CreateOr(others, b_.CreateShl(b_.CreateZExt(v, type), place.shift));
    // The second byte first: where both are one, it has the old value.
    if (place.high) b_.CreateStore(b_.CreateTrunc(b_.CreateLShr(word, 8), gen_.i8), place.high);
    b_.CreateStore(b_.CreateTrunc(word, gen_.i8), place.low);
  };
  if (!index->getType()->isVectorTy()) return store(index, value);
  for (int i = 0; i < op->value.dtype().lanes(); ++i) {
    store(b_.CreateExtractElement(index, i), b_.CreateExtractElement(value, i));
  }
}

Value* FunctionGen::AddressOf(const BufferLoadObj* load) {
  PrimExpr index = OnlyIndex(load->buffer, load->indices, load->span);
  if (auto* ramp = index.as<RampObj>()) index = ramp->base;  // of a vector: its first element
  return ElementPointer(load->buffer, index);
}

}  // namespace tvm::codegen
