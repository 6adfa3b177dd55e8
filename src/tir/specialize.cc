// SPDX-License-Identifier: Apache-2.0
// Fixing parameters of a function, and the registry of tensor intrinsics.
#include <mutex>

#include "tvm/arith/analyzer.h"
#include "tvm/expr/substitute.h"
#include "tvm/tir/function.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
/// Collects what variables must be for a buffer to be like another one.
struct BufferMatcher {
  Map<Var, PrimExpr>* values;
  arith::Analyzer analyzer;

  void Match(const PrimExpr& pattern, const PrimExpr& value, const Buffer& buffer,
             const char* what) {
    if (auto* var = pattern.as<VarObj>(); var && !values->count(ffi::GetRef<Var>(var))) {
      values->Set(ffi::GetRef<Var>(var), cast(pattern.dtype(), value));
      return;
    }
    PrimExpr known = Substitute(pattern, *values);
    if (analyzer.CanProveEqual(cast(value.dtype(), known), value)) return;
    TVM_FFI_THROW(ValueError) << "specialize: expected the " << what << " of " << buffer->name
                              << " to match that of the function's buffer, got one that differs";
  }
  void Match(const Buffer& pattern, const Buffer& value) {
    auto expect = [&](bool ok, const char* what, const auto& expected, const auto& got) {
      if (!ok) {
        TVM_FFI_THROW(ValueError) << "specialize: expected " << what << " " << expected
                                  << " of buffer " << pattern->name << ", got " << got;
      }
    };
    expect(pattern->dtype == value->dtype, "dtype", pattern->dtype, value->dtype);
    expect(pattern->shape.size() == value->shape.size(), "rank", pattern->shape.size(),
           value->shape.size());
    expect(value->data_alignment % pattern->data_alignment == 0, "data_alignment",
           pattern->data_alignment, value->data_alignment);
    expect(pattern->strides.size() == value->strides.size() || value->strides.empty(),
           "number of strides", pattern->strides.size(), value->strides.size());
    for (size_t i = 0; i < pattern->shape.size(); ++i)
      Match(pattern->shape[i], value->shape[i], value, "shape");
    Array<PrimExpr> strides = value.ExplicitStrides();
    for (size_t i = 0; i < pattern->strides.size(); ++i)
      Match(pattern->strides[i], strides[i], value, "strides");
    Match(pattern->elem_offset, value->elem_offset, value, "elem_offset");
  }
};
}  // namespace

PrimFunc Specialize(PrimFunc func, const Map<Var, Variant<Buffer, PrimExpr>>& param_map) {
  Map<Var, PrimExpr> values;
  BufferMatcher matcher{&values, {}};
  for (const auto& [param, value] : param_map) {
    bool is_param = false;
    for (const Var& p : func->params) is_param |= p.same_as(param);
    if (!is_param) {
      TVM_FFI_THROW(ValueError) << "specialize: expected parameters of the function as keys, got "
                                << param->name_hint;
    }
    Buffer buffer = func.BufferOf(param);
    auto to_buffer = value.as<Buffer>();
    if (buffer.defined() != to_buffer.has_value()) {
      TVM_FFI_THROW(TypeError) << "specialize: expected "
                               << (buffer.defined() ? "a Buffer" : "an expression") << " for "
                               << param->name_hint << ", got " << value.GetTypeKey();
    }
    if (to_buffer) {
      matcher.Match(buffer, *to_buffer);
      continue;
    }
    PrimExpr e = *value.as<PrimExpr>();
    if (e.dtype() != param.dtype() && !AsConstInt(e) && !e.as<FloatImmObj>()) {
      TVM_FFI_THROW(TypeError) << "specialize: expected a value of type " << param.dtype()
                               << " for " << param->name_hint << ", got " << e.dtype();
    }
    values.Set(param, cast(param.dtype(), e));
  }
  Array<Var> params;
  for (const Var& p : func->params) {
    if (!values.count(p)) params.push_back(p);
  }
  auto* n = Edit(&func);
  n->params = params;
  // One substitution over buffers and body together, so that both refer to the same new buffers.
  PrimFunc result = Substitute(func, values);
  return result;
}

// ---- tensor intrinsics ------------------------------------------------------------------------
namespace {
struct IntrinTable {
  std::mutex mutex;
  Map<String, TensorIntrin> intrins;
};
IntrinTable& Intrins() {
  static auto* table = new IntrinTable();
  return *table;
}
void RegisterIntrin(String name, TensorIntrin intrin, bool override) {
  IntrinTable& t = Intrins();
  std::lock_guard lock(t.mutex);
  if (!override && t.intrins.count(name)) {
    TVM_FFI_THROW(ValueError) << "TensorIntrin: expected a name that is not registered, got '"
                              << name << "' (override=True replaces it)";
  }
  t.intrins.Set(name, intrin);
}
Optional<TensorIntrin> GetIntrin(String name, bool allow_missing) {
  IntrinTable& t = Intrins();
  std::lock_guard lock(t.mutex);
  if (auto it = t.intrins.find(name); it != t.intrins.end()) return (*it).second;
  if (allow_missing) return std::nullopt;
  std::vector<std::string> names;
  for (const auto& [known, intrin] : t.intrins) names.push_back(known);
  std::vector<std::string_view> views(names.begin(), names.end());
  TVM_FFI_THROW(ValueError) << "TensorIntrin: expected the name of a registered intrinsic, got '"
                            << name << "'" << DidYouMean(View(name), views);
  TVM_FFI_UNREACHABLE();
}

TVM_REGISTER() {
  Def(
      "tir.Specialize",
      [](PrimFunc func, Map<Var, Variant<Buffer, PrimExpr>> param_map) {
        return OnDeepStack([&] { return Specialize(func, param_map); });
      },
      "The function with some parameters fixed: a scalar to a value, a buffer to the shape of "
      "another one.",
      Arg("func"), Arg("param_map"));
  Def("tir.TensorIntrinRegister", &RegisterIntrin, "", Arg("name"), Arg("intrin"),
      Arg("override", false));
  Def("tir.TensorIntrinGet", &GetIntrin, "", Arg("name"), Arg("allow_missing", false));
}
}  // namespace
}  // namespace tvm::tir
