// SPDX-License-Identifier: Apache-2.0
// Tensors: allocation, views and copies on top of tvm-ffi's Tensor; saving and loading named ones.
#pragma once
#include <string>

#include "tvm/runtime/device.h"

namespace tvm::runtime {
using ffi::Shape, ffi::ShapeView, ffi::Tensor;

/// Bytes of `shape` elements, packed: types of less than a byte share bytes, element 0 in the
/// lowest bits. ValueError for a negative extent, MemoryError when the size does not fit in 63
/// bits.
uint64_t DataSize(ShapeView shape, DLDataType dtype);

/// Uninitialised, contiguous, 64-byte aligned.
Tensor Empty(ShapeView shape, DLDataType dtype, DLDevice device, std::string_view scope = "");
/// Copies between tensors of one shape and dtype, strided or not, on any two devices of which one
/// is the CPU or both are of one kind.
void CopyTensor(const Tensor& from, const Tensor& to);
/// A tensor over the same memory; it must lie inside it. `strides` counts elements.
Tensor StridedView(const Tensor& data, ShapeView shape, ShapeView strides, int64_t byte_offset);
/// The same contiguous bytes with another shape and dtype.
Tensor CreateView(const Tensor& data, ShapeView shape, DLDataType dtype, int64_t byte_offset = 0);

/// Named tensors <-> one run of bytes. Loading checks every length and executes nothing.
std::string SaveParams(const Map<String, Tensor>& params);
Map<String, Tensor> LoadParams(std::string_view bytes);
/// The file appears whole or not at all: it is written beside its place and renamed.
void SaveParamsToFile(const Map<String, Tensor>& params, const std::string& path);
Map<String, Tensor> LoadParamsFromFile(const std::string& path);

}  // namespace tvm::runtime
