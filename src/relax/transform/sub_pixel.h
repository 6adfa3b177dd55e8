// SPDX-License-Identifier: Apache-2.0
// A transposed convolution of stride s as a plain one with s filters for each (along each axis):
// those of the places between two elements of the data, whose results are then put in between.
//
// Along an axis result i = s * y + r of the whole, not yet cropped, is the sum of
// data[y - t] * weight[s * t + r]: of the same data for all s places r.
#pragma once
#include <optional>

#include "tvm/relax/block_builder.h"
#include "tvm/relax/operator.h"

namespace tvm::relax {

class SubPixel {
 public:
  /// The parts of a transposed convolution; nothing for other calls, and where sizes are not known.
  static std::optional<SubPixel> Of(const Call& call);

  /// The filters (places * outputs, inputs, taps…) of the plain one: a place's outputs lie
  /// together.
  Expr Filters(const BlockBuilder& builder) const;
  Ints Padding() const;
  /// The results of the plain one, which may have channels in blocks, in their places.
  Expr Shuffled(const BlockBuilder& builder, const Expr& plain, int64_t block) const;

  Expr data() const { return call_->args[0]; }
  size_t dims() const { return axes_.size(); }
  int64_t groups() const { return groups_; }
  int64_t outputs() const { return groups_ * each_; }
  int64_t filters() const { return outputs() * places_; }

 private:
  struct Axis {
    int64_t kernel, step, taps;
    int64_t rows, before, after;  // of the plain convolution, and its margins
    int64_t begin, size;          // of what is left of its results, put in place
  };
  Call call_;
  int64_t groups_ = 1, inputs_ = 0, each_ = 0, places_ = 1;  // of a group: inputs, outputs
  std::vector<Axis> axes_;
};

}  // namespace tvm::relax
