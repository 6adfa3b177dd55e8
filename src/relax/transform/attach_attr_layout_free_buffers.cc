// SPDX-License-Identifier: Apache-2.0
// Marks the buffers of PrimFuncs that are weights: their layout can be changed ahead of time.
#include <unordered_set>

#include "relax/transform/call_site.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
tir::PrimFunc WithFreeBuffers(const Function& caller, const Call& call, tir::PrimFunc func) {
  std::unordered_set<const Object*> weights;
  int64_t inputs = caller->GetAttr<int64_t>("num_input", caller->params.size());
  for (size_t i = std::max<int64_t>(inputs, 0); i < caller->params.size(); ++i)
    weights.insert(caller->params[i]->vid.get());
  Array<int64_t> free;
  auto* args = call->args[1].as<TupleObj>();
  for (size_t i = 0; args && i < args->fields.size(); ++i) {
    auto* var = args->fields[i].as<VarObj>();
    if (args->fields[i].as<ConstantObj>() || (var && weights.count(var->vid.get())))
      free.push_back(static_cast<int64_t>(i));
  }
  if (free.empty()) return func;
  return WithAttr(func, "layout_free_buffers", free);
}
IRModule AttachAttrLayoutFreeBuffers(IRModule mod) {
  return SpecializeForCallSites(mod, &WithFreeBuffers);
}
}  // namespace
TVM_RELAX_PASS(AttachAttrLayoutFreeBuffers, 0,
               "R.call_tir(cls.f, (x, w), ...), where w is a constant or a parameter behind "
               "num_input  ->  f has the attribute layout_free_buffers [1]");
}  // namespace tvm::relax
