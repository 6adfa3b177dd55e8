# SPDX-License-Identifier: Apache-2.0
"""The tuning loop: candidates, built, run, checked, recorded, round after round."""

import os
import shutil
import time

import tvm
from tvm import ir, tir

from ..builder import BuilderInput
from ..database import TuningRecord
from ..logging import get_logger
from ..profiler import Profiler
from ..runner import RunnerInput, RunnerResult
from ..scratch import new_folder
from ..utils import Interface, remove_build_dir

logger = get_logger(__name__)

LEADERS, RACE_SECONDS = 10, 0.03  # re-measured at the end, and how long each of them
MOST_RACES = 5  # until the fastest is one that took part
DRAW = 0.97  # a candidate that takes so much of the default's time has not beaten it
TIE = 1.02  # nor has one that takes more than so much of it in one of the places
REFERENCE_FLOPS = 5e8  # programs up to here are checked against themselves without any schedule


class TaskRecord(Interface):
    """A task and what became of it."""

    def __init__(self, ctx, task_weight=1.0, logger=None):
        self.ctx, self.task_weight = ctx, task_weight
        self.logger = ctx.logger if logger is None else logger
        self.flop = float(tir.analysis.estimate_tir_flops(ctx.mod))
        self.is_terminated = False
        self.build_error_count = self.run_error_count = 0
        self.measure_candidates, self.builder_results, self.runner_results = [], [], []
        self.trials = self.allowed = 0
        self.best_secs = self.default_secs = None
        self.best_history = []  # after each round
        self.errors = {}  # reason -> how often
        self.reference = None  # path of the library that results are compared with
        self.leaders = Leaders(LEADERS)
        self.seconds = 0.0

    def note(self, candidate, result):
        """Takes one result into account."""
        self.trials += 1
        if result.error_msg is not None:
            first_line = str(result.error_msg).strip().splitlines()[0]
            reason = first_line.split(", element")[0][:120]
            self.errors[reason] = self.errors.get(reason, 0) + 1
            return
        secs = mean(result.run_secs)
        if len(candidate.sch.trace.insts) == 0:
            self.default_secs = secs
        if self.best_secs is None or secs < self.best_secs:
            self.best_secs = secs


