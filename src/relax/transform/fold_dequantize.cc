// SPDX-License-Identifier: Apache-2.0
// Products of dequantised numbers become products of the integers.
//
// With x = (a - za) * sa, and weights w = b * sb, a sum of x * w over some axes is
// (sum(a * b) - za * sum(b)) * (sa * sb): the first sum in int32, the second one of constants.
#include <algorithm>
#include <cmath>

#include "tvm/expr/op.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/attrs.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/operator.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
/// A sum of so many products of bytes fits int32, whatever they are.
constexpr int64_t kMostProducts = 1 << 15;

class DequantizeFolder : public ExprMutator {
 public:
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* call = visited.as<CallObj>();
    if (!call || call->args.size() != 2 || !call->attrs) return visited;
    auto* conv = call->attrs.value().as<Conv2DAttrsObj>();
    auto* product = call->attrs.value().as<MatmulAttrsObj>();
    if (!conv && !product) return visited;
    auto data = Behind(call->args[0]), weight = Behind(call->args[1]);
    if (!data || !weight || !data->IsWhole() || !weight->data.as<ConstantObj>() ||
        !weight->IsCentred())
      return visited;
    if (conv && conv->out_dtype.is_float() && conv->out_dtype.bits() != 32) return visited;
    Optional<Expr> result =
        conv ? Convolution(call, conv, *data, *weight) : Product(call, *data, *weight);
    return result.value_or(visited);
  }

 private:
  /// Bytes with a scale and a zero point.
  struct Quantised {
    Expr data, scale, zero;
    int64_t axis;  // of scales, from the front
    const TensorStructInfoObj* info;
    static bool IsOneNumber(const Expr& e) {
      auto* t = GetStructInfoAs<TensorStructInfoObj>(e);
      return t && (t->ndim == 0 || (t->Dims() && IsOne((*t->Dims())[0])));
    }
    bool IsWhole() const { return IsOneNumber(scale) && IsOneNumber(zero); }
    /// Whether zero points are known to be 0.
    bool IsCentred() const {
      auto* constant = zero.as<ConstantObj>();
      if (!constant || constant->data.device().device_type != kDLCPU) return false;
      auto* bytes = static_cast<const uint8_t*>(constant->data.data_ptr());
      int64_t size = constant->data.numel() * DataType(constant->data.dtype()).bits() / 8;
      return std::all_of(bytes, bytes + size, [](uint8_t byte) { return byte == 0; });
    }
  };
  /// What a value was dequantised from, to float32.
  std::optional<Quantised> Behind(const Expr& expr) const {
    auto* var = expr.as<VarObj>();
    Optional<Expr> value = var ? LookupBinding(ffi::GetRef<Var>(var)) : std::nullopt;
    auto* call = value ? value.value().as<CallObj>() : nullptr;
    static const Op& dequantize = *new Op(Op::Get("relax.dequantize"));
    if (!call || !call->Is(dequantize)) return std::nullopt;
    auto* attrs = call->attrs.value().as<QuantizeAttrsObj>();
    auto* info = GetStructInfoAs<TensorStructInfoObj>(call->args[0]);
    if (!info || !info->Dims() || !info->dtype.is_integer() || info->dtype.bits() != 8 ||
        attrs->out_dtype != DataType::Float(32))
      return std::nullopt;
    int64_t axis = attrs->axis < 0 ? attrs->axis + info->ndim : attrs->axis;
    Quantised result{call->args[0], call->args[1], call->args[2], axis, info};
    // With a zero point that is no byte, int32 might not hold the sums.
    auto* zero = GetStructInfoAs<TensorStructInfoObj>(result.zero);
    bool is_byte = zero && zero->dtype.bits() == 8;
    if (!is_byte && !result.IsCentred()) {
      auto known = Quantised::IsOneNumber(result.zero) ? ZeroOf(result) : std::nullopt;
      if (!known || std::abs(*known) > 255) return std::nullopt;
    }
    return result;
  }
  Expr Make(const char* name, const std::vector<AnyView>& params) {
    return builder_->Emit(CallOperator(name, params));
  }
  Expr AsInt(const Expr& e) { return Make("relax.astype", {e, DataType::Int(32)}); }
  static Ints IntsOf(const std::vector<int64_t>& values) {
    Ints ints;
    for (int64_t v : values) ints.push_back(IntImm::Int64(v));
    return ints;
  }
  Expr Number(const Expr& e) {
    auto* t = GetStructInfoAs<TensorStructInfoObj>(e);
    return t->ndim == 0 ? e : Make("relax.reshape", {e, ShapeExpr(Array<PrimExpr>())});
  }
  /// The sums in float32: corrected, scaled. What belongs to filters or columns, axis `own` of the
  /// weights, runs along `axis` of `rank`.
  Expr Scaled(Expr sums, const Quantised& data, const Quantised& weight, int64_t own, int64_t axis,
              int64_t rank) {
    std::vector<int64_t> reduced;
    for (int64_t i = 0; i < weight.info->ndim; ++i) {
      if (i != own) reduced.push_back(i);
    }
    std::vector<PrimExpr> along(rank, IntImm::Int64(1));
    along[axis] = (*weight.info->Dims())[own];
    ShapeExpr column{Array<PrimExpr>(along.begin(), along.end())};
    if (!data.IsCentred()) {
      Expr total = Make("relax.sum", {AsInt(weight.data), IntsOf(reduced)});
      Expr moved = Make("relax.multiply", {total, AsInt(Number(data.zero))});
      sums = Make("relax.subtract", {sums, Make("relax.reshape", {moved, column})});
    }
    Expr scale = weight.scale;
    if (Quantised::IsOneNumber(scale)) {
      scale = Make("relax.multiply", {Number(scale), Number(data.scale)});
    } else {
      scale = Make("relax.multiply", {Make("relax.reshape", {scale, column}), Number(data.scale)});
    }
    return CallOperator("relax.multiply",
                        {Make("relax.astype", {sums, DataType::Float(32)}), scale});
  }
  Optional<Expr> Convolution(const CallObj* call, const Conv2DAttrsObj* attrs,
                             const Quantised& data, const Quantised& weight) {
    std::string_view layout = View(attrs->data_layout);
    if (layout != "NCHW" || View(attrs->kernel_layout) != "OIHW" ||
        (View(attrs->out_layout) != "" && View(attrs->out_layout) != "NCHW"))
      return std::nullopt;
    if (!Quantised::IsOneNumber(weight.scale) && weight.axis != 0) return std::nullopt;
    auto* filters = weight.data.as<ConstantObj>();
    int64_t products = filters->data.size(1) * filters->data.size(2) * filters->data.size(3);
    if (products > kMostProducts) return std::nullopt;
    auto node = ffi::make_object<Conv2DAttrsObj>(*attrs);
    node->out_dtype = DataType::Int(32);
    Expr image = data.data;
    bool is_padded = std::any_of(attrs->padding.begin(), attrs->padding.end(),
                                 [](const auto& p) { return p->value != 0; });
    if (is_padded && !data.IsCentred()) {
      // What lies around the image is 0: the zero point.
      auto zero = ZeroOf(data);
      if (!zero || attrs->padding.size() != 4) return std::nullopt;
      auto side = [&](size_t i) { return attrs->padding[i]->value; };
      Ints widths = IntsOf({0, 0, 0, 0, side(0), side(2), side(1), side(3)});
      image = Make("relax.nn.pad", {image, widths, String("constant"), *zero});
      node->padding = IntsOf({0, 0, 0, 0});
    }
    Expr sums = builder_->Emit(
        Call(call->op, {image, weight.data}, ObjectRef(std::move(node)).as<Attrs>().value()));
    return Scaled(sums, data, weight, 0, 1, 4);
  }
  static std::optional<double> ZeroOf(const Quantised& data) {
    auto* constant = data.zero.as<ConstantObj>();
    if (!constant || constant->data.device().device_type != kDLCPU) return std::nullopt;
    DataType t(constant->data.dtype());
    const void* bytes = constant->data.data_ptr();
    if (t == DataType::UInt(8)) return *static_cast<const uint8_t*>(bytes);
    if (t == DataType::Int(8)) return *static_cast<const int8_t*>(bytes);
    if (t == DataType::Int(32)) return *static_cast<const int32_t*>(bytes);
    if (t == DataType::Int(64)) return *static_cast<const int64_t*>(bytes);
    return std::nullopt;
  }
  Optional<Expr> Product(const CallObj* call, const Quantised& data, const Quantised& weight) {
    auto* matrix = weight.data.as<ConstantObj>();
    if (matrix->data.ndim() != 2 || matrix->data.size(0) > kMostProducts || data.info->ndim < 2)
      return std::nullopt;
    if (!Quantised::IsOneNumber(weight.scale) && weight.axis != 1) return std::nullopt;
    DataType out = call->attrs.value().as<MatmulAttrsObj>()->out_dtype;
    if (!out.is_void() && out != DataType::Float(32)) return std::nullopt;
    Expr sums = Make("relax.matmul", {data.data, weight.data, DataType::Int(32)});
    return Scaled(sums, data, weight, 1, data.info->ndim - 1, data.info->ndim);
  }
};

Function FoldDequantize(Function func, IRModule) {
  return OnDeepStack([&] {
    Expr changed = DequantizeFolder().VisitExpr(func);
    return changed.same_as(func) ? func : RemoveAllUnused(As<Function>(changed));
  });
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(
    FoldDequantize, 0,
    R"(Products and convolutions of bytes that were dequantised are computed on the bytes, where
weights are constant, without a zero point, and the data has one scale. What follows stays in
float32; results differ by rounding alone.

y = R.matmul(R.dequantize(a, sa, za), R.dequantize(b, sb, zero))
->
t = R.subtract(R.matmul(a, b, out_dtype="int32"), R.sum(b, axis=0) * za)
y = R.multiply(R.astype(t, "float32"), sa * sb))");
}  // namespace tvm::relax
