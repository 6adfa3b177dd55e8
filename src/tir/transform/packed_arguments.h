// SPDX-License-Identifier: Apache-2.0
// Unpacking and checking the arguments of a packed function.
#pragma once
#include <unordered_map>
#include <vector>

#include "tvm/tir/function.h"

namespace tvm::tir {

/// Builds the statements at the beginning of a packed entry: every argument is read and checked
/// once, and every variable of the signature is defined. Errors name the function, the parameter,
/// what was expected and what came.
class PackedArguments {
 public:
  /// `raise_wrong_dtype` and `raise_wrong_kind` are functions of the module that raise those
  /// errors.
  PackedArguments(const PrimFunc& func, std::string name, GlobalVar raise_wrong_dtype,
                  GlobalVar raise_wrong_kind);

  /// The parameters (self, args, num_args, result) of the entry.
  Array<Var> params() const { return {self_, args_, num_args_, result_}; }
  const Var& result() const { return result_; }
  /// What stands for a variable of the function inside the entry.
  PrimExpr ValueOf(const Var& var) const;
  /// The device of the tensors, for functions that do not run on the CPU; undefined without
  /// tensors.
  const PrimExpr& device_id() const { return device_id_; }
  /// The alignment in bytes that was checked for the data of a buffer.
  static int64_t CheckedAlignment(const Buffer& buffer);
  /// The checks around `body`.
  Stmt Wrap(Stmt body) const;

 private:
  void CheckCount();
  void UnpackScalar(int i);
  void UnpackTensor(int i);
  void BindShape(int i);
  void CheckShape(int i);
  void CheckStrides(int i);
  void BindData(int i);

  PrimExpr Bind(const Var& var, PrimExpr value);
  PrimExpr Let(const std::string& name, PrimExpr value);
  void Check(const PrimExpr& cond, const char* error, const std::string& format,
             const Array<PrimExpr>& values = {});
  void CheckKind(int i, const PrimExpr& cond, const char* expected);
  /// `e` with the variables of the signature replaced; ValueError when one is not known.
  PrimExpr Resolve(const PrimExpr& e, const Buffer& buffer) const;
  PrimExpr Get(const PrimExpr& structure, int index, int field, DataType t) const;

  struct Tensor {
    PrimExpr handle, shape, strides;
    std::vector<PrimExpr> extents;  // int64, as they came
    PrimExpr has_elements;          // no extent is 0
  };
  const PrimFunc& func_;
  std::string name_;
  GlobalVar raise_wrong_dtype_, raise_wrong_kind_;
  Var self_, args_, num_args_, result_;
  PrimExpr device_id_;
  std::unordered_map<const VarObj*, PrimExpr> values_;
  std::unordered_map<int, Tensor> tensors_;
  std::vector<Stmt> steps_;  // lets, whose bodies are what follows, and checks
};

}  // namespace tvm::tir
