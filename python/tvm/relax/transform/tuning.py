# SPDX-License-Identifier: Apache-2.0
"""Passes that tune kernels, and that use what was tuned."""

import warnings

from tvm import ir, tir
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
                best = schedule.mod["main"].with_attr("tir.is_scheduled", True)
                for key, value in func.attrs.items():
                    best = best.with_attr(key, value)
                functions[mod.get_global_var(name)] = best
            elif enable_warning:
                warnings.warn(f"MetaScheduleApplyDatabase: no record of '{name}'", stacklevel=2)
        return ir.IRModule(functions, mod.attrs, mod.global_infos)

    return module_pass(run, opt_level=0, name="MetaScheduleApplyDatabase")


def MetaScheduleTuneTIR(work_dir, max_trials_global):
    """Tunes the kernels of a module; the database is in `work_dir`."""

    def run(mod, ctx):
        from tvm import meta_schedule as ms

        for func in _kernels(mod).values():
            ms.tune_tir(func, _target(func), work_dir, max_trials_global)
        return mod

    return module_pass(run, opt_level=0, name="MetaScheduleTuneTIR")


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
