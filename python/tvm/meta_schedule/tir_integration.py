# SPDX-License-Identifier: Apache-2.0
"""Tuning TIR functions."""

from tvm import ir, tir
from tvm.target import Target

from .database import Database
from .tune import tune_tasks
from .tune_context import TuneContext, normalize_module
from .utils import fork_seed, num_cores, takes_options_of


@takes_options_of(tune_tasks)
def tune_tir(
    mod,
    target,
    work_dir,
    max_trials_global,
    *,
    space="post-order-apply",
    strategy="evolutionary",
    num_tuning_cores="physical",
    seed=None,
    special_space=None,
    task_name=None,
    **options,
):
    """Searches for better schedules of a PrimFunc, or of each PrimFunc of a module, and returns the
    database with what was measured. Takes the options of `tune_tasks` as well.

    Parameters
    ----------
    mod : PrimFunc or IRModule
    target : str or Target
    space : the space generator: a kind, an object, or a function that schedules.
    strategy : the search strategy: a kind or an object.
    num_tuning_cores : cores for searching and compiling: "physical", "logical" or a number.
    seed : makes the search repeatable.
    special_space : {function name: space} for functions that need another one.
    task_name : what the task is called, where there is one function (its name, unless given).
    """
    target = Target(target)
    cores = num_cores(num_tuning_cores)
    special_space = dict(special_space or {})
    named = {}
    if isinstance(mod, tir.PrimFunc):
        named["main"] = normalize_module(mod)
    elif isinstance(mod, ir.IRModule):
        for var, func in mod.functions.items():
            if isinstance(func, tir.PrimFunc):
                named[str(var.name_hint)] = normalize_module(func)
        if not named:
            raise ValueError("tune_tir: expected a module with PrimFuncs, got none")
    else:
        normalize_module(mod)  # raises
    unknown = set(special_space) - set(named)
    if unknown:
        raise ValueError(
            f"special_space: expected names of functions ({', '.join(named)}), got "
            f"{', '.join(sorted(unknown))}"
        )
    if task_name is not None:
        if len(named) > 1:
            raise ValueError(f"task_name: expected a module of one function, got {len(named)}")
        named = dict(zip([task_name], named.values(), strict=True))
        special_space = dict(zip([task_name], special_space.values(), strict=False))
    names = sorted(named)
    seeds = fork_seed(seed, len(names))
    tasks = [
        TuneContext(
            named[name],
            target=target,
            space_generator=special_space.get(name, space),
            search_strategy=strategy,
            task_name=name,
            rand_state=task_seed,
            num_threads=cores,
        )
        for name, task_seed in zip(names, seeds, strict=True)
    ]
    return tune_tasks(
        tasks=tasks,
        task_weights=[1.0] * len(tasks),
        work_dir=work_dir,
        max_trials_global=max_trials_global,
        num_tuning_cores=cores,
        **options,
    )


def compile_tir(database, mod, target):
    """The module scheduled by its best record for the target, or None when there is none."""
    if not isinstance(database, Database):
        raise TypeError(f"compile_tir: expected a Database, got {type(database).__name__}")
    return database.query_schedule(normalize_module(mod, "compile_tir"), Target(target), "main")
