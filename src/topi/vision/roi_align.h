// SPDX-License-Identifier: Apache-2.0
// Regions of images in one size.
#pragma once
#include "topi/shape.h"

namespace tvm::topi::vision {

struct RoiAlignOptions {
  double scale = 1;  // of the boxes, to pixels
  int64_t height = 1, width = 1;
  int64_t ratio = 0;       // samples of a cell along each side; 0: as many as it has pixels
  bool is_aligned = true;  // whether pixels are meant by their centres
  bool is_max = false;     // the largest sample instead of the mean
};
/// Data is NCHW. `image` gives the number of a region's image, `corner` its x1, y1, x2 and y2.
Tensor RoiAlign(const Tensor& data, const PrimExpr& regions,
                const std::function<PrimExpr(const PrimExpr& roi)>& image,
                const std::function<PrimExpr(const PrimExpr& roi, int64_t i)>& corner,
                const RoiAlignOptions& options);

}  // namespace tvm::topi::vision
