// SPDX-License-Identifier: Apache-2.0
// The options of PassContext that belong to no single pass.
#include "tvm/ir/transform.h"

namespace tvm::tir {
namespace {
TVM_REGISTER() {
  using ::tvm::transform::DefConfig;
  DefConfig<bool>("tir.disable_vectorize", false, "Makes vectorized loops serial.");
  DefConfig<bool>("tir.disable_storage_rewrite", false, "Keeps allocations as they are written.");
  DefConfig<bool>("tir.disable_cse_tir", false, "Keeps repeated subexpressions.");
  DefConfig<bool>("tir.enable_equiv_terms_in_cse_tir", false,
                  "Common subexpressions may differ in form if they simplify to the same.");
  DefConfig<bool>("tir.disable_assert", false, "Removes assertions of the program.");
  DefConfig<bool>("tir.instrument_bound_checkers", false,
                  "Checks every index of a buffer at run time.");
  DefConfig<bool>("tir.debug_keep_trivial_loop", false, "Keeps loops of one iteration.");
  DefConfig<Optional<bool>>(
      "tir.enable_buffer_level_predication", nullptr,
      "Vectorized loads and stores under a condition get it as their predicate. Unset: on the "
      "llvm target.");
  DefConfig<bool>("tir.detect_global_barrier", false,
                  "Looks for barriers across a whole GPU launch.");
  DefConfig<bool>(
      "tir.use_async_copy", false,
      "Copies that a pipeline marks as asynchronous (software_pipeline_async_stages) are "
      "instructions of the GPU (InjectPTXAsyncCopy).");
  DefConfig<bool>("tir.merge_static_smem", false, "Merges allocations of static shared memory.");
  DefConfig<bool>("tir.ptx_ldg32", false,
                  "Guarded loads of 32 bits to registers are instructions of the GPU "
                  "(InjectPTXLDG32).");
  DefConfig<bool>("tir.instrument_lwp", false,
                  "Records the time of functions and loops (InstrumentProfileIntrinsics): "
                  "tvm.runtime.profiling.marked_times.");
  DefConfig<int64_t>("tir.lwp_max_depth", 0, "Loops nested deeper are not recorded; 0: no limit.");
  DefConfig<int64_t>("tir.lwp_min_height", 1, "Loops with fewer loops inside are not recorded.");
  DefConfig<bool>("tir.lwp_disable_func_prof", false, "Functions are not recorded.");
  DefConfig<bool>("tir.instr_siblings", true, "Only loops with siblings are recorded.");
  DefConfig<bool>("tir.reset_start_id", false, "Numbers what is recorded from 0.");
  DefConfig<bool>("tir.enable_debug", false,
                  "Keeps line numbers in the generated code, as llvm.debug_info does.");
  DefConfig<bool>("tir.noalias", true, "Buffers of different parameters do not overlap.");
  DefConfig<bool>("tir.is_entry_func", false, "The function is the entry of its module.");
  DefConfig<bool>("tir.default_schedule", true, "Schedules functions that nobody scheduled.");
  DefConfig<String>(
      "tir.float32_products", "float32",
      "How default rules for GPUs multiply matrices of float32: float32, exactly; "
      "tf32, factors rounded to 11 bits; 3xtf32, factors as the sum of two of these.");
  DefConfig<Optional<bool>>(
      "tir.warpgroup_products", nullptr,
      "Default rules for sm_90a have warpgroups multiply matrices (wgmma) of numbers of "
      "16 and 8 bits wherever the copy engine can bring both factors (True), never (False), or "
      "where that should be faster (None).");
  DefConfig<int64_t>("tir.vtcm_capacity", 0,
                     "No effect: no target here has tightly coupled memory.");
  DefConfig<Array<Array<Any>>>(
      "tir.add_lower_pass", Array<Array<Any>>(),
      "[phase, pass] pairs: passes added after phase 0 (blocks), 1 (flattening), 2 (loops) or "
      "3 (at the end) of the pipeline.");
}
}  // namespace
}  // namespace tvm::tir
