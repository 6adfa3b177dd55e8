// SPDX-License-Identifier: Apache-2.0
// The operators that are instructions of NVIDIA's GPUs from sm_90 on: clusters of blocks, tensors
// that are copied by their description, products of warpgroups. One row each, as in builtin.h.
#pragma once
#include "tvm/expr/builtin.h"

namespace tvm::tir {

// clang-format off
//  name                             effect   documentation
#define TVM_HOPPER_BUILTINS(ROW)                                                                                        \
  ROW(ptx_cp_async_bulk_tensor,       kOpaque, "cp.async.bulk.tensor of PTX, into shared memory; a barrier counts its bytes.") \
  ROW(ptx_cp_async_bulk_tensor_store, kOpaque, "cp.async.bulk.tensor of PTX, out of shared memory.")                    \
  ROW(ptx_cp_async_bulk_commit_group, kOpaque, "cp.async.bulk.commit_group of PTX.")                                    \
  ROW(ptx_cp_async_bulk_wait_group,   kOpaque, "cp.async.bulk.wait_group of PTX; is_read: until memory was read.")      \
  ROW(ptx_fence_proxy_async,          kOpaque, "fence.proxy.async of PTX: what was stored is seen by bulk copies and wgmma.") \
  ROW(ptx_fence_barrier_init,         kOpaque, "fence.mbarrier_init of PTX: barriers that were made are seen by all.")  \
  ROW(ptx_arrive_barrier_cluster,     kOpaque, "mbarrier.arrive of PTX at the barrier of a block of the cluster.")      \
  ROW(ptx_barrier_cluster,            kOpaque, "barrier.cluster of PTX: all threads of a cluster wait for each other.") \
  ROW(ptx_bar_sync,                   kOpaque, "bar.sync of PTX: some warps of a block wait for each other.")           \
  ROW(ptx_setmaxnreg,                 kOpaque, "setmaxnreg of PTX: a warpgroup takes or gives registers.")              \
  ROW(ptx_stmatrix,                   kOpaque, "stmatrix of PTX.")                                                      \
  ROW(ptx_wgmma_descriptor,           kPure,   "What wgmma is told of a matrix in shared memory.")                      \
  ROW(ptx_wgmma_fence,                kOpaque, "wgmma.fence of PTX.")                                                   \
  ROW(ptx_wgmma_commit_group,         kOpaque, "wgmma.commit_group of PTX.")                                            \
  ROW(ptx_wgmma_wait_group,           kOpaque, "wgmma.wait_group of PTX.")                                              \
  ROW(ptx_wgmma_mma_async,            kOpaque, "wgmma.mma_async of PTX, both matrices in shared memory.")               \
  ROW(ptx_wgmma_mma_async_rs,         kOpaque, "wgmma.mma_async of PTX, the first matrix in registers.")
// clang-format on

namespace builtin {
#define ROW(name, ...) const Op& name();
TVM_HOPPER_BUILTINS(ROW)
#undef ROW
}  // namespace builtin

}  // namespace tvm::tir
