// SPDX-License-Identifier: Apache-2.0
// Symbolic sizes of a PyTorch program as expressions over symbolic variables.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <unordered_map>

#include "program.h"
#include "tvm/arith/analyzer.h"
#include "tvm/expr/op.h"
#include "tvm/expr/var.h"

namespace tvm::frontend::torch {

/// The symbols of one program. A symbol becomes a variable where an input defines it; one that
/// inputs show only inside of an expression (2*s0) is computed from the variable of that dimension.
class Symbols {
 public:
  /// What the program says of its symbols: they lie in these ranges.
  void SetRanges(const Map<String, Array<Any>>& ranges) { ranges_ = ranges; }
  /// The size; a symbol that is not known yet becomes a variable.
  PrimExpr Size(const Any& size);
  /// Defines what the sizes of all inputs show: first those that are a symbol alone.
  void DefineInputs(const Array<ProgramInput>& inputs);
  /// The variables that inputs or values have defined, by name.
  const std::unordered_map<std::string, PrimExpr>& values() const { return values_; }
  const Map<String, tir::Var>& input_vars() const { return input_vars_; }
  /// Knows the ranges of the symbols.
  arith::Analyzer* analyzer() const { return analyzer_.get(); }

 private:
  PrimExpr Parse(std::string_view text);
  void DefineDerived(const std::string& text);
  PrimExpr NewSymbol(const std::string& name);
  std::shared_ptr<arith::Analyzer> analyzer_ = std::make_shared<arith::Analyzer>();
  Map<String, Array<Any>> ranges_;
  std::unordered_map<std::string, PrimExpr> values_, dims_;
  Map<String, tir::Var> input_vars_;
  std::set<std::string>* names_ = nullptr;  // where Parse leaves the symbols it meets
};

}  // namespace tvm::frontend::torch
