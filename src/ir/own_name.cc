// SPDX-License-Identifier: Apache-2.0
// Names of neighbouring versions: what was one namespace, tir, is two since 0.27.
#include "ir/own_name.h"

#include "tvm/runtime/def.h"

namespace tvm {
std::string OwnName(std::string_view name) {
  size_t dot = name.find('.');
  std::string_view prefix = name.substr(0, dot);
  if (dot == name.npos || (prefix != "tirx" && prefix != "s_tir")) return std::string(name);
  std::string_view rest = name.substr(dot + 1);
  if (rest == "CommonSubexprElim") rest = "CommonSubexprElimTIR";
  if (rest == "StmtSimplify") rest = "Simplify";
  return "tir." + std::string(rest);
}

namespace {
TVM_REGISTER() {
  Def(
      "ir._OwnName", [](const String& name) { return String(OwnName(View(name))); },
      "What a name of another version is here.", Arg("name"));
}
}  // namespace
}  // namespace tvm
