// SPDX-License-Identifier: Apache-2.0
// TIR -> C. A ModuleText makes one C file of lowered functions, a FunctionText one function of it.
// - A function gives 0, or -1 with the error of tvm-ffi set; callers pass -1 on.
// - The text is C99 and C++ at once, for compilers that take every file for C++.
#pragma once
#include "backend/source/function.h"

namespace tvm::codegen::c {
using source::Apply, source::HelperRow, source::HolderBits, source::Identifier, source::IsPacked,
    source::MemoryName, source::Nothing, source::Number, source::PointerType, source::Quoted,
    source::TypeName, source::Value;
using source::kEqual, source::kPrimary, source::kProduct, source::kSum, source::kUnary;

/// The C functions that talk to other threads and to the runtime (helpers.cc).
const std::vector<HelperRow>& RuntimeHelpers();
/// The call in `if call != 0: return -1`, or null.
const CallObj* StatusCheck(const IfThenElseObj* op);

class ModuleText : public source::FileWriter {
 public:
  /// Vectors of up to `vector_bits` bits are written as such, wider ones as loops over their lanes.
  ModuleText(const FunctionList& functions, int vector_bits);
  /// The C file, and its header.
  std::string Source() const;
  std::string Header() const;

  /// The static variable for a function that is looked up by name.
  std::string PackedSlot(const std::string& name);
  /// The type of vectors of numbers, integers without sign: they wrap. It may be anywhere in
  /// memory.
  std::string VectorType(DataType t);
  /// The function of two vectors of floats that gives the larger (smaller) of each pair, or NaN.
  std::string VectorExtremum(DataType t, bool is_max);
  const FunctionInfo* Find(const std::string& name) const;
  /// Whether a call gives the status of a function of the module, and nothing else.
  bool IsStatus(const CallObj* call) const;
  std::string SymbolOf(const FunctionInfo& info) const;
  std::string Prototype(const FunctionInfo& info, const std::vector<std::string>& params) const;

 private:
  FunctionList functions_;
  std::unordered_map<std::string, size_t> by_name_;
  std::map<std::string, std::string> slots_;
  std::set<std::string> vectors_;  ///< Types and functions that the file has.
};

class FunctionText : public source::FunctionWriter {
 public:
  FunctionText(ModuleText& module, const FunctionInfo& info)
      : FunctionWriter(module, info), module_(module) {}
  /// The definition of the function.
  std::string Define();

 private:
  friend class CallTable<FunctionText, Value>;
  // ---- expressions (codegen_call.cc, codegen_packed.cc) ----
  Value Emit(const CallObj*) final;
  Value CallExtern(const CallObj* op, bool pure);
  Value CallFunction(const CallObj* op, const GlobalVarObj* var);
  Value CallPackedLowered(const CallObj* op, bool by_symbol);
  Value StructField(const CallObj* op, bool set);
  Value StackAlloca(const CallObj* op);
  Value AtomicAdd(const CallObj* op);
  Value Return(const CallObj* op);
  /// Leaves with an error: (class, printf format, values).
  void Raise(const std::string& cls, const std::string& format, const std::vector<Value>& values,
             const std::vector<DataType>& types);

  // ---- vectors (codegen_vector.cc) ----
  void Emit(const BufferStoreObj*) final;
  Value GenVector(const PrimExpr& e);
  std::string VectorAt(const Buffer& buffer, const PrimExpr& index);

  // ---- statements (codegen_stmt.cc) ----
  using FunctionWriter::Emit;
  void Emit(const LetStmtObj*) final;
  void Emit(const AssertStmtObj*) final;
  void Emit(const ForObj*) final;
  void Emit(const AllocateObj*) final;
  void Emit(const IfThenElseObj*) final;
  void EmitParallel(const ForObj* op);
  std::string ConstantArray(const std::string& type, const std::string& name,
                            const std::string& list) const final;
  std::string Symbol() const final { return module_.SymbolOf(info_); }

  // ---- leaving ----
  size_t Held() const final { return workspaces_.size(); }
  void Release(size_t down_to) final;
  void BlockBody(const Stmt& body) final;
  void CheckJump(const CallObj* op, bool leaves) final;
  /// Leaves when `status` is not 0.
  void Propagate(const std::string& status);
  /// The statements that leave the function with a status.
  void Leave(const std::string& status);

  ModuleText& module_;
  std::string locals_;
  std::unordered_map<const Object*, std::string> any_arrays_;  ///< Parameters of packed entries.
  std::vector<std::string> workspaces_;
  uint64_t stack_bytes_ = 0;
  bool in_parallel_ = false;
};

}  // namespace tvm::codegen::c
