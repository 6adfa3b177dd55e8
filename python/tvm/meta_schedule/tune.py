# SPDX-License-Identifier: Apache-2.0
"""Tuning tasks: all parts put together."""

import os

from .builder import Builder, LocalBuilder
from .cost_model import CostModel
from .database import Database
from .logging import get_logger, get_loggers_from_work_dir
from .measure_callback import MeasureCallback
from .profiler import Profiler
from .progress import Progress
from .runner import Runner
from .task_scheduler import TaskScheduler
from .task_scheduler.loop import device_of
from .tune_context import NO_LOGGER, TuneContext

logger = get_logger(__name__)
MODEL_FILE = "cost_model.npz"


def _check_work_dir(work_dir):
    if not isinstance(work_dir, str | os.PathLike):
        raise TypeError(f"work_dir: expected a path, got {type(work_dir).__name__}")
    try:
        os.makedirs(work_dir, exist_ok=True)
    except OSError as error:
        raise OSError(f"work_dir: cannot make the folder {work_dir}: {error.strerror}") from None
    if not os.access(work_dir, os.W_OK):
        raise PermissionError(f"work_dir: expected a folder that can be written, got {work_dir}")


def _loggers(tasks, work_dir):
    """The loggers of tasks; one with a file in `work_dir`/logs for a task that has none."""
    own = get_loggers_from_work_dir(work_dir, [str(task.task_name) for task in tasks])
    return [
        file if task.logger.name == NO_LOGGER else task.logger
        for task, file in zip(tasks, own, strict=True)
    ]


def _load_model(model, path):
    """What earlier runs learnt; a file that cannot be read costs that knowledge only."""
    if model is None or not os.path.exists(path):
        return
    try:
        model.load(path)
    except Exception as error:
        logger.warning("%s: %s: %s; learning starts anew", path, type(error).__name__, error)


def _save_model(model, path):
    try:
        if model is not None:
            model.save(path)
    except NotImplementedError as error:  # a user's model that has nothing to keep
        logger.debug("%s", error)
    except Exception as error:
        logger.warning("%s: %s: %s", path, type(error).__name__, error)


def _check_tasks(tasks):
    if not tasks:
        raise ValueError("tune_tasks: expected at least one task, got none")
    for task in tasks:
        if not isinstance(task, TuneContext):
            raise TypeError(f"tasks: expected TuneContexts, got {type(task).__name__}")
        if task.mod is None or task.target is None:
            missing = "mod" if task.mod is None else "target"
            raise ValueError(f"task {task.task_name}: expected a {missing}, got None")


def _trials(name, value):
    """A number of trials, of Python or NumPy."""
    is_number = hasattr(type(value), "__index__") and not isinstance(value, bool)
    if not is_number or value < 1:
        raise ValueError(f"{name}: expected a positive number of trials, got {value!r}")
    return int(value)


def _builder(builder, num_tuning_cores):
    if not isinstance(builder, Builder):
        options = {"max_workers": num_tuning_cores} if builder == "local" else {}
        return Builder.create(builder, **options)
    if num_tuning_cores is not None and isinstance(builder, LocalBuilder):
        builder.max_workers = min(builder.max_workers, num_tuning_cores)
    return builder


