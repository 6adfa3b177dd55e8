// SPDX-License-Identifier: Apache-2.0
// Unpacking and checking the arguments of a packed function.
#pragma once
#include <set>
#include <unordered_map>
#include <vector>

#include "tvm/tir/function.h"

namespace tvm::tir {

/// Functions that the entries of a module share.
struct EntryHelpers {
  static constexpr size_t kMostDims = 8;
  GlobalVar wrong_dtype{"__tvm_raise_wrong_dtype"}, wrong_kind{"__tvm_raise_wrong_kind"};
  std::vector<GlobalVar> unpack_tensor;  // by the number of dimensions
  EntryHelpers();
};

/// Builds the statements at the beginning of a packed entry: every argument is read and checked
/// once, and every variable of the signature is defined. Errors name the function, the parameter,
/// what was expected and what came.
class PackedArguments {
 public:
  PackedArguments(const PrimFunc& func, const std::string& name, const EntryHelpers& helpers);
  /// The function (args, index, name of the function, of the parameter, of the type, code, bits,
  /// lanes, alignment, extents…) that gives the data of a compact tensor on the CPU. These checks
  /// in each entry would be more code than most kernels.
  static PrimFunc TensorUnpacker(int ndim, const EntryHelpers& helpers);
  /// The numbers of dimensions of tensors that helpers unpack.
  const std::set<int>& unpacked_dims() const { return unpacked_dims_; }

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
  /// What is expected of a tensor, as numbers and texts or as parameters of an unpacker.
  struct Expected {
    PrimExpr index;        // among the arguments
    PrimExpr name, dtype;  // texts
    PrimExpr code, bits, lanes;
    PrimExpr alignment;  // int64, in bytes
  };
  PackedArguments(const PrimFunc& func, PrimExpr name, const EntryHelpers& helpers);
  Expected ExpectedOf(int i) const;
  /// Whether a helper can unpack the tensor: nothing about it has to be bound.
  bool IsPlain(int i) const;
  int64_t DeviceType() const;

  void CheckCount();
  void UnpackScalar(int i);
  void UnpackPlainTensor(int i);
  void UnpackTensor(int i);
  void BindShape(int i);
  void CheckShape(int i);
  void CheckStrides(int i);
  void BindData(int i);

  PrimExpr Bind(const Var& var, PrimExpr value);
  PrimExpr Let(const std::string& name, PrimExpr value);
  /// The message begins with the name of the function; texts that are known become part of it.
  void Check(const PrimExpr& cond, const char* error, const std::string& format,
             const Array<PrimExpr>& values = {});
  void CheckKind(const PrimExpr& name, const PrimExpr& type, const PrimExpr& cond,
                 const char* expected);
  /// `e` with the variables of the signature replaced; ValueError when one is not known.
  PrimExpr Resolve(const PrimExpr& e, const Buffer& buffer) const;
  PrimExpr Get(const PrimExpr& structure, const PrimExpr& index, int field, DataType t) const;

  struct Tensor {
    Expected expected;
    PrimExpr handle, shape, strides;
    std::vector<PrimExpr> extents;  // int64, as they came
    PrimExpr has_elements;          // no extent is 0
  };
  const PrimFunc& func_;
  PrimExpr name_;  // a text
  const EntryHelpers& helpers_;
  std::set<int> unpacked_dims_;
  Var self_, args_, num_args_, result_;
  PrimExpr device_id_;
  std::unordered_map<const VarObj*, PrimExpr> values_;
  std::unordered_map<int, Tensor> tensors_;
  std::vector<Stmt> steps_;  // lets, whose bodies are what follows, and checks
};

}  // namespace tvm::tir
