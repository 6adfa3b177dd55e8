// SPDX-License-Identifier: Apache-2.0
// What code generation of PTX's instructions shares: types of matrices, operands in registers.
#pragma once
#include <string>

#include "backend/cuda/codegen.h"

namespace tvm::codegen::cuda {

/// A type of a matrix operand: as the operator and as PTX spells it.
struct MatrixType {
  const char *name, *ptx;
  int bits;
};
inline constexpr MatrixType kMatrixTypes[] = {
    {"fp16", "f16", 16},      {"float16", "f16", 16}, {"bf16", "bf16", 16},
    {"bfloat16", "bf16", 16}, {"tf32", "tf32", 32},   {"fp32", "f32", 32},
    {"float32", "f32", 32},   {"fp64", "f64", 64},    {"float64", "f64", 64},
    {"int8", "s8", 8},        {"uint8", "u8", 8},     {"int4", "s4", 4},
    {"uint4", "u4", 4},       {"int32", "s32", 32},   {"e4m3", "e4m3", 8},
    {"e5m2", "e5m2", 8},      {"int1", "b1", 1},      {"uint1", "b1", 1},
};
inline const MatrixType* FindType(const std::string& name) {
  for (const MatrixType& type : kMatrixTypes) {
    if (name == type.name) return &type;
  }
  return nullptr;
}
inline std::string TextOf(const PrimExpr& e) {
  auto* text = e.as<StringImmObj>();
  return text ? std::string(text->value) : "";
}
/// Operands of an instruction in registers: what stands in its text, and how they are given.
class Registers {
 public:
  /// `count` registers from `pointer`, of the C type and constraint; "{%0, %1}".
  std::string Add(const std::string& pointer, const char* type, const std::string& constraint,
                  int count) {
    std::string group;
    for (int i = 0; i < count; ++i) {
      group += (i ? ", %" : "%") + std::to_string(next_++);
      std::string operand =
          "\"" + constraint + "\"(((" + type + "*)" + pointer + ")[" + std::to_string(i) + "])";
      std::string& list = constraint[0] == '+' || constraint[0] == '=' ? outputs_ : inputs_;
      list += (list.empty() ? "" : ", ") + operand;
    }
    return "{" + group + "}";
  }
  std::string AddInput(const std::string& operand, const char* constraint) {
    inputs_ += (inputs_.empty() ? "\"" : ", \"") + std::string(constraint) + "\"(" + operand + ")";
    return "%" + std::to_string(next_++);
  }
  /// With effects on memory, or on registers alone.
  std::string Asm(const std::string& text, bool on_memory = true) const {
    std::string head = on_memory ? "asm volatile(\"" : "asm(\"";
    return head + text + "\" : " + outputs_ + " : " + inputs_ +
           (on_memory ? " : \"memory\");" : ");");
  }

 private:
  std::string outputs_, inputs_;
  int next_ = 0;
};

}  // namespace tvm::codegen::cuda
