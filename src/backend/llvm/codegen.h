// SPDX-License-Identifier: Apache-2.0
// TIR -> LLVM IR. A ModuleGen makes one LLVM module of lowered functions, a FunctionGen one
// function of it. What arrives has been through the TIR pipeline: flat buffers, packed entries, no
// blocks.
// - bool is i1 in registers and one byte in memory.
// - A function gives 0, or -1 with the error of tvm-ffi set; callers pass -1 on.
// - Index arithmetic (loop and shape variables) carries nsw, data arithmetic wraps.
#pragma once
#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <tvm/ffi/extra/module.h>

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backend/host_function.h"
#include "backend/llvm/target_machine.h"

namespace tvm::codegen {
template <class Generator, class Value>
class CallTable;

/// The name of a function in the object file.
inline std::string SymbolOf(const FunctionInfo& info) {
  // A prefix keeps internal names apart from C functions that LLVM knows the meaning of.
  const char* prefix = info.packed     ? ffi::symbol::tvm_ffi_symbol_prefix
                       : info.internal ? "tvm."
                                       : "";
  return prefix + info.symbol;
}

class ModuleGen {
 public:
  ModuleGen(llvm::LLVMContext& context, llvm::TargetMachine& machine, const MachineOptions& options,
            const std::string& name);
  void Declare(const GlobalVar& var, const FunctionInfo& info);
  void Define(const FunctionInfo& info);
  std::unique_ptr<llvm::Module> Finish();

  // ---- types ----
  llvm::Type* ScalarType(DataType t);  ///< In registers: bool is i1.
  llvm::Type* TypeOf(DataType t);      ///< With lanes.
  llvm::Type* MemoryType(DataType t);  ///< In memory: bool is i8.
  llvm::StructType* DLTensorType();
  llvm::StructType* AnyType();
  llvm::IntegerType* SizeType() {
    return llvm::IntegerType::get(context, layout.getPointerSizeInBits());
  }

  // ---- globals ----
  llvm::Constant* Text(std::string_view text);
  /// A pointer that the loader of the library fills in: null in a process without the runtime.
  llvm::GlobalVariable* ContextPointer(const std::string& name);
  llvm::FunctionCallee Extern(const std::string& name, llvm::FunctionType* type);
  /// int32 raise(class, format, values...) for these types of values: formats, sets the error,
  /// gives -1.
  llvm::Function* RaiseFunction(const std::vector<llvm::Type*>& values);
  /// A function of the module with the attributes all of them have.
  llvm::Function* NewFunction(llvm::FunctionType* type, const std::string& name, bool internal);

  /// Completes functions that use tile registers (codegen_tiles.cc).
  void SetUpTiles();

  // ---- debug information (codegen_debug.cc) ----
  /// The scope of a function's lines, or null when no debug information is asked for.
  llvm::DISubprogram* DebugFunction(llvm::Function* f, const Optional<Span>& span);
  /// A line of a function; the text may be another one than that of the function.
  llvm::DILocation* DebugLocation(llvm::DISubprogram* scope, const Span& span);

  llvm::LLVMContext& context;
  llvm::TargetMachine& machine;
  const MachineOptions& options;
  std::unique_ptr<llvm::Module> module;
  const llvm::DataLayout& layout;
  std::unordered_map<std::string, std::pair<llvm::Function*, FunctionInfo>> functions;
  llvm::IntegerType *i1, *i8, *i32, *i64;
  llvm::PointerType* ptr;

