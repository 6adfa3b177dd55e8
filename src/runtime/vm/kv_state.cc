// SPDX-License-Identifier: Apache-2.0
// vm.builtin.kv_state_*: what all states of sequences can do.
#include "runtime/vm/kv_state.h"

namespace tvm::runtime::vm {
namespace {
void CheckCount(const char* name, ffi::PackedArgs args, int low) {
  if (args.size() != low && args.size() != low + 1) {
    TVM_FFI_THROW(TypeError) << "vm.builtin." << name << ": expected " << low << " or " << low + 1
                             << " arguments, got " << args.size();
  }
}
/// state, parent, child[, position]
void ForkSequence(ffi::PackedArgs args, Any*) {
  CheckCount("kv_state_fork_sequence", args, 3);
  args[0].cast<KVState>()->ForkSequence(args[1].cast<int64_t>(), args[2].cast<int64_t>(),
                                        args.size() == 4 ? args[3].cast<int64_t>() : -1);
}
/// state, sequences, lengths[, parents of tokens]
void BeginForward(ffi::PackedArgs args, Any*) {
  CheckCount("kv_state_begin_forward", args, 3);
  args[0].cast<KVState>()->BeginForward(
      args[1].cast<Shape>(), args[2].cast<Shape>(),
      args.size() == 4 ? args[3].cast<Optional<Shape>>() : Optional<Shape>());
}

TVM_REGISTER() {
  KVStateObj::RuntimeTypeIndex();
  Def(
      "vm.builtin.kv_state_clear", [](KVState state) { state->Clear(); }, "Forgets all sequences.",
      Arg("state"));
  Def(
      "vm.builtin.kv_state_add_sequence", [](KVState state, int64_t id) { state->AddSequence(id); },
      "A new sequence without tokens.", Arg("state"), Arg("seq_id"));
  Def(
      "vm.builtin.kv_state_remove_sequence",
      [](KVState state, int64_t id) { state->RemoveSequence(id); }, "Forgets a sequence.",
      Arg("state"), Arg("seq_id"));
  Def(
      "vm.builtin.kv_state_popn", [](KVState state, int64_t id, int64_t n) { state->PopN(id, n); },
      "Forgets the last tokens of a sequence.", Arg("state"), Arg("seq_id"), Arg("n"));
  Def(
      "vm.builtin.kv_state_end_forward", [](KVState state) { state->EndForward(); },
      "After a model ran.", Arg("state"));
  Function::SetGlobal("vm.builtin.kv_state_fork_sequence", Function::FromPacked(&ForkSequence));
  Function::SetGlobal("vm.builtin.kv_state_begin_forward", Function::FromPacked(&BeginForward));
}
}  // namespace
}  // namespace tvm::runtime::vm
