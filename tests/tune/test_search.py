# SPDX-License-Identifier: Apache-2.0
"""Spaces, rules, mutators, strategies, cost models: the search without measuring."""

import re

import numpy as np
import pytest
import tvm
import tvm.testing
from tvm import meta_schedule as ms
from tvm.meta_schedule.cost_model import PyCostModel, RandomModel, XGBModel
from tvm.meta_schedule.database import MemoryDatabase, TuningRecord
from tvm.meta_schedule.feature_extractor import (
    PerStoreFeature,
    PyFeatureExtractor,
    RandomFeatureExtractor,
)
from tvm.meta_schedule.mutator import MutateTileSize, PyMutator
from tvm.meta_schedule.postproc import PyPostproc
from tvm.meta_schedule.runner import RunnerResult
from tvm.meta_schedule.schedule_rule import (
    AutoInline,
    MultiLevelTiling,
    PyScheduleRule,
    ReuseType,
    ScheduleRule,
)
from tvm.meta_schedule.search_strategy import PySearchStrategy
from tvm.meta_schedule.space_generator import PostOrderApply, PySpaceGenerator
from tvm.meta_schedule.testing import te_workload

from tests.schedule.operators import CASES, run, values_of
from tests.tune import programs

TARGET = tvm.testing.host_target("-num-cores=2")
_PIPELINE = tvm.get_global_func("tir.pipeline.default")


def context(func, strategy="replay-trace", space="post-order-apply", seed=7):
    return ms.TuneContext(
        func,
        target=TARGET,
        space_generator=space,
        search_strategy=strategy,
        rand_state=seed,
        num_threads=2,
    )


def candidates(ctx, rounds, per_round=8, **kwargs):
    ctx.pre_tuning(10_000, per_round, **kwargs)
    found = []
    for _ in range(rounds):
        found += ctx.generate_measure_candidates() or []
    return found


def lowered(sch):
    target = tvm.target.Target(TARGET)
    mod = tvm.tir.transform.BindTarget(target.with_host(target))(sch.mod)
    return tvm.ir.structural_hash(_PIPELINE(target)(mod))


