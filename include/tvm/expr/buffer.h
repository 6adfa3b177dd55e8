// SPDX-License-Identifier: Apache-2.0
// Buffers: named multi-dimensional views of memory.
#pragma once
#include "tvm/expr/var.h"

namespace tvm::tir {

/// Whether dimensions of size 1 at run time repeat their element (the stride is taken as 0).
enum class BufferType : int { kDefault = 1, kAutoBroadcast = 2 };

/// A view of memory: `data[elem_offset + sum(index[i] * stride[i])]`. Without strides the layout is
/// compact and row-major. One object is one buffer: passes map it once.
struct BufferObj : NodeObj {
  Var data;
  DataType dtype;
  Array<PrimExpr> shape;
  Array<IntImm> axis_separators;  // where flattening starts a new physical dimension
  Array<PrimExpr> strides;        // empty: compact
  PrimExpr elem_offset;
  String name;
  int64_t data_alignment = 64;  // of `data`, in bytes
  int64_t offset_factor = 1;    // elem_offset is a multiple of it
  BufferType buffer_type = BufferType::kDefault;
  Optional<Span> span;
  static constexpr bool _is_shared = true;
  static void Fields(auto&& def) {
    def("data", &BufferObj::data, Binds());
    def("dtype", &BufferObj::dtype);
    def("shape", &BufferObj::shape, Binds());
    def("strides", &BufferObj::strides, Binds());
    def("axis_separators", &BufferObj::axis_separators, Binds());
    def("elem_offset", &BufferObj::elem_offset, Binds());
    def("name", &BufferObj::name, NameOnly());
    def("data_alignment", &BufferObj::data_alignment);
    def("offset_factor", &BufferObj::offset_factor);
    def("buffer_type", &BufferObj::buffer_type);
    def("span", &BufferObj::span, Default(nullptr), Ignored());
  }
  void Init();
  /// int64 when an index or the size needs it, else int32.
  DataType IndexType() const;
  /// The flat element index (without elem_offset) of a multi-dimensional one, per physical
  /// dimension.
  Array<PrimExpr> FlatIndices(const Array<PrimExpr>& indices) const;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.Buffer", BufferObj, NodeObj);
};
struct Buffer : ObjectRef {
  /// A compact buffer with a data pointer of its own.
  static Buffer Decl(Array<PrimExpr> shape, DataType dtype = DataType::Float(32),
                     String name = "buffer", String scope = "", Optional<Span> span = {});
  Buffer(Var data, DataType dtype, Array<PrimExpr> shape, Array<PrimExpr> strides,
         PrimExpr elem_offset, String name, int64_t data_alignment = 0, int64_t offset_factor = 0,
         BufferType buffer_type = BufferType::kDefault, Array<IntImm> axis_separators = {},
         Optional<Span> span = {});
  /// The memory scope of the data pointer: "global", "shared", "local", …
  String scope() const;
  /// The same memory with one dimension per physical axis.
  Buffer Flattened() const;
  /// Explicit strides, also for a compact buffer.
  Array<PrimExpr> ExplicitStrides() const;
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Buffer, ObjectRef, BufferObj);
};

/// What a ProducerLoad reads from: a tensor of `te`.
struct DataProducerObj : NodeObj {
  static constexpr bool _is_shared = true;
  static constexpr uint32_t _type_child_slots = 2;
  virtual ~DataProducerObj() = default;
  virtual Array<PrimExpr> GetShape() const = 0;
  virtual DataType GetDataType() const = 0;
  virtual String GetNameHint() const = 0;
  TVM_FFI_DECLARE_OBJECT_INFO("tir.DataProducer", DataProducerObj, NodeObj);
};
TVM_NODE_REF(DataProducer, ObjectRef, DataProducerObj);

}  // namespace tvm::tir
