// SPDX-License-Identifier: Apache-2.0
// Values of an image between its pixels.
#pragma once
#include "topi/shape.h"

namespace tvm::topi::image {

enum class Method { kNearest, kLinear, kCubic };

/// The spatial axes D, H, W of a layout such as "NCHW4c"; ValueError unless there are so many.
std::vector<size_t> SpatialOf(const char* op, const String& layout, size_t dims,
                              const Tensor& data);

/// One point of an image: where it is along each axis, and how pixels around it give its value.
struct Sampler {
  struct Along {
    PrimExpr size, at, nearest;  // at and nearest are floats
    PrimExpr whole;              // the nearest pixel, where whole numbers give it
    /// The pixel that stands for one outside; the nearest inside where this is empty.
    std::function<PrimExpr(const PrimExpr&)> bring;
  };
  std::vector<Along> axes;
  Method method = Method::kLinear;
  double alpha = -0.75;  // of the cubic
  bool exclude = false;  // whether pixels outside have no weight instead of being repeated
  bool zeros = false;    // whether pixels outside are 0 instead of being repeated

  /// The value, given the pixels at integer places.
  PrimExpr Sample(const std::function<PrimExpr(const Index&)>& pixel) const;
};

}  // namespace tvm::topi::image
