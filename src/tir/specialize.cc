// SPDX-License-Identifier: Apache-2.0
// Fixing parameters of a function: scalars to values, buffers to ones of known shape.
#include "tvm/arith/analyzer.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/tir/function.h"

namespace tvm::tir {
namespace {

/// What the variables in the description of a buffer are, given one that it shall be.
class BufferMatcher {
 public:
  void Match(const Buffer& buffer, const Buffer& to) {
    name_ = buffer->name;
    if (buffer->dtype != to->dtype) {
      TVM_FFI_THROW(TypeError) << "specialize: expected a buffer of type " << buffer->dtype
                               << " for " << name_ << ", got " << to->dtype;
    }
    if (buffer->shape.size() != to->shape.size()) {
      TVM_FFI_THROW(ValueError) << "specialize: expected a buffer with " << buffer->shape.size()
                                << " dimensions for " << name_ << ", got " << to->shape.size();
    }
    for (size_t d = 0; d < buffer->shape.size(); ++d) {
      MatchValue("dimension", buffer->shape[d], to->shape[d]);
    }
    if (!buffer->strides.empty()) {
      Array<PrimExpr> strides = to.ExplicitStrides();
      for (size_t d = 0; d < strides.size(); ++d) {
        MatchValue("stride", buffer->strides[d], strides[d]);
      }
    }
    MatchValue("offset", buffer->elem_offset, to->elem_offset);
  }
  Map<Var, PrimExpr> vars;

 private:
  void MatchValue(const char* what, const PrimExpr& want, const PrimExpr& value) {
    if (auto var = want.as<Var>()) {
      if (auto it = vars.find(*var); it != vars.end()) {
        MatchValue(what, (*it).second, value);
      } else if (!value.same_as(want)) {
        vars.Set(*var, cast(want.dtype(), value));
      }
      return;
    }
    auto a = AsConstInt(want), b = AsConstInt(value);
    if (a && b ? *a != *b : !ExprDeepEqual(Substitute(want, vars), cast(want.dtype(), value))) {
      TVM_FFI_THROW(ValueError) << "specialize: expected the " << what << " "
                                << (a ? std::to_string(*a) : "of the function") << " for " << name_
                                << ", got " << (b ? std::to_string(*b) : "another one");
    }
  }
  String name_;
};

/// Sizes that are numbers now are written as such.
struct SizeFolder : Mutator<SizeFolder, BufferObj> {
  arith::Analyzer analyzer;
  ObjectRef Rewrite(const BufferObj* op) {
    Buffer buffer = ffi::GetRef<Buffer>(op);
    Array<PrimExpr> shape = op->shape.Map([&](const PrimExpr& extent) {
      PrimExpr value = analyzer.Simplify(extent);
      return AsConstInt(value) ? value : extent;
    });
    if (!shape.same_as(op->shape)) Edit(&buffer)->shape = shape;
    return buffer;
  }
};

}  // namespace

PrimFunc Specialize(PrimFunc func, const Map<Var, Variant<Buffer, PrimExpr>>& param_map) {
  BufferMatcher matcher;
  Array<Var> params;
  size_t found = 0;
  for (const Var& param : func->params) {
    auto it = param_map.find(param);
    if (it == param_map.end()) {
      params.push_back(param);
      continue;
    }
    ++found;
    Buffer buffer = func.BufferOf(param);
    auto to = (*it).second.as<Buffer>();
    if (buffer.defined() != to.has_value()) {
      TVM_FFI_THROW(TypeError) << "specialize: expected "
                               << (buffer.defined() ? "a buffer" : "a value") << " for "
                               << param->name_hint << ", got "
                               << (to.has_value() ? "a buffer" : "a value");
    }
    if (to.has_value()) {
      params.push_back(param);
      matcher.Match(buffer, *to);
    } else {
      matcher.vars.Set(param, cast(param.dtype(), (*it).second.get<PrimExpr>()));
    }
  }
  if (found != param_map.size()) {
    TVM_FFI_THROW(ValueError) << "specialize: expected parameters of the function, got a variable "
                              << "that is none";
  }
  if (matcher.vars.empty()) return func;
  // A size that is a parameter, too, is known with the buffer it belongs to.
  Array<Var> left;
  for (const Var& param : params) {
    if (!matcher.vars.count(param)) left.push_back(param);
  }
  Edit(&func)->params = left;
  return SizeFolder().Mutate(Substitute(func, matcher.vars));
}

namespace {
TVM_REGISTER() {
  Def(
      "tir.Specialize",
      [](PrimFunc func, Map<Var, Variant<Buffer, PrimExpr>> param_map) {
        return Specialize(func, param_map);
      },
      "The function with parameters fixed: a scalar to a value, a buffer to one of known shape.",
      Arg("func"), Arg("param_map"));
}
}  // namespace
}  // namespace tvm::tir
