// SPDX-License-Identifier: Apache-2.0
// The C structures of tvm-ffi and DLPack as the target lays them out, and calls through that
// interface.
#include "backend/llvm/codegen.h"

namespace tvm::codegen {
using Value = llvm::Value;
namespace bi = tvm::tir::builtin;

namespace {
/// Position of a field of DLTensor: member, then member of that member (-1: none).
struct Position {
  int first, second;
};
Position TensorPosition(int field) {
  switch (field) {
    case bi::kDLTensorData:
      return {0, -1};
    case bi::kDLTensorDeviceType:
      return {1, 0};
    case bi::kDLTensorDeviceId:
      return {1, 1};
    case bi::kDLTensorNDim:
      return {2, -1};
    case bi::kDLTensorTypeCode:
      return {3, 0};
    case bi::kDLTensorTypeBits:
      return {3, 1};
    case bi::kDLTensorTypeLanes:
      return {3, 2};
    case bi::kDLTensorShape:
      return {4, -1};
    case bi::kDLTensorStrides:
      return {5, -1};
    case bi::kDLTensorByteOffset:
      return {6, -1};
    default:
      return {-1, -1};
  }
}
}  // namespace

Value* FunctionGen::StructField(const CallObj* op, bool set) {
  auto* kind = op->args[2].as<IntImmObj>();
  if (!kind) Unsupported("expected a constant field of a structure", op->span);
  int field = static_cast<int>(kind->value);
  Value* base = Gen(op->args[0]);
  Value* index = b_.CreateSExtOrTrunc(Gen(op->args[1]), gen_.SizeType());
  Value* value = set ? Gen(op->args[3]) : nullptr;
  DataType type = set ? op->args[3].dtype() : op->dtype;

  if (field == bi::kInt64ArrayElem) {
    Value* p = b_.CreateInBoundsGEP(gen_.i64, base, index);
    if (set) {
      b_.CreateStore(Convert(value, type, DataType::Int(64)), p);
      return b_.getInt32(0);
    }
    return Convert(b_.CreateLoad(gen_.i64, p), DataType::Int(64), type);
  }
  if (field == bi::kFFIAnyTypeIndex || field == bi::kFFIAnyZeroPadding ||
      field == bi::kFFIAnyUnionValue) {
    Value* any = b_.CreateInBoundsGEP(gen_.AnyType(), base, index);
    Value* p = b_.CreateStructGEP(gen_.AnyType(), any, field - bi::kFFIAnyTypeIndex);
    if (field != bi::kFFIAnyUnionValue) {
      if (set) {
        b_.CreateStore(Convert(value, type, DataType::Int(32)), p);
        return b_.getInt32(0);
      }
      return Convert(b_.CreateLoad(gen_.i32, p), DataType::Int(32), type);
    }
    // The union holds int64, double or a pointer; what is narrower is widened first.
    DataType held = type.is_handle()  ? type
                    : type.is_float() ? DataType::Float(64)
                                      : DataType::Int(64);
    if (!set) return Convert(b_.CreateLoad(gen_.TypeOf(held), p), held, type);
    if (held.is_handle() && gen_.SizeType() != gen_.i64) b_.CreateStore(b_.getInt64(0), p);
    b_.CreateStore(Convert(value, type, held), p);
    return b_.getInt32(0);
  }
  llvm::StructType* tensor = gen_.DLTensorType();
  Value* p = b_.CreateInBoundsGEP(tensor, base, index);
  if (field == bi::kDLTensorAddr) return p;
  Position at = TensorPosition(field);
  if (at.first < 0)
    Unsupported("a structure field of the number " + std::to_string(field), op->span);
  p = b_.CreateStructGEP(tensor, p, at.first);
  llvm::Type* member = tensor->getElementType(at.first);
  if (at.second >= 0) {
    p = b_.CreateStructGEP(member, p, at.second);
    member = llvm::cast<llvm::StructType>(member)->getElementType(at.second);
  }
  DataType held = member->isPointerTy() ? DataType::Handle()
                  : at.first == 3       ? DataType::UInt(member->getIntegerBitWidth())
                                        : DataType::Int(member->getIntegerBitWidth());
  if (set) {
    b_.CreateStore(Convert(value, type, held), p);
    return b_.getInt32(0);
  }
  return Convert(b_.CreateLoad(member, p), held, type);
}

Value* FunctionGen::StackAlloca(const CallObj* op) {
  auto* kind = op->args[0].as<StringImmObj>();
  auto* count = op->args[1].as<IntImmObj>();
  if (!kind || !count || count->value < 0)
    Unsupported("expected a constant kind and count of stack memory", op->span);
  std::string_view name = View(kind->value);
  llvm::Type* type =
      name == "shape" || name == "arg_int64"         ? gen_.i64
      : name == "array"                              ? static_cast<llvm::Type*>(gen_.DLTensorType())
      : name == "arg_value" || name == "tvm_ffi_any" ? static_cast<llvm::Type*>(gen_.AnyType())
      : name == "arg_tcode"                          ? gen_.i32
      : name == "tensormap" ? static_cast<llvm::Type*>(llvm::ArrayType::get(gen_.i64, 16))
                            : nullptr;
  if (!type)
    Unsupported(
        "expected shape, array, arg_value, tvm_ffi_any, arg_tcode or tensormap as kind of stack "
        "memory, got " +
            std::string(name),
        op->span);
  return StackSlot(type, std::max<int64_t>(count->value, 1),
                   llvm::Align(name == "tensormap" ? 64 : 8), std::string(name));
}

// tvm_call_packed_lowered(name, stack, begin, end): arguments stack[begin .. end), result
// stack[end].
Value* FunctionGen::CallPackedLowered(const CallObj* op, bool by_symbol) {
  auto* name = op->args[0].as<StringImmObj>();
  auto *begin = op->args[2].as<IntImmObj>(), *end = op->args[3].as<IntImmObj>();
  if (!name || !begin || !end)
    Unsupported("expected (name, stack, begin, end) in a lowered packed call", op->span);
  Value* stack = Gen(op->args[1]);
  auto at = [&](int64_t i) {
    return b_.CreateInBoundsGEP(gen_.AnyType(), stack, llvm::ConstantInt::get(gen_.SizeType(), i));
  };
  Value *args = at(begin->value), *result = at(end->value);
  Value* count = b_.getInt32(static_cast<int>(end->value - begin->value));
  b_.CreateStore(llvm::Constant::getNullValue(gen_.AnyType()), result);
  if (by_symbol) {
    std::string symbol = "__tvm_ffi_" + std::string(name->value);
    auto* type = llvm::FunctionType::get(gen_.i32, {gen_.ptr, gen_.ptr, gen_.i32, gen_.ptr}, false);
    Value* self = op->args.size() > 4 ? Gen(op->args[4]) : llvm::ConstantPointerNull::get(gen_.ptr);
    Propagate(b_.CreateCall(gen_.Extern(symbol, type), {self, args, count, result}));
  } else {
    auto* type = llvm::FunctionType::get(gen_.i32, {gen_.ptr, gen_.ptr, gen_.i32, gen_.ptr}, false);
    Value* f = PackedHandle(std::string(name->value));
    Propagate(b_.CreateCall(gen_.Extern("TVMFFIFunctionCall", type), {f, args, count, result}));
  }
  if (op->dtype.is_void()) return b_.getInt32(0);
  if (op->Is(bi::tvm_call_trace_packed_lowered()) && end->value > begin->value) {
    // The traced value, unless the function gives another one.
    Value* kind = b_.CreateLoad(gen_.i32, b_.CreateStructGEP(gen_.AnyType(), result, 0));
    Value* is_none = b_.CreateICmpEQ(kind, b_.getInt32(kTVMFFINone));
    result = b_.CreateSelect(is_none, at(end->value - 1), result);
  }
  Value* p = b_.CreateStructGEP(gen_.AnyType(), result, 2);
  DataType held = op->dtype.is_handle()  ? op->dtype
                  : op->dtype.is_float() ? DataType::Float(64)
                                         : DataType::Int(64);
  return Convert(b_.CreateLoad(gen_.TypeOf(held), p), held, op->dtype);
}

// Looked up once; two threads that do so at the same time find the same function.
Value* FunctionGen::PackedHandle(const std::string& name) {
  std::string global_name = "packed." + name;
  auto* slot = gen_.module->getNamedGlobal(global_name);
  if (!slot) {
    slot =
        new llvm::GlobalVariable(*gen_.module, gen_.ptr, false, llvm::GlobalValue::InternalLinkage,
                                 llvm::ConstantPointerNull::get(gen_.ptr), global_name);
  }
  auto align = gen_.layout.getPointerABIAlignment(0);
  auto* known = b_.CreateAlignedLoad(gen_.ptr, slot, align);
  known->setAtomic(llvm::AtomicOrdering::Acquire);
  auto *from = b_.GetInsertBlock(), *look = Block("lookup"), *end = Block("packed");
  Branch(b_.CreateIsNotNull(known), true, end, look);
  b_.SetInsertPoint(look);
  Value* found = StackSlot(gen_.ptr, 1, align, "found");
  Value* context = b_.CreateLoad(gen_.ptr, gen_.ContextPointer("__tvm_ffi__library_ctx"));
  auto* type = llvm::FunctionType::get(gen_.i32, {gen_.ptr, gen_.ptr, gen_.ptr}, false);
  Propagate(b_.CreateCall(gen_.Extern("TVMFFIEnvModLookupFromImports", type),
                          {context, gen_.Text(name), found}));
  Value* handle = b_.CreateLoad(gen_.ptr, found);
  b_.CreateAlignedStore(handle, slot, align)->setAtomic(llvm::AtomicOrdering::Release);
  look = b_.GetInsertBlock();
  b_.CreateBr(end);
  b_.SetInsertPoint(end);
  auto* phi = b_.CreatePHI(gen_.ptr, 2);
  phi->addIncoming(known, from);
  phi->addIncoming(handle, look);
  return phi;
}

}  // namespace tvm::codegen
