// SPDX-License-Identifier: Apache-2.0
// Products of dequantised numbers become products of the integers.
//
// With x = (a - za) * sa, and weights w = b * sb, a sum of x * w over some axes is
// (sum(a * b) - za * sum(b)) * (sa * sb): the first sum in int32, the second one of constants.
#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_set>

#include "relax/legalize/lowering.h"
#include "relax/transform/products.h"
#include "runtime/host_tensor.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
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
    if (!call) return visited;
    if (call->Is(Dequantize())) return Centred(call).value_or(visited);
    if (Optional<Expr> moved = Moved(call)) return moved.value();
    if (call->args.size() != 2 || !call->attrs) return visited;
    auto* conv = call->attrs.value().as<Conv2DAttrsObj>();
    auto* product = call->attrs.value().as<MatmulAttrsObj>();
    if (!conv && !product) return visited;
    auto data = Behind(call->args[0]), weight = Behind(call->args[1]);
    if (!data || !weight || !data->IsWhole()) return visited;
    if (product && !IsKnown(weight->data)) return Between(call, *data, *weight).value_or(visited);
    if (!IsKnown(weight->data) || !weight->IsCentred()) return visited;
    if (conv && conv->out_dtype.is_float() && conv->out_dtype.bits() != 32) return visited;
    Optional<Expr> result =
        conv ? Convolution(call, conv, *data, *weight) : Product(call, *data, *weight);
    return result.value_or(visited);
  }

 private:
  static const Op& Dequantize() {
    static const Op& op = *new Op(Op::Get("relax.dequantize"));
    return op;
  }
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
    if (!call || !call->Is(Dequantize())) return std::nullopt;
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
  /// Whether a value is a constant, or one that was moved.
  bool IsKnown(const Expr& expr) const {
    if (expr.as<ConstantObj>()) return true;
    auto* var = expr.as<VarObj>();
    Optional<Expr> value = var ? LookupBinding(ffi::GetRef<Var>(var)) : std::nullopt;
    auto* call = value ? value.value().as<CallObj>() : nullptr;
    return call && IsMove(call) && IsKnown(call->args[0]) &&
           std::none_of(call->args.begin() + 1, call->args.end(),
                        [](const Expr& e) { return e.as<VarObj>(); });
  }

  // ---- moves ------------------------------------------------------------------------------------
  /// Whether each element of the result is one of the first operand.
  static bool IsMove(const CallObj* call) {
    static const std::unordered_set<std::string_view> names = {
        "relax.reshape",      "relax.permute_dims",  "relax.expand_dims", "relax.squeeze",
        "relax.flatten",      "relax.strided_slice", "relax.take",        "relax.flip",
        "relax.broadcast_to", "relax.repeat",        "relax.tile"};
    auto* op = call->op.as<OpObj>();
    return op && names.count(View(op->name));
  }
  /// Bytes are moved before they are dequantised: there are fewer of them, and what follows finds
  /// the bytes.
  Optional<Expr> Moved(const CallObj* call) {
    if (auto* op = call->op.as<OpObj>(); op && op->name == "relax.concat") return Joined(call);
    if (!IsMove(call)) return std::nullopt;
    auto before = Behind(call->args[0]);
    if (!before) return std::nullopt;
    int64_t axis = before->axis;
    if (!before->IsWhole()) {
      // Scales of an axis move with it.
      auto* permute = call->attrs ? call->attrs.value().as<PermuteDimsAttrsObj>() : nullptr;
      if (!permute) return std::nullopt;
      std::vector<int64_t> order = PermutationOf(call, before->info->ndim);
      axis = std::find(order.begin(), order.end(), axis) - order.begin();
    }
    Array<Expr> args = call->args;
    args.Set(0, before->data);
    Expr data = builder_->Emit(Call(call->op, args, call->attrs));
    return Again(data, *before, axis);
  }
  /// The same of parts with the same scale.
  Optional<Expr> Joined(const CallObj* call) {
    Expr tuple = call->args[0];
    if (auto* var = tuple.as<VarObj>())
      tuple = LookupBinding(ffi::GetRef<Var>(var)).value_or(tuple);
    auto* parts = tuple.as<TupleObj>();
    if (!parts || parts->fields.empty()) return std::nullopt;
    std::optional<Quantised> first;
    Array<Expr> fields;
    for (const Expr& field : parts->fields) {
      auto part = Behind(field);
      if (!part || !part->IsWhole()) return std::nullopt;
      if (!first) first = part;
      if (!IsSameNumber(part->scale, first->scale) || !IsSameNumber(part->zero, first->zero) ||
          part->info->dtype != first->info->dtype)
        return std::nullopt;
      fields.push_back(part->data);
    }
    return Again(builder_->Emit(Call(call->op, {Tuple(fields)}, call->attrs)), *first, 0);
  }
  static bool IsSameNumber(const Expr& a, const Expr& b) {
    if (a.same_as(b)) return true;
    PrimExpr x = ScalarOf(a), y = ScalarOf(b);
    return x.defined() && y.defined() && tir::ExprDeepEqual(x, y);
  }
  /// Bytes dequantised as others were.
  Optional<Expr> Again(const Expr& data, const Quantised& like, int64_t axis) {
    if (RankOf(data) < 1) return std::nullopt;
    if (!like.IsWhole()) {
      return CallOperator("relax.dequantize",
                          {data, like.scale, like.zero, axis, DataType::Float(32)});
    }
    return CallOperator("relax.dequantize",
                        {data, Number(like.scale), Number(like.zero), 0, DataType::Float(32)});
  }
  /// Weights without their zero points, where the differences are bytes with a sign.
  Optional<Expr> Centred(const CallObj* call) const {
    auto *data = call->args[0].as<ConstantObj>(), *zero = call->args[2].as<ConstantObj>();
    if (!data || !zero) return std::nullopt;
    DataType t(data->data.dtype());
    bool is_byte = t == DataType::UInt(8) || t == DataType::Int(8);
    if (!is_byte || DataType(zero->data.dtype()) != t) return std::nullopt;
    runtime::Tensor from = runtime::HostTensor(data->data), of = runtime::HostTensor(zero->data);
    auto at = [t](const runtime::Tensor& tensor, int64_t i) -> int {
      return t.is_uint() ? static_cast<const uint8_t*>(tensor.data_ptr())[i]
                         : static_cast<const int8_t*>(tensor.data_ptr())[i];
    };
    bool is_centred = true;
    for (int64_t i = 0; i < of.numel(); ++i) is_centred = is_centred && at(of, i) == 0;
    int64_t axis = call->attrs.value().as<QuantizeAttrsObj>()->axis, inner = 1;
    if (axis < 0) axis += from.ndim();
    for (int64_t i = axis + 1; i < from.ndim(); ++i) inner *= from.size(i);
    if (is_centred || of.numel() == 0 || (of.numel() > 1 && of.numel() != from.size(axis)))
      return std::nullopt;
    auto empty_like = [](const runtime::Tensor& tensor) {
      return runtime::Empty(tensor.shape(), DataType::Int(8), DLDevice{kDLCPU, 0});
    };
    runtime::Tensor moved = empty_like(from), zeros = empty_like(of);
    auto* out = static_cast<int8_t*>(moved.data_ptr());
    for (int64_t i = 0; i < from.numel(); ++i) {
      int difference = at(from, i) - at(of, i / inner % of.numel());
      if (difference < -128 || difference > 127) return std::nullopt;
      out[i] = static_cast<int8_t>(difference);
    }
    std::fill_n(static_cast<int8_t*>(zeros.data_ptr()), zeros.numel(), 0);
    return Call(call->op, {Constant(moved), call->args[1], Constant(zeros)}, call->attrs);
  }

  // ---- products ---------------------------------------------------------------------------------
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
    if (RankOf(e) == 0) return e;
    if (auto* constant = e.as<ConstantObj>())
      return Constant(runtime::CreateView(constant->data, {}, constant->data.dtype()));
    return Make("relax.reshape", {e, ShapeExpr(Array<PrimExpr>())});
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
    int64_t products = 1;
    for (int i = 1; i < 4; ++i)
      products *= AsConstInt((*weight.info->Dims())[i]).value_or(kMostProducts + 1);
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
  static bool IsToSingle(const CallObj* matmul) {
    DataType out = OutTypeOf(matmul);
    return out.is_void() || out == DataType::Float(32);
  }
  /// Of two matrices that are both computed when the program runs:
  /// sum(a * b) - zb * sum(a) - za * (sum(b) - k * zb)
  Optional<Expr> Between(const CallObj* call, const Quantised& a, const Quantised& b) {
    if (!b.IsWhole() || a.info->ndim < 2 || b.info->ndim < 2 || !IsToSingle(call))
      return std::nullopt;
    int64_t depth = AsConstInt((*a.info->Dims())[a.info->ndim - 1]).value_or(kMostProducts + 1);
    if (depth > kMostProducts) return std::nullopt;
    Expr sums = Make("relax.matmul", {a.data, b.data, DataType::Int(32)});
    Expr zero = AsInt(Number(b.zero));
    auto take_off = [&](Expr totals, const Expr& factor) {
      sums = Make("relax.subtract", {sums, Make("relax.multiply", {totals, factor})});
    };
    if (!b.IsCentred()) take_off(Make("relax.sum", {AsInt(a.data), IntsOf({-1}), true}), zero);
    if (!a.IsCentred()) {
      Expr totals = Make("relax.sum", {AsInt(b.data), IntsOf({-2}), true});
      if (!b.IsCentred()) {
        Expr size = MakeConstant({static_cast<double>(depth)}, {}, DataType::Int(32));
        totals = Make("relax.subtract", {totals, Make("relax.multiply", {zero, size})});
      }
      take_off(totals, AsInt(Number(a.zero)));
    }
    Expr scale = Make("relax.multiply", {Number(a.scale), Number(b.scale)});
    return CallOperator("relax.multiply",
                        {Make("relax.astype", {sums, DataType::Float(32)}), scale});
  }
  Optional<Expr> Product(const CallObj* call, const Quantised& data, const Quantised& weight) {
    if (weight.info->ndim != 2 || data.info->ndim < 2 ||
        AsConstInt((*weight.info->Dims())[0]).value_or(kMostProducts + 1) > kMostProducts)
      return std::nullopt;
    if (!Quantised::IsOneNumber(weight.scale) && weight.axis != 1) return std::nullopt;
    if (!IsToSingle(call)) return std::nullopt;
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
weights are constant, without a zero point or with one that can be taken off them, and the data has
one scale; products of two matrices that are no weights where each has one scale. What follows stays in float32; results differ by rounding alone. Bytes that are reshaped,
permuted, cut, looked up or joined are so before they are dequantised.

y = R.matmul(R.dequantize(a, sa, za), R.dequantize(b, sb, zero))
->
t = R.subtract(R.matmul(a, b, out_dtype="int32"), R.sum(b, axis=0) * za)
y = R.multiply(R.astype(t, "float32"), sa * sb))");
}  // namespace tvm::relax
