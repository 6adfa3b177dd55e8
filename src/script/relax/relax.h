// SPDX-License-Identifier: Apache-2.0
// How Relax prints: what its handlers share.
#pragma once
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "script/tir/tir.h"
#include "tvm/ir/op.h"
#include "tvm/relax/expr.h"

namespace tvm::script {

/// `R.name`
extern const Language kRelax;
inline Printer& Relax(Printer& p, std::string_view name) { return p.In(kRelax, name); }

/// A dimension or scalar: int64 constants are bare.
void PrintDim(Printer& p, const PrimExpr& e);
/// An expression inside a line.
void PrintRelax(Printer& p, const relax::Expr& e);
/// R.ExternFunc("name")
void PrintExtern(Printer& p, const relax::ExternFuncObj* n);
/// Lines for the bindings of a sequence; its body is left to the caller.
void PrintBlocks(Printer& p, const relax::SeqExprObj* seq);
/// Lines that declare what a fragment uses and does not define.
void DeclareFreeRelax(Printer& p, const ObjectRef& fragment);

/// The function R.<name> of an operator: how its parameters become a call.
struct OperatorForm {
  enum Role { kArgument, kAttribute, kInfo, kRest };
  const FnInfo* function = nullptr;  // null: the operator has none
  std::vector<Role> roles;           // of the function's parameters
  size_t required = 0, arguments = 0;
  bool has_rest = false, says_info = false;
};
const OperatorForm& FormOf(Printer& p, const OpObj* op);

/// What printing Relax has to remember.
struct RelaxState {
  explicit RelaxState(Printer&) {}
  bool signature = false;  // symbolic dimensions are texts: their variables are not in scope yet
  std::unordered_set<const Object*> used;  // variables that are read somewhere
  std::unordered_map<const Object*, OperatorForm> forms;
};

}  // namespace tvm::script
