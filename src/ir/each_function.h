// SPDX-License-Identifier: Apache-2.0
// Work on the functions of a module, one by one, on several threads.
#pragma once
#include <cstddef>
#include <functional>

#include "tvm/ir/function.h"

namespace tvm::transform {

/// Calls `run(i)` for every i below `count`, in any order and on several threads when there are
/// enough of them, under the current context and target and on deep stacks.
void ForEachFunction(size_t count, const std::function<void(size_t)>& run);

/// Calls `forget` at the end of ForEachFunction in every thread that took part: for what is kept
/// about the functions that are worked on.
void OnFunctionsDone(void (*forget)());

/// `prepare` gets every function of the class with this index before passes over functions run.
void BeforeFunctionPasses(int32_t function_type, BaseFunc (*prepare)(BaseFunc));

}  // namespace tvm::transform