class Leaders:
    """The libraries of the fastest candidates, kept for the race at the end."""

    def __init__(self, most):
        self.most, self.entries, self.folder, self.count = most, [], None, 0

    def offer(self, candidate, path, secs):
        """Keeps the library if it is one of the fastest so far."""
        if len(self.entries) >= self.most and secs >= self.entries[-1][0]:
            return
        if self.folder is None:
            self.folder = new_folder()
        self.count += 1
        kept = os.path.join(self.folder, f"{self.count}.so")
        try:
            os.link(path, kept)
        except OSError:  # another file system
            try:
                shutil.copy(path, kept)
            except OSError:
                return  # it will be built again
        self.entries.append((secs, str(candidate.sch.trace), kept))
        self.entries.sort(key=lambda entry: entry[0])
        for _, _, dropped in self.entries[self.most :]:
            os.unlink(dropped)
        del self.entries[self.most :]

    def path_of(self, record):
        """The library of a record, or None."""
        trace = str(record.trace)
        return next((path for _, kept, path in self.entries if kept == trace), None)

    def clear(self):
        """Removes the files."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.entries, self.folder = [], None


def mean(run_secs):
    """Seconds of a result; infinity for none."""
    secs = [float(s) for s in run_secs or ()]
    return sum(secs) / len(secs) if secs else float("inf")


def beats(secs, default):
    """Whether a candidate is faster than the default by more than the noise, and nowhere slower,
    wherever the arguments lay. What is not says so in its record, and is ranked behind the
    default."""
    nowhere_slower = all(float(s) <= TIE * float(d) for s, d in zip(secs, default, strict=True))
    return nowhere_slower and mean(secs) <= DRAW * mean(default)


class TuningLoop(Interface):
    """The loop; subclasses decide which task is next."""

    loggers = None  # of tasks, in place of those of their contexts

    def __init__(self):
        self.tasks_, self.measure_callbacks_ = [], []
        self.database_ = self.cost_model_ = None
        self.remaining_tasks_ = 0
        self.progress = None
        self.interrupted = False

    def next_task_id(self):
        raise NotImplementedError

    def tune(
        self,
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
        *,
        max_time=None,
    ):
        """Tunes until trials or `max_time` (seconds) are used up. Ctrl-C ends it with all results
        kept."""
        if len(tasks) != len(task_weights):
            raise ValueError(
                f"tune: expected a weight per task, got {len(tasks)} tasks and "
                f"{len(task_weights)} weights"
            )
        self.builder_, self.runner_, self.interrupted = builder, runner, False
        self.measure_callbacks_ = measure_callbacks
        self.database_, self.cost_model_ = database, cost_model
        loggers = self.loggers or [None] * len(tasks)
        self.tasks_ = list(map(TaskRecord, tasks, task_weights, loggers))
        self.remaining_tasks_ = len(self.tasks_)
        self._trials_left = max_trials_global
        deadline = None if max_time is None else time.monotonic() + max_time
        try:
            for task_id, task in enumerate(self.tasks_):
                self._prepare(task_id, task, max_trials_per_task, num_trials_per_iter)
            if self.progress is not None:
                self.progress.begin(self._trials_left, deadline)
            while self._trials_left > 0:
                late = deadline is not None and time.monotonic() >= deadline
                if late and any(task.best_history for task in self.tasks_):  # one round at least
                    break
                task_id = self.next_task_id()
                if task_id < 0:
                    break
                self._round(task_id)
        except KeyboardInterrupt:
            self.interrupted = True
            logger.warning("interrupted: all results so far are kept")
        finally:
            self._finish()

    # ---- before ----
    def _prepare(self, task_id, task, max_trials, per_iter):
        begin = time.monotonic()
        with Profiler.timeit("DesignSpace"):
            spaces = task.ctx.generate_design_space()
        earlier = self._learn_from_database(task)
        left = max(0, min(max_trials, self._trials_left) - earlier)
        task.allowed = earlier + left
        self._trials_left -= min(earlier, self._trials_left)
        task.logger.info(
            "task %s: %d design space(s), %d earlier trial(s)",
            task.ctx.task_name,
            len(spaces),
            earlier,
        )
        if left == 0:
            self.terminate_task(task_id)
            return
        with Profiler.timeit("DesignSpace"):
            task.ctx.pre_tuning(left, min(per_iter, left), spaces, self.database_, self.cost_model_)
        task.reference = self._build_reference(task)
        task.seconds += time.monotonic() - begin

    def _learn_from_database(self, task):
        """Records of an earlier run count as trials of this one."""
        if self.database_ is None or not self.database_.has_workload(task.ctx.mod):
            return 0
        workload = self.database_.commit_workload(task.ctx.mod)
        count = 0
        for secs, _, same_target, is_default in self.database_._outlines(workload, task.ctx.target):
            if not same_target:
                continue
            count += 1
            if secs is None:
                continue
            if is_default:
                task.default_secs = secs
            if task.best_secs is None or secs < task.best_secs:
                task.best_secs = secs
        task.trials = count
        return count

    def _build_reference(self, task):
        """A library whose results are right: the program as it was written, or, where that would
        take too long, as the default rules schedule it."""
        mod = task.ctx.mod
        if task.flop <= REFERENCE_FLOPS:
            mod = as_written(mod)
        with Profiler.timeit("Build"):
            result = self.builder_.build([BuilderInput(mod, task.ctx.target)])[0]
        if result.error_msg is not None:
            task.logger.warning(
                "results are not checked, the program itself does not build: %s", result.error_msg
            )
            return None
        return str(result.artifact_path)

    # ---- a round ----
    def _round(self, task_id):
        task, begin = self.tasks_[task_id], time.monotonic()
        with Profiler.timeit("Search"):
            candidates = task.ctx.generate_measure_candidates()
        if not candidates:
            if task.trials < task.allowed:
                self._say(
                    task,
                    f"{task.trials} of {task.allowed} trials: the search found no further program "
                    "that differs",
                )
            self.terminate_task(task_id)
            return
        task.measure_candidates = candidates[: self._trials_left]
        self._trials_left -= len(task.measure_candidates)
        self._measure(task)
        self.join_running_task(task_id)
        task.seconds += time.monotonic() - begin
        task.best_history.append(task.best_secs)
        if self.progress is not None:
            self.progress.update(self, task)

    def _measure(self, task):
        target = task.ctx.target
        inputs = [BuilderInput(c.sch.mod, target) for c in task.measure_candidates]
        with Profiler.timeit("Build"):
            task.builder_results = self._guarded(
                "builder", lambda: self.builder_.build(inputs), len(inputs), _failed_build
            )
        built = [i for i, r in enumerate(task.builder_results) if r.error_msg is None]
        runs = [
            RunnerInput(
                task.builder_results[i].artifact_path,
                device_of(target),
                task.measure_candidates[i].args_info,
                task.reference,
                task.best_secs,
            )
            for i in built
        ]
        with Profiler.timeit("Run"):
            task.runner_futures = self._guarded(
                "runner", lambda: self.runner_.run(runs), len(runs), _failed_run
            )
        task.built = built

    @staticmethod
    def _guarded(what, call, count, failed):
        """A builder or runner that raises costs its round, not the run."""
        try:
            results = list(call())
            if len(results) != count:
                raise ValueError(f"expected {count} results, got {len(results)}")
            return results
        except Exception as error:
            message = f"{what}: {type(error).__name__}: {error}"
            logger.warning("%s", message)
            return [failed(message) for _ in range(count)]

    def join_running_task(self, task_id):
        """Waits for the results of a task's round and hands them to the callbacks."""
        task = self.tasks_[task_id]
        results = [
            RunnerResult(None, r.error_msg) if r.error_msg is not None else None
            for r in task.builder_results
        ]
        with Profiler.timeit("Run"):
            for i, future in zip(task.built, task.runner_futures, strict=True):
                (results[i],) = self._guarded(
                    "runner",
                    lambda f=future: [f.result()],
                    1,
                    lambda text: RunnerResult(None, text),
                )
        task.runner_results = results
        for candidate, build, result in zip(
            task.measure_candidates, task.builder_results, results, strict=True
        ):
            task.build_error_count += build.error_msg is not None
            task.run_error_count += build.error_msg is None and result.error_msg is not None
            task.note(candidate, result)
            if result.run_secs and build.artifact_path is not None:
                task.leaders.offer(candidate, str(build.artifact_path), mean(result.run_secs))
            self._log(task, result)
        for callback in self.measure_callbacks_:
            with Profiler.timeit(type(callback).__name__):
                try:
                    callback.apply(
                        self, task_id, task.measure_candidates, task.builder_results, results
                    )
                except Exception as error:
                    logger.warning(
                        "%s: %s: %s", type(callback).__name__, type(error).__name__, error
                    )
        task.ctx.notify_runner_results(task.measure_candidates, results)
        return results

    def _say(self, task, text):
        task.logger.info("%s", text)
        if self.progress is not None:
            self.progress.say(f"{task.ctx.task_name}: {text}")

    @staticmethod
    def _log(task, result):
        if result.error_msg is not None:
            task.logger.info("trial %d: %s", task.trials, result.error_msg)
        else:
            task.logger.info("trial %d: %.3f us", task.trials, mean(result.run_secs) * 1e6)

    # ---- after ----
    def terminate_task(self, task_id):
        """Ends a task."""
        task = self.tasks_[task_id]
        if not task.is_terminated:
            task.is_terminated = True
            self.remaining_tasks_ -= 1

    def touch_task(self, task_id):
        """Kept for callers that poll: results arrive within the round."""

    def _finish(self):
        for task in self.tasks_:
            if task.best_history and not self.interrupted:
                with Profiler.timeit("Race"):
                    self._race(task)
            task.leaders.clear()
            if task.reference is not None:
                remove_build_dir(task.reference)
                task.reference = None
            task.ctx.post_tuning()
        if self.progress is not None and any(task.trials for task in self.tasks_):
            self.progress.update(self)

    def _race(self, task):
        """Measures the leaders, and the default, against each other: a lucky measurement must not
        decide."""
        race = getattr(self.runner_, "race", None)
        if race is None or self.database_ is None:
            return
        workload = self.database_.commit_workload(task.ctx.mod)
        for _ in range(MOST_RACES):
            top = [
                r
                for r in self.database_.get_top_k(workload, LEADERS)
                if r.target is None or str(r.target) == str(task.ctx.target)
            ]
            if len(top) < 2:
                return
            default = [r for r in self._defaults(workload) if r not in top]
            raced = self._race_once(task, race, [*top, *default])
            best = self.database_.get_top_k(workload, 1)[0]
            if not raced or any(best.trace is r.trace or best.same_as(r) for r in raced):
                return

    def _defaults(self, workload):
        return [r for r in self.database_.get_top_k(workload, 1 << 30) if len(r.trace.insts) == 0][
            :1
        ]

    def _race_once(self, task, race, records):
        paths = [task.leaders.path_of(r) for r in records]
        missing = [r for r, path in zip(records, paths, strict=True) if path is None]
        built = self.builder_.build(
            [BuilderInput(r.as_measure_candidate().sch.mod, task.ctx.target) for r in missing]
        )
        try:
            again = iter(built)
            paths = [next(again).artifact_path if path is None else path for path in paths]
            pairs = [(r, str(path)) for r, path in zip(records, paths, strict=True) if path]
            runs = [
                RunnerInput(path, device_of(task.ctx.target), r.args_info, task.reference)
                for r, path in pairs
            ]
            results = [f.result() for f in race(runs, RACE_SECONDS * len(runs))]
        finally:
            for b in built:
                if b.artifact_path is not None:
                    remove_build_dir(str(b.artifact_path))
        raced, default = [], None
        for (record, _), result in zip(pairs, results, strict=True):
            if result.error_msg is not None:
                task.logger.warning("race: %s", result.error_msg)
                return raced
            if len(record.trace.insts) == 0:
                default, task.default_secs = result.run_secs, mean(result.run_secs)
        for (record, _), result in zip(pairs, results, strict=True):
            secs, verdict = result.run_secs, "raced"
            if default is not None and mean(secs) < mean(default) and not beats(secs, default):
                verdict = "no better than the default"
            again = TuningRecord(
                record.trace,
                record.workload,
                secs,
                record.target,
                record.args_info,
                program=record.program,
                verdict=verdict,
            )
            self.database_.commit_tuning_record(again)
            raced.append(again)
        task.best_secs = min(mean(r.run_secs) for r in raced if r.verdict == "raced")
        return raced

    def print_tuning_statistics(self):
        """Prints the table of tasks."""
        from ..progress import table_text

        print(table_text(self.tasks_), flush=True)


def as_written(mod):
    """The module such that default rules leave it alone."""
    functions = mod.functions.items()
    return ir.IRModule({v: f.with_attr("tir.is_scheduled", True) for v, f in functions})


def _failed_build(message):
    from ..builder import BuilderResult

    return BuilderResult(None, message)


def _failed_run(message):
    from ..runner import LocalRunnerFuture

    return LocalRunnerFuture(None, message)


def device_of(target):
    """The device a target's code runs on, by name."""
    return tvm.device(target).type
