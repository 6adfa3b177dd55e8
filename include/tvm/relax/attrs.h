// SPDX-License-Identifier: Apache-2.0
// Attributes of the operators: one row per class, its fields in the order of the constructor.
//
//   ROW(TakeAttrs, (Optional<int64_t>, axis), (String, mode))
//
// gives TakeAttrsObj, TakeAttrs(axis, mode) and the type key relax.attrs.TakeAttrs. A class whose
// values are completed when it is made (a padding of one number stands for all sides) has `Init`.
#pragma once
#include "tvm/ir/attrs.h"
#include "tvm/relax/expr.h"
#include "tvm/tir/index_map.h"

namespace tvm::relax {

using Ints = Array<IntImm>;
using Floats = Array<FloatImm>;
using Kwargs = Map<String, Any>;

// ---- macros over the fields of a row
// --------------------------------------------------------------
#define TVM_EACH_PARENS ()
#define TVM_EACH_REPEAT(...) TVM_EACH_REPEAT2(TVM_EACH_REPEAT2(TVM_EACH_REPEAT2(__VA_ARGS__)))
#define TVM_EACH_REPEAT2(...) TVM_EACH_REPEAT1(TVM_EACH_REPEAT1(TVM_EACH_REPEAT1(__VA_ARGS__)))
#define TVM_EACH_REPEAT1(...) __VA_ARGS__
/// macro(a) macro(b) …
#define TVM_EACH(macro, ...) TVM_EACH_REPEAT(TVM_EACH_NEXT(macro, __VA_ARGS__))
#define TVM_EACH_NEXT(macro, field, ...) \
  macro field __VA_OPT__(TVM_EACH_AGAIN TVM_EACH_PARENS(macro, __VA_ARGS__))
#define TVM_EACH_AGAIN() TVM_EACH_NEXT
/// macro(a), macro(b), …
#define TVM_LIST(macro, ...) TVM_EACH_REPEAT(TVM_LIST_NEXT(macro, __VA_ARGS__))
#define TVM_LIST_NEXT(macro, field, ...) \
  macro field __VA_OPT__(, TVM_LIST_AGAIN TVM_EACH_PARENS(macro, __VA_ARGS__))
#define TVM_LIST_AGAIN() TVM_LIST_NEXT

#define TVM_ATTRS_MEMBER(type, name) type name{};
#define TVM_ATTRS_DEF(type, name) def(#name, &Self::name);
#define TVM_ATTRS_PARAM(type, name) type name
#define TVM_ATTRS_SET(type, name) n->name = std::move(name);

#define TVM_ATTRS_CLASS(Class, init, ...)                                               \
  struct Class##Obj : AttrsObj {                                                        \
    using Self = Class##Obj;                                                            \
    TVM_EACH(TVM_ATTRS_MEMBER, __VA_ARGS__)                                             \
    static void Fields(auto&& def){TVM_EACH(TVM_ATTRS_DEF, __VA_ARGS__)} init           \
        TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.attrs." #Class, Class##Obj, AttrsObj); \
  };                                                                                    \
  struct Class : Attrs {                                                                \
    explicit Class(TVM_LIST(TVM_ATTRS_PARAM, __VA_ARGS__)) {                            \
      *this = New<Class>([&](Class##Obj* n) { TVM_EACH(TVM_ATTRS_SET, __VA_ARGS__) });  \
    }                                                                                   \
    TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Class, Attrs, Class##Obj);               \
  };
#define ROW(Class, ...) TVM_ATTRS_CLASS(Class, , __VA_ARGS__)
#define ROW_INIT(Class, ...) TVM_ATTRS_CLASS(Class, void Init();, __VA_ARGS__)

// clang-format off
// ---- creation, types, indexing -----------------------------------------------------------------
ROW(InitAttrs, (DataType, dtype))
ROW(TriluAttrs, (int64_t, k))
ROW(AstypeAttrs, (DataType, dtype))
ROW(WrapParamAttrs, (DataType, dtype))
ROW(TakeAttrs, (Optional<int64_t>, axis), (String, mode))
ROW(StridedSliceAttrs, (bool, assume_inbound))
ROW(MatmulAttrs, (DataType, out_dtype))
ROW(EinsumAttrs, (String, subscripts))
// ---- manipulation ------------------------------------------------------------------------------
ROW(ConcatAttrs, (Optional<int64_t>, axis))
ROW(StackAttrs, (Optional<int64_t>, axis))
ROW(ExpandDimsAttrs, (Ints, axis))
ROW(SqueezeAttrs, (Optional<Ints>, axis))
ROW(FlipAttrs, (int64_t, axis))
ROW(PermuteDimsAttrs, (Optional<Ints>, axes))
ROW(LayoutTransformAttrs, (tir::IndexMap, index_map), (Optional<PrimValue>, pad_value),
    (Optional<Ints>, axis_separators), (Optional<Ints>, input_axis_separators))
ROW(SplitAttrs, (ObjectRef, indices_or_sections), (int64_t, axis))
ROW(RepeatAttrs, (int64_t, repeats), (Optional<int64_t>, axis))
ROW(TileAttrs, (Ints, repeats))
ROW(GatherElementsAttrs, (int64_t, axis))
ROW(GatherNDAttrs, (int64_t, batch_dims))
ROW(IndexPutAttrs, (bool, accumulate))
ROW(MeshgridAttrs, (Optional<String>, indexing))
ROW(ScatterElementsAttrs, (int64_t, axis), (String, reduction))
ROW(ScatterNDAttrs, (String, reduction))
ROW(SliceScatterAttrs, (int64_t, axis))
ROW(OneHotAttrs, (int64_t, depth), (int64_t, axis))
// ---- search, sort, statistics, sampling --------------------------------------------------------
ROW(ArgmaxArgminAttrs, (Optional<int64_t>, axis), (bool, keepdims))
ROW(BucketizeAttrs, (bool, out_int32), (bool, right))
ROW(SortAttrs, (int64_t, axis), (bool, descending))
ROW(ArgsortAttrs, (int64_t, axis), (bool, descending), (DataType, dtype))
ROW(TopKAttrs, (int64_t, k), (int64_t, axis), (String, ret_type), (bool, largest), (DataType, dtype))
ROW(StatisticalAttrs, (Optional<Ints>, axis), (bool, keepdims))
ROW(ScanopAttrs, (Optional<int64_t>, axis), (DataType, dtype), (bool, exclusive))
ROW(MultinomialFromUniformAttrs, (DataType, dtype))
ROW(QuantizeAttrs, (DataType, out_dtype), (int64_t, axis))
// ---- neural networks ---------------------------------------------------------------------------
#define CONV(Class, ...)                                                                        \
  ROW_INIT(Class, (Ints, strides), (Ints, padding) __VA_OPT__(,) __VA_ARGS__, (Ints, dilation), \
           (int64_t, groups), (String, data_layout), (String, kernel_layout),                   \
           (String, out_layout), (DataType, out_dtype))
CONV(Conv1DAttrs)
CONV(Conv2DAttrs)
CONV(Conv3DAttrs)
CONV(Conv1DTransposeAttrs, (Ints, output_padding))
CONV(Conv2DTransposeAttrs, (Ints, output_padding))
#undef CONV
#define POOL(Class)                                                                    \
  ROW_INIT(Class, (Ints, pool_size), (Ints, strides), (Ints, dilation), (Ints, padding), \
           (bool, ceil_mode), (bool, count_include_pad), (String, layout), (String, out_layout))
POOL(Pool1DAttrs)
POOL(Pool2DAttrs)
POOL(Pool3DAttrs)
#undef POOL
#define POOL(Class) \
  ROW_INIT(Class, (Optional<Ints>, output_size), (String, layout), (String, out_layout))
POOL(AdaptivePool1DAttrs)
POOL(AdaptivePool2DAttrs)
POOL(AdaptivePool3DAttrs)
#undef POOL
ROW(SoftmaxAttrs, (int64_t, axis))
ROW(LeakyReluAttrs, (double, alpha))
ROW(SoftplusAttrs, (double, beta), (double, threshold))
ROW(PReluAttrs, (int64_t, axis))
ROW(BatchNormAttrs, (int64_t, axis), (double, epsilon), (bool, center), (bool, scale),
    (double, momentum), (bool, training))
ROW(LayerNormAttrs, (Ints, axes), (double, epsilon), (bool, center), (bool, scale))
ROW(GroupNormAttrs, (int64_t, num_groups), (int64_t, channel_axis), (Ints, axes),
    (double, epsilon), (bool, center), (bool, scale))
ROW(InstanceNormAttrs, (int64_t, channel_axis), (Ints, axes), (double, epsilon), (bool, center),
    (bool, scale))
ROW(RMSNormAttrs, (Ints, axes), (double, epsilon))
ROW(NLLLossAttrs, (String, reduction), (int64_t, ignore_index))
ROW(DropoutAttrs, (double, rate))
ROW(AttentionAttrs, (Optional<FloatImm>, scale), (Optional<String>, causal_mask),
    (Optional<IntImm>, window_size), (bool, zero_nan))
ROW(PadAttrs, (Ints, pad_width), (double, pad_value), (String, pad_mode))
ROW(PixelShuffleAttrs, (int64_t, upscale_factor))
// ---- images ------------------------------------------------------------------------------------
ROW(Resize2DAttrs, (Floats, roi), (String, layout), (String, method),
    (String, coordinate_transformation_mode), (String, rounding_method), (double, cubic_alpha),
    (int64_t, cubic_exclude), (double, extrapolation_value), (DataType, out_dtype))
ROW(GridSampleAttrs, (String, method), (String, layout), (String, padding_mode),
    (bool, align_corners))
ROW(AllClassNonMaximumSuppressionAttrs, (String, output_format))
// ---- calls of functions, devices, workers ------------------------------------------------------
ROW(CallTIRWithGradAttrs, (String, te_grad_name), (Kwargs, te_grad_kwargs))
ROW(CallTIRInplaceAttrs, (Ints, inplace_indices))
ROW(CallInplacePackedAttrs, (Ints, inplace_indices))
ROW(ToVDeviceAttrs, (VDevice, dst_vdevice))
ROW(HintOnDeviceAttrs, (int64_t, device_type), (int64_t, index), (String, memory_scope))
ROW(AllReduceAttrs, (String, op_type), (bool, in_group))
ROW(AllGatherAttrs, (int64_t, num_workers), (bool, in_group))
ROW(ScatterCollectiveAttrs, (int64_t, num_workers), (int64_t, axis))
ROW(DistributionAttrs, (ObjectRef, device_mesh), (ObjectRef, placement))
// clang-format on
#undef ROW
#undef ROW_INIT

}  // namespace tvm::relax
