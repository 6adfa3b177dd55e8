// SPDX-License-Identifier: Apache-2.0
// Calls: operators that lowering leaves (one row each), functions of the module, C functions, LLVM
// intrinsics.
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Intrinsics.h>

#include "backend/calls.h"
#include "backend/llvm/codegen.h"
#include "tvm/expr/op.h"

namespace tvm::codegen {
using Value = llvm::Value;

namespace bi = tvm::tir::builtin;

/// Calls that are code of their own, one row each.
struct FunctionGen::CallRows : CallTable<FunctionGen, Value*> {
  using Gen = FunctionGen*;
  using Op = const CallObj*;

  CallRows() {
    AddCommon();
    AddHost();
    AddMath();
    AddValues();
    AddPointers();
    AddControl();
    AddVectors();
  }

 private:
  void AddMath() {
#define BINARY(name, Create)                    \
  Add(bi::name(), [](Gen g, Op o) -> Value* {   \
    Value* a = g->Gen(o->args[0]);              \
    return g->b_.Create(a, g->Gen(o->args[1])); \
  })
    BINARY(bitwise_and, CreateAnd);
    BINARY(bitwise_or, CreateOr);
    BINARY(bitwise_xor, CreateXor);
#undef BINARY
#define UNARY(name, id) \
  Add(bi::name(), [](Gen g, Op o) -> Value* { return g->UnaryMath(o, llvm::Intrinsic::id); })
    UNARY(sqrt, sqrt);
    UNARY(floor, floor);
    UNARY(ceil, ceil);
    UNARY(trunc, trunc);
    UNARY(round, roundeven);
    UNARY(nearbyint, roundeven);
    UNARY(fabs, fabs);
#undef UNARY
    Add(bi::bitwise_not(), [](Gen g, Op o) { return g->b_.CreateNot(g->Gen(o->args[0])); });
    Add(bi::popcount(), [](Gen g, Op o) -> Value* {
      Value* v = g->b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, g->Gen(o->args[0]));
      return g->b_.CreateZExtOrTrunc(v, g->gen_.TypeOf(o->dtype));
    });
    Add(bi::clz(), [](Gen g, Op o) -> Value* {
      Value* v = g->Gen(o->args[0]);
      v = g->b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, v, g->b_.getFalse());
      return g->b_.CreateZExtOrTrunc(v, g->gen_.TypeOf(o->dtype));
    });
    Add(bi::fma(), [](Gen g, Op o) -> Value* {
      Value *x = g->Gen(o->args[0]), *y = g->Gen(o->args[1]), *z = g->Gen(o->args[2]);
      return g->b_.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, z});
    });
    Add(bi::copysign(), [](Gen g, Op o) -> Value* {
      Value* x = g->Gen(o->args[0]);
      return g->b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, g->Gen(o->args[1]));
    });
    Add(bi::fmod(), [](Gen g, Op o) -> Value* {
      Value* x = g->Gen(o->args[0]);
      return g->FloatRemainder(x, g->Gen(o->args[1]), false);
    });
    Add(bi::isnan(), [](Gen g, Op o) -> Value* {
      Value* v = g->Gen(o->args[0]);
      return o->args[0].dtype().is_float() ? g->b_.CreateFCmpUNO(v, v)
                                           : llvm::Constant::getNullValue(g->gen_.TypeOf(o->dtype));
    });
  }
  void AddValues() {
    Add(bi::if_then_else(), [](Gen g, Op o) { return g->IfThenElseValue(o); });
    Add(bi::large_uint_imm(), [](Gen g, Op o) -> Value* {
      auto value = LargeUint(o);
      if (!value) Unsupported("expected constants in large_uint_imm", o->span);
      return g->Lane(o->dtype, *value);
    });
    Add(bi::undef(), [](Gen g, Op o) -> Value* {
      return g->b_.CreateFreeze(llvm::UndefValue::get(g->gen_.TypeOf(o->dtype)));
    });
    Add(bi::assume(), [](Gen g, Op o) -> Value* {
      g->b_.CreateAssumption(g->Gen(o->args[0]));
      return g->b_.getTrue();
    });
    Add(bi::call_llvm_intrin(), [](Gen g, Op o) { return g->CallIntrinsic(o); });
    Add(bi::call_llvm_pure_intrin(), [](Gen g, Op o) { return g->CallIntrinsic(o); });
  }
  void AddPointers() {
    Add(bi::isnullptr(), [](Gen g, Op o) { return g->b_.CreateIsNull(g->Gen(o->args[0])); });
    Add(bi::handle_add_byte_offset(), [](Gen g, Op o) -> Value* {
      Value* p = g->Gen(o->args[0]);
      Value* n = g->b_.CreateSExtOrTrunc(g->Gen(o->args[1]), g->gen_.SizeType());
      return g->b_.CreateGEP(g->gen_.i8, p, n);
    });
    Add(bi::address_of(), [](Gen g, Op o) -> Value* {
      if (auto* load = o->args[0].as<BufferLoadObj>()) return g->AddressOf(load);
      Unsupported("expected an element of a buffer in address_of", o->span);
    });
    Add(bi::prefetch(), [](Gen g, Op o) -> Value* {
      Value* p = o->args[0].as<BufferLoadObj>() ? g->AddressOf(o->args[0].as<BufferLoadObj>())
                                                : g->Gen(o->args[0]);
      auto number = [&](size_t i, int fallback) -> Value* {
        auto* c = i < o->args.size() ? o->args[i].as<IntImmObj>() : nullptr;
        return g->b_.getInt32(c ? static_cast<int>(c->value) : fallback);
      };
      return g->b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {p->getType()},
                                   {p, number(1, 0), number(2, 3), number(3, 1)});
    });
    Add(bi::atomic_add(), [](Gen g, Op o) -> Value* {
      Value *p = g->Gen(o->args[0]), *v = g->Gen(o->args[1]);
      auto kind =
          o->args[1].dtype().is_float() ? llvm::AtomicRMWInst::FAdd : llvm::AtomicRMWInst::Add;
      return g->b_.CreateAtomicRMW(kind, p, v, llvm::MaybeAlign(), llvm::AtomicOrdering::Monotonic);
    });
    Add(bi::TVMBackendAllocWorkspace(), [](Gen g, Op o) -> Value* {
      Value* bytes = g->b_.CreateZExtOrTrunc(g->Gen(o->args[2]), g->gen_.i64);
      Value *type = g->Gen(o->args[0]), *id = g->Gen(o->args[1]);
      return g->AllocWorkspace(bytes, DataType::UInt(8), type, id);
    });
    Add(bi::TVMBackendFreeWorkspace(), [](Gen g, Op o) -> Value* {
      Value* memory = g->Gen(o->args[2]);
      g->FreeWorkspace(memory);
      std::erase(g->workspaces_, memory);
      return g->b_.getInt32(0);
    });
  }
  void AddControl() {
    Add(bi::ret(), [](Gen g, Op o) -> Value* {
      Value* v = o->args.empty() ? nullptr : g->Gen(o->args[0]);
      if (g->in_parallel_) {
        auto* status = o->args.empty() ? nullptr : o->args[0].as<IntImmObj>();
        if (!status || status->value != -1) Unsupported("ret in a parallel loop", o->span);
      }
      if (g->result_.is_void()) {
        g->Return(v && v->getType() == g->gen_.i32 ? v : g->b_.getInt32(0));
      } else {
        g->Return(g->b_.getInt32(0), g->Convert(v, o->args[0].dtype(), g->result_));
      }
      return g->b_.getInt32(0);
    });
    Add(bi::tvm_raise_error(), [](Gen g, Op o) -> Value* {
      auto *cls = o->args[0].as<StringImmObj>(), *format = o->args[1].as<StringImmObj>();
      if (!cls || !format) Unsupported("expected texts as class and format of an error", o->span);
      std::vector<Value*> values;
      for (size_t i = 2; i < o->args.size(); ++i) {
        DataType t = o->args[i].dtype();
        Value* v = g->Gen(o->args[i]);
        if ((t.is_uint() || t.is_bool()) && t.bits() < 32) v = g->b_.CreateZExt(v, g->gen_.i32);
        values.push_back(v);
      }
      g->Raise(View(cls->value), View(format->value), values);
      return g->b_.getInt32(0);
    });
    Add(bi::tvm_throw_last_error(), [](Gen g, Op) -> Value* {
      g->Return(g->b_.getInt32(-1));
      return g->b_.getInt32(0);
    });
  }
  void AddVectors() {
    Add(bi::vscale(), [](Gen g, Op o) -> Value* {
      return g->b_.CreateIntrinsic(llvm::Intrinsic::vscale, {g->gen_.TypeOf(o->dtype)}, {});
    });
    Add(bi::get_active_lane_mask(), [](Gen g, Op o) -> Value* {
      Value *base = g->Gen(o->args[0]), *limit = g->Gen(o->args[1]);
      if (o->args[0].dtype().is_int()) {
        // The intrinsic compares without signs: lanes are counted from base.
        Value* any = g->b_.CreateICmpSLT(base, limit);
        Value* zero = llvm::ConstantInt::get(base->getType(), 0);
        limit = g->b_.CreateSelect(any, g->b_.CreateSub(limit, base), zero);
        base = zero;
      }
      return g->b_.CreateIntrinsic(llvm::Intrinsic::get_active_lane_mask,
                                   {g->gen_.TypeOf(o->dtype), base->getType()}, {base, limit});
    });
    Add(bi::vectorlow(), [](Gen g, Op o) { return g->VectorPart(o, 0); });
    Add(bi::vectorhigh(), [](Gen g, Op o) { return g->VectorPart(o, o->dtype.lanes()); });
    Add(bi::vectorcombine(), [](Gen g, Op o) -> Value* {
      Value *a = g->Gen(o->args[0]), *b = g->Gen(o->args[1]);
      std::vector<int> all(o->dtype.lanes());
      for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
      return g->b_.CreateShuffleVector(a, b, all);
    });
  }
};

