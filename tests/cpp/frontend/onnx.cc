// SPDX-License-Identifier: Apache-2.0
// Importing ONNX models without Python: the wire format, and a model written by hand.
#include "tvm/frontend/onnx.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "frontend/onnx/wire.h"
#include "tvm/relax/expr.h"

namespace tvm::frontend {
namespace {
std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string Field(int number, const std::string& payload) {
  return Varint(number << 3 | 2) + Varint(payload.size()) + payload;
}
std::string Field(int number, int64_t value) { return Varint(number << 3) + Varint(value); }

/// y = op(x) of a float32 matrix (n, 3).
std::string ModelOf(const std::string& op) {
  std::string dims = Field(1, Field(2, std::string("n"))) + Field(1, Field(1, int64_t{3}));
  std::string type = Field(1, Field(1, int64_t{1}) + Field(2, dims));
  std::string node = Field(1, std::string("x")) + Field(2, std::string("y")) + Field(4, op);
  std::string graph = Field(1, node) + Field(11, Field(1, std::string("x")) + Field(2, type)) +
                      Field(12, Field(1, std::string("y")) + Field(2, type));
  return Field(1, int64_t{8}) + Field(8, Field(2, int64_t{17})) + Field(7, graph);
}
}  // namespace

TEST(Onnx, Bytes) {
  OnnxModule imported = ImportOnnxBytes(ModelOf("Relu"));
  auto main = imported.mod->Lookup("main").as<relax::Function>();
  ASSERT_TRUE(main.has_value());
  EXPECT_EQ((*main)->params.size(), 1);
  EXPECT_TRUE(imported.warnings.empty());
}
TEST(Onnx, File) {
  std::string path = testing::TempDir() + "relu.onnx";
  std::ofstream(path, std::ios::binary) << ModelOf("Relu");
  OnnxOptions options;
  options.shapes.Set("x", {2, 3});
  OnnxModule imported = ImportOnnx(path, options);
  std::remove(path.c_str());
  auto info = (*imported.mod->Lookup("main").as<relax::Function>())->params[0]->struct_info_;
  auto dims = info.value().as<relax::TensorStructInfoObj>()->Dims().value();
  EXPECT_EQ(dims[0].as<IntImmObj>()->value, 2);
}
TEST(Onnx, UnsupportedOperator) {
  try {
    ImportOnnxBytes(ModelOf("Relux"));
    FAIL();
  } catch (const ffi::Error& error) {
    EXPECT_EQ(error.kind(), "OpNotImplemented");
  }
}
TEST(Onnx, WireTypesAndLengthsAreChecked) {
  auto read = [](const std::string& bytes) {
    for (onnx::Wire w(bytes, "Message"); w.Next();) w.Text();
  };
  EXPECT_NO_THROW(read(Field(1, std::string("text"))));
  EXPECT_THROW(read(Field(1, int64_t{5})), ffi::Error);                  // a number
  EXPECT_THROW(read(Varint(1 << 3 | 2) + Varint(9) + "x"), ffi::Error);  // too short
  EXPECT_THROW(read(std::string(11, '\xff')), ffi::Error);               // no end of the number
  EXPECT_THROW(read(Varint(2)), ffi::Error);                             // field 0
}

}  // namespace tvm::frontend
