# SPDX-License-Identifier: Apache-2.0
"""Every name that scripts use exists."""

import pytest
import tvm_ffi
from tvm import tir
from tvm.script import ir as I
from tvm.script import tir as T
from tvm.script.ir_builder.tir import frame

_FLOATS = """
    float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2
    float8_e5m2fnuz float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn float16 float32 float64
""".split()
_INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
TYPES = [
    *(name + lanes for name in _FLOATS for lanes in ("", "x2", "x4", "x8", "x16", "x32", "x64")),
    *(name + lanes for name in _INTEGERS for lanes in ("", "x4", "x8", "x16", "x32", "x64")),
    "bfloat16",
]
NAMES = """
    buffer buffer_decl prim_func arg func_name func_attr func_ret match_buffer block
    block_name_suffix_context init where reads writes block_attr alloc_buffer axis serial
    parallel vectorized unroll thread_binding grid Assert realize allocate allocate_const attr
    While If Then Else decl_buffer launch_thread env_thread buffer_store evaluate boolean handle
    void var ptr min max iter_var comm_reducer index_map target buffer_var abs fabs acos acosh
    address_of asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor ceil
    clz copysign cos cosh erf exp exp2 exp10 floor ceildiv floordiv floormod fmod hypot
    if_then_else infinity isfinite isinf isnan isnullptr ldexp likely log log1p log2 log10
    lookup_param max_value min_value nearbyint nextafter popcount pow q_multiply_shift
    q_multiply_shift_per_axis ret continue_loop break_loop reinterpret round rsqrt shift_left
    shift_right sigmoid sin sinh sqrt tan tanh thread_return trunc truncdiv truncmod
    tvm_access_ptr tvm_throw_last_error tvm_stack_alloca tvm_stack_make_shape
    tvm_stack_make_array call_packed call_cpacked call_packed_lowered call_cpacked_lowered
    call_extern call_intrin call_llvm_intrin call_llvm_pure_intrin call_pure_extern tvm_tuple
    handle_add_byte_offset tvm_struct_set tvm_struct_get tvm_thread_invariant
    tvm_thread_allreduce tvm_load_matrix_sync tvm_mma_sync tvm_bmma_sync tvm_fill_fragment
    tvm_store_matrix_sync tvm_storage_sync tvm_warp_shuffle tvm_warp_shuffle_up
    tvm_warp_shuffle_down tvm_warp_activemask ptx_mma ptx_mma_sp ptx_ldmatrix ptx_cp_async
    ptx_cp_async_bulk ptx_wait_group ptx_commit_group ptx_cp_async_barrier
    ptx_init_barrier_thread_count ptx_arrive_barrier ptx_arrive_barrier_expect_tx
    ptx_wait_barrier make_filled_simdgroup_matrix simdgroup_load simdgroup_store
    simdgroup_multiply_accumulate create_barriers mma_store mma_fill vectorlow vectorhigh
    vectorcombine dp4a assume undef tvm_call_packed tvm_call_cpacked tvm_call_packed_lowered
    tvm_call_cpacked_lowered TVMBackendAllocWorkspace TVMBackendFreeWorkspace
    start_profile_intrinsic end_profile_intrinsic meta_var anylist_getitem anylist_resetitem
    anylist_setitem_call_packed anylist_setitem_call_cpacked llvm_lookup_intrinsic_id
    type_annotation broadcast ramp cast Var SizeVar Reduce FloatImm IntImm StringImm Cast Add
    Sub Mul Div Mod FloorDiv FloorMod Min Max EQ NE LT LE GT GE And Or Not Select BufferLoad
    ProducerLoad Ramp Broadcast Shuffle Call CallEffectKind let LetStmt Let IterVar CommReducer
    Range vscale get_active_lane_mask call_kernel ignore_loop_partition Buffer Ptr bool macro
""".split()
MODULE_NAMES = """
    ir_module module_attrs module_global_infos dummy_global_info Range lookup_vdevice pyfunc vdevice
""".split()
FRAMES = """
    TIRFrame PrimFuncFrame BlockFrame BlockInitFrame ForFrame AssertFrame LetFrame RealizeFrame
    AllocateFrame AllocateConstFrame AttrFrame WhileFrame IfFrame ThenFrame ElseFrame
    DeclBufferFrame LaunchThreadFrame
""".split()


def test_types():
    """A type makes a variable, or a value of that type."""
    assert len(TYPES) == 147
    for name in TYPES:
        make = getattr(T, name)
        assert isinstance(make(), tir.Var) and str(make().dtype) == name
        scalar = tvm_ffi.dtype(name).lanes == 1
        value = make(
            1
            if scalar
            else tir.Broadcast(tir.const(1, name.rsplit("x", 1)[0]), tvm_ffi.dtype(name).lanes)
        )
        assert str(value.dtype) == name


@pytest.mark.parametrize(("language", "names"), [(T, NAMES), (I, MODULE_NAMES)])
def test_names(language, names):
    missing = [name for name in names if not hasattr(language, name)]
    assert not missing


def test_frames():
    assert all(issubclass(getattr(frame, name), frame.IRBuilderFrame) for name in FRAMES)


def test_unknown_names_have_a_suggestion():
    with pytest.raises(AttributeError, match="did you mean 'alloc_buffer'"):
        _ = T.aloc_buffer
