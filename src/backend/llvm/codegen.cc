// SPDX-License-Identifier: Apache-2.0
// The parts of code generation that belong to a module: types, globals, declarations of functions.
#include "backend/llvm/codegen.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/Support/ModRef.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>

#include "tvm/ir/source.h"
#include "tvm/tir/unoptimized.h"

namespace tvm::codegen {

void Unsupported(const std::string& what, const Optional<Span>& span) {
  TVM_FFI_THROW(NotImplementedError) << ShowSpan(span) << "LLVM code generation: " << what;
  TVM_FFI_UNREACHABLE();
}

ModuleGen::ModuleGen(llvm::LLVMContext& context, llvm::TargetMachine& machine,
                     const MachineOptions& options, const std::string& name)
    : context(context),
      machine(machine),
      options(options),
      module(std::make_unique<llvm::Module>(name, context)),
      layout(module->getDataLayout()),
      i1(llvm::Type::getInt1Ty(context)),
      i8(llvm::Type::getInt8Ty(context)),
      i32(llvm::Type::getInt32Ty(context)),
      i64(llvm::Type::getInt64Ty(context)),
      ptr(llvm::PointerType::get(context, 0)),
      attributes_(context) {
#if LLVM_VERSION_MAJOR >= 21
  module->setTargetTriple(machine.getTargetTriple());
#else
  module->setTargetTriple(machine.getTargetTriple().str());
#endif
  module->setDataLayout(machine.createDataLayout());
  module->setPICLevel(llvm::PICLevel::BigPIC);
  if (!options.abi.empty() && machine.getTargetTriple().isRISCV()) {
    module->addModuleFlag(llvm::Module::Error, "target-abi",
                          llvm::MDString::get(context, options.abi));
  }
  if (!options.cpu.empty()) attributes_.addAttribute("target-cpu", options.cpu);
  if (!options.features.empty()) attributes_.addAttribute("target-features", options.features);
  if (options.vector_width > 0) {
    attributes_.addAttribute("prefer-vector-width", std::to_string(options.vector_width));
  }
  attributes_.addAttribute("no-trapping-math", "true");
  attributes_.addAttribute(llvm::Attribute::NoUnwind);
  if (options.debug_info) StartDebugInfo();
}

// ---- types --------------------------------------------------------------------------------------
llvm::Type* ModuleGen::ScalarType(DataType t) {
  if (t.is_bool()) return i1;
  if (t.is_integer()) return llvm::IntegerType::get(context, t.bits());
  if (t.is_handle()) return ptr;
  if (t.is_ieee_float()) {
    switch (t.bits()) {
      case 16:
        return llvm::Type::getHalfTy(context);
      case 32:
        return llvm::Type::getFloatTy(context);
      case 64:
        return llvm::Type::getDoubleTy(context);
      default:
        break;
    }
  }
  Unsupported("expected float types to be legalised to float16, float32 or float64, got " +
              t.str());
}
llvm::Type* ModuleGen::TypeOf(DataType t) {
  if (t.is_void()) return llvm::Type::getVoidTy(context);
  llvm::Type* scalar = ScalarType(t.element());
  if (t.is_scalar()) return scalar;
  return llvm::VectorType::get(scalar, llvm::ElementCount::get(t.lanes(), t.is_scalable()));
}
llvm::Type* ModuleGen::MemoryType(DataType t) {
  return TypeOf(t.is_bool() ? DataType::UInt(8, t.raw_lanes()) : t);
}
llvm::StructType* ModuleGen::DLTensorType() {
  if (!tensor_) {
    auto* device = llvm::StructType::get(i32, i32);
    auto* type = llvm::StructType::get(i8, i8, llvm::Type::getInt16Ty(context));
    tensor_ = llvm::StructType::create({ptr, device, i32, type, ptr, ptr, i64}, "DLTensor");
  }
  return tensor_;
}
llvm::StructType* ModuleGen::AnyType() {
  if (!any_) any_ = llvm::StructType::create({i32, i32, i64}, "TVMFFIAny");
  return any_;
}

// ---- globals ------------------------------------------------------------------------------------
llvm::Constant* ModuleGen::Text(std::string_view text) {
  auto& slot = texts_[std::string(text)];
  if (!slot) {
    auto* data =
        llvm::ConstantDataArray::getString(context, llvm::StringRef(text.data(), text.size()));
    auto* global = new llvm::GlobalVariable(*module, data->getType(), true,
                                            llvm::GlobalValue::PrivateLinkage, data, "text");
    global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
    global->setAlignment(llvm::Align(1));
    slot = global;
  }
  return slot;
}
llvm::GlobalVariable* ModuleGen::ContextPointer(const std::string& name) {
  if (auto* global = module->getNamedGlobal(name)) return global;
  // Weak: every object file of a library has one, and they become one.
  return new llvm::GlobalVariable(*module, ptr, false, llvm::GlobalValue::WeakAnyLinkage,
                                  llvm::ConstantPointerNull::get(ptr), name);
}
llvm::FunctionCallee ModuleGen::Extern(const std::string& name, llvm::FunctionType* type) {
  if (auto* f = module->getFunction(name)) {
    if (f->getFunctionType() != type) {
      Unsupported("expected all uses of the external function " + name +
                  " to have the same types of arguments and result");
    }
    return f;
  }
  auto* f = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, *module);
  f->addFnAttr(llvm::Attribute::NoUnwind);
  return f;
}
llvm::Function* ModuleGen::NewFunction(llvm::FunctionType* type, const std::string& name,
                                       bool internal) {
  auto* f = llvm::Function::Create(
      type, internal ? llvm::GlobalValue::InternalLinkage : llvm::GlobalValue::ExternalLinkage,
      name, *module);
  f->addFnAttrs(attributes_);
  return f;
}
static void LeaveAsIs(llvm::Function* f) {
  for (auto kind : {llvm::Attribute::NoInline, llvm::Attribute::OptimizeNone}) f->addFnAttr(kind);
}
/// Marks what runs only to report an error: half of the compile time of a small kernel would go
/// into optimising it.
static void MarkCold(llvm::Function* f) {
  f->addFnAttr(llvm::Attribute::Cold);
  LeaveAsIs(f);
}
llvm::Function* ModuleGen::RaiseFunction(const std::vector<llvm::Type*>& values) {
  std::string name = "tvm.raise";
  for (llvm::Type* t : values) {
    name += t->isPointerTy() ? ".s" : t->isDoubleTy() ? ".f" : t == i64 ? ".l" : ".i";
  }
  if (auto* f = module->getFunction(name)) return f;
  std::vector<llvm::Type*> params = {ptr, ptr};
  params.insert(params.end(), values.begin(), values.end());
  auto* f = NewFunction(llvm::FunctionType::get(i32, params, false), name, true);
  MarkCold(f);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "entry", f));
  constexpr int kLongest = 1024;
  llvm::Value* message = f->getArg(1);
  if (!values.empty()) {
    message = b.CreateAlloca(llvm::ArrayType::get(i8, kLongest));
    std::vector<llvm::Value*> args = {message, llvm::ConstantInt::get(SizeType(), kLongest),
                                      f->getArg(1)};
    for (size_t i = 0; i < values.size(); ++i) args.push_back(f->getArg(i + 2));
    auto* print = llvm::FunctionType::get(i32, {ptr, SizeType(), ptr}, true);
    b.CreateCall(Extern("snprintf", print), args);
  }
  auto* raise = llvm::FunctionType::get(b.getVoidTy(), {ptr, ptr}, false);
  b.CreateCall(Extern("TVMFFIErrorSetRaisedFromCStr", raise), {f->getArg(0), message});
  b.CreateRet(b.getInt32(-1));
  return f;
}

