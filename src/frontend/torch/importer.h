// SPDX-License-Identifier: Apache-2.0
// The import of one program: values of its nodes, and the function that is built from them.
#pragma once
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "program.h"
#include "symbols.h"
#include "tvm/relax/block_builder.h"

namespace tvm::frontend::torch {
struct ConverterInfo;

/// Converts programs, node by node. What nodes have given so far is seen by name, so that a user's
/// own conversion can read and set it.
struct ImporterObj : NodeObj {
  static constexpr bool _type_mutable = true;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindUnsupported;
  static void Fields(auto&&) {}

  relax::BlockBuilder builder;
  std::unordered_map<std::string, Any> env;
  Symbols symbols;
  DataType default_dtype = DataType::Float(32);
  /// Inputs of complex numbers, as tensors of pairs.
  std::vector<std::pair<std::string, relax::Expr>> complex_inputs;

  /// The value of an argument: references replaced by what the nodes gave.
  Any Resolve(const Any& arg);
  /// The values of the nodes, one after the other.
  void ConvertNodes(const Array<GraphNode>& nodes);
  /// The operator applied to values.
  Any Apply(const char* target, const Array<Any>& args);
  /// The result of a program inside of this one.
  Any Inline(const Program& program, const Array<Any>& args);
  /// Whether a getitem of that index reads the node, or anything else does.
  bool Used(const GraphNodeObj* node, size_t item) const;
  StructInfo StructInfoOf(const Any& meta);
  /// A number that no other call of the program has.
  int64_t NextCall() { return calls_++; }
  /// A node has changed what has that name: so has what that is a view of, and so have all other
  /// views of that.
  void Assign(const std::string& name, Any value, const GraphNodeObj* node);
  /// The inputs that the program has changed.
  const std::unordered_set<std::string>& mutated() const { return mutated_; }

  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.frontend.torch.Importer", ImporterObj, NodeObj);

 private:
  Any Convert(const GraphNodeObj* node);
  /// The same where an argument is complex.
  Any ConvertComplex(const GraphNodeObj* node, const ConverterInfo& info, std::vector<Any> args);
  Any ImagOf(const Any& arg);
  /// Remembers that the node's value is a view of its first argument.
  void NoteView(const GraphNodeObj* node);
  /// The node has changed its first argument.
  void Mutate(const GraphNodeObj* node);
  /// The base of a view with the view's elements replaced.
  Any Unview(const GraphNodeObj* view, const Any& base, const Any& value);
  Any Complete(const GraphNodeObj* node, const Any& value, const Any& meta);
  std::unordered_map<std::string, std::unordered_set<int64_t>> items_;
  std::unordered_map<std::string, const GraphNodeObj*> views_;
  std::vector<const GraphNodeObj*> view_order_;
  std::unordered_set<std::string> mutated_;
  int64_t calls_ = 0;
};
struct Importer : ObjectRef {
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Importer, ObjectRef, ImporterObj);
};

/// The inputs that a program may change: its own mutations, what operators change in place, and
/// running statistics in training.
std::unordered_set<std::string> ChangedInputs(const Program& program);
/// "aten.add.Tensor" for "aten.add_.Tensor", or "" for an operator that changes nothing in place.
std::string FunctionalTarget(const std::string& target);

struct ImportOptions {
  bool keep_params_as_input = false;
  bool unwrap_unit_return_tuple = false;
  bool no_bind_return_tuple = false;
  bool keep_structure = false;  // of the result: a traced graph may return a bare value
  std::string name = "main";
};
/// float32[2, s0]: what is known of a value, as text.
std::string TextOfMeta(const Any& meta);
/// Adds the function of the program to the builder's module.
void ImportProgram(const Importer& importer, const Program& program, const ImportOptions& options);

}  // namespace tvm::frontend::torch
