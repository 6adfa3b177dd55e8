// SPDX-License-Identifier: Apache-2.0
// Functions of the global registry as parts of a program.
#include "tvm/ir/env_func.h"

namespace tvm {

void EnvFuncObj::Init() {
  auto found = Function::GetGlobal(name);
  if (!found.has_value()) {
    TVM_FFI_THROW(ValueError) << "EnvFunc: expected the name of a global function, got '" << name
                              << "'";
  }
  func = *found;
}
EnvFunc EnvFunc::Get(const String& name) {
  return New<EnvFunc>([&](EnvFuncObj* n) { n->name = name; });
}

TVM_REGISTER() {
  RegisterNode<EnvFuncObj>("A function of the global registry, by name.");
  Def(
      "ir.EnvFunc._function", [](EnvFunc self) { return self->func.value(); },
      "The function itself.", Arg("self"));
}

}  // namespace tvm
