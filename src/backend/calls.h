// SPDX-License-Identifier: Apache-2.0
// The table from operators to what a code generator writes for them, with the rows that all code
// generators have in common.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <unordered_map>

#include "tvm/expr/builtin.h"

namespace tvm::codegen {
using namespace tvm::tir;  // NOLINT(*)

/// Operators whose value is that of their argument.
inline std::array<Op, 3> Annotations() {
  return {builtin::likely(), builtin::ignore_loop_partition(), builtin::tvm_thread_invariant()};
}
/// The number of large_uint_imm, where its parts are constants.
inline std::optional<uint64_t> LargeUint(const CallObj* op) {
  auto *low = op->args[0].as<IntImmObj>(), *high = op->args[1].as<IntImmObj>();
  if (!low || !high) return std::nullopt;
  return static_cast<uint64_t>(high->value) << 32 |
         (static_cast<uint64_t>(low->value) & 0xffffffff);
}
/// What the error about a call without a row says.
inline std::string NotLowered(const CallObj* op) {
  auto* named = op->op.as<OpObj>();
  return "expected LowerIntrin to have lowered the call of " +
         (named ? std::string(named->name) : std::string("?"));
}

/// Rows of handlers `Value f(Generator*, const CallObj*)`.
template <class Generator, class Value>
class CallTable {
 public:
  using Handler = Value (*)(Generator*, const CallObj*);
  using G = Generator*;
  using C = const CallObj*;

  void Add(const Op& op, Handler handler) { rows_.emplace(op.get(), handler); }
  /// Null where the operator has no row.
  Handler Find(const CallObj* op) const {
    auto it = rows_.find(op->op.get());
    return it == rows_.end() ? nullptr : it->second;
  }
  /// Annotations, shifts, bits as another type, jumps.
  void AddCommon() {
    for (const Op& same : Annotations()) {
      Add(same, [](G g, C o) -> Value { return g->Gen(o->args[0]); });
    }
    Add(builtin::shift_left(), [](G g, C o) -> Value { return g->Shift(o, true); });
    Add(builtin::shift_right(), [](G g, C o) -> Value { return g->Shift(o, false); });
    Add(builtin::reinterpret(), [](G g, C o) -> Value { return g->Reinterpret(o); });
    Add(builtin::break_loop(), [](G g, C o) -> Value { return g->Jump(o, true); });
    Add(builtin::continue_loop(), [](G g, C o) -> Value { return g->Jump(o, false); });
  }
  /// What functions of the host call: structures of tvm-ffi, packed functions, C functions.
  void AddHost() {
    Add(builtin::tvm_struct_get(), [](G g, C o) -> Value { return g->StructField(o, false); });
    Add(builtin::tvm_struct_set(), [](G g, C o) -> Value { return g->StructField(o, true); });
    Add(builtin::tvm_stack_alloca(), [](G g, C o) -> Value { return g->StackAlloca(o); });
    Add(builtin::call_extern(), [](G g, C o) -> Value { return g->CallExtern(o, false); });
    Add(builtin::call_pure_extern(), [](G g, C o) -> Value { return g->CallExtern(o, true); });
    for (const Op& packed :
         {builtin::tvm_call_packed_lowered(), builtin::tvm_call_trace_packed_lowered()}) {
      Add(packed, [](G g, C o) -> Value { return g->CallPackedLowered(o, false); });
    }
    Add(builtin::tvm_call_cpacked_lowered(),
        [](G g, C o) -> Value { return g->CallPackedLowered(o, true); });
  }

 private:
  std::unordered_map<const Object*, Handler> rows_;
};

}  // namespace tvm::codegen
