// SPDX-License-Identifier: Apache-2.0
// Marks the function that calling the module calls.
#include "tvm/ir/transform.h"
#include "tvm/tir/function.h"

namespace tvm::tir {

IRModule AnnotateEntryFunc(IRModule mod) {
  GlobalVar only;
  for (const auto& [var, func] : mod->functions) {
    auto* f = func.as<PrimFuncObj>();
    if (!f || !f->attrs.Has(::tvm::attr::kGlobalSymbol)) continue;
    if (f->HasNonzeroAttr(attr::kIsEntryFunc) || only.defined())
      return mod;  // marked, or not the only one
    only = var;
  }
  if (!only.defined()) return mod;
  PrimFunc func = Any(mod->Lookup(only)).cast<PrimFunc>();
  Edit(&mod)->Update(only, WithAttr(func, attr::kIsEntryFunc, true));
  return mod;
}
TVM_PASS(tir, AnnotateEntryFunc,
         R"(Marks the only function with a global symbol as the module's entry.

before(A: T.Buffer((1,), "float32")):
    A[0] = 1.0
after:
    T.func_attr({"tir.is_entry_func": True})
    A[0] = T.float32(1))")
}  // namespace tvm::tir
