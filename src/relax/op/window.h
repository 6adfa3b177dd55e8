// SPDX-License-Identifier: Apache-2.0
// What convolutions and pools share: layouts, and numbers given once for all sides.
#pragma once
#include "tvm/relax/infer.h"
#include "tvm/tir/data_layout.h"

namespace tvm::relax {

/// "NCW", "NCHW", "NCDHW"; "OIW", … with the letters of a kernel in front.
std::string CanonicalLayout(const char* first, int64_t d);
/// One number stands for all of `d`.
void SpreadOne(Ints* values, int64_t d, const char* what);
/// 1, d or 2 d numbers become 2 d: first those of all begins, then those of the ends.
void SpreadPadding(Ints* values, int64_t d);
/// The dimensions of a tensor in the canonical layout, or nothing when they are not known; raises
/// when the rank does not fit the layout.
std::optional<Dims> Canonical(Infer& in, const TensorStructInfoObj* x, const String& layout,
                              const std::string& canonical, const char* what);
/// A result from its dimensions in the canonical layout; without them its rank.
StructInfo InLayout(Infer& in, const std::optional<Dims>& dims, const std::string& canonical,
                    const String& layout, DataType dtype);

}  // namespace tvm::relax
