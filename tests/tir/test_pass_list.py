# SPDX-License-Identifier: Apache-2.0
"""The names of the interface: passes, their options, analyses. What is missing is listed here."""

import pytest
import tvm
from tvm import tir

PASSES = """
Apply LoopPartition VectorizeLoop InjectVirtualThread InjectDoubleBuffer InjectRollingBuffer
StorageRewrite InlinePrivateFunctions PointerValueTypeRewrite UnrollLoop
ReduceBranchingThroughOvercompute RemoveNoOp RemoveAssume RemoveStoreUndef BF16ComputeLegalize
FP8ComputeLegalize BF16StorageLegalize FP8StorageLegalize CommonSubexprElimTIR RewriteUnsafeSelect
Simplify ConvertSSA InstrumentBoundCheckers LowerCustomDatatypes MakePackedAPI MakeUnpackedAPI
AnnotateDeviceRegions AnnotateIrregularLoop SplitHostDevice LowerDeviceKernelLaunch
DecorateDeviceScope SkipAssert ThreadSync LowerThreadAllreduce InferFragment LowerWarpMemory
LowerTVMBuiltin LowerIntrin LowerDeviceStorageAccessInfo CombineContextCall NarrowDataType
ForceNarrowIndexToInt32 VerifyMemory VerifyVTCMLimit HoistIfThenElse HoistExpression
LowerCrossThreadReduction LowerInitBlock PlanAndUpdateBufferAllocationLocation
ConvertBlocksToOpaque LiftThreadBinding CompactBufferAllocation LowerMatchBuffer LowerOpaqueBlock
FlattenBuffer TransformMmaBufferLayout InjectPermutedLayout UnifyThreadBinding
MergeSharedMemoryAllocations ConvertForLoopsToSerial InjectSoftwarePipeline
ExtractPrimFuncConstants LowerAutoCopy RenormalizeSplitPattern BindTarget AnnotateEntryFunc Filter
InjectPTXAsyncCopy RemoveWeightLayoutRewriteBlock ManifestSharedMemoryLocalStage
InstrumentProfileIntrinsics DefaultGPUSchedule UseAssumeToReduceBranches LowerAsyncDMA
InjectPTXLDG32 LowerVtcmAlloc CanonicalizeLoop HoistIfThenElseBasic RemapThreadAxis VerifyGPUCode
VerifySSA CreatePrimFuncPass
LoopPartitionConfig InjectDoubleBufferConfig UnrollLoopConfig
ReduceBranchingThroughOvercomputeConfig RemoveNoOpConfig SimplifyConfig HoistIfThenElseConfig
HoistedConditionals HoistedLetBindings HoistExpressionConfig
""".split()
ANALYSES = """
expr_deep_equal verify_ssa verify_memory verify_gpu_code get_block_access_region
get_block_read_write_region calculate_allocated_bytes detect_buffer_access_lca estimate_tir_flops
undefined_vars verify_well_formed OOBChecker find_anchor_block has_if_then_else
get_vtcm_compaction_passes is_pure_function assert_pure_function
""".split()
OPTIONS = """
HoistExpression HoistIfThenElse InjectDoubleBuffer LoopPartition RemoveNoOp Simplify UnrollLoop
add_lower_pass debug_keep_trivial_loop detect_global_barrier disable_assert disable_cse_tir
disable_storage_rewrite disable_vectorize enable_buffer_level_predication enable_debug
enable_equiv_terms_in_cse_tir instr_siblings instrument_bound_checkers instrument_lwp is_entry_func
lwp_disable_func_prof lwp_max_depth lwp_min_height merge_static_smem noalias ptx_ldg32
reset_start_id use_async_copy vtcm_capacity ReduceBranchingThroughOvercompute
""".split()

# Of one vendor's hardware: they come with its backend.
HEXAGON = {"VerifyVTCMLimit", "LowerAsyncDMA", "LowerVtcmAlloc", "get_vtcm_compaction_passes"}
MISSING = HEXAGON


@pytest.mark.parametrize(
    "where, names", [(tir.transform, PASSES), (tir.analysis, ANALYSES)], ids=["passes", "analyses"]
)
def test_names(where, names):
    missing = {n for n in names if not hasattr(where, n)}
    assert missing <= MISSING, f"missing: {sorted(missing - MISSING)}"
    present = {n for n in names if hasattr(where, n)}
    assert not present & MISSING, f"no longer missing: {sorted(present & MISSING)}"


def test_options():
    known = set(tvm.transform.PassContext.list_configs())
    assert not {f"tir.{n}" for n in OPTIONS} - known


def test_options_as_objects():
    flags = tir.transform.HoistedConditionals
    options = tir.transform.HoistExpressionConfig(
        hoisted_conditionals=flags.IfElseStmt | flags.IfElseExpr
    )
    assert options == {"hoisted_conditionals": 3}
    with tvm.transform.PassContext(config={"tir.HoistExpression": options}):
        pass
    with pytest.raises(ValueError, match="tir.UnrollLoop has no option 'max_step'"):
        tvm.transform.PassContext(
            config={"tir.UnrollLoop": tir.transform.UnrollLoopConfig(max_step=3)}
        )
