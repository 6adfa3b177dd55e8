// SPDX-License-Identifier: Apache-2.0
// Blocks that are annotated with the intrinsics to use become calls of them.
#pragma once
#include "tvm/tune/search.h"

namespace tvm::tune {

inline constexpr const char *kAutoTensorize = "meta_schedule.auto_tensorize",
                            *kAutoTensorizeInit = "meta_schedule.auto_tensorize_init";

/// False where one does not fit; the schedule is then half done.
bool TensorizeAnnotated(const Schedule& sch);

}  // namespace tvm::tune