Value* FunctionGen::Emit(const CallObj* op) {
  if (auto* var = op->op.as<GlobalVarObj>()) return CallFunction(op, var);
  static const auto* table = new CallRows();
  if (auto handler = table->Find(op)) return handler(this, op);
  Unsupported(NotLowered(op), op->span);
}

Value* FunctionGen::Jump(const CallObj* op, bool leave) {
  if (loops_.empty()) Unsupported("break or continue outside of a loop", op->span);
  const LoopFrame& loop = loops_.back();
  if (leave && !loop.end) Unsupported("break in a parallel loop", op->span);
  FreeWorkspaces(loop.workspaces);
  b_.CreateBr(leave ? loop.end : loop.next);
  return b_.getInt32(0);
}
Value* FunctionGen::UnaryMath(const CallObj* op, unsigned id) {
  Value* v = Gen(op->args[0]);
  if (!op->dtype.is_float()) return v;  // rounding functions of integers
  return b_.CreateUnaryIntrinsic(id, v);
}
Value* FunctionGen::VectorPart(const CallObj* op, int first) {
  std::vector<int> part(op->dtype.lanes());
  for (size_t i = 0; i < part.size(); ++i) part[i] = first + static_cast<int>(i);
  return b_.CreateShuffleVector(Gen(op->args[0]), part);
}

