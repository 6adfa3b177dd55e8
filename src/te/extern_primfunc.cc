// SPDX-License-Identifier: Apache-2.0
// A PrimFunc as an extern operation: which of its buffers are inputs, which outputs.
#include <unordered_set>

#include "tvm/expr/substitute.h"
#include "tvm/te/te.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::te {
using namespace tir;
namespace {

std::unordered_set<const Object*> WrittenBuffers(const Stmt& body) {
  std::unordered_set<const Object*> written;
  PostOrderVisit(body, [&](const ObjectRef& node) {
    if (const auto* store = node.as<BufferStoreObj>()) written.insert(store->buffer.get());
    if (const auto* block = node.as<BlockObj>()) {
      for (const BufferRegion& region : block->writes) written.insert(region->buffer.get());
    }
  });
  return written;
}

/// [input buffers, output buffers, body] with the shapes of the inputs put in.
Array<Any> SplitPrimFunc(const Array<Tensor>& inputs, PrimFunc func) {
  auto written = WrittenBuffers(func->body);
  Map<Var, Variant<Buffer, PrimExpr>> shapes;
  size_t count = 0;
  for (const Var& param : func->params) {
    Buffer buffer = func.BufferOf(param);
    if (!buffer.defined()) {
      TVM_FFI_THROW(ValueError)
          << "extern_primfunc: expected buffers as parameters, got the scalar " << param->name_hint;
    }
    if (written.count(buffer.get())) continue;
    if (count < inputs.size()) {
      const Tensor& tensor = inputs[count];
      shapes.Set(param, Buffer::Decl(tensor->shape, tensor->dtype, buffer->name));
    }
    ++count;
  }
  if (count != inputs.size()) {
    TVM_FFI_THROW(ValueError) << "extern_primfunc: expected " << count
                              << " tensors, one per buffer that the function only reads, got "
                              << inputs.size();
  }
  // Its own variables: the function may be used more than once.
  func = RenewDefs(Specialize(func, shapes));
  written = WrittenBuffers(func->body);
  Array<Buffer> ins, outs;
  for (const Var& param : func->params) {
    Buffer buffer = func.BufferOf(param);
    (written.count(buffer.get()) ? outs : ins).push_back(buffer);
  }
  return {ins, outs, func->body};
}

TVM_REGISTER() { Def("te._op.split_primfunc", &SplitPrimFunc, "", Arg("inputs"), Arg("primfunc")); }
}  // namespace
}  // namespace tvm::te
