// SPDX-License-Identifier: Apache-2.0
// Types given as texts and as objects of other libraries.
#include "tvm/runtime/data_type.h"

#include <cctype>

namespace tvm {
namespace {
/// tvm-ffi reads int0 as int32: whoever computes the number of bits would not see the mistake.
void RefuseNoBits(std::string_view text) {
  size_t digits = text.find_first_of("0123456789[");
  if (digits == text.npos || text[digits] != '0') return;  // int32, bool, custom[name]32
  size_t end = text.find_first_not_of('0', digits);
  if (end != text.npos && std::isdigit(static_cast<unsigned char>(text[end]))) return;
  TVM_FFI_THROW(ValueError) << "dtype: expected a number of bits as in int32, got '" << text << "'";
}
}  // namespace

DataType::DataType(const String& text) : type_(ffi::StringToDLDataType(text)) {
  RefuseNoBits(View(text));
}

std::optional<DataType> DataTypeFor(const TVMFFIAny* value) {
  AnyView view = AnyView::CopyFromTVMFFIAny(*value);
  if (auto text = view.try_cast<String>()) return DataType(*text);
  if (value->type_index != ffi::TypeIndex::kTVMFFIOpaquePyObject) return std::nullopt;
  auto convert = Function::GetGlobal("runtime.dtype_of_foreign_object");
  if (!convert) return std::nullopt;  // no Python in the process
  Any type = (*convert)(view);
  if (type == nullptr) return std::nullopt;
  return DataType(type.cast<DLDataType>());
}

}  // namespace tvm
