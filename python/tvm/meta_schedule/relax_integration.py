# SPDX-License-Identifier: Apache-2.0
"""Tuning the kernels of graphs."""

from tvm import ir, relax
from tvm.relax.kernels import calls, kernels, lower
from tvm.runtime import tensor
from tvm.target import Target

from .extracted_task import ExtractedTask
from .logging import get_loggers_from_work_dir
from .tune import tune_tasks
from .tune_context import TuneContext, normalize_module
from .utils import fork_seed, takes_options_of


def _lowered(mod, target, params):
    """The module as tvm.compile lowers it, with parameters of `main` bound."""
    if isinstance(mod, relax.Function):
        mod = ir.IRModule({"main": mod.with_attr("global_symbol", "main")})
    if not isinstance(mod, ir.IRModule):
        raise TypeError(
            "tune_relax: expected an IRModule or a relax.Function, got "
            f"{type(mod).__name__}; tune_tir takes PrimFuncs"
        )
    if params:
        values = {name: tensor(value) for name, value in params.items()}
        mod = relax.transform.BindParams("main", values)(mod)
    return lower(mod, target)


def extract_tasks(mod, target, params=None, module_equality="structural"):
    """A task for each distinct kernel of a graph, which counts as often as it is called.

    Parameters
    ----------
    mod : IRModule or relax.Function
    target : str or Target
    params : values of parameters of `main`, by name.
    module_equality : kept for callers; kernels are told apart by their structure.
    """
    target = Target(target)
    return _tasks(_lowered(mod, target, params), target)


def _tasks(lowered, target):
    counts = calls(lowered)
    tasks = {}
    for name, func in sorted(kernels(lowered).items()):
        normalized = normalize_module(func)
        key = ir.structural_hash(normalized)
        if key not in tasks:
            tasks[key] = ExtractedTask(name, normalized, target, [normalized], 0)
        tasks[key].weight += max(counts.get(name, 0), 1)
    return list(tasks.values())


@takes_options_of(tune_tasks)
def tune_relax(
    mod,
    params,
    target,
    work_dir,
    max_trials_global,
    max_trials_per_task=None,
    op_names=None,
    *,
    space="post-order-apply",
    strategy="evolutionary",
    seed=None,
    module_equality="structural",
    **options,
):
    """Searches for better schedules of the kernels of a graph, and returns the database with what
    was measured. Takes the options of `tune_tasks` as well.

    Parameters
    ----------
    mod : IRModule or relax.Function
    params : values of parameters of `main`, by name, or None.
    op_names : only kernels whose name contains one of these.
    module_equality : kept for callers; kernels are told apart by their structure.
    """
    target = Target(target)
    return tune_lowered(
        _lowered(mod, target, params),
        target,
        work_dir,
        max_trials_global,
        max_trials_per_task,
        op_names,
        space=space,
        strategy=strategy,
        seed=seed,
        **options,
    )


def tune_lowered(
    lowered,
    target,
    work_dir,
    max_trials_global,
    max_trials_per_task=None,
    op_names=None,
    *,
    space="post-order-apply",
    strategy="evolutionary",
    seed=None,
    **options,
):
    """`tune_relax` of a module that is lowered to kernels already."""
    tasks = _tasks(lowered, target)
    if op_names is not None:
        tasks = [task for task in tasks if any(op in str(task.task_name) for op in op_names)]
    if not tasks:
        raise ValueError("tune_relax: expected a graph with kernels to tune, got none")
    contexts, weights = extracted_tasks_to_tune_contexts(
        tasks, work_dir, space, strategy, seed=seed
    )
    return tune_tasks(
        tasks=contexts,
        task_weights=weights,
        work_dir=work_dir,
        max_trials_global=max_trials_global,
        max_trials_per_task=max_trials_per_task,
        **options,
    )


def compile_relax(database, mod, target, params=None, enable_warning=False):
    """Compiles a graph with the best schedules of a database; kernels without one have the default
    schedule."""
    target = Target(target)
    lowered = _lowered(mod, target, params)
    with target, database:
        scheduled = relax.transform.MetaScheduleApplyDatabase(enable_warning=enable_warning)(
            lowered
        )
    return relax.build(scheduled, target, relax_pipeline=None)


def extracted_tasks_to_tune_contexts(
    extracted_tasks,
    work_dir,
    space="post-order-apply",
    strategy="evolutionary",
    num_threads="physical",
    seed=None,
):
    """A context for each task, and how much each counts."""
    names = [str(task.task_name) for task in extracted_tasks]
    loggers = get_loggers_from_work_dir(work_dir, names)
    seeds = fork_seed(seed, len(names))
    contexts = [
        TuneContext(
            task.dispatched[0],
            target=task.target,
            space_generator=space,
            search_strategy=strategy,
            task_name=task.task_name,
            rand_state=rand_state,
            num_threads=num_threads,
            logger=logger,
        )
        for task, logger, rand_state in zip(extracted_tasks, loggers, seeds, strict=True)
    ]
    return contexts, [float(task.weight) for task in extracted_tasks]
