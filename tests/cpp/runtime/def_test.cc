// SPDX-License-Identifier: Apache-2.0
// The function registry as a C++ program sees it.
#include "tvm/runtime/def.h"

#include <gtest/gtest.h>

namespace tvm {
TEST(Def, LibInfoNamesTheVersion) {
  auto info = Function::GetGlobalRequired("support.libinfo")().cast<Map<String, String>>();
  std::string version = info.at("TVM_VERSION");
  EXPECT_EQ(std::count(version.begin(), version.end(), '.'), 2) << version;
  EXPECT_FALSE(std::string(info.at("CXX_COMPILER")).empty());
}

TEST(Def, WrongArgumentsAreTypeErrorsThatNameTheParameter) {
  Function list = Function::GetGlobalRequired("ir.ListFunctions");
  auto message = [](auto call) -> std::string {
    try {
      call();
    } catch (const ffi::Error& e) {
      return e.kind() + ": " + e.message();
    }
    return "no error";
  };
  EXPECT_EQ(message([&] { list(1); }),
            "TypeError: ir.ListFunctions: parameter 'prefix': expected str, got int");
  EXPECT_EQ(message([&] { list(); }), "TypeError: ir.ListFunctions: expected 1 arguments, got 0");
}

TEST(Def, DidYouMeanFindsTheNearestName) {
  EXPECT_EQ(DidYouMean("vectorise", {"parallel", "vectorize", "unroll"}),
            ", did you mean 'vectorize'?");
  EXPECT_EQ(DidYouMean("vectorise", {"parallel", "unroll"}), "");
}
}  // namespace tvm
