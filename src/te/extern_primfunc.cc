// SPDX-License-Identifier: Apache-2.0
// A PrimFunc as an extern operation: which of its buffers are inputs, which outputs.
#include <unordered_set>

#include "tvm/expr/substitute.h"
#include "tvm/te/te.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::te {
using namespace tir;
namespace {

/// What a body does to buffers. What blocks say counts: a reduction does not read its result.
struct Uses {
  std::unordered_set<const Object*> read, written;
  explicit Uses(const Stmt& body) {
    PreOrderVisit(body, [&](const ObjectRef& node) {
      if (const auto* load = node.as<BufferLoadObj>()) read.insert(load->buffer.get());
      if (const auto* store = node.as<BufferStoreObj>()) written.insert(store->buffer.get());
      const auto* block = node.as<BlockObj>();
      if (!block || (block->reads.empty() && block->writes.empty())) return true;
      for (const BufferRegion& region : block->reads) read.insert(region->buffer.get());
      for (const BufferRegion& region : block->writes) written.insert(region->buffer.get());
      return false;
    });
  }
};

/// The parameters that are outputs: those only written; without any, the last one that is written.
std::unordered_set<const Object*> OutputParams(const PrimFunc& func) {
  Uses uses(func->body);
  std::unordered_set<const Object*> outputs;
  const Object* in_place = nullptr;
  for (const Var& param : func->params) {
    Buffer buffer = func.BufferOf(param);
    if (!buffer.defined() || !uses.written.count(buffer.get())) continue;
    in_place = param.get();
    if (!uses.read.count(buffer.get())) outputs.insert(param.get());
  }
  if (outputs.empty() && in_place) outputs.insert(in_place);
  return outputs;
}

/// [input buffers, output buffers, body] with the shapes of the inputs put in.
Array<Any> SplitPrimFunc(const Array<Tensor>& inputs, PrimFunc func) {
  auto outputs = OutputParams(func);
  Map<Var, Variant<Buffer, PrimExpr>> shapes;
  size_t count = 0;
  for (const Var& param : func->params) {
    Buffer buffer = func.BufferOf(param);
    if (!buffer.defined()) {
      TVM_FFI_THROW(ValueError)
          << "extern_primfunc: expected buffers as parameters, got the scalar " << param->name_hint;
    }
    if (outputs.count(param.get())) continue;
    if (count < inputs.size()) {
      const Tensor& tensor = inputs[count];
      shapes.Set(param, Buffer::Decl(tensor->shape, tensor->dtype, buffer->name));
    }
    ++count;
  }
  if (count != inputs.size()) {
    TVM_FFI_THROW(ValueError) << "extern_primfunc: expected " << count
                              << " tensors, one per buffer that the function reads, got "
                              << inputs.size();
  }
  // Its own variables: the function may be used more than once.
  func = RenewDefs(Specialize(func, shapes));
  outputs = OutputParams(func);
  Array<Buffer> ins, outs;
  for (const Var& param : func->params) {
    Buffer buffer = func.BufferOf(param);
    (outputs.count(param.get()) ? outs : ins).push_back(buffer);
  }
  return {ins, outs, func->body};
}

TVM_REGISTER() { Def("te._op.split_primfunc", &SplitPrimFunc, "", Arg("inputs"), Arg("primfunc")); }
}  // namespace
}  // namespace tvm::te
