// SPDX-License-Identifier: Apache-2.0
// Lowering of operators that a row cannot describe.
#include <cmath>
#include <cstring>

#include "relax/legalize/lowering.h"
#include "tir/transform/small_float.h"
#include "tvm/relax/attrs.h"
#include "tvm/runtime/tensor.h"
#include "tvm/topi/create.h"
#include "tvm/topi/elementwise.h"
#include "tvm/topi/index.h"
#include "tvm/topi/transform.h"

namespace tvm::relax {
namespace {
using te::Tensor;
using Operand = Variant<Tensor, PrimExpr>;

// ---- elementwise --------------------------------------------------------------------------------
#define TVM_BINARY_OPERATORS(ROW) \
  ROW(add)                        \
  ROW(subtract)                   \
  ROW(multiply)                   \
  ROW(divide)                     \
  ROW(floor_divide)               \
  ROW(mod)                        \
  ROW(floor_mod)                  \
  ROW(maximum)                    \
  ROW(minimum)                    \
  ROW(power)                      \
  ROW(log_add_exp)                \
  ROW(left_shift)                 \
  ROW(right_shift)                \
  ROW(greater)                    \
  ROW(less)                       \
  ROW(equal)                      \
  ROW(not_equal)                  \
  ROW(greater_equal)              \
  ROW(less_equal)                 \
  ROW(logical_and)                \
  ROW(logical_or)                 \
  ROW(logical_xor)                \
  ROW(bitwise_and)                \
  ROW(bitwise_or)                 \
  ROW(bitwise_xor)
using BinaryFn = Operand (*)(const Operand&, const Operand&);
/// A scalar constant is put into the expression; of two the right one.
Expr LowerBinary(const BlockBuilder& builder, const Call& call, BinaryFn op, const char* name) {
  if (GetStructInfo(call).as<PrimStructInfoObj>()) return call;
  Lowered lowered(builder, call);
  auto is_prim = [&](size_t i) { return GetStructInfoAs<PrimStructInfoObj>(call->args[i]); };
  // One of them stays a tensor.
  auto is_inlined = [&](size_t i) { return ScalarOf(call->args[i]).defined() && !is_prim(1 - i); };
  bool right = is_inlined(1), left = !right && is_inlined(0);
  auto operand = [&](size_t i, bool is_constant) -> Operand {
    if (is_constant) return ScalarOf(call->args[i]);
    if (is_prim(i)) return lowered.Scalar(i);
    return lowered.Tensor(i);
  };
  Operand a = operand(0, left), b = operand(1, right);
  return lowered.Finish(name, {op(a, b).get<Tensor>()});
}
#define ROW(name)                                                          \
  Expr LowerBinary_##name(const BlockBuilder& builder, const Call& call) { \
    return LowerBinary(builder, call, &topi::name, #name);                 \
  }
TVM_BINARY_OPERATORS(ROW)
#undef ROW

template <class AttrsObjT>
Expr LowerAstype(const BlockBuilder& builder, const Call& call) {
  Lowered lowered(builder, call);
  DataType dtype = lowered.Attrs<AttrsObjT>()->dtype;
  if (PrimExpr value = ScalarOf(call->args[0]); value.defined()) {
    PrimExpr cast = tvm::cast(dtype, value);
    auto* f = cast.as<FloatImmObj>();
    auto i = AsConstInt(cast);
    if (f || i) return MakeConstant({f ? f->value : static_cast<double>(*i)}, {}, dtype);
  }
  return lowered.Finish("cast", {topi::cast(lowered.Tensor(0), dtype, "compute")});
}
Expr LowerIdentity(const BlockBuilder&, const Call& call) { return call->args[0]; }

// ---- creation -----------------------------------------------------------------------------------
/// The value that fills a tensor: a constant, or the element of a scalar tensor.
PrimExpr FillValue(Lowered& lowered, size_t i) {
  Operand value = lowered.Value(i);
  return value.as<PrimExpr>() ? value.get<PrimExpr>() : value.get<Tensor>()(Array<PrimExpr>());
}
Expr LowerFull(const BlockBuilder& builder, const Call& call) {
  Lowered lowered(builder, call);
  PrimExpr value = FillValue(lowered, 1);
  return lowered.Finish("full",
                        {topi::full(Any(lowered.ResultShape()), lowered.ResultType(), value)});
}
Expr LowerEyeLike(const BlockBuilder& builder, const Call& call) {
  Lowered lowered(builder, call);
  Array<PrimExpr> shape = lowered.ResultShape();
  PrimExpr k = lowered.Scalar(1);
  return lowered.Finish("eye_like", {topi::eye(shape[0], shape[1], k, lowered.ResultType())});
}
std::optional<double> NumberOf(const Expr& expr) {
  auto* prim = GetStructInfoAs<PrimStructInfoObj>(expr);
  if (!prim || !prim->value) return std::nullopt;
  if (auto i = AsConstInt(prim->value.value())) return static_cast<double>(*i);
  auto* f = prim->value.value().as<FloatImmObj>();
  return f ? std::optional(f->value) : std::nullopt;
}
Expr LowerArange(const BlockBuilder& builder, const Call& call) {
  Lowered lowered(builder, call);
  DataType dtype = lowered.ResultType();
  Array<PrimExpr> shape = lowered.ResultShape();
  auto start = NumberOf(call->args[0]), step = NumberOf(call->args[2]);
  auto count = AsConstInt(shape[0]);
  if (start && step && count) {
    std::vector<double> values;
    for (int64_t i = 0; i < *count; ++i) values.push_back(*start + static_cast<double>(i) * *step);
    return MakeConstant(values, shape, dtype);
  }
  return lowered.Finish(
      "arange", {topi::arange(lowered.Scalar(0), lowered.Scalar(1), lowered.Scalar(2), dtype)});
}
Expr LowerHammingWindow(const BlockBuilder& builder, const Call& call) {
  Lowered lowered(builder, call);
  auto periodic = NumberOf(call->args[1]), alpha = NumberOf(call->args[2]),
       beta = NumberOf(call->args[3]);
  if (!periodic || !alpha || !beta) return call;
  return lowered.Finish("hamming_window",
                        {topi::hamming_window(lowered.Scalar(0), *periodic != 0, *alpha, *beta,
                                              lowered.ResultType())});
}

// ---- shapes -------------------------------------------------------------------------------------
/// Axes that are known to be longer than 1 stay.
Expr LowerSqueeze(const BlockBuilder& builder, const Call& call) {
  Lowered lowered(builder, call);
  Tensor x = lowered.Tensor(0);
  const auto& axis = lowered.Attrs<SqueezeAttrsObj>()->axis;
  Array<Any> axes;
  for (size_t d = 0; d < x->shape.size(); ++d) {
    bool named = !axis.has_value();
    for (const IntImm& a : axis.value_or({}))
      named = named || (a->value + static_cast<int64_t>(x->shape.size())) %
                               static_cast<int64_t>(x->shape.size()) ==
                           static_cast<int64_t>(d);
    bool is_one = IsOne(x->shape[d]) || (axis.has_value() && !AsConstInt(x->shape[d]));
    if (named && is_one) axes.push_back(static_cast<int64_t>(d));
  }
  return lowered.Finish("squeeze", {topi::squeeze(x, Any(axes))});
}
Expr LowerSplit(const BlockBuilder& builder, const Call& call) {
  Lowered lowered(builder, call);
  auto* attrs = lowered.Attrs<SplitAttrsObj>();
  Any where = lowered.Attr("indices_or_sections");
  return lowered.Finish("split", topi::split(lowered.Tensor(0), where, attrs->axis));
}
/// The last axis first.
Tensor LastAxisFirst(const Tensor& t) {
  Array<Any> order = {static_cast<int64_t>(t->shape.size()) - 1};
  for (size_t d = 0; d + 1 < t->shape.size(); ++d) order.push_back(static_cast<int64_t>(d));
  return topi::transpose(t, Any(order));
}
Expr LowerGatherND(const BlockBuilder& builder, const Call& call) {
  Lowered lowered(builder, call);
  Tensor data = lowered.Tensor(0), indices = LastAxisFirst(lowered.Tensor(1));
  int64_t batch = lowered.Attrs<GatherNDAttrsObj>()->batch_dims;
  return lowered.Finish("te_gather_nd", {topi::gather_nd(data, indices, batch)});
}
Expr LowerScatterND(const BlockBuilder& builder, const Call& call) {
  Lowered lowered(builder, call);
  Tensor data = lowered.Tensor(0), indices = LastAxisFirst(lowered.Tensor(1));
  Tensor updates = lowered.Tensor(2);
  String reduction = lowered.Attrs<ScatterNDAttrsObj>()->reduction;
  return lowered.Finish("scatter_nd",
                        lowered.Run("topi.scatter_nd", {data, indices, updates, reduction}));
}
Expr LowerLayoutTransform(const BlockBuilder& builder, const Call& call) {
  Lowered lowered(builder, call);
  auto* attrs = lowered.Attrs<LayoutTransformAttrsObj>();
  auto some = [](const Optional<Ints>& list) { return list.has_value() && !list.value().empty(); };
  bool separated = some(attrs->axis_separators) || some(attrs->input_axis_separators);
  // Separators say how buffers lie in memory with several dimensions, which CPUs do not have.
  if (separated) return call;
  Optional<PrimExpr> pad;
  if (attrs->pad_value) pad = attrs->pad_value.value()->value;
  Tensor result = topi::index_map_transform(lowered.Tensor(0), attrs->index_map, pad);
  return lowered.Finish(pad ? "te_layout_transform_with_pad" : "te_layout_transform", {result});
}
Expr LowerDynamicStridedSlice(const BlockBuilder& builder, const Call& call) {
  Lowered lengths(builder, call);
  std::vector<Any> arguments;
  for (size_t i = 0; i < 4; ++i) arguments.push_back(lengths.Tensor(i));
  Expr found = builder->Emit(lengths.te->CallTIR(
      builder, "shape_func", lengths.Run("topi.shape_func_dynamic_strided_slice", arguments)));
  Expr shape = builder->Emit(Call(Op::Get("relax.tensor_to_shape"), {found}));
  auto* info = GetStructInfoAs<TensorStructInfoObj>(call->args[0]);
  Array<PrimExpr> dims;
  for (int64_t d = 0; d < info->ndim; ++d)
    dims.push_back(tir::Var("s" + std::to_string(d), DataType::Int(64)));
  builder->EmitMatchCast(shape, ShapeStructInfo(dims));
  Lowered slice(builder, call);
  arguments.clear();
  for (size_t i = 0; i < 4; ++i) arguments.push_back(slice.Tensor(i));
  arguments.push_back(dims.Map([&](const PrimExpr& e) { return slice.te->Inside(e); }));
  return slice.Finish("dynamic_strided_slice", slice.Run("topi.dynamic_strided_slice", arguments));
}
/// Along one axis the values and their indices; along several, or all, the values.
Expr LowerMedian(const BlockBuilder& builder, const Call& call) {
  Lowered lowered(builder, call);
  auto* attrs = lowered.Attrs<StatisticalAttrsObj>();
  Tensor x = lowered.Tensor(0);
  auto ndim = static_cast<int64_t>(x->shape.size());
  if (attrs->axis && attrs->axis.value().size() == 1) {
    int64_t axis = attrs->axis.value()[0]->value;
    return lowered.Finish("median", lowered.Run("topi.median", {x, axis, attrs->keepdims}));
  }
  std::vector<bool> gone(x->shape.size(), !attrs->axis);
  if (attrs->axis) {
    for (const IntImm& a : attrs->axis.value())
      gone[static_cast<size_t>((a->value + ndim) % ndim)] = true;
  }
  Array<Any> order;
  Array<PrimExpr> together;
  for (bool reduced : {false, true}) {
    for (int64_t d = 0; d < ndim; ++d) {
      if (gone[static_cast<size_t>(d)] != reduced) continue;
      order.push_back(d);
      if (!reduced) together.push_back(x->shape[static_cast<size_t>(d)]);
    }
  }
  together.push_back(PrimExpr(-1));
  Tensor rows = topi::reshape(topi::transpose(x, Any(order)), together);
  Tensor values = lowered.Run("topi.median", {rows, int64_t{-1}, false})[0];
  return lowered.Finish("median", {topi::reshape(values, lowered.ResultShape())});
}
}  // namespace

template <class T>
static void Fill(void* data, const std::vector<double>& values) {
  for (size_t i = 0; i < values.size(); ++i) static_cast<T*>(data)[i] = static_cast<T>(values[i]);
}
Constant MakeConstant(const std::vector<double>& values, Array<PrimExpr> shape, DataType dtype) {
  std::vector<int64_t> dims;
  for (const PrimExpr& dim : shape) dims.push_back(*AsConstInt(dim));
  runtime::Tensor data =
      runtime::Empty(ffi::ShapeView(dims.data(), dims.size()), dtype, DLDevice{kDLCPU, 0});
  void* at = data.data_ptr();
  auto half = [&](const DataType& t) {
    std::vector<double> bits;
    for (double v : values) bits.push_back(static_cast<double>(tir::ConstantBits(v, t)));
    Fill<uint16_t>(at, bits);
  };
  if (dtype == DataType::Float(32))
    Fill<float>(at, values);
  else if (dtype == DataType::Float(64))
    Fill<double>(at, values);
  else if (dtype.is_bool() || dtype == DataType::UInt(8))
    Fill<uint8_t>(at, values);
  else if (dtype == DataType::Int(8))
    Fill<int8_t>(at, values);
  else if (dtype == DataType::Int(16))
    Fill<int16_t>(at, values);
  else if (dtype == DataType::UInt(16))
    Fill<uint16_t>(at, values);
  else if (dtype == DataType::Int(32))
    Fill<int32_t>(at, values);
  else if (dtype == DataType::UInt(32))
    Fill<uint32_t>(at, values);
  else if (dtype == DataType::Int(64))
    Fill<int64_t>(at, values);
  else if (dtype == DataType::UInt(64))
    Fill<uint64_t>(at, values);
  else if (dtype.is_float16() || dtype.is_bfloat16())
    half(dtype);
  else
    TVM_FFI_THROW(OpTypeError) << "LegalizeOps: expected a constant of a number type, got "
                               << dtype;
  return Constant(data);
}

namespace {
TVM_REGISTER() {
#define ROW(name) FLegalize.Set(Op::Register("relax." #name), &LowerBinary_##name);
  TVM_BINARY_OPERATORS(ROW)
#undef ROW
  struct Entry {
    const char* op;
    Expr (*lower)(const BlockBuilder&, const Call&);
  };
  constexpr Entry kEntries[] = {
      {"relax.astype", &LowerAstype<AstypeAttrsObj>},
      {"relax.wrap_param", &LowerAstype<WrapParamAttrsObj>},
      {"relax.grad.no_grad", &LowerIdentity},
      {"relax.grad.start_checkpoint", &LowerIdentity},
      {"relax.grad.end_checkpoint", &LowerIdentity},
      {"relax.full", &LowerFull},
      {"relax.full_like", &LowerFull},
      {"relax.eye_like", &LowerEyeLike},
      {"relax.arange", &LowerArange},
      {"relax.hamming_window", &LowerHammingWindow},
      {"relax.squeeze", &LowerSqueeze},
      {"relax.split", &LowerSplit},
      {"relax.gather_nd", &LowerGatherND},
      {"relax.scatter_nd", &LowerScatterND},
      {"relax.layout_transform", &LowerLayoutTransform},
      {"relax.dynamic_strided_slice", &LowerDynamicStridedSlice},
      {"relax.median", &LowerMedian},
  };
  for (const Entry& entry : kEntries) FLegalize.Set(Op::Register(entry.op), entry.lower);
}
}  // namespace
}  // namespace tvm::relax
