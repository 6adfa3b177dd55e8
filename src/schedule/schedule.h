// SPDX-License-Identifier: Apache-2.0
// What the parts of a schedule know of each other.
#pragma once
#include "tvm/schedule/primitive.h"

namespace tvm::tir {

inline uint64_t SymbolKey(const ObjectRef& rv) { return reinterpret_cast<uint64_t>(rv.get()); }
/// What a block or loop variable stands for; refuses stale and foreign ones.
NodeId ResolveNode(const ScheduleObj* self, const ObjectRef& rv);
/// The expression with the schedule's variables replaced by their values, simplified.
PrimExpr ResolveExpr(const ScheduleObj* self, const PrimExpr& expr);
/// The variable of a function's parameters that `var` is or, read from the text of a trace, was a
/// copy of: one with its name. Undefined: none, or `var` itself.
PrimExpr OwnVar(const ScheduleObj* self, const Var& var);
/// The next random number; one seed gives one sequence everywhere.
uint64_t NextRandom(uint64_t* state);
/// Raises InternalError if the index does not agree with the program.
void Verify(const ScheduleState& state);
/// Appends the instruction of a call that succeeded.
void Record(ScheduleObj* self, PrimitiveCall* call);
/// Raises ScheduleError: the primitive, the reason and, as the level says, the program with what it
/// is about underlined.
[[noreturn]] void ThrowScheduleError(const ScheduleObj* self, const Primitive& primitive,
                                     const Refusal& refusal);

/// The names of random variables in a trace: b0, l1, v2, … in the order of their definition.
class RVNames {
 public:
  RVNames() = default;
  /// Names that say nothing: what an instruction is called by itself.
  explicit RVNames(std::string every) : every_(std::move(every)) {}
  void Define(const Array<Any>& outputs);
  /// The name of a variable, or empty.
  std::string Of(const ObjectRef& rv) const;

 private:
  std::unordered_map<const Object*, std::string> names_;
  std::string every_;
};
/// The instructions that a trace is about: all, or those before EnterPostproc.
std::vector<Instruction> Selected(const Trace& trace, bool remove_postproc);
/// Applies one instruction of a trace with its variables already mapped; returns the new outputs.
Array<Any> ApplyInstruction(ScheduleObj* self, const InstructionKind& kind,
                            const Array<Any>& inputs, const Array<Any>& attrs, const Any& decision);

}  // namespace tvm::tir
