# SPDX-License-Identifier: Apache-2.0
"""Passes that tune kernels, and that use what was tuned."""

import warnings

from tvm import ir, tir
from tvm._derive import pass_maker
from tvm.ir.transform import module_pass
from tvm.target import Target


def _target(func):
    target = func.attrs.get("target") or Target.current()
    if target is None:
        raise ValueError("MetaSchedule: expected a current target, or functions with one, got none")
    return target


def _kernels(mod):
    from tvm.relax.kernels import kernels

    return kernels(mod)


def _scheduled(func, schedule):
    """The function as the schedule of its module has it."""
    best = schedule.mod["main"].with_attr("tir.is_scheduled", True)
    for key, value in func.attrs.items():
        best = best.with_attr(key, value)
    return best


@pass_maker
def MetaScheduleApplyDatabase(work_dir=None, enable_warning=False):
    """Schedules kernels by their best records: in a database of `work_dir`, else in the current
    one. Kernels without a record stay as they are."""

    def run(mod, ctx):
        from tvm import meta_schedule as ms

        database = (
            ms.Database.current() if work_dir is None else ms.Database.create(work_dir=work_dir)
        )
        if database is None:
            raise ValueError("MetaScheduleApplyDatabase: expected a current database, got none")
        functions = dict(mod.functions)
        for name, func in _kernels(mod).items():
            if func.attrs.get("tir.is_scheduled"):
                continue
            normal = ms.tune_context.normalize_module(func)
            schedule = database.query_schedule(normal, _target(func), "main")
            if schedule is not None:
                functions[mod.get_global_var(name)] = _scheduled(func, schedule)
            elif enable_warning:
                warnings.warn(f"MetaScheduleApplyDatabase: no record of '{name}'", stacklevel=2)
        return ir.IRModule(functions, mod.attrs, mod.global_infos)

    return module_pass(run, opt_level=0, name="MetaScheduleApplyDatabase")


def _is_static(func):
    return all(
        isinstance(extent, tir.IntImm)
        for buffer in func.buffer_map.values()
        for extent in buffer.shape
    )


def _drawn(func, target, valid_count, benchmark):
    """A schedule of a kernel from the space that tuning searches, or None: the first of
    `valid_count` that compile, or the fastest of them."""
    from tvm import meta_schedule as ms
    from tvm.meta_schedule.task_scheduler.loop import device_of, mean

    context = ms.TuneContext(
        func,
        target=target,
        space_generator="post-order-apply",
        search_strategy="replay-trace",
        rand_state=1,  # one program gives one library
    )
    builder, found = ms.builder.LocalBuilder(), []
    context.pre_tuning(_MOST_DRAWS * valid_count, valid_count)
    try:
        while len(found) < valid_count and (round_ := context.generate_measure_candidates()):
            built = builder.build([ms.builder.BuilderInput(c.sch.mod, target) for c in round_])
            pairs = zip(round_, built, strict=True)
            found += [(c, b.artifact_path) for c, b in pairs if b.error_msg is None]
            context.notify_runner_results(
                round_, [ms.runner.RunnerResult([0.0], b.error_msg) for b in built]
            )
    finally:
        context.post_tuning()
    found = found[:valid_count]
    if benchmark and len(found) > 1:
        futures = ms.runner.LocalRunner().run(
            [ms.runner.RunnerInput(path, device_of(target), c.args_info) for c, path in found]
        )
        times = [mean(future.result().run_secs) for future in futures]
        found = [found[times.index(min(times))]]
    return found[0][0].sch if found else None


_MOST_DRAWS = 8  # for one that compiles


@pass_maker
def FewShotTuning(valid_count=1, benchmark=False):
    """Kernels of static shapes that nobody scheduled get schedules drawn from the space that tuning
    searches: the first that compiles, or with `benchmark` the fastest of `valid_count` that do."""
    if valid_count < 1:
        raise ValueError(f"FewShotTuning: expected a positive valid_count, got {valid_count}")

    def run(mod, ctx):
        functions, drawn = dict(mod.functions), {}
        for name, func in _kernels(mod).items():
            if func.attrs.get("tir.is_scheduled") or not _is_static(func):
                continue
            plain = func.without_attr("global_symbol") if "global_symbol" in func.attrs else func
            key = ir.structural_hash(plain)
            if key not in drawn:
                drawn[key] = _drawn(func, _target(func), valid_count, benchmark)
            if drawn[key] is not None:
                functions[mod.get_global_var(name)] = _scheduled(func, drawn[key])
        return ir.IRModule(functions, mod.attrs, mod.global_infos)

    return module_pass(run, opt_level=0, name="FewShotTuning")


@pass_maker
def MetaScheduleTuneTIR(work_dir, max_trials_global):
    """Tunes the kernels of a module; the database is in `work_dir`."""

    def run(mod, ctx):
        from tvm import meta_schedule as ms

        for func in _kernels(mod).values():
            ms.tune_tir(func, _target(func), work_dir, max_trials_global)
        return mod

    return module_pass(run, opt_level=0, name="MetaScheduleTuneTIR")


@pass_maker
def MetaScheduleTuneIRMod(
    params, work_dir, max_trials_global, max_trials_per_task=None, op_names=None
):
    """Tunes the kernels of a lowered module together, each as much as it counts; the database is in
    `work_dir`. `params` has no effect: kernels do not depend on values."""

    def run(mod, ctx):
        from tvm import meta_schedule as ms

        if any(isinstance(func, tir.PrimFunc) for func in mod.functions.values()):
            ms.relax_integration.tune_lowered(
                mod, Target.current(), work_dir, max_trials_global, max_trials_per_task, op_names
            )
        return mod

    return module_pass(run, opt_level=0, name="MetaScheduleTuneIRMod")
