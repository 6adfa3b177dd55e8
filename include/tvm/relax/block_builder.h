// SPDX-License-Identifier: Apache-2.0
// BlockBuilder: programs in normal form, built binding by binding.
//
//   BlockBuilder bb = BlockBuilder::Create();
//   bb->BeginDataflowBlock();
//   Var y = bb->Emit(Call(Op::Get("relax.add"), {x, x}));
//   BindingBlock block = bb->EndBlock();
#pragma once
#include <memory>

#include "tvm/arith/analyzer.h"
#include "tvm/relax/expr.h"

namespace tvm::relax {

/// Builds programs in normal form: arguments of calls, fields of tuples, conditions and bodies are
/// leaves (or tuples of leaves), whatever else stands there gets a binding of its own. Every
/// expression that leaves the builder has struct info. After an error the builder is as it was
/// before the call.
struct BlockBuilderObj : NodeObj {
  static constexpr bool _type_mutable = true;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindUnsupported;
  static void Fields(auto&&) {}
  BlockBuilderObj();
  BlockBuilderObj(const BlockBuilderObj&);  // starts from the same module
  ~BlockBuilderObj();

  // ---- the module -----------------------------------------------------------------------------
  /// The module as it is now, as a copy.
  IRModule GetModule() const;
  /// The same, to look something up in: the next change of the builder may change it.
  const IRModule& module() const;
  /// The same with names of functions in order: public ones have theirs, private ones yield.
  IRModule Finalize();
  /// Adds a function under a name like `name_hint`; when the module has an equal one, it is that
  /// one's variable.
  GlobalVar AddFunction(const BaseFunc& func, const String& name_hint);
  void UpdateFunction(const GlobalVar& var, const BaseFunc& func);

  // ---- scopes and blocks ----------------------------------------------------------------------
  /// Symbolic variables that the parameters define are known until EndScope.
  void BeginScope(const Optional<Array<Var>>& params = {});
  void BeginScopeWith(const Array<tir::Var>& shape_vars);
  void EndScope();
  void BeginBindingBlock();
  void BeginDataflowBlock();
  BindingBlock EndBlock();
  /// Ends the block and leaves it in the sequence around it.
  void CloseBlock();
  /// Adds a block in normal form to the sequence.
  void AppendBlock(const BindingBlock& block);
  /// A run of blocks: dataflow blocks may begin and end inside of it, and bindings between them
  /// make plain blocks.
  void BeginSequence();
  Array<BindingBlock> EndSequence();
  bool CurrentBlockIsDataflow() const;
  /// How many blocks are open; UnwindTo closes those above it after an error.
  size_t Depth() const;
  void UnwindTo(size_t depth);

  // ---- bindings -------------------------------------------------------------------------------
  /// Binds the expression, in normal form, to a new variable.
  Var Emit(const Expr& expr, const String& name_hint = "");
  /// Binds it to a variable that is seen behind the dataflow block.
  Var EmitOutput(const Expr& expr, const String& name_hint = "");
  Var EmitMatchCast(const Expr& value, const StructInfo& info, const String& name_hint = "");
  /// Adds a binding that is in normal form already.
  void EmitNormalized(const Binding& binding);
  /// The value of a variable that this builder bound, or nothing.
  Optional<Expr> LookupBinding(const Var& var) const;

  // ---- normal form ----------------------------------------------------------------------------
  /// The expression in normal form, nested values bound in the current block.
  Expr Normalize(const Expr& expr);
  /// The same as a leaf.
  Expr NormalizeArgument(const Expr& expr);
  /// `name`, or `name1`, `name2`, … when it is taken; it is taken from now on.
  String GetUniqueName(const String& name);
  /// Facts about dimensions: those of parameters are not negative.
  arith::Analyzer* analyzer() const;

  struct Impl;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.BlockBuilder", BlockBuilderObj, NodeObj);

 private:
  friend struct BlockBuilder;
  std::unique_ptr<Impl> impl_;
};
struct BlockBuilder : ObjectRef {
  /// A builder that begins with a copy of the module. Operators' own normal forms are applied
  /// unless a program shall stay as it was written.
  static BlockBuilder Create(const Optional<IRModule>& mod = {}, bool apply_f_normalize = true);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(BlockBuilder, ObjectRef, BlockBuilderObj);
};

/// What a call gives, by the operator's inference or the callee's signature.
StructInfo InferCall(const Call& call, const BlockBuilder& builder);
/// Whether the expression can stand as an argument.
bool IsLeaf(const Expr& expr);
/// A leaf, or a tuple of such.
bool IsLeafOrTuple(const Expr& expr);
/// The sequence in normal form of these blocks and this body: `before` itself when nothing changed.
SeqExpr MakeSeq(const SeqExpr& before, Array<BindingBlock> blocks, const Expr& body);
/// A variable that is seen where `var` is, with another struct info: it has the same identity.
Var WithStructInfo(const Var& var, const StructInfo& info);

}  // namespace tvm::relax
