// SPDX-License-Identifier: Apache-2.0
// Operators that move elements: shapes, orders of axes, parts, copies, layouts.
#pragma once
#include "tvm/te/te.h"
#include "tvm/tir/index_map.h"

namespace tvm::topi {
using te::Tensor;

Tensor expand_dims(const Tensor& a, int64_t axis, int64_t num_newaxis = 1);
/// A list of new axes, in the numbering of the result.
Tensor expand_dims_at(const Tensor& a, const Any& axis);
Tensor transpose(const Tensor& a, const Any& axes = nullptr);
Tensor flip(const Tensor& a, int64_t axis = 0);
Tensor reverse_sequence(const Tensor& a, const Tensor& seq_lengths, int64_t seq_axis = 1,
                        int64_t batch_axis = 0);
/// One dimension may be -1: what the others leave.
Tensor reshape(const Tensor& a, Array<PrimExpr> newshape);
Tensor squeeze(const Tensor& a, const Any& axis = nullptr);
Tensor concatenate(const Array<Tensor>& a_tuple, int64_t axis = 0);
Tensor stack(const Array<Tensor>& tensors, int64_t axis = 0);
/// Into equal sections (the last may be shorter), or at indices.
Array<Tensor> split(const Tensor& ary, const Any& indices_or_sections, int64_t axis = 0);
Tensor repeat(const Tensor& a, int64_t repeats, const Any& axis);
Tensor tile(const Tensor& a, const Any& reps);
Array<Tensor> meshgrid(const Array<Tensor>& a_tuple, String indexing);
Tensor strided_slice(const Tensor& a, const Any& begin, const Any& end, const Any& strides,
                     const Any& axes, String slice_mode = "end", bool assume_inbound = true);
Tensor layout_transform(const Tensor& array, String src_layout, String dst_layout,
                        String schedule_rule = "None");
/// The tensor in the layout that an index map gives, gaps filled with `pad_value`.
Tensor index_map_transform(const Tensor& array, const tir::IndexMap& index_map,
                           const Optional<PrimExpr>& pad_value);

}  // namespace tvm::topi
