// SPDX-License-Identifier: Apache-2.0
// Complex numbers: the graph has real tensors alone, so a complex value is two of them.
#pragma once
#include "converter.h"

namespace tvm::frontend::torch {

struct ComplexObj : NodeObj {
  Expr real, imag;
  static void Fields(auto&& def) {
    def("real", &ComplexObj::real);
    def("imag", &ComplexObj::imag);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.frontend.torch.Complex", ComplexObj, NodeObj);
};
struct Complex : ObjectRef {
  Complex(Expr real, Expr imag);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Complex, ObjectRef, ComplexObj);
};
/// The place among the arguments of a text that names a complex type.
std::optional<size_t> ComplexTypeOf(const std::vector<Any>& args);
/// The type of the parts: float32 of complex64.
String PartTypeOf(const String& dtype);
bool IsComplexMeta(const Any& meta);
/// Whether an argument is complex, or a list with such.
bool HasComplex(const Any& arg);
/// The converter of an operator for complex arguments, or nullptr. One that treats the parts alike
/// has its own converter, called for each part.
const ConverterInfo* FindComplexConverter(const std::string& target);
const ConverterInfo* FindComplexComposite(const std::string& target);
bool IsPartwise(const std::string& target);
/// The argument with complex values replaced by their real or imaginary part.
Any PartOf(const Any& arg, bool imag);
/// The value that has these parts: tensors, or lists of them.
Any FromParts(const Any& real, const Any& imag);

}  // namespace tvm::frontend::torch