// ---- functions ----------------------------------------------------------------------------------
void ModuleGen::Declare(const GlobalVar& var, const FunctionInfo& info) {
  std::vector<llvm::Type*> params;
  for (const Var& p : info.func->params) params.push_back(TypeOf(p.dtype()));
  if (info.packed && params != std::vector<llvm::Type*>{ptr, ptr, i32, ptr}) {
    Unsupported(
        "expected the parameters (self: handle, args: handle, num_args: int32, result: "
        "handle) for the packed function " +
        SymbolOf(info));
  }
  llvm::Type* result = i32;
  if (!info.packed && !info.result.is_void()) {
    result = TypeOf(info.result);
    if (info.internal) result = llvm::StructType::get(i32, result);
  }
  std::string symbol = SymbolOf(info);
  auto* f = NewFunction(llvm::FunctionType::get(result, params, false), symbol, info.internal);
  if (f->getName() != symbol) {
    TVM_FFI_THROW(ValueError) << "LLVM code generation: expected one function of the symbol "
                              << symbol << ", got several";
  }
  if (info.cold) MarkCold(f);
  bool leave =
      (info.packed && options.quick_entry) || info.func->HasNonzeroAttr(tir::attr::kUnoptimized);
  if (leave) LeaveAsIs(f);
  if (info.func->HasNonzeroAttr(tir::attr::kUnpacksArgument))
    f->addFnAttr(llvm::Attribute::NoInline);
  functions.emplace(var->name_hint, std::pair(f, info));
}
void ModuleGen::Define(const FunctionInfo& info) {
  llvm::Function* f = module->getFunction(SymbolOf(info));
  // The status of a packed entry is its result.
  FunctionGen(*this, f, info.packed ? DataType::Void() : info.result, info.func->span)
      .EmitBody(info);
}
std::unique_ptr<llvm::Module> ModuleGen::Finish() {
  SetUpTiles();
  if (debug_) debug_->finalize();
  return std::move(module);
}

}  // namespace tvm::codegen
