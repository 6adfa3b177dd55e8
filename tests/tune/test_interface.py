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
    "post_optimization": "PostOpt",
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
