// SPDX-License-Identifier: Apache-2.0
// The sizes of the plain convolution, its filters, and where its results are put.
#include "relax/transform/sub_pixel.h"

#include <algorithm>

#include "tvm/relax/analysis.h"
#include "tvm/relax/attrs.h"

namespace tvm::relax {
namespace {
/// The dimensions, of which all but the first are known.
std::optional<std::vector<int64_t>> KnownSizes(const Expr& expr) {
  auto* tensor = GetStructInfoAs<TensorStructInfoObj>(expr);
  auto dims = tensor ? tensor->Dims() : Optional<Array<PrimExpr>>();
  if (!dims || !tensor->dtype.is_float()) return std::nullopt;
  std::vector<int64_t> sizes;
  for (const PrimExpr& dim : dims.value()) {
    auto* size = dim.as<IntImmObj>();
    if (sizes.empty() ? false : !size || size->value < 1) return std::nullopt;
    sizes.push_back(size ? size->value : 0);
  }
  return sizes;
}
PrimExpr Number(int64_t n) { return IntImm::Int64(n); }
std::string Spatial(size_t dims) { return std::string("DHW").substr(3 - dims); }

/// `take(attrs)` of the attributes of a transposed convolution; nothing for other calls.
template <class F>
std::optional<SubPixel> WithAttrs(const Call& call, F&& take) {
  if (!call->attrs) return std::nullopt;
  if (auto* attrs = call->attrs.value().as<Conv1DTransposeAttrsObj>()) return take(attrs);
  if (auto* attrs = call->attrs.value().as<Conv2DTransposeAttrsObj>()) return take(attrs);
  return std::nullopt;
}
}  // namespace

std::optional<SubPixel> SubPixel::Of(const Call& call) {
  return WithAttrs(call, [&](auto* attrs) -> std::optional<SubPixel> {
    size_t dims = attrs->strides.size();
    auto data = KnownSizes(call->args[0]), weight = KnownSizes(call->args[1]),
         out = KnownSizes(call);
    String layout = "NC" + Spatial(dims);
    if (!data || !weight || !out || data->size() != dims + 2 || weight->front() < 1 ||
        attrs->data_layout != layout || attrs->out_layout != layout ||
        attrs->kernel_layout != "IO" + Spatial(dims))
      return std::nullopt;
    SubPixel s;
    s.call_ = call;
    s.groups_ = attrs->groups;
    s.inputs_ = (*data)[1] / s.groups_;
    s.each_ = (*weight)[1];
    for (size_t i = 0; i < dims; ++i) {
      if (attrs->dilation[i]->value != 1) return std::nullopt;
      int64_t elements = (*data)[2 + i], cut = attrs->padding[i]->value;
      Axis a;
      a.kernel = (*weight)[2 + i];
      // One element is nobody's neighbour.
      a.step = elements == 1 ? a.kernel : attrs->strides[i]->value;
      a.taps = (a.kernel + a.step - 1) / a.step;
      a.size = (*out)[2 + i];
      if (a.size < 1 || cut < 0) return std::nullopt;
      int64_t first = std::min(cut / a.step, a.taps - 1), last = (cut + a.size - 1) / a.step;
      a.before = a.taps - 1 - first;
      a.after = std::max<int64_t>(0, last - first + a.taps - elements - a.before);
      a.rows = elements + a.before + a.after - a.taps + 1;
      a.begin = cut - first * a.step;
      s.places_ *= a.step;
      s.axes_.push_back(a);
    }
    return s;
  });
}
Expr SubPixel::Filters(const BlockBuilder& builder) const {
  auto emit = [&](const char* name, const std::vector<AnyView>& params) -> Expr {
    return builder->Emit(CallOperator(name, params));
  };
  // (groups, inputs, outputs, taps, places, …) with the taps turned round.
  auto n = static_cast<int64_t>(axes_.size());
  Expr weight = call_->args[1];
  Ints margins{IntImm::Int64(0), IntImm::Int64(0), IntImm::Int64(0), IntImm::Int64(0)};
  Array<PrimExpr> apart{Number(groups_), Number(inputs_), Number(each_)},
      together{Number(filters()), Number(inputs_)};
  Ints order{IntImm::Int32(0), IntImm::Int32(2), IntImm::Int32(1)};
  bool is_filled = true;
  for (int64_t k = 0; k < n; ++k) {
    const Axis& a = axes_[k];
    int64_t missing = a.taps * a.step - a.kernel;
    is_filled = is_filled && missing == 0;
    margins.push_back(IntImm::Int64(0));
    margins.push_back(IntImm::Int64(missing));
    apart.push_back(Number(a.taps));
    apart.push_back(Number(a.step));
    together.push_back(Number(a.taps));
    order.insert(order.begin() + 1 + k, IntImm::Int32(4 + 2 * k));
    order.push_back(IntImm::Int32(3 + 2 * k));
  }
  if (!is_filled) weight = emit("relax.nn.pad", {weight, margins});
  weight = emit("relax.reshape", {weight, ShapeExpr(apart)});
  for (int64_t k = 0; k < n; ++k) {
    if (axes_[k].taps > 1) weight = emit("relax.flip", {weight, 3 + 2 * k});
  }
  weight = emit("relax.permute_dims", {weight, order});
  return emit("relax.reshape", {weight, ShapeExpr(together)});
}
Ints SubPixel::Padding() const {
  Ints padding;
  for (const Axis& a : axes_) padding.push_back(IntImm::Int64(a.before));
  for (const Axis& a : axes_) padding.push_back(IntImm::Int64(a.after));
  return padding;
}
Expr SubPixel::Shuffled(const BlockBuilder& builder, const Expr& plain, int64_t block) const {
  auto emit = [&](const char* name, const std::vector<AnyView>& params) -> Expr {
    return builder->Emit(CallOperator(name, params));
  };
  auto n = static_cast<int64_t>(axes_.size());
  Expr result = plain;
  PrimExpr images = GetStructInfoAs<TensorStructInfoObj>(data())->Dims().value()[0];
  if (places_ > 1) {
    // (N, groups, places…, outputs, rows…, block)
    Array<PrimExpr> apart{images, Number(groups_)}, together{images, Number(outputs() / block)};
    Ints order{IntImm::Int32(0), IntImm::Int32(1), IntImm::Int32(2 + n)};
    for (const Axis& a : axes_) apart.push_back(Number(a.step));
    apart.push_back(Number(each_ / block));
    for (int64_t k = 0; k < n; ++k) {
      const Axis& a = axes_[k];
      apart.push_back(Number(a.rows));
      together.push_back(Number(a.rows * a.step));
      order.push_back(IntImm::Int32(3 + n + k));
      order.push_back(IntImm::Int32(2 + k));
    }
    if (block > 1) {
      apart.push_back(Number(block));
      together.push_back(Number(block));
      order.push_back(IntImm::Int32(3 + 2 * n));
    }
    result = emit("relax.reshape", {result, ShapeExpr(apart)});
    result = emit("relax.permute_dims", {result, order});
    result = emit("relax.reshape", {result, ShapeExpr(together)});
  }
  Array<Any> cut, begin, end;
  for (int64_t k = 0; k < n; ++k) {
    const Axis& a = axes_[k];
    if (a.begin == 0 && a.size == a.rows * a.step) continue;
    cut.push_back(2 + k);
    begin.push_back(a.begin);
    end.push_back(a.begin + a.size);
  }
  return cut.empty() ? result : emit("relax.strided_slice", {result, cut, begin, end});
}
}  // namespace tvm::relax
