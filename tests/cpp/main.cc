// SPDX-License-Identifier: Apache-2.0
// Runs the C++ tests.
#include <gtest/gtest.h>

#include "tvm/runtime/def.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  tvm::Initialize();
  return RUN_ALL_TESTS();
}
