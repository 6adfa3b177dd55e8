# SPDX-License-Identifier: Apache-2.0
"""Names, options and small behaviours that scripts use without a thought."""

import numpy as np
import pytest
import tvm
from tvm import meta_schedule as ms
from tvm import tir
from tvm.meta_schedule.testing import te_workload
from tvm.script import tir as T
from tvm.tir.tensor_intrin import arm_cpu, cuda

from tests.schedule.programs import two_stages


@T.prim_func
def one(A: T.Buffer((4,), "float32")):
    A[0] = 1.0


def test_errors_are_pythons():
    assert tvm.TVMError is Exception and tvm.base.TVMError is Exception
    assert issubclass(tvm.error.TVMError, RuntimeError)


def test_threads_are_launched_twice():
    @T.prim_func
    def func(A: T.Buffer((4,), "float32")):
        tx = T.env_thread("threadIdx.x")
        with T.launch_thread(tx, 4):
            A[tx] = 1.0
        with T.launch_thread(tx, 4):
            A[tx] = 2.0

    assert func.script().count("launch_thread") == 2


def test_a_buffer_over_a_pointer():
    @T.prim_func
    def func(p: T.handle("float32")):
        B = T.Buffer((4,), "float32", data=p)
        B[0] = 1.0

    assert tir.analysis.verify_well_formed(func)


def test_variables_shared_by_functions_are_refused():
    i = tir.Var("i", "int32")
    func = tir.PrimFunc([], tir.For(i, 0, 4, tir.ForKind.SERIAL, tir.Evaluate(i)))
    mod = tvm.IRModule({"f": func, "g": func.with_attr("x", 1)})
    assert not tir.analysis.verify_well_formed(mod, assert_mode=False)


def test_constants_have_the_smallest_usual_type():
    values = [np.float64(1), 1e50, 1.0, 2**40, 2**63]
    types = ["float64", "float64", "float32", "int64", "uint64"]
    assert [str(tir.const(v).dtype) for v in values] == types
    with pytest.raises(ValueError):
        tir.IntImm("int8", 300)


def test_lengths_of_vectors():
    assert tir.Ramp(0, 1, 4).lanes.dtype == "int32"
    assert str(tir.Ramp(0, 1, 4 * tir.vscale()).lanes) == "T.vscale() * 4"
    with pytest.raises(tvm.error.TVMError):
        tir.Ramp(0, 1, tir.vscale() + 3)


def test_options_by_their_names():
    options = {
        "tir.Simplify": [
            "transitively_prove_inequalities",
            "propagate_knowns_to_prove_conditional",
            "propagate_knowns_to_simplify_expressions",
            "convert_boolean_to_and_of_ors",
            "apply_constraints_to_boolean_branches",
        ],
        "tir.LoopPartition": [
            "partition_const_loop",
            "no_unroll_loop_with_extent_one",
            "unroll_loop_with_partition_hint_no_interval",
        ],
        "tir.HoistIfThenElse": ["support_block_scope_hoisting"],
        "tir.RemoveNoOp": ["use_dataflow_analysis"],
    }
    config = {key: dict.fromkeys(names, True) for key, names in options.items()}
    with tvm.transform.PassContext(config=config) as context:
        for key, names in options.items():
            assert all(getattr(context.config[key], name) for name in names)


def test_passes_take_modules_that_are_moved():
    mod = tir.transform.Simplify()(tvm.IRModule.from_expr(one)._move())
    assert tir.transform.transform.Simplify is tir.transform.Simplify and "one" in str(mod)


def test_names_of_intrinsics():
    for types in ("S8S8S32", "U8S8S32", "S8U8S32", "U8U8U32"):
        assert getattr(arm_cpu, f"DP4A_{types}_INTRIN") == f"dp4a_{types.lower()}"
    assert any(name.endswith("_DYN_INTRIN") for name in dir(cuda))


def test_classes_of_schedules_are_in_tir():
    sch = tir.Schedule(two_stages)
    assert isinstance(sch.state, tir.ScheduleState) and tir.BlockScope
    sref = sch.get_sref(sch.get_block("root"))
    assert isinstance(sref, tir.StmtSRef)
    assert sref.same_as(sch.get_sref(sch.get_block("root")))


def test_arguments_of_candidates():
    assert len(ms.arg_info.ArgInfo.from_prim_func(func=one)) == 1
    assert len(ms.MeasureCandidate(tir.Schedule(one), None).args_info) == 0


def test_sizes_of_workloads():
    first = {
        "C3D": (1, 16, 224, 224, 3, 64, 7, 2, 3),
        "GRP": (1, 56, 56, 64, 128, 3, 2, 1, 1, 4),
        "DIL": (1, 224, 224, 3, 64, 7, 2, 3, 2),
        "CBR": (1, 224, 224, 3, 64, 7, 2, 3),
    }
    for name, size in first.items():
        sizes = te_workload.CONFIGS[name][1]
        assert tuple(sizes[0]) == size and len(sizes) >= 4


def test_targets_of_other_words():
    with pytest.raises(tvm.error.InternalError, match="Target context required"):
        tvm.target.codegen.target_has_features("avx2")
    assert "x86_64" in tvm.target.codegen.llvm_get_targets()
    assert tvm.target.Target("composite") and tvm.target.Target("test")


def test_words_of_views_and_of_programs_that_are_wrong():
    with pytest.raises(ValueError, match="only contains|would occupy bytes"):
        tvm.runtime.empty((4,), "float32")._create_view((8,))
    x = tir.Var("x", "int32")
    with pytest.raises(ValueError, match="Invalid use of undefined variable"):
        tir.analysis.verify_well_formed(tir.PrimFunc([], tir.Evaluate(x)))
    with pytest.raises(ValueError, match="multiple"):
        tir.analysis.verify_well_formed(tir.PrimFunc([x], tir.LetStmt(x, 1, tir.Evaluate(x))))


def test_rare_intrinsics_compile():
    @T.prim_func
    def func(A: T.Buffer((8,), "float32")):
        T.evaluate(T.call_intrin("handle", "tir.tvm_static_handle"))
        A[0] = T.trace(["x", A[1]], "tvm.default_trace_action")

    assert tvm.build(func, "llvm").inspect_source("ll")


def test_modules_behind_packages():
    """What a package derives is found under the name of the module that defines it elsewhere."""
    from tvm.script.ir_builder.relax.ir import add, call_tir
    from tvm.script.ir_builder.tir.ir import float32, int8x4
    from tvm.tir.analysis.analysis import verify_memory
    from tvm.tir.transform.function_pass import prim_func_pass

    assert add is tvm.script.relax.add and call_tir is tvm.script.relax.call_tir
    assert float32 is T.float32 and int8x4 is T.int8x4
    assert verify_memory is tir.analysis.verify_memory
    assert prim_func_pass is tir.transform.prim_func_pass
    with pytest.raises(ImportError, match="sqare"):
        from tvm.script.ir_builder.relax.ir import sqare  # noqa: F401
