// SPDX-License-Identifier: Apache-2.0
// How operators are called by name: one row each. The others infer their type from their arguments.
#include "tvm/expr/signature.h"

#include <unordered_map>

namespace tvm::tir {
namespace {
// clang-format off
constexpr Signature kSignatures[] = {
    {"anylist_getitem", "handle", "list_handle, index"},
    {"anylist_resetitem", "int32", "list_handle, index"},
    {"anylist_setitem_call_cpacked", "int32", "list_handle, index, func_name, *args"},
    {"anylist_setitem_call_packed", "int32", "list_handle, index, func_name, *args"},
    {"assume", "bool", "cond"},
    {"break_loop", "int32", ""},
    {"call_extern", "=dtype", "dtype, func_name, *args"},
    {"call_llvm_intrin", "=dtype", "dtype, name, *args"},
    {"call_llvm_pure_intrin", "=dtype", "dtype, name, *args"},
    {"call_pure_extern", "=dtype", "dtype, func_name, *args"},
    {"continue_loop", "int32", ""},
    {"create_barriers", "void", "barrier_count"},
    {"dot_bfloat16", "float32", "a, b"},
    {"dot_bytes", "int32", "a, b"},
    {"dot_shorts", "int32", "a, b"},
    {"dp4a", "int32", "vec1, vec2, acc=0"},
    {"end_profile_intrinsic", "handle", "id"},
    {"get_active_lane_mask", "=dtype", "dtype, base, limit"},
    {"handle_add_byte_offset", "handle", "handle, offset"},
    {"ignore_loop_partition", "bool", "predicate"},
    {"isnullptr", "bool", "x"},
    {"lookup_param", "handle", "param_name"},
    {"make_filled_simdgroup_matrix", "handle", "d, index, value, col=8, row=8"},
    {"mma_fill", "=dtype", "dtype, local_size, local_ptr, offset"},
    {"mma_store", "=dtype", "dtype, m, n, dst_ptr, src_ptr, src_offset, dst_stride"},
    {"ptx_arrive_barrier", "void", "barrier_id"},
    {"ptx_arrive_barrier_expect_tx", "void", "barrier_id, byte_count"},
    {"ptx_arrive_barrier_cluster", "void", "barrier_id, block"},
    {"ptx_bar_sync", "void", "number, thread_count"},
    {"ptx_barrier_cluster", "void", ""},
    {"ptx_commit_group", "void", ""},
    {"ptx_cp_async", "=dtype",
     "dtype, shared_ptr, shared_offset, global_ptr, global_offset, bytes, predicate=None"},
    {"ptx_cp_async_barrier", "void", "barrier_id"},
    {"ptx_cp_async_bulk", "=dtype",
     "dtype, shared_ptr, shared_offset, global_ptr, global_offset, bytes, barrier_id"},
    {"ptx_cp_async_bulk_commit_group", "void", ""},
    {"ptx_cp_async_bulk_tensor", "void",
     "shared_ptr, shared_offset, tensormap, barrier_id, multicast, *coordinates"},
    {"ptx_cp_async_bulk_tensor_store", "void",
     "tensormap, shared_ptr, shared_offset, *coordinates"},
    {"ptx_cp_async_bulk_wait_group", "void", "num, is_read=False"},
    {"ptx_fence_barrier_init", "void", ""},
    {"ptx_fence_proxy_async", "void", ""},
    {"ptx_init_barrier_thread_count", "void", "barrier_id, thread_count"},
    {"ptx_ldg32", "=dtype", "dtype, guard, address"},
    {"ptx_ldmatrix", "=dtype",
     "dtype, trans, num, type, local_ptr, local_offset, smem_ptr, smem_offset"},
    {"ptx_mma", "=dtype",
     "dtype, shape, A_layout, B_layout, A_dtype, B_dtype, C_dtype, multiplicand_a, a_index, "
     "multiplicand_b, b_index, accumulator, c_index, saturate, operator=None"},
    {"ptx_mma_sp", "=dtype",
     "dtype, shape, A_layout, B_layout, A_dtype, B_dtype, C_dtype, multiplicand_a, a_index, "
     "multiplicand_b, b_index, accumulator, c_index, metadata, meta_index, sparse_selector, "
     "saturate"},
    {"ptx_setmaxnreg", "void", "is_more, count"},
    {"ptx_stmatrix", "void", "trans, num, local_ptr, local_offset, smem_ptr, smem_offset"},
    {"ptx_wait_barrier", "void", "barrier_id"},
    {"ptx_wait_group", "void", "num"},
    {"ptx_wgmma_commit_group", "void", ""},
    {"ptx_wgmma_descriptor", "uint64",
     "shared_ptr, shared_offset, leading_bytes, stride_bytes, swizzle_bytes"},
    {"ptx_wgmma_fence", "void", ""},
    {"ptx_wgmma_mma_async", "void",
     "shape, A_dtype, B_dtype, C_dtype, trans_a, trans_b, a_descriptor, b_descriptor, accumulator, "
     "c_index, scale_d"},
    {"ptx_wgmma_mma_async_rs", "void",
     "shape, A_dtype, B_dtype, C_dtype, trans_b, multiplicand_a, a_index, b_descriptor, "
     "accumulator, c_index, scale_d"},
    {"ptx_wgmma_wait_group", "void", "num"},
    {"q_multiply_shift", "int32", "x, y, q, s"},
    {"q_multiply_shift_per_axis", "int32",
     "x, y, ls, rs, q, is_lshift_required, is_rshift_required"},
    {"reinterpret", "=dtype", "dtype, value"},
    {"simdgroup_load", "handle", "d, index, ptr, stride, col=8, row=8, transpose_matrix=False"},
    {"simdgroup_multiply_accumulate", "handle", "d, index_d, a, index_a, b, index_b, c, index_c"},
    {"simdgroup_store", "handle", "d, index, ptr, stride, col=8, row=8, transpose_matrix=False"},
    {"start_profile_intrinsic", "handle", "id"},
    {"thread_return", "void", ""},
    {"tvm_access_ptr", "handle", "ptype, data, offset, extent, rw_mask"},
    {"tvm_bmma_sync", "handle",
     "fragment_d, index_d, fragment_a, index_a, fragment_b, index_b, fragment_c, index_c"},
    {"tvm_call_cpacked", "int32", "*args"},
    {"tvm_call_cpacked_lowered", "int32", "*args"},
    {"tvm_call_packed", "int32", "*args"},
    {"tvm_call_packed_lowered", "int32", "*args"},
    {"tvm_fill_fragment", "handle", "fragment, m, n, k, index, value"},
    {"tvm_load_matrix_sync", "handle", "fragment, m, n, k, index, buffer_ptr, stride, layout"},
    {"tvm_mma_sync", "handle",
     "fragment_d, index_d, fragment_a, index_a, fragment_b, index_b, fragment_c, index_c"},
    {"tvm_stack_alloca", "handle", "dtype_str, num"},
    {"tvm_stack_make_array", "handle", "data, shape, strides, ndim, arr_dtype, elem_offset"},
    {"tvm_stack_make_shape", "handle", "*args"},
    {"tvm_storage_sync", "int32", "storage_scope"},
    {"tvm_store_matrix_sync", "handle", "fragment, m, n, k, index, buffer_ptr, stride, layout"},
    {"tvm_struct_get", "=dtype", "arr, index, field, dtype"},
    {"tvm_struct_set", "int32", "arr, index, field, value"},
    {"tvm_thread_allreduce", "handle", "*freduce_args"},
    {"tvm_thread_invariant", "bool", "cond"},
    {"tvm_throw_last_error", "handle", ""},
    {"tvm_tuple", "handle", "*value"},
    {"tvm_warp_activemask", "uint32", ""},
    {"tvm_warp_shuffle", "=value", "mask, value, warp_id, width, warp_size"},
    {"tvm_warp_shuffle_down", "=value", "mask, value, offset, width, warp_size"},
    {"tvm_warp_shuffle_up", "=value", "mask, value, offset, width, warp_size"},
    {"TVMBackendAllocWorkspace", "handle",
     "device_type, device_id, nbytes, dtype_code_hint, dtype_bits_hint"},
    {"TVMBackendFreeWorkspace", "int32", "device_type, device_id, ptr"},
    {"type_annotation", "=dtype", "dtype"},
    {"undef", "int32", ""},
    {"vectorcombine", "=dtype", "dtype, vec1, vec2"},
    {"vectorhigh", "=dtype", "dtype, vec"},
    {"vectorlow", "=dtype", "dtype, vec"},
    {"vscale", "int32", ""},
};
// clang-format on
}  // namespace

std::span<const Signature> Signatures() { return kSignatures; }

const Signature* FindSignature(std::string_view name) {
  static const auto* table = [] {
    auto* result = new std::unordered_map<std::string_view, const Signature*>();
    for (const Signature& s : kSignatures) result->emplace(s.name, &s);
    return result;
  }();
  auto it = table->find(name);
  return it == table->end() ? nullptr : it->second;
}

std::vector<std::string_view> Signature::Parameters() const {
  std::vector<std::string_view> result;
  for (std::string_view rest = params; !rest.empty();) {
    size_t comma = rest.find(", ");
    result.push_back(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 2);
  }
  return result;
}

}  // namespace tvm::tir
