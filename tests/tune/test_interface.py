# SPDX-License-Identifier: Apache-2.0
"""The names of the families that users' scripts take parts from."""

import importlib

import pytest

NAMES = {
    "schedule_rule": "AddRFactor ApplyCustomRule AutoBind AutoInline InlineConstantScalars "
    "CrossThreadReduction MultiLevelTiling MultiLevelTilingTensorCore MultiLevelTilingWideVector "
    "MultiLevelTilingWithIntrin ReuseType ParallelizeVectorizeUnroll RandomComputeLocation "
    "PyScheduleRule ScheduleRule",
    "postproc": "DisallowDynamicLoop DisallowAsyncStridedMemCopy Postproc PyPostproc "
    "RewriteCooperativeFetch RewriteLayout RewriteParallelVectorizeUnroll RewriteReductionBlock "
    "RewriteTensorize RewriteUnboundBlock VerifyGPUCode VerifyVTCMLimit",
    "mutator": "Mutator PyMutator MutateComputeLocation MutateTileSize MutateThreadBinding "
    "MutateParallel MutateUnroll",
    "builder": "Builder BuilderInput BuilderResult PyBuilder create LocalBuilder",
    "runner": "EvaluatorConfig RPCConfig LocalRunner LocalRunnerFuture RPCRunner PyRunner "
    "PyRunnerFuture Runner RunnerFuture RunnerInput RunnerResult create",
    "database": "Database PyDatabase TuningRecord Workload create JSONDatabase MemoryDatabase "
    "OrderedUnionDatabase ScheduleFnDatabase UnionDatabase",
    "cost_model": "CostModel PyCostModel RandomModel XGBModel",
    "feature_extractor": "FeatureExtractor PyFeatureExtractor PerStoreFeature "
    "RandomFeatureExtractor",
    "measure_callback": "AddToDatabase MeasureCallback PyMeasureCallback RemoveBuildArtifact "
    "UpdateCostModel",
    "search_strategy": "EvolutionarySearch ReplayFunc ReplayTrace MeasureCandidate "
    "PySearchStrategy SearchStrategy create",
    "space_generator": "PostOrderApply ScheduleFn PySpaceGenerator ScheduleFnType SpaceGenerator "
    "create SpaceGeneratorUnion",
    "task_scheduler": "GradientBased RoundRobin PyTaskScheduler TaskScheduler create",
    "post_optimization": "PostOpt Droplet Space write_file get_time",
    "post_optimization.utils": "write_file clean_file get_time read_cfg_file",
    "schedule.cuda.layout_transform": "tile_layout_transform create_cached_read auto_inline_into "
    "get_max_tile_size cuda_layout_transform_schedule_rule",
    "builder.local_builder": "T_BUILD T_EXPORT default_build default_export get_local_builder",
    "runner.local_runner": "T_ALLOC_ARGUMENT T_RUN_EVALUATOR T_CLEANUP default_alloc_argument "
    "default_run_evaluator default_cleanup",
    "runner.rpc_runner": "RPCRunner RPCRunnerFuture default_create_session default_upload_module "
    "default_alloc_argument default_run_evaluator default_cleanup",
    "runner.utils": "T_ARGUMENT T_ARG_INFO_JSON_OBJ alloc_argument_common run_evaluator_common",
    "": "Builder CostModel Database ExtractedTask FeatureExtractor MeasureCallback Mutator "
    "Postproc Profiler Runner ScheduleRule MeasureCandidate SearchStrategy SpaceGenerator "
    "TaskScheduler tune_tir tune_tasks TuneContext derived_object",
}


@pytest.mark.parametrize("family", NAMES, ids=lambda family: family or "meta_schedule")
def test_family(family):
    module = importlib.import_module(f"tvm.meta_schedule.{family}".rstrip("."))
    assert [name for name in NAMES[family].split() if not hasattr(module, name)] == []


def test_parts_that_do_nothing():
    from tvm import meta_schedule as ms
    from tvm.meta_schedule.testing.dummy_object import DummyBuilder, DummyMutator, DummyRunner

    assert [r.artifact_path for r in DummyBuilder().build([None])] == ["test_path"]
    assert DummyRunner().run([None])[0].result().run_secs
    assert isinstance(DummyMutator(), ms.Mutator)


def test_contexts_of_extracted_tasks(tmp_path):
    from tvm import meta_schedule as ms
    from tvm.meta_schedule.relax_integration import extracted_tasks_to_tune_contexts
    from tvm.target import Target

    from tests.tune import programs

    mod = ms.TuneContext(programs.sigmoid()).mod
    task = ms.ExtractedTask("sigmoid", mod, Target("llvm"), [mod], 3)
    (context,), weights = extracted_tasks_to_tune_contexts([task], str(tmp_path), seed=1)
    assert context.task_name == "sigmoid" and weights == [3.0]
    assert context.generate_design_space()


def test_signatures_that_scripts_rely_on():
    import inspect

    from tvm import meta_schedule as ms

    parameters = lambda f: list(inspect.signature(f).parameters)
    assert parameters(ms.tune_tir)[:4] == ["mod", "target", "work_dir", "max_trials_global"]
    for function in (ms.tune_tir, ms.tune_tasks):
        options = inspect.signature(function).parameters
        assert options["num_trials_per_iter"].default == 64
        assert options["task_scheduler"].default == "gradient"
        assert options["module_equality"].default == "structural"
    assert parameters(ms.schedule_rule.MultiLevelTiling) == [
        "structure",
        "tile_binds",
        "max_innermost_factor",
        "vector_load_lens",
        "reuse_read",
        "reuse_write",
        "filter_fn",
    ]
    assert parameters(ms.builder.default_build) == ["mod", "target", "_params"]


def test_remote_futures_report_what_happened():
    from concurrent.futures import Future

    from tvm.meta_schedule.runner.rpc_runner import RPCRunnerFuture

    done, failed, late = Future(), Future(), Future()
    done.set_result([1e-3, 2e-3])
    failed.set_exception(ConnectionError("gone"))
    assert [s.value for s in RPCRunnerFuture(done, 1).result().run_secs] == [1e-3, 2e-3]
    assert RPCRunnerFuture(failed, 1).result().error_msg == "RPCRunner: ConnectionError: gone"
    assert "timed out after 0.01 s" in RPCRunnerFuture(late, 0.01).result().error_msg
    assert not RPCRunnerFuture(late, 1).done()
