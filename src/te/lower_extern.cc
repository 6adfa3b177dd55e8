// SPDX-License-Identifier: Apache-2.0
// An extern operation becomes a block around its statement, with the buffers of the function.
#include "te/lowering.h"
#include "tvm/expr/substitute.h"

namespace tvm::te {
using namespace tir;
namespace {

/// Replaces the buffers that stand for inputs and outputs, and the variables that describe them.
struct BufferBinder : Mutator<BufferBinder, VarObj> {
  const String& name;
  std::unordered_map<const Object*, PrimExpr> vars;
  explicit BufferBinder(const String& name) : name(name) {}

  ObjectRef Rewrite(const VarObj* var) {
    auto it = vars.find(var);
    return it == vars.end() ? ffi::GetRef<ObjectRef>(var) : ObjectRef(it->second);
  }
  void Bind(const Buffer& stand_in, const Buffer& buffer) {
    Remap(stand_in, buffer);
    vars[stand_in->data.get()] = buffer->data;
    for (size_t d = 0; d < buffer->shape.size(); ++d) {
      Match(stand_in, "dimension", stand_in->shape[d], buffer->shape[d]);
    }
    if (!stand_in->strides.empty()) {
      Array<PrimExpr> strides = buffer.ExplicitStrides();
      for (size_t d = 0; d < strides.size(); ++d) {
        Match(stand_in, "stride", stand_in->strides[d], strides[d]);
      }
    }
    Match(stand_in, "offset", stand_in->elem_offset, buffer->elem_offset);
  }

 private:
  /// A variable takes the value; a constant has to agree with it.
  void Match(const Buffer& stand_in, const char* what, const PrimExpr& want, const PrimExpr& have) {
    if (want.as<VarObj>()) {
      vars.emplace(want.get(), cast(want.dtype(), have));
      return;
    }
    auto a = AsConstInt(want), b = AsConstInt(have);
    if (a && b && *a != *b) {
      TVM_FFI_THROW(ValueError) << name << ": expected the buffer " << stand_in->name
                                << " to have the " << what << " " << *b << " of its tensor, got "
                                << *a;
    }
  }
};

}  // namespace

Stmt Lowering::LowerExtern(const ExternOpObj* op) {
  BufferBinder binder(op->name);
  binder.vars = vars_;
  Array<BufferRegion> reads, writes;
  for (size_t i = 0; i < op->inputs.size(); ++i) {
    const Buffer& buffer = BufferOf(op->inputs[i]);
    binder.Bind(op->input_placeholders[i], buffer);
    reads.push_back(BufferRegion::Full(buffer));
  }
  for (size_t i = 0; i < op->output_placeholders.size(); ++i) {
    Buffer buffer = Output(ffi::GetRef<Operation>(op), static_cast<int64_t>(i));
    binder.Bind(op->output_placeholders[i], buffer);
    writes.push_back(BufferRegion::Full(buffer));
  }
  Block block({}, reads, writes, BlockName(op->name), binder.Mutate(op->body), {}, {}, {},
              op->attrs);
  return BlockRealize({}, const_true(), block);
}

}  // namespace tvm::te
