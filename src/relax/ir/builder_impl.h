// SPDX-License-Identifier: Apache-2.0
// The state of a BlockBuilder: the module, open scopes and blocks, names, values of variables.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tvm/relax/block_builder.h"

namespace tvm::relax {

/// Names that are taken. Those made by numbers behind a name are not kept one by one: all up to the
/// last number are taken.
/// Whether a name has only characters that stay in normal form.
bool IsIdentifier(std::string_view name);

class NameTable {
 public:
  String Unique(std::string_view hint);
  void Take(std::string_view name);

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  bool IsTaken(std::string_view name) const;
  /// Whether a number behind another name gives this one.
  bool IsNumbered(std::string_view name) const;
  std::unordered_map<std::string, int, Hash, std::equal_to<>> last_;  // number behind a name
  bool some_end_in_digit_ = false;  // else no number makes a name that is taken
};

struct BlockBuilderObj::Impl {
  struct Frame {
    bool is_dataflow = false;
    bool is_sequence = false;  // may be split into several blocks
    std::vector<Binding> bindings;
    Array<BindingBlock> finished;  // of a sequence
    /// What nested expressions were bound to; an object used twice is bound once.
    std::unordered_map<const Object*, std::pair<Expr, Var>> bound;
  };
  struct Scope {
    std::vector<const tir::VarObj*> defined;
    Optional<Array<Var>> params;  // kept: they own the variables
  };
  explicit Impl(const Optional<IRModule>& start, bool apply_f_normalize);

  IRModule mod;           // that of whoever made the builder until something changes
  bool owns_mod = false;  // from then on a copy
  bool apply_f_normalize;
  NameTable var_names, function_names;
  std::vector<Frame> frames;
  std::vector<Scope> scopes;
  // Few ask for values and new names: what was bound is entered into the tables when someone does.
  std::unordered_map<const Object*, std::pair<Id, Expr>> values;  // by Id
  /// Branches in normal form. A mutator that rewrites nested branches from the inside normalises
  /// each of them again with all that are around it.
  std::unordered_map<const Object*, SeqExpr> branches;
  std::vector<Binding> without_value;                       // not in `values` yet
  std::vector<Id> without_name;                             // not in `var_names` yet
  std::unordered_multimap<uint64_t, GlobalVar> by_outline;  // of the module's functions
  std::unordered_map<const Object*, uint64_t> outlines;     // by GlobalVar
  /// Functions of one global symbol, or of none: others are never equal. What is alone has no
  /// outline.
  struct Alike {
    std::vector<GlobalVar> without_outline;  // some of them may be gone
    bool has_outlines = false;
  };
  std::unordered_map<std::string, Alike> alike;
  bool is_indexed = false;  // whether functions are in the tables
  mutable std::unique_ptr<arith::Analyzer> analyzer;
  mutable std::vector<PrimExpr> not_negative;  // not told to the analyzer yet

  Frame& Top();
  /// The module, to be changed.
  IRModuleObj* Own();
  void IndexFunctions();
  void IndexFunction(const GlobalVar& var, const BaseFunc& func);
  void AddOutline(const GlobalVar& var, uint64_t outline);
  /// The outline of a function that is to come, or nothing where none is alike.
  std::optional<uint64_t> OutlineAmong(Alike* alike, const BaseFunc& func);
  void RemoveOutline(const GlobalVar& var);
  String UniqueName(std::string_view hint);
  void Define(const StructInfo& info);
  /// Ends the open block of a sequence.
  void Flush(Frame* frame);
  Array<BindingBlock> CloseSequence();
  Var NewVar(bool is_dataflow, const String& name_hint, const StructInfo& info);
  void Push(const Binding& binding);
};

}  // namespace tvm::relax