def _cost_model(kind, num_tuning_cores, max_trials):
    options = {}
    if kind == "xgb":
        # A short run wants guidance from its second round on.
        warm_up = min(100, max(16, max_trials // 3))
        options = {"num_tuning_cores": num_tuning_cores, "num_warmup_samples": warm_up}
    try:
        return CostModel.create(kind, **options)
    except ImportError as error:  # the package is optional: the search works without it, worse
        logger.warning("%s; candidates are chosen at random", error)
        return CostModel.create("random")


def _callbacks(callbacks):
    """Measure callbacks as a list."""
    if isinstance(callbacks, MeasureCallback):
        callbacks = [callbacks]
    elif isinstance(callbacks, str):
        callbacks = MeasureCallback.create(callbacks)
    for callback in callbacks:
        if not isinstance(callback, MeasureCallback):
            raise TypeError(
                f"measure_callbacks: expected MeasureCallbacks, got {type(callback).__name__}"
            )
    return callbacks


def tune_tasks(
    *,
    tasks,
    task_weights,
    work_dir,
    max_trials_global,
    max_trials_per_task=None,
    num_trials_per_iter=64,
    builder="local",
    runner="local",
    database="json",
    cost_model="xgb",
    measure_callbacks="default",
    task_scheduler="gradient",
    module_equality="structural",
    post_optimization=False,
    max_time=None,
    num_tuning_cores=None,
):
    """Tunes tasks together and returns the database with what was measured.

    Running again with the same `work_dir` goes on where the last run ended: its trials count, its
    records and its cost model are used.

    Parameters
    ----------
    tasks, task_weights : TuneContexts, and how much each counts.
    work_dir : the folder for the database, log files, the cost model and `report.html`.
    max_trials_global, max_trials_per_task : programs to measure; every one is a different program.
    num_trials_per_iter : programs per round.
    max_time : seconds after which no new round begins; there is one at least.
    post_optimization : whether the best schedules are refined afterwards, one decision at a time;
        up to `max_trials_per_task` programs more for each.
    builder, runner, database, cost_model, measure_callbacks, task_scheduler : an object, or the
        name of a kind.
    """
    _check_tasks(tasks)
    if max_trials_per_task is None:
        max_trials_per_task = max_trials_global
    max_trials_global = _trials("max_trials_global", max_trials_global)
    max_trials_per_task = _trials("max_trials_per_task", max_trials_per_task)
    num_trials_per_iter = _trials("num_trials_per_iter", num_trials_per_iter)
    if max_time is not None and not max_time > 0:
        raise ValueError(f"max_time: expected a positive number of seconds, got {max_time!r}")
    if post_optimization and database != "json":
        raise ValueError("post_optimization: expected database='json', whose records it refines")
    if not isinstance(runner, Runner):
        runner = Runner.create(runner)
    if hasattr(runner, "check_device"):
        for task in tasks:
            runner.check_device(device_of(task.target))
    _check_work_dir(work_dir)
    builder = _builder(builder, num_tuning_cores)
    if database == "json":
        database = Database.create("json", work_dir=work_dir, module_equality=module_equality)
    elif not isinstance(database, Database):
        database = Database.create(database, module_equality=module_equality)
    model_path = os.path.join(work_dir, MODEL_FILE)
    if not isinstance(cost_model, CostModel) and cost_model is not None:
        cost_model = _cost_model(cost_model, num_tuning_cores, max_trials_global)
        _load_model(cost_model, model_path)
    measure_callbacks = _callbacks(measure_callbacks)
    if not isinstance(task_scheduler, TaskScheduler):
        task_scheduler = TaskScheduler.create(task_scheduler)

    with Profiler() as profiler, Progress(max_trials_global) as progress:
        task_scheduler.progress, task_scheduler.loggers = progress, _loggers(tasks, work_dir)
        task_scheduler.tune(
            tasks,
            task_weights,
            max_trials_global,
            max_trials_per_task,
            num_trials_per_iter,
            builder,
            runner,
            measure_callbacks,
            database,
            cost_model,
            max_time=max_time,
        )
        _save_model(cost_model, model_path)
    for task_logger in task_scheduler.loggers:
        task_logger.info("time spent:\n%s", profiler.table())
    _report(task_scheduler, database, profiler, work_dir)
    if post_optimization:
        from .post_optimization import PostOpt

        for target in {str(task.target): task.target for task in tasks}.values():
            PostOpt(work_dir, target, max_trials_per_task).run()
        database = Database.create("json", work_dir=work_dir, module_equality=module_equality)
    return database


def _report(task_scheduler, database, profiler, work_dir):
    from .report import write_report

    path = os.path.join(work_dir, "report.html")
    try:
        write_report(path, task_scheduler.tasks_, database, profiler)
    except OSError as error:
        logger.warning("%s: %s", path, error)