// ---- functions ----------------------------------------------------------------------------------
Value* FunctionGen::CallFunction(const CallObj* op, const GlobalVarObj* var) {
  auto it = gen_.functions.find(var->name_hint);
  if (it == gen_.functions.end()) {
    TVM_FFI_THROW(ValueError) << "LLVM code generation: expected " << View(var->name_hint)
                              << " to be a function of the module that is compiled";
  }
  auto& [f, info] = it->second;
  if (op->args.size() != f->arg_size()) {
    TVM_FFI_THROW(ValueError) << "LLVM code generation: expected " << f->arg_size()
                              << " arguments in the call of " << View(var->name_hint) << ", got "
                              << op->args.size();
  }
  std::vector<Value*> args;
  for (size_t i = 0; i < op->args.size(); ++i) {
    Value* v = Gen(op->args[i]);
    if (v->getType() != f->getArg(i)->getType()) {
      TVM_FFI_THROW(TypeError) << "LLVM code generation: expected argument " << i << " of "
                               << View(var->name_hint) << " to be of type "
                               << info.func->params[i].dtype() << ", got " << op->args[i].dtype();
    }
    args.push_back(v);
  }
  Value* result = b_.CreateCall(f, args);
  if (info.packed || info.result.is_void()) {
    Propagate(result);
    return b_.getInt32(0);
  }
  if (!info.internal) return result;
  Propagate(b_.CreateExtractValue(result, 0));
  return b_.CreateExtractValue(result, 1);
}

Value* FunctionGen::CallExtern(const CallObj* op, bool pure) {
  auto* name = op->args[0].as<StringImmObj>();
  if (!name) Unsupported("expected the name of the external function first", op->span);
  std::vector<llvm::Type*> types;
  std::vector<Value*> args;
  for (size_t i = 1; i < op->args.size(); ++i) {
    // C passes bool as a byte.
    Value* v = ToMemory(Gen(op->args[i]), op->args[i].dtype());
    args.push_back(v);
    types.push_back(v->getType());
  }
  auto* type = llvm::FunctionType::get(
      op->dtype.is_void() ? b_.getVoidTy() : gen_.MemoryType(op->dtype), types, false);
  auto* call = b_.CreateCall(gen_.Extern(std::string(name->value), type), args);
  for (size_t i = 1; i < op->args.size(); ++i) {
    DataType t = op->args[i].dtype();
    if (t.is_scalar() && !t.is_float() && !t.is_handle() && t.bits() < 32) {
      call->addParamAttr(i - 1, t.is_int() ? llvm::Attribute::SExt : llvm::Attribute::ZExt);
    }
  }
  if (pure) {
    call->setDoesNotThrow();
    call->addFnAttr(llvm::Attribute::WillReturn);
    call->setMemoryEffects(llvm::MemoryEffects::none());
  }
  return op->dtype.is_void() ? b_.getInt32(0) : FromMemory(call, op->dtype);
}

