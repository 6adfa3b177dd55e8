// SPDX-License-Identifier: Apache-2.0
// What convolutions and pools share: which axes of a layout are spatial, and padding along them.
#pragma once
#include <string>

#include "topi/shape.h"

namespace tvm::topi::nn {

/// The axes of a layout such as "NHWC": where a letter is, and the spatial ones in order D, H, W.
struct SpatialAxes {
  std::string letters;
  std::vector<size_t> axes;
  /// `others` are the letters that are not spatial, "NC" or "OI"; they may have blocks, such as the
  /// "c" of "NCHW8c". ValueError for another layout.
  SpatialAxes(const char* op, const String& layout, const std::string& others, const Tensor& t,
              bool may_have_blocks = false);
  size_t At(char letter) const { return letters.find(letter); }
  bool Has(char letter) const { return At(letter) != std::string::npos; }
  size_t size() const { return axes.size(); }
};
/// Padding before and after along spatial axes: one number, one per axis, two per axis (all begins
/// first), or "VALID" and "SAME" for kernels of these sizes.
struct Padding {
  Index before, after;
  Padding(const char* op, const Any& padding, const Index& kernel);
  bool IsNone() const;
};
/// A tensor with padding along its spatial axes.
Tensor PadSpatial(const Tensor& data, const SpatialAxes& axes, const Padding& padding,
                  const PrimExpr& value, const char* name = "pad_temp");

}  // namespace tvm::topi::nn
