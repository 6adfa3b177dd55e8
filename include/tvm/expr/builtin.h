// SPDX-License-Identifier: Apache-2.0
// The operators that a Call may name: one row each. A row gives the Op, its C++ accessor
// (`builtin::likely()`), its effect, and whether it works lane by lane on vectors.
#pragma once
#include "tvm/expr/expr.h"

namespace tvm::tir {

/// What evaluating a call does beside giving its value. The values are part of the interface.
enum class CallEffectKind : int {
  kExprAnnotation =
      0,  ///< The value is that of an argument; the call only says something about it.
  kPure = 1,
  kReadState = 2,    ///< Reads memory: must not move across writes.
  kUpdateState = 3,  ///< Writes memory or has another effect.
  kOpaque = kUpdateState,
  kSpecialCallArg = 4,  ///< Only an argument of another call: has no meaning alone.
  kEmbedInfo = 5,
  kControlJump = 6,  ///< Leaves a loop or the function.
};

// clang-format off
//  name                           effect           lane-wise  documentation
#define TVM_BUILTINS(ROW)                                                                                                     \
  ROW(reinterpret,                 kPure,           true,  "The bits of the argument as another type of the same width.")     \
  ROW(likely,                      kExprAnnotation, true,  "The argument, said to be true almost always.")                    \
  ROW(ignore_loop_partition,       kPure,           false, "The condition, which loop partitioning shall not use.")           \
  ROW(bitwise_and,                 kPure,           true,  "x & y")                                                           \
  ROW(bitwise_or,                  kPure,           true,  "x | y")                                                           \
  ROW(bitwise_xor,                 kPure,           true,  "x ^ y")                                                           \
  ROW(bitwise_not,                 kPure,           true,  "~x")                                                              \
  ROW(shift_left,                  kPure,           true,  "x << y; 0 from the width on")                                     \
  ROW(shift_right,                 kPure,           true,  "x >> y; 0 or the sign from the width on")                         \
  ROW(if_then_else,                kPure,           false, "cond ? t : f, where only the chosen value is evaluated.")         \
  ROW(isnan,                       kPure,           true,  "Whether x is not a number.")                                      \
  ROW(isnullptr,                   kPure,           false, "Whether a handle is null.")                                       \
  ROW(popcount,                    kPure,           true,  "The number of bits set.")                                         \
  ROW(clz,                         kPure,           true,  "The number of leading zero bits; the width for 0.")               \
  ROW(fma,                         kPure,           true,  "x * y + z, rounded once.")                                        \
  ROW(large_uint_imm,              kPure,           false, "A uint64 constant from its low and high 32 bits.")                \
  ROW(q_multiply_shift,            kPure,           true,  "Fixed point: (x * y) >> (q - s), rounded.")                       \
  ROW(q_multiply_shift_per_axis,   kPure,           true,  "Fixed point with a shift of each side.")                          \
  ROW(vscale,                      kPure,           false, "The run-time factor of scalable vectors.")                        \
  ROW(get_active_lane_mask,        kPure,           false, "The mask base + lane < limit.")                                   \
  ROW(vectorhigh,                  kPure,           false, "The upper half of a vector.")                                     \
  ROW(vectorlow,                   kPure,           false, "The lower half of a vector.")                                     \
  ROW(vectorcombine,               kPure,           false, "Two vectors as one.")                                             \
  ROW(dp4a,                        kPure,           false, "Dot product of four bytes, added to acc.")                        \
  ROW(dot_bytes,                   kPure,           true,  "Sum of products of four pairs of bytes in 32-bit words.")         \
  ROW(dot_shorts,                  kPure,           true,  "Sum of products of two pairs of int16 in 32-bit words.")          \
  ROW(dot_bfloat16,                kPure,           true,  "Sum of products of two pairs of bfloat16 in words.")              \
  ROW(ret,                         kControlJump,    false, "Returns a value from the function.")                              \
  ROW(thread_return,               kControlJump,    false, "Ends this GPU thread.")                                           \
  ROW(break_loop,                  kControlJump,    false, "Leaves the innermost loop.")                                      \
  ROW(continue_loop,               kControlJump,    false, "Goes on with the next iteration.")                                \
  ROW(undef,                       kReadState,      false, "Any value.")                                                      \
  ROW(assume,                      kEmbedInfo,      false, "States a condition that holds here.")                             \
  ROW(address_of,                  kPure,           false, "The address of a buffer element.")                                \
  ROW(type_annotation,             kPure,           false, "A type as an argument of a call.")                                \
  ROW(tvm_access_ptr,              kSpecialCallArg, false, "A typed pointer with offset, extent and access mask.")            \
  ROW(tvm_static_handle,           kSpecialCallArg, false, "A handle that lives as long as the module.")                      \
  ROW(handle_add_byte_offset,      kPure,           false, "A handle moved by bytes.")                                        \
  ROW(tvm_struct_get,              kReadState,      false, "A field of a C structure: (array, index, field).")                \
  ROW(tvm_struct_set,              kUpdateState,    false, "Sets a field of a C structure.")                                  \
  ROW(tvm_stack_alloca,            kPure,           false, "Memory of this call: (kind, count).")                             \
  ROW(tvm_stack_make_shape,        kPure,           false, "A shape on the stack.")                                           \
  ROW(tvm_stack_make_array,        kPure,           false, "A DLTensor on the stack.")                                        \
  ROW(tvm_raise_error,             kControlJump,    false, "Raises an error: (class, printf format, values...).")             \
  ROW(tvm_throw_last_error,        kUpdateState,    false, "Returns the error that was raised.")                              \
  ROW(tvm_tuple,                   kSpecialCallArg, false, "A tuple of values.")                                              \
  ROW(tvm_context_id,              kReadState,      false, "The device of the current context.")                              \
  ROW(lookup_param,                kReadState,      false, "A parameter of the model by name.")                               \
  ROW(call_extern,                 kOpaque,         false, "A C function by name.")                                           \
  ROW(call_pure_extern,            kPure,           false, "A C function without effects by name.")                           \
  ROW(call_llvm_intrin,            kOpaque,         false, "An LLVM intrinsic by number.")                                    \
  ROW(call_llvm_pure_intrin,       kPure,           false, "An LLVM intrinsic without effects by number.")                    \
  ROW(call_spirv_pure_glsl450,     kPure,           false, "A GLSL.std.450 instruction.")                                     \
  ROW(tvm_call_packed,             kOpaque,         false, "A function of the global registry by name.")                      \
  ROW(tvm_call_cpacked,            kOpaque,         false, "A function with the packed C interface by name.")                 \
  ROW(tvm_call_trace_packed,       kOpaque,         false, "A traced call of a registered function.")                         \
  ROW(tvm_call_packed_lowered,     kOpaque,         false, "tvm_call_packed with its arguments on the stack.")                \
  ROW(tvm_call_cpacked_lowered,    kOpaque,         false, "tvm_call_cpacked with its arguments on the stack.")               \
  ROW(tvm_call_trace_packed_lowered, kOpaque,       false, "tvm_call_trace_packed with its arguments on the stack.")          \
  ROW(TVMBackendAllocWorkspace,    kOpaque,         false, "Temporary memory.")                                               \
  ROW(TVMBackendFreeWorkspace,     kOpaque,         false, "Gives temporary memory back.")                                    \
  ROW(nd_mem_alloc_with_scope,     kOpaque,         false, "Memory with dimensions in a scope.")                              \
  ROW(texture2d_load,              kOpaque,         false, "A texel.")                                                        \
  ROW(texture2d_store,             kOpaque,         false, "Sets a texel.")                                                   \
  ROW(prefetch,                    kOpaque,         false, "Loads a cache line early.")                                       \
  ROW(atomic_add,                  kOpaque,         false, "Adds to memory atomically.")                                      \
  ROW(dma_copy,                    kOpaque,         false, "Starts a copy by the DMA engine.")                                \
  ROW(dma_wait,                    kOpaque,         false, "Waits for copies of a queue.")                                    \
  ROW(dma_start_group,             kOpaque,         false, "Begins a group of copies.")                                       \
  ROW(dma_end_group,               kOpaque,         false, "Ends a group of copies.")                                         \
  ROW(anylist_getitem,             kReadState,      false, "An item of a list of values.")                                    \
  ROW(anylist_resetitem,           kUpdateState,    false, "Clears an item of a list of values.")                             \
  ROW(anylist_setitem_call_packed, kUpdateState,    false, "Stores a call's result in a list.")                               \
  ROW(anylist_setitem_call_cpacked, kUpdateState,   false, "Stores a packed C call's result in a list.")                      \
  ROW(start_profile_intrinsic,     kPure,           false, "Marks where a profiled part begins.")                             \
  ROW(end_profile_intrinsic,       kPure,           false, "Marks where a profiled part ends.")                               \
  ROW(tvm_thread_context,          kReadState,      false, "The context of the calling thread.")                              \
  ROW(tvm_thread_invariant,        kExprAnnotation, true,  "The argument, the same in all threads.")                          \
  ROW(tvm_thread_allreduce,        kOpaque,         false, "A reduction over the threads of a block.")                        \
  ROW(tvm_storage_sync,            kOpaque,         false, "A barrier for a memory scope.")                                   \
  ROW(tvm_global_barrier_kinit,    kOpaque,         false, "Prepares the global barrier.")                                    \
  ROW(tvm_warp_shuffle,            kOpaque,         false, "A value of another lane of the warp.")                            \
  ROW(tvm_warp_shuffle_up,         kOpaque,         false, "A value of a lower lane.")                                        \
  ROW(tvm_warp_shuffle_down,       kOpaque,         false, "A value of a higher lane.")                                       \
  ROW(tvm_warp_activemask,         kOpaque,         false, "The mask of active lanes.")                                       \
  ROW(tvm_load_matrix_sync,        kOpaque,         false, "Loads a WMMA fragment.")                                          \
  ROW(tvm_store_matrix_sync,       kOpaque,         false, "Stores a WMMA fragment.")                                         \
  ROW(tvm_fill_fragment,           kOpaque,         false, "Fills a WMMA fragment.")                                          \
  ROW(tvm_mma_sync,                kOpaque,         false, "A WMMA multiply-add.")                                            \
  ROW(tvm_bmma_sync,               kOpaque,         false, "A binary WMMA multiply-add.")                                     \
  ROW(mma_store,                   kOpaque,         false, "Stores an MMA accumulator.")                                      \
  ROW(mma_fill,                    kOpaque,         false, "Fills an MMA accumulator.")                                       \
  ROW(ptx_mma,                     kOpaque,         false, "mma of PTX.")                                                     \
  ROW(ptx_mma_sp,                  kOpaque,         false, "mma.sp of PTX.")                                                  \
  ROW(ptx_ldmatrix,                kOpaque,         false, "ldmatrix of PTX.")                                                \
  ROW(ptx_ldg32,                   kPure,           false, "A cached 32-bit load of PTX.")                                    \
  ROW(ptx_cp_async,                kOpaque,         false, "cp.async of PTX.")                                                \
  ROW(ptx_cp_async_bulk,           kOpaque,         false, "cp.async.bulk of PTX.")                                           \
  ROW(ptx_commit_group,            kOpaque,         false, "cp.async.commit_group of PTX.")                                   \
  ROW(ptx_wait_group,              kOpaque,         false, "cp.async.wait_group of PTX.")                                     \
  ROW(ptx_cp_async_barrier,        kOpaque,         false, "cp.async.mbarrier.arrive of PTX.")                                \
  ROW(ptx_init_barrier_thread_count, kOpaque,       false, "mbarrier.init of PTX.")                                           \
  ROW(ptx_arrive_barrier,          kOpaque,         false, "mbarrier.arrive of PTX.")                                         \
  ROW(ptx_arrive_barrier_expect_tx, kOpaque,        false, "mbarrier.arrive.expect_tx of PTX.")                               \
  ROW(ptx_wait_barrier,            kOpaque,         false, "mbarrier.try_wait of PTX.")                                       \
  ROW(create_barriers,             kOpaque,         false, "Barriers in shared memory.")                                      \
  ROW(make_filled_simdgroup_matrix, kOpaque,        false, "A filled matrix of Metal's simdgroups.")                          \
  ROW(simdgroup_load,              kOpaque,         false, "Loads a simdgroup matrix.")                                       \
  ROW(simdgroup_store,             kOpaque,         false, "Stores a simdgroup matrix.")                                      \
  ROW(simdgroup_multiply_accumulate, kOpaque,       false, "A simdgroup multiply-add.")

/// Functions of one floating-point number.
#define TVM_UNARY_MATH(ROW)                                    \
  ROW(exp,     "e to the power x.")                            \
  ROW(exp2,    "2 to the power x.")                            \
  ROW(exp10,   "10 to the power x.")                           \
  ROW(erf,     "The error function.")                          \
  ROW(tanh,    "The hyperbolic tangent.")                      \
  ROW(sigmoid, "1 / (1 + exp(-x))")                            \
  ROW(log,     "The natural logarithm.")                       \
  ROW(log2,    "The logarithm to base 2.")                     \
  ROW(log10,   "The logarithm to base 10.")                    \
  ROW(log1p,   "log(1 + x), exact near 0.")                    \
  ROW(tan,     "The tangent.")                                 \
  ROW(cos,     "The cosine.")                                  \
  ROW(cosh,    "The hyperbolic cosine.")                       \
  ROW(acos,    "The inverse cosine.")                          \
  ROW(acosh,   "The inverse hyperbolic cosine.")               \
  ROW(sin,     "The sine.")                                    \
  ROW(sinh,    "The hyperbolic sine.")                         \
  ROW(asin,    "The inverse sine.")                            \
  ROW(asinh,   "The inverse hyperbolic sine.")                 \
  ROW(atan,    "The inverse tangent.")                         \
  ROW(atanh,   "The inverse hyperbolic tangent.")              \
  ROW(sqrt,    "The square root.")                             \
  ROW(rsqrt,   "1 / sqrt(x)")

/// The same for functions that are the identity on integers.
#define TVM_ROUNDING_MATH(ROW)                                 \
  ROW(floor,     "The largest integer not above x.")           \
  ROW(ceil,      "The smallest integer not below x.")          \
  ROW(trunc,     "x without its fraction.")                    \
  ROW(round,     "The nearest integer, halves to even.")       \
  ROW(nearbyint, "The nearest integer, halves to even.")

/// Functions of two floating-point numbers.
#define TVM_BINARY_MATH(ROW)                                   \
  ROW(atan2,     "The angle of the point (x2, x1).")           \
  ROW(nextafter, "The next number after x1 towards x2.")       \
  ROW(hypot,     "sqrt(x1 * x1 + x2 * x2) without overflow.")  \
  ROW(copysign,  "x1 with the sign of x2.")                    \
  ROW(ldexp,     "x1 times 2 to the power x2.")                \
  ROW(fmod,      "The remainder with the sign of x1.")
// clang-format on

namespace builtin {
#define ROW(name, ...) const Op& name();
TVM_BUILTINS(ROW)
TVM_UNARY_MATH(ROW)
TVM_ROUNDING_MATH(ROW)
TVM_BINARY_MATH(ROW)
#undef ROW
const Op& pow();
const Op& fabs();
}  // namespace builtin

/// The effect of a call of `op`: what its row says; functions of the module and unknown operators
/// are opaque.
CallEffectKind EffectOf(const RelaxExpr& op);
/// Whether `op` can be applied to vectors lane by lane.
bool IsLaneWise(const RelaxExpr& op);

/// Fields of C structures for tvm_struct_get and tvm_struct_set. The values are part of the
/// interface.
namespace builtin {
enum StructField : int {
  kDLTensorAddr = 0,
  kDLTensorData = 1,
  kDLTensorShape = 2,
  kDLTensorStrides = 3,
  kDLTensorNDim = 4,
  kDLTensorTypeCode = 5,
  kDLTensorTypeBits = 6,
  kDLTensorTypeLanes = 7,
  kDLTensorByteOffset = 8,
  kDLTensorDeviceId = 9,
  kDLTensorDeviceType = 10,
  kFFIAnyTypeIndex = 11,
  kFFIAnyZeroPadding = 12,
  kFFIAnyUnionValue = 13,
  kInt64ArrayElem = 14,
};
}  // namespace builtin

}  // namespace tvm::tir
