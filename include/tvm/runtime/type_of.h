// SPDX-License-Identifier: Apache-2.0
// Types of values in messages.
#pragma once
#include <tvm/ffi/any.h>

#include <string>

namespace tvm {

/// The type of a value, by the word that users know: "str" for all kinds of strings.
std::string TypeOf(const ffi::AnyView& value);

}  // namespace tvm