 private:
  void StartDebugInfo();
  std::unique_ptr<llvm::DIBuilder> debug_;
  llvm::DICompileUnit* debug_unit_ = nullptr;
  llvm::DIFile* DebugFile(const Optional<Span>& span);
  std::unordered_map<std::string, llvm::Constant*> texts_;
  llvm::AttrBuilder attributes_;
  llvm::StructType *tensor_ = nullptr, *any_ = nullptr;
};

/// Where an element below a byte is: in the byte `low` from bit `shift` on and, unless that is
/// null, in the byte `high`.
struct PackedBits {
  llvm::Value *low, *high, *shift;
};

/// Where a loop goes on and ends, and how many workspaces were there when it began.
struct LoopFrame {
  const Object* var;             ///< Null for `while`.
  llvm::BasicBlock *next, *end;  ///< No end: the iterations run in parallel.
  size_t workspaces;
  bool reduces = false;  ///< Its iterations may be combined in any order.
};

class FunctionGen
    : public Visitor<FunctionGen, PrimExprObj, VarObj, IntImmObj, FloatImmObj, StringImmObj,
                     CastObj, AddObj, SubObj, MulObj, DivObj, ModObj, FloorDivObj, FloorModObj,
                     MinObj, MaxObj, EQObj, NEObj, LTObj, LEObj, GTObj, GEObj, AndObj, OrObj,
                     NotObj, SelectObj, BufferLoadObj, RampObj, BroadcastObj, ShuffleObj, CallObj,
                     LetObj, StmtObj, LetStmtObj, AssertStmtObj, ForObj, WhileObj, BufferStoreObj,
                     AllocateObj, AllocateConstObj, DeclBufferObj, AttrStmtObj, SeqStmtObj,
                     IfThenElseObj, EvaluateObj> {
 public:
  FunctionGen(ModuleGen& gen, llvm::Function* function, DataType result,
              const Optional<Span>& span);
  /// Binds the parameters and emits the body.
  void EmitBody(const FunctionInfo& info);

  template <class T>
  void Visit(const T* node) {
    Locate(node->span);
    if constexpr (std::is_base_of_v<PrimExprObj, T>) {
      value_ = Emit(node);
    } else {
      Emit(node);
    }
  }

 private:
  friend class CallTable<FunctionGen, llvm::Value*>;
  using Value = llvm::Value;
  Value* Gen(const PrimExpr& e) {
    (*this)(e);
    return value_;
  }
  void Gen(const Stmt& s) { (*this)(s); }

  // ---- expressions (codegen_expr.cc, codegen_call.cc, codegen_memory.cc) ----
  Value* Emit(const PrimExprObj*);
  Value* Emit(const VarObj*);
  Value* Emit(const IntImmObj*);
  Value* Emit(const FloatImmObj*);
  Value* Emit(const StringImmObj*);
  Value* Emit(const CastObj*);
#define DECLARE(Name, ...) Value* Emit(const Name##Obj*)
  TVM_BINARY_NODES(DECLARE);
#undef DECLARE
  Value* Emit(const NotObj*);
  Value* Emit(const SelectObj*);
  Value* Emit(const BufferLoadObj*);
  Value* Emit(const RampObj*);
  Value* Emit(const BroadcastObj*);
  Value* Emit(const ShuffleObj*);
  Value* Emit(const CallObj*);
  struct CallRows;
  Value* Emit(const LetObj*);
  // ---- statements (codegen_stmt.cc) ----
  void Emit(const StmtObj*);
  void Emit(const LetStmtObj*);
  void Emit(const AssertStmtObj*);
  void Emit(const ForObj*);
  void Emit(const WhileObj*);
  void Emit(const BufferStoreObj*);
  void Emit(const AllocateObj*);
  void Emit(const AllocateConstObj*);
  void Emit(const DeclBufferObj*);
  void Emit(const AttrStmtObj*);
  void Emit(const SeqStmtObj*);
  void Emit(const IfThenElseObj*);
  void Emit(const EvaluateObj*);

  // ---- arithmetic ----
  Value* Arithmetic(llvm::Instruction::BinaryOps integer, llvm::Instruction::BinaryOps real,
                    const BinaryOpFields* op);
  Value* Compare(llvm::CmpInst::Predicate s, llvm::CmpInst::Predicate u, llvm::CmpInst::Predicate f,
                 const BinaryOpFields* op);
  Value* MinMax(const BinaryOpFields* op, bool max);
  Value* Logic(const BinaryOpFields* op, bool conjunction);
  /// Quotient and remainder, towards zero or down; 0 when the divisor is 0.
  Value* Divide(const BinaryOpFields* op, bool floor, bool remainder);
  Value* Divide(const BinaryOpFields* op, Value* a, Value* b, bool floor, bool remainder);
  Value* TruncatedRemainder(Value* a, Value* b);
  Value* FloatRemainder(Value* a, Value* b, bool floor);
  Value* Convert(Value* v, DataType from, DataType to);
  Value* FloatToInt(Value* v, DataType from, DataType to);
  Value* Shift(const CallObj* op, bool left);
  Value* Splat(Value* scalar, DataType type);
  Value* Lane(DataType type, uint64_t v) { return llvm::ConstantInt::get(gen_.TypeOf(type), v); }
  /// Whether the value is computed from loop and shape variables alone.
  bool IsIndex(Value* v) const { return llvm::isa<llvm::Constant>(v) || index_values_.count(v); }
  Value* MarkIndex(Value* v, bool index) {
    if (index && !llvm::isa<llvm::Constant>(v)) index_values_.insert(v);
    return v;
  }
  bool NonNegative(const PrimExpr& e) const;
  /// The value of this instruction that the block has already, or else `make()`. Tiles that were
  /// unrolled ask for the same indices again and again, and every pass pays for each.
  template <class F>
  Value* Once(unsigned opcode, const void* a, const void* b, F&& make);

  // ---- calls ----
  Value* IfThenElseValue(const CallObj* op);
  /// A branch that is hardly ever taken, as a call (codegen_rare.cc).
  Value* RareValue(const PrimExpr& value);
  Value* CallExtern(const CallObj* op, bool pure);
  Value* CallFunction(const CallObj* op, const GlobalVarObj* var);
  Value* CallIntrinsic(const CallObj* op);
  Value* Jump(const CallObj* op, bool leave);
  Value* UnaryMath(const CallObj* op, unsigned intrinsic);
  Value* VectorPart(const CallObj* op, int first);
  Value* StackAlloca(const CallObj* op);
  Value* PackedHandle(const std::string& name);
  Value* CallPackedLowered(const CallObj* op, bool by_symbol);
  Value* StructField(const CallObj* op, bool set);
  Value* Reinterpret(const CallObj* op);

  // ---- memory ----
  Value* ElementPointer(const Buffer& buffer, Value* index);
  /// A constant at the end of the index is a step of its own: neighbours share what is before it.
  Value* ElementPointer(const Buffer& buffer, const PrimExpr& index);
  llvm::Align AlignOf(const Buffer& buffer, const PrimExpr& index, int lanes) const;
  Value* LoadVector(const BufferLoadObj* op);
  /// Elements at known distances from a place, in one load: those between belong to the buffer.
  /// Null where lanes are at other places.
  llvm::Value* LoadNear(const BufferLoadObj* op, llvm::Type* type);
  /// The byte that holds bits of an element, and the shift to them.
  PackedBits PackedPlace(const Buffer& buffer, Value* index);
  Value* PackedWord(const PackedBits& place);
  Value* PackedLoad(const BufferLoadObj* op);
  void PackedStore(const BufferStoreObj* op);
  void StoreVector(const BufferStoreObj* op, Value* value);
  Value* ToMemory(Value* v, DataType type);
  Value* FromMemory(Value* v, DataType type);
  Value* AddressOf(const BufferLoadObj* load);
  template <class I>
  I* Annotate(I* access, const Buffer& buffer);
  void Store(Value* value, Value* pointer, llvm::Align align, const Buffer& buffer);

  // ---- control ----
  llvm::BasicBlock* Block(const llvm::Twine& name);
  llvm::AllocaInst* StackSlot(llvm::Type* type, uint64_t count, llvm::Align align,
                              const llvm::Twine& name);
  void EmitLoop(Value* begin, Value* end, Value* step, const Var& var,
                const Map<String, Any>& annotations, const Stmt& body, ForKind kind);
  void EmitParallel(const ForObj* op);
  llvm::Function* ParallelBody(const ForObj* op, const std::vector<Var>& captures,
                               const std::vector<Value*>& values, const std::string& name);
  llvm::Function* ParallelTask(const ForObj* op, llvm::Function* body,
                               const std::vector<Value*>& values, llvm::StructType* closure,
                               llvm::StructType* environment);
  void LaunchParallel(llvm::Function* task, llvm::StructType* environment, Value* data,
                      Value* extent);
  /// A loop that finds the largest or smallest number; false for any other one.
  bool EmitExtremum(const ForObj* op);
  /// Attributes of the function, "name" or "name=value" with spaces between.
  void AddAttributes(const std::string& text);
  void Branch(Value* cond, bool likely, llvm::BasicBlock* yes, llvm::BasicBlock* no);
  /// Raises unless `ok`; a cold block.
  void RaiseUnless(Value* ok, std::string_view cls, std::string_view format,
                   const std::vector<Value*>& values = {});
  void Raise(std::string_view cls, std::string_view format, const std::vector<Value*>& values);
  /// Leaves with -1 when `status` is not 0.
  void Propagate(Value* status);
  void Return(Value* status, Value* result = nullptr);
  void FreeWorkspaces(size_t down_to);
  /// On a device, by default the CPU.
  Value* AllocWorkspace(Value* bytes, DataType dtype, Value* device_type = nullptr,
                        Value* device_id = nullptr);
  void FreeWorkspace(Value* pointer);
  Value* CondOf(const PrimExpr& e, bool* likely);
  /// Whether the store combines a scalar with more and more values over the innermost loop.
  bool IsReduction(const BufferStoreObj* op, const PrimExpr& index) const;
  /// Instructions from here on come from this place of the program.
  void Locate(const Optional<Span>& span);

  ModuleGen& gen_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_;
  llvm::DISubprogram* scope_;
  DataType result_;
  Value* value_ = nullptr;
  std::unordered_map<const Object*, Value*> vars_;
  std::unordered_map<const Object*, int64_t> pointer_align_;
  std::unordered_set<Value*> index_values_;
  llvm::BasicBlock* once_block_ = nullptr;  ///< Where the values of `Once` are.
  std::map<std::tuple<unsigned, const void*, const void*>, Value*> once_;
  std::unordered_set<const Object*> shape_vars_, nonnegative_vars_, noalias_vars_, volatile_vars_;
  std::vector<LoopFrame> loops_;
  const Object* reduction_ = nullptr;  ///< The combination whose order is free.
  std::vector<Value*> workspaces_;
  uint64_t stack_bytes_ = 0;
  std::string asked_attributes_;  ///< By pragma_llvm_attributes.
  bool in_parallel_ = false;
  int streaming_loops_ = 0;  ///< Loops around whose stores bypass the caches.
};

template <class F>
llvm::Value* FunctionGen::Once(unsigned opcode, const void* a, const void* b, F&& make) {
  if (auto* block = b_.GetInsertBlock(); block != once_block_) {
    once_.clear();
    once_block_ = block;
  }
  std::tuple key{opcode, a, b};
  if (auto it = once_.find(key); it != once_.end()) return it->second;
  Value* value = make();  // which may end the block, and ask for others
  if (b_.GetInsertBlock() == once_block_) once_[key] = value;
  return value;
}

/// Error for a construct that earlier passes should have lowered or that LLVM code cannot express.
[[noreturn]] void Unsupported(const std::string& what, const Optional<Span>& span = {});

}  // namespace tvm::codegen
