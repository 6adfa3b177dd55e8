// SPDX-License-Identifier: Apache-2.0
// Types given as objects of other libraries.
#include "tvm/runtime/data_type.h"

namespace tvm {

std::optional<DataType> DataTypeOfForeignObject(const TVMFFIAny* object) {
  auto convert = Function::GetGlobal("runtime.dtype_of_foreign_object");
  if (!convert) return std::nullopt;  // no Python in the process
  Any type = (*convert)(AnyView::CopyFromTVMFFIAny(*object));
  if (type == nullptr) return std::nullopt;
  return DataType(type.cast<DLDataType>());
}

}  // namespace tvm
