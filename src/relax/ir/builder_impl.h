// SPDX-License-Identifier: Apache-2.0
// The state of a BlockBuilder: the module, open scopes and blocks, names, values of variables.
#pragma once
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tvm/relax/block_builder.h"

namespace tvm::relax {

/// Names that are taken, each with the last number that was tried behind it.
class NameTable {
 public:
  String Unique(std::string_view hint);
  void Take(std::string_view name) { taken_.try_emplace(std::string(name), 0); }

 private:
  std::unordered_map<std::string, int> taken_;
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

  IRModule mod;
  bool apply_f_normalize;
  NameTable var_names, function_names;
  std::vector<Frame> frames;
  std::vector<Scope> scopes;
  std::unordered_map<const Object*, std::pair<Id, Expr>> values;  // by Id
  std::unordered_multimap<int64_t, GlobalVar> by_hash;            // of the module's functions
  bool hashed = false;
  mutable std::unique_ptr<arith::Analyzer> analyzer;
  mutable std::vector<PrimExpr> not_negative;  // not told to the analyzer yet

  Frame& Top();
  void Define(const StructInfo& info);
  /// Ends the open block of a sequence.
  void Flush(Frame* frame);
  Array<BindingBlock> CloseSequence();
  Var NewVar(bool is_dataflow, const String& name_hint, const StructInfo& info);
  void Push(const Binding& binding);
};

}  // namespace tvm::relax
