// SPDX-License-Identifier: Apache-2.0
// Builtins for what outlives a call: tensors that the machine keeps under a name, and arguments
// that are written to.
#include "runtime/copy_of.h"
#include "runtime/vm/program.h"

namespace tvm::runtime::vm {
namespace {

/// `initial` until the first write.
Tensor Read(Any context, String name, Tensor initial) {
  return MachineOf(context, "state.read")->GetState(name).value_or(initial);
}
/// A copy is kept: the value's own memory may serve another call.
void Write(Any context, String name, Tensor value) {
  MachineOf(context, "state.write")->SetState(name, CopyOf(value));
}
void Assign(Tensor target, Tensor value) { CopyTensor(value, target); }

TVM_REGISTER() {
  Def("vm.builtin.state.read", &Read, "What the machine keeps under a name.", Arg("vm"),
      Arg("name"), Arg("initial"));
  Def("vm.builtin.state.write", &Write, "Keeps a copy of a tensor under a name.", Arg("vm"),
      Arg("name"), Arg("value"));
  Def("vm.builtin.state.copy", &CopyOf, "A copy of a tensor.", Arg("value"));
  Def("vm.builtin.state.assign", &Assign, "Writes a tensor into the memory of another.",
      Arg("target"), Arg("value"));
}

}  // namespace
}  // namespace tvm::runtime::vm
