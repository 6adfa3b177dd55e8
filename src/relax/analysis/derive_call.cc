// SPDX-License-Identifier: Apache-2.0
// What a call of a function returns, from the function's struct info and the arguments.
#include "tvm/relax/analysis.h"

namespace tvm::relax {
namespace {
/// The caller says it: nothing is any value, one is the result, several are a tuple.
StructInfo InferBySinfoArgs(Call call, Any) {
  const Array<StructInfo>& infos = call->sinfo_args;
  if (infos.empty()) return ObjectStructInfo::Get();
  return infos.size() == 1 ? infos[0] : TupleStructInfo(infos);
}

TVM_REGISTER() {
  Def("tvm.relax.struct_info.infer_by_sinfo_args", &InferBySinfoArgs,
      "What the caller says: sinfo_args of the call.", Arg("call"), Arg("ctx"));
}
}  // namespace
}  // namespace tvm::relax
