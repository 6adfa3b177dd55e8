// SPDX-License-Identifier: Apache-2.0
// Building executables of the virtual machine, instruction by instruction.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "tvm/runtime/vm.h"

namespace tvm::runtime::vm {

/// One function at a time; a function may be called before it is defined. What is never defined is
/// a packed function, found when a virtual machine loads the executable.
struct ExecBuilderObj : Object {
  static constexpr bool _type_mutable = true;

  /// Index of the function of a name.
  int64_t DeclareFunction(const std::string& name, FunctionKind kind = FunctionKind::kPacked);
  void BeginFunction(const std::string& name, std::vector<std::string> params);
  void EndFunction();
  /// A function that a module defines as `__vmtir__<name>`.
  void DefineCompiled(const std::string& name, std::vector<std::string> params,
                      int64_t num_registers);

  /// Says what goes in and comes out of a function: FunctionInfo::signature.
  void SetSignature(const std::string& name, std::string signature);

  /// Equal constants are stored once.
  Operand ConvertConstant(const Any& value);
  void EmitCall(const std::string& name, const std::vector<Operand>& args,
                Operand dst = {kVoidRegister});
  void EmitRet(Operand result);
  void EmitGoto(int64_t offset);
  void EmitIf(Operand condition, int64_t false_offset);
  /// How many instructions there are, all functions together; the index of the next one.
  int64_t NumInstructions() const { return static_cast<int64_t>(exec_->offsets.size()); }
  /// Has the jump of that index, emitted before, lead to the next instruction.
  void JumpHere(int64_t jump);

  /// The executable; registers are numbered by first use. ValueError for one that is read before
  /// anything is written to it.
  Module Get();

  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.ExecBuilder", ExecBuilderObj, Object);

 private:
  void Emit(std::initializer_list<int64_t> words);
  ExecutableObj* exec() { return exec_.get(); }

  ObjectPtr<ExecutableObj> exec_ = ffi::make_object<ExecutableObj>();
  std::unordered_map<std::string, int64_t> function_index_;
  std::unordered_multimap<size_t, int64_t> constant_index_;  // by hash of the content
  int64_t current_ = -1;                                     // the function that is being built
};
class ExecBuilder : public ObjectRef {
 public:
  ExecBuilder() : ObjectRef(ffi::make_object<ExecBuilderObj>()) {}
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(ExecBuilder, ObjectRef, ExecBuilderObj);
};

}  // namespace tvm::runtime::vm
