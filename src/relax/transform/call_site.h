// SPDX-License-Identifier: Apache-2.0
// PrimFuncs that become special for the places that call them.
#pragma once
#include <functional>

#include "tvm/relax/expr.h"
#include "tvm/tir/function.h"

namespace tvm::relax {

/// Whether the call is one of call_tir and its kin.
bool IsCallTIR(const CallObj* call);

/// What the PrimFunc is for a call_tir of the caller.
using ForCallSite =
    std::function<tir::PrimFunc(const Function& caller, const Call& call, tir::PrimFunc func)>;
/// The module where each call_tir calls the PrimFunc that `specialize` makes for it. Calls that
/// want the same share it, and the first keeps its name unless somebody calls it otherwise.
IRModule SpecializeForCallSites(const IRModule& mod, const ForCallSite& specialize);

}  // namespace tvm::relax