/// An instruction of one width on vectors of several times that width, or null.
static Value* CallInPieces(llvm::IRBuilderBase& b, llvm::Module* module, llvm::Intrinsic::ID id,
                           llvm::Type* type, const std::vector<Value*>& args) {
  auto* whole = llvm::dyn_cast<llvm::FixedVectorType>(type);
  if (!whole || llvm::Intrinsic::isOverloaded(id)) return nullptr;
  auto* callee = llvm::Intrinsic::getOrInsertDeclaration(module, id);
  auto* piece = llvm::dyn_cast<llvm::FixedVectorType>(callee->getReturnType());
  if (!piece || piece->getElementType() != whole->getElementType()) return nullptr;
  unsigned lanes = piece->getNumElements(), all = whole->getNumElements();
  if (all == lanes || all % lanes != 0) return nullptr;
  std::vector<Value*> pieces;
  for (unsigned begin = 0; begin < all; begin += lanes) {
    std::vector<Value*> parts;
    for (Value* arg : args) {
      auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(arg->getType());
      bool is_whole = vector && vector->getNumElements() == all;
      auto mask = llvm::createSequentialMask(begin, lanes, 0);
      parts.push_back(is_whole ? b.CreateShuffleVector(arg, mask) : arg);
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i >= callee->arg_size() || parts[i]->getType() != callee->getArg(i)->getType())
        return nullptr;
    }
    pieces.push_back(b.CreateCall(callee, parts));
  }
  return llvm::concatenateVectors(b, pieces);
}
/// The same bits as a vector of another kind, where a size fits and only the elements differ: of
/// what the operands of dot products are, versions of LLVM disagree.
Value* AsVectorOf(llvm::IRBuilder<>& b, Value* value, llvm::Type* type) {
  bool fits = llvm::isa<llvm::FixedVectorType>(type) &&
              llvm::isa<llvm::FixedVectorType>(value->getType()) &&
              llvm::CastInst::isBitCastable(value->getType(), type);
  return fits ? b.CreateBitCast(value, type) : value;
}
Value* FunctionGen::CallIntrinsic(const CallObj* op) {
  llvm::Intrinsic::ID id = llvm::Intrinsic::not_intrinsic;
  if (auto* number = op->args[0].as<IntImmObj>()) {
    if (number->value > 0 && number->value < llvm::Intrinsic::num_intrinsics) {
      id = static_cast<llvm::Intrinsic::ID>(number->value);
    }
  } else if (auto* name = op->args[0].as<StringImmObj>()) {
    id = llvm::Intrinsic::lookupIntrinsicID(std::string(name->value));
  }
  if (id == llvm::Intrinsic::not_intrinsic) {
    TVM_FFI_THROW(ValueError)
        << "call_llvm_intrin: expected the number or name of an LLVM intrinsic first";
  }
  auto* fixed =
      llvm::Intrinsic::isOverloaded(id) ? nullptr : llvm::Intrinsic::getType(gen_.context, id);
  std::vector<Value*> args;
  std::vector<llvm::Type*> types;
  for (size_t i = 1; i < op->args.size(); ++i) {
    Value* arg = Gen(op->args[i]);
    if (fixed && i <= fixed->getNumParams()) arg = AsVectorOf(b_, arg, fixed->getParamType(i - 1));
    args.push_back(arg);
    types.push_back(arg->getType());
  }
  llvm::Type* result = op->dtype.is_void() ? b_.getVoidTy() : gen_.TypeOf(op->dtype);
  if (Value* joined = CallInPieces(b_, gen_.module.get(), id, result, args)) return joined;
  llvm::SmallVector<llvm::Type*, 4> overloads;
  auto* type = llvm::FunctionType::get(result, types, false);
  if (!llvm::Intrinsic::getIntrinsicSignature(id, type, overloads)) {
    std::string shown;
    llvm::raw_string_ostream os(shown);
    type->print(os);
    TVM_FFI_THROW(TypeError) << "call_llvm_intrin: expected arguments and result that fit "
                             << llvm::Intrinsic::getBaseName(id).str() << ", got " << shown;
  }
  auto* callee = llvm::Intrinsic::getOrInsertDeclaration(gen_.module.get(), id, overloads);
  for (size_t i = 0; i < args.size(); ++i) {
    if (callee->hasParamAttribute(i, llvm::Attribute::ImmArg) &&
        !llvm::isa<llvm::ConstantInt>(args[i])) {
      TVM_FFI_THROW(ValueError) << "call_llvm_intrin: expected a constant as argument " << i
                                << " of " << llvm::Intrinsic::getBaseName(id).str();
    }
  }
  Value* call = b_.CreateCall(callee, args);
  return op->dtype.is_void() ? b_.getInt32(0) : call;
}

}  // namespace tvm::codegen
