# SPDX-License-Identifier: Apache-2.0
"""Tuning the functions of a Relax module: from extracted tasks on."""

from .logging import get_loggers_from_work_dir
from .tune_context import TuneContext
from .utils import fork_seed


def __getattr__(name):
    if name in ("extract_tasks", "tune_relax", "compile_relax"):
        raise AttributeError(f"{name}: Relax is not available yet; tune_tir tunes PrimFuncs")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