@pytest.mark.parametrize(
    ("func", "exact"),
    [
        (programs.sigmoid(), lambda a: 1 / (1 + np.exp(-a))),
        (programs.matmul(), lambda a, b: a @ b),
        (programs.row_sum(256, 512), lambda a: a.sum(axis=1)),
    ],
    ids=["sigmoid", "matmul", "row_sum"],
)
@pytest.mark.parametrize("strategy", ["replay-trace", "evolutionary"])
def test_every_candidate_is_another_program_and_right(func, exact, strategy):
    found = candidates(context(func, strategy), 3)
    assert len(found) == 24
    assert len(found[0].sch.trace.insts) == 0  # the default schedule comes first
    assert len({lowered(c.sch) for c in found}) == 24
    shapes = [[int(e) for e in func.buffer_map[p].shape] for p in func.params]
    args = [np.random.default_rng(0).random(s).astype("float32") for s in shapes]
    for c in found[:: len(found) // 4]:
        tvm.compile(c.sch.mod, target=TARGET)(*args)
        np.testing.assert_allclose(args[-1], exact(*args[:-1]), rtol=1e-4)


def test_elementwise_programs_have_real_choices():
    spaces = context(programs.sigmoid(1024, 1024)).generate_design_space()
    assert len(spaces) == 4  # fused, tiled, tiled the other way round, around the default
    found = candidates(context(programs.sigmoid(1024, 1024)), 8)
    assert len(found) >= 50
    texts = "\n".join(c.sch.mod.script() for c in found)
    for choice in ("T.parallel(", "T.vectorized(", "T.unroll("):
        assert choice in texts
    assert re.search(r'"nontemporal_store": (T\.int32\()?1', texts)


def splits(trace):
    """The factors of every split, with the decisions in place of what was sampled."""
    values, found = {}, []
    for inst in trace.insts:
        if inst.kind.name == "SampleCategorical":
            values[inst.outputs[0]] = inst.attrs[0][int(trace.get_decision(inst))]
        elif inst.kind.name == "Split":
            found.append([values.get(f, f) for f in inst.inputs[1:]])
    return [[None if f is None else int(f) for f in factors] for factors in found]


@pytest.mark.parametrize(
    ("func", "shared"),
    [
        (programs.sigmoid(96, 1024), False),
        (programs.matmul(128, 128, 128), True),  # the tile and what writes it out
    ],
)
def test_numbers_of_the_default_schedule_are_choices(func, shared):
    rules = [ms.schedule_rule.AroundDefault()]
    ctx = context(func, "evolutionary", PostOrderApply(sch_rules=rules))
    _, around = ctx.generate_design_space()
    usual = tvm.tir.Schedule(func)
    tvm.tir.schedule.apply_default_rules(usual, "main", ctx.target)
    assert splits(around.trace) == splits(usual.trace)  # what it decides to begin with
    sampled = [i.outputs[0] for i in around.trace.insts if i.kind.name == "SampleCategorical"]
    uses = [f for i in around.trace.insts if i.kind.name == "Split" for f in i.inputs[1:]]
    assert sampled and all(
        any(f is v or v.same_as(f) for f in uses if f is not None) for v in sampled
    )
    assert shared == (sum(isinstance(f, tvm.tir.Var) for f in uses) > len(sampled))
    found = candidates(ctx, 1)
    assert len(found) >= 4
    rng = np.random.default_rng(0)
    args = [rng.random([int(e) for e in func.buffer_map[p].shape]) for p in func.params]
    args = [a.astype("float32") for a in args]
    results = []
    for c in found[:4]:
        tvm.compile(c.sch.mod, target=TARGET)(*args)
        results.append(args[-1].copy())
    for r in results[1:]:
        np.testing.assert_allclose(r, results[0], rtol=1e-4)


def test_what_somebody_scheduled_has_no_default_to_be_around():
    func = programs.sigmoid().with_attr("tir.is_scheduled", True)
    rules = [ms.schedule_rule.AroundDefault()]
    ctx = context(func, "evolutionary", PostOrderApply(sch_rules=rules))
    assert len(ctx.generate_design_space()) == 1


def column_sum(n, m):
    A = tvm.te.placeholder((n, m), name="A")
    k = tvm.te.reduce_axis((0, n), name="k")
    return tvm.te.create_prim_func(
        [A, tvm.te.compute((m,), lambda j: tvm.te.sum(A[k, j], axis=k), name="C")]
    )


def test_sums_of_columns_stream_and_are_shared_by_threads():
    ctx = context(column_sum(2048, 64))
    spaces = [str(s.trace) for s in ctx.generate_design_space()]
    assert any("rfactor" in s for s in spaces)
    a, c = np.random.default_rng(0).random((2048, 64)).astype("float32"), np.zeros(64, "float32")
    for candidate in candidates(ctx, 1)[::3]:
        tvm.compile(candidate.sch.mod, target=TARGET)(a, c)
        np.testing.assert_allclose(c, a.sum(axis=0), rtol=1e-4)


@pytest.mark.parametrize("name", ["depthwise convolution", "depthwise convolution of lines"])
def test_windows_have_tiles_with_all_their_places(name):
    args, reference = CASES[name]
    func = tvm.te.create_prim_func(args)
    rules = [ms.schedule_rule.RegisterTiling()]
    found = candidates(context(func, "evolutionary", PostOrderApply(sch_rules=rules)), 2)
    inputs, out = values_of(args)
    tiled = [c for c in found if "cache_write" in str(c.sch.trace)]
    assert any(
        re.search(r"unroll\(3\):\n(.*unroll.*\n)*.*vectorized", str(c.sch.mod)) for c in tiled
    )
    for c in tiled[::4]:
        got = run(tvm.compile(c.sch.mod, target=TARGET), inputs, out)
        np.testing.assert_allclose(got, reference(*inputs), rtol=1e-4, atol=1e-4)


def test_what_pads_is_computed_where_it_is_used_or_by_itself():
    func = te_workload.create_te_workload("DEP", 1)
    texts = [str(s.trace) for s in context(func).generate_design_space()]
    placed = ["sample_compute_location" in t for t in texts]
    assert any(placed) and not all(placed)


def test_rows_of_a_reduction_go_together():
    ctx = context(programs.row_sum(24, 40))
    found = [c for c in candidates(ctx, 2) if "T.unroll" in c.sch.mod.script()]
    a, b = np.random.default_rng(0).random((24, 40)).astype("float32"), np.zeros(24, "float32")
    for candidate in found:
        tvm.compile(candidate.sch.mod, target=TARGET)(a, b)
        np.testing.assert_allclose(b, a.sum(axis=1), rtol=1e-5)
    together = [
        c for c in found if re.search(r"unroll\((2|3|4|8)\):\n.*C?B_init", c.sch.mod.script())
    ]
    assert together


def test_columns_that_no_vector_divides_have_a_part_of_whole_vectors():
    ctx = context(programs.sigmoid(37, 77))
    found = [c for c in candidates(ctx, 1) if "loop_partition" in str(c.sch.trace)]
    assert found
    a, b = (
        np.random.default_rng(0).random((37, 77)).astype("float32"),
        np.zeros((37, 77), "float32"),
    )
    tvm.compile(found[0].sch.mod, target=TARGET)(a, b)
    np.testing.assert_allclose(b, 1 / (1 + np.exp(-a)), rtol=1e-5)


def test_odd_sizes_have_choices_but_for_their_end():
    found = candidates(context(programs.sigmoid(333, 777)), 4)
    assert len(found) >= 20
    flat = [c for c in found if "transform_block_layout" in str(c.sch.trace)]
    assert flat
    a = np.random.default_rng(0).random((333, 777)).astype("float32")
    for c in flat[:3]:
        b = np.zeros_like(a)
        tvm.compile(c.sch.mod, target=TARGET)(a, b)
        np.testing.assert_allclose(b, 1 / (1 + np.exp(-a)), rtol=1e-5)


def test_a_seed_repeats_the_search():
    first, second = (
        [str(c.sch.trace) for c in candidates(context(programs.matmul(), seed=s), 2)]
        for s in (11, 11)
    )
    assert first == second
    assert first != [str(c.sch.trace) for c in candidates(context(programs.matmul(), seed=12), 2)]


def test_programs_in_the_database_are_not_proposed_again():
    database = MemoryDatabase()
    ctx = context(programs.sigmoid())
    first = candidates(ctx, 2, database=database)
    workload = database.commit_workload(ctx.mod)
    for i, c in enumerate(first):
        database.commit_tuning_record(TuningRecord(c.sch.trace, workload, [1.0 + i], ctx.target))
    again = candidates(context(programs.sigmoid()), 2, database=database)
    assert not {lowered(c.sch) for c in first} & {lowered(c.sch) for c in again}


def test_a_small_space_ends():
    def one_choice(sch):
        sch.parallel(sch.get_loops("B")[0])

    ctx = context(programs.doubled, "evolutionary", one_choice)
    assert len(candidates(ctx, 1)) == 2  # the default and this one
    assert ctx.generate_measure_candidates() is None


@pytest.mark.parametrize("strategy", ["replay-trace", "replay-func", "evolutionary"])
def test_trials_are_counted_exactly(strategy):
    """Also where a run takes no time that the clock could see."""
    ctx = context(programs.matmul(64, 64, 64), strategy)
    ctx.pre_tuning(25, 8)
    counts = []
    while found := ctx.generate_measure_candidates():
        counts.append(len(found))
        ctx.notify_runner_results(found, [RunnerResult([0.0], None)] * len(found))
    assert sum(counts) == 25


# ---- rules --------------------------------------------------------------------------------------
def test_multi_level_tiling_nests_loops():
    rule = MultiLevelTiling(
        "SSRSRS", max_innermost_factor=64, reuse_write=ReuseType("may", [1, 2], "global")
    )
    spaces = context(
        programs.matmul(64, 64, 64),
        space=PostOrderApply(sch_rules=[rule], postprocs=[], mutator_probs={}),
    ).generate_design_space()
    assert len(spaces) == 3
    assert len(spaces[0].get_loops("C")) == 10
    assert "C_global" in spaces[1].mod.script()
    with pytest.raises(ValueError, match="expected a structure of 'S' and 'R', got 'SXR'"):
        MultiLevelTiling("SXR")
    with pytest.raises(ValueError, match="expected req 'no', 'may' or 'must', got 'maybe'"):
        MultiLevelTiling("SSR", reuse_write=ReuseType("maybe", [1], "global"))


def test_auto_inline():
    A = tvm.te.placeholder((16,), name="A")
    B = tvm.te.compute((16,), lambda i: A[i] + 1.0, name="B")
    C = tvm.te.compute((16,), lambda i: B[i] * 2.0, name="C")
    rule = AutoInline(False, True, True, True, True, True)
    (space,) = context(
        tvm.te.create_prim_func([A, C]),
        space=PostOrderApply(sch_rules=[rule], postprocs=[], mutator_probs={}),
    ).generate_design_space()
    assert "(A[v_i] + T.float32(1.0)) * T.float32(2.0)" in space.mod.script()


def test_rules_are_named_by_target():
    assert any(isinstance(r, MultiLevelTiling) for r in ScheduleRule.create("llvm"))
    with pytest.raises(ValueError, match="expected a kind of target with default schedule rules"):
        ScheduleRule.create("webgpu")


def test_rule_postproc_and_mutator_defined_by_a_user():
    calls = []

    @ms.derived_object
    class Rule(PyScheduleRule):
        def __init__(self, width):
            self.width = width

        def _initialize_with_tune_context(self, ctx):
            calls.append(str(ctx.task_name))

        def apply(self, sch, block):
            if sch.get(block).name_hint == "root":
                return [sch]
            other = sch.copy()
            loop = other.get_loops(block)[0]
            other.vectorize(other.split(loop, [None, self.width])[1])
            return [sch, other]

    @ms.derived_object
    class Refuse(PyPostproc):
        def apply(self, sch):
            return "vectorized" in sch.mod.script()

    @ms.derived_object
    class Nothing(PyMutator):
        def apply(self, trace, _):
            return None

    space = PostOrderApply(
        sch_rules=[Rule(8)], postprocs=[Refuse()], mutator_probs={Nothing(): 1.0}
    )
    ctx = context(programs.doubled, "evolutionary", space)
    assert calls == ["main"] and len(ctx.generate_design_space()) == 2
    found = candidates(ctx, 1)
    assert len(found) == 2 and "vectorized(8)" in found[1].sch.mod.script()


def test_space_and_strategy_defined_by_a_user():
    @ms.derived_object
    class Space(PySpaceGenerator):
        def generate_design_space(self, mod):
            return [tvm.tir.Schedule(mod)]

    @ms.derived_object
    class Strategy(PySearchStrategy):
        def __init__(self):
            self.left = 2

        def pre_tuning(
            self, max_trials, num_trials_per_iter, design_spaces, database=None, cost_model=None
        ):
            self.spaces = list(design_spaces)

        def post_tuning(self):
            pass

        def generate_measure_candidates(self):
            self.left -= 1
            if self.left < 0:
                return None
            return [ms.MeasureCandidate(self.spaces[0], [])]

        def notify_runner_results(self, measure_candidates, results):
            pass

    ctx = context(programs.doubled, Strategy(), Space())
    assert len(candidates(ctx, 5)) == 2


def test_mutated_tiles_keep_their_product():
    ctx = context(programs.matmul(64, 64, 64))
    trace = candidates(ctx, 1)[3].sch.trace
    changed = 0
    for seed in range(20):
        other = MutateTileSize().apply(trace, seed)
        if other is None:
            continue
        changed += 1
        sch = tvm.tir.Schedule(ctx.mod)
        other.apply_to_schedule(sch, True)  # raises for a tile that is none
    assert changed > 10


# ---- cost models --------------------------------------------------------------------------------
def test_features():
    ctx = context(programs.matmul(64, 64, 64))
    found = candidates(ctx, 1)
    extractor = PerStoreFeature()
    assert extractor.feature_vector_length == 157
    rows = [f.numpy() for f in extractor.extract_from(ctx, found)]
    assert all(r.shape[1] == 157 and len(r) >= 2 and np.isfinite(r).all() for r in rows)
    assert len({r.tobytes() for r in rows}) > len(rows) // 2
    # 2 * 64**3 operations, of which half are products: the same in every schedule.
    products = [r[:, 1].max() for r in rows]
    np.testing.assert_allclose(products, np.log2(1 + 64**3))
    both = PerStoreFeature(extract_workload=True).extract_from(ctx, found[:1])[0].numpy()
    assert both.shape[1] == 314
    assert RandomFeatureExtractor(feature_size=5).extract_from(ctx, found)[0].shape[1] == 5
    with pytest.raises(ValueError, match="expected positive options"):
        PerStoreFeature(cache_line_bytes=0).extract_from(ctx, found)


def test_vector_width_is_seen():
    mod = tvm.IRModule({"main": programs.doubled.with_attr("global_symbol", "main")})
    rows = []
    for width in (4, 16):
        sch = tvm.tir.Schedule(mod)
        sch.vectorize(sch.split(sch.get_loops("B")[0], [None, width])[1])
        candidate = ms.MeasureCandidate(sch, [])
        rows.append(PerStoreFeature().extract_from(context(programs.doubled), [candidate])[0])
    assert rows[0].numpy()[0, 18] == np.log2(5) and rows[1].numpy()[0, 18] == np.log2(17)


def test_xgb_learns_from_programs_of_many_stores():
    pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    stores = [rng.integers(1, 60) for _ in range(64)]
    features = [np.repeat(rng.random((1, 8)), n, axis=0).astype("float32") for n in stores]

    class Given(PyFeatureExtractor):
        def extract_from(self, context, candidates):
            return [features[i] for i in candidates]

    model = XGBModel(extractor=Given(), num_warmup_samples=10, num_tuning_cores=1)
    seconds = [0.1 + float(f[0, 0]) for f in features]
    ctx = context(programs.doubled)
    model.update(ctx, list(range(64)), [RunnerResult([s], None) for s in seconds])
    scores = model.predict(ctx, list(range(64)))
    assert np.abs(scores).max() < 2  # the best program has 1
    assert np.corrcoef(scores, 1 / np.array(seconds))[0, 1] > 0.9


def test_xgb_learns_and_is_saved(tmp_path):
    pytest.importorskip("xgboost")
    ctx = context(programs.matmul(64, 64, 64))
    found = candidates(ctx, 8)

    def seconds(c):  # wide vectors are fast
        return 1.0 / (1 + c.sch.mod.script().count("vectorized(16)"))

    results = [RunnerResult([seconds(c)], None) for c in found]
    model = XGBModel(num_warmup_samples=10, num_tuning_cores=1)
    model.update(ctx, found[:48], results[:48])
    scores = model.predict(ctx, found[48:])
    truth = np.array([1 / seconds(c) for c in found[48:]])
    assert scores[truth == truth.max()].mean() > scores[truth == truth.min()].mean()
    model.save(tmp_path / "model.npz")
    again = XGBModel(num_warmup_samples=10, num_tuning_cores=1)
    again.load(tmp_path / "model.npz")
    np.testing.assert_allclose(again.predict(ctx, found[48:]), scores, rtol=1e-6)
    again.update(ctx, found[48:], [RunnerResult(None, "failed")] * len(found[48:]))
    assert np.isfinite(again.predict(ctx, found)).all()


def test_random_model_repeats(tmp_path):
    ctx, model = context(programs.sigmoid()), RandomModel(seed=3)
    model.save(tmp_path / "state")
    first = model.predict(ctx, [None] * 4)
    again = RandomModel(path=str(tmp_path / "state"))
    np.testing.assert_array_equal(again.predict(ctx, [None] * 4), first)


def test_a_cost_model_that_raises_does_not_end_the_search(caplog):
    class Broken(PyCostModel):
        def predict(self, context, candidates):
            raise ArithmeticError("no")

    database, ctx = MemoryDatabase(), context(programs.sigmoid(), "evolutionary")
    ctx.pre_tuning(100, 8, database=database, cost_model=Broken())
    workload = database.commit_workload(ctx.mod)
    for i, c in enumerate(ctx.generate_measure_candidates()):
        database.commit_tuning_record(TuningRecord(c.sch.trace, workload, [1.0 + i], ctx.target))
    assert len(ctx.generate_measure_candidates()) == 8
    assert "ArithmeticError: no" in caplog.text


def test_classes_that_derive_further():
    class Base(PyScheduleRule):
        def apply(self, sch, block):
            return [sch]

    @ms.derived_object
    class Rule(Base):
        def __init__(self):
            self.name = "mine"

    rule = Rule()
    assert rule.name == "mine"
    rule.name = "changed"  # reaches the user's object
    assert rule._inst.name == "changed"
    sch = tvm.tir.Schedule(programs.doubled)
    assert len(rule.clone().apply(sch, sch.get_block("B"))) == 1
    with pytest.raises(TypeError, match=r"a base that is not decorated itself, got More\(Rule\)"):
        ms.derived_object(type("More", (Rule,), {}))


@pytest.mark.parametrize(
    ("base", "method"),
    [
        (ms.builder.PyBuilder, "build"),
        (ms.runner.PyRunner, "run"),
        (ms.cost_model.PyCostModel, "predict"),
        (ms.feature_extractor.PyFeatureExtractor, "extract_from"),
        (ms.measure_callback.PyMeasureCallback, "apply"),
        (ms.task_scheduler.PyTaskScheduler, "next_task_id"),
        (PyScheduleRule, "apply"),
        (PySpaceGenerator, "generate_design_space"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_what_a_user_has_to_define(base, method):
    """A method that is missing fails when it is called."""
    lazy = ms.derived_object(type("Lazy", (base,), {}))()
    sch = tvm.tir.Schedule(column_sum(4, 8))
    native = {PyScheduleRule: (sch, sch.get_block("C")), PySpaceGenerator: (sch.mod,)}
    arguments = native.get(base, ())  # the others are called with whatever they are given
    with pytest.raises(NotImplementedError, match=f"Lazy: expected the method {method} to be"):
        getattr(lazy, method)(*arguments)
