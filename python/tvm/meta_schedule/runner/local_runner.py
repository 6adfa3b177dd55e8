# SPDX-License-Identifier: Apache-2.0
"""Measuring on this machine, in a process that candidates may crash."""

import json
import time
from collections.abc import Callable

from tvm_ffi import Device, Module

from ..logging import get_logger
from ..utils import get_global_func_with_default_on_worker
from . import PyRunner, PyRunnerFuture, RunnerResult
from .config import EvaluatorConfig
from .measure_process import MeasureProcess
from .utils import T_ARG_INFO_JSON_OBJ_LIST, T_ARGUMENT_LIST
from .utils import run_evaluator_common as default_run_evaluator

logger = get_logger(__name__)
T_ALLOC_ARGUMENT = Callable[[Device, T_ARG_INFO_JSON_OBJ_LIST, int], list[T_ARGUMENT_LIST]]
T_RUN_EVALUATOR = Callable[[Module, Device, EvaluatorConfig, list[T_ARGUMENT_LIST]], list[float]]
T_CLEANUP = Callable[[], None]


class LocalRunnerFuture(PyRunnerFuture):
    """A result that is there."""

    def __init__(self, res=None, error_message=None):
        super().__init__()
        if (res is None) == (error_message is None):
            raise ValueError(
                "LocalRunnerFuture: expected a result or an error message, one of them"
            )
        self.res, self.error_message = res, error_message

    def done(self):
        return True

    def result(self):
        return RunnerResult(self.res, self.error_message)


class LocalRunner(PyRunner):
    """Runs candidates in a process of its own: one that crashes, exceeds its time or memory, or
    computes something else than its reference gives an error, and the next one is measured.

    Without `evaluator_config` the time spent follows the kernel: a few milliseconds for one that
    may win, two calls for one that cannot. With functions of the user
    (`f_alloc_argument(device, args_info, alloc_repeat)`,
    `f_run_evaluator(module, device, evaluator_config, arguments)`, `f_cleanup()`) these run in a
    worker process of Python instead.

    Parameters
    ----------
    timeout_sec : for one candidate.
    cooldown_sec : pause after each candidate.
    memory_limit_mb : what a candidate may allocate beside its arguments.
    """

    def __init__(
        self,
        timeout_sec=30,
        evaluator_config=None,
        cooldown_sec=0.0,
        alloc_repeat=1,
        f_alloc_argument=None,
        f_run_evaluator=None,
        f_cleanup=None,
        initializer=None,
        *,
        memory_limit_mb=4096,
    ):
        if timeout_sec <= 0:
            raise ValueError(f"LocalRunner: expected a positive timeout_sec, got {timeout_sec}")
        self.timeout_sec, self.cooldown_sec = timeout_sec, cooldown_sec
        self.adaptive = evaluator_config is None
        self.evaluator_config = EvaluatorConfig._normalized(evaluator_config)
        self.alloc_repeat, self.memory_limit_mb = alloc_repeat, memory_limit_mb
        self.f_alloc_argument, self.f_run_evaluator = f_alloc_argument, f_run_evaluator
        self.f_cleanup, self.initializer = f_cleanup, initializer
        self._process, self._task, self._pool = MeasureProcess(), None, None

    @property
    def _is_custom(self):
        functions = (self.f_alloc_argument, self.f_run_evaluator, self.f_cleanup, self.initializer)
        return any(f is not None for f in functions)

    def check_device(self, device_type):
        """ValueError for a device whose kernels this runner cannot measure."""
        if not self._is_custom and device_type not in ("cpu", "llvm", "c"):
            raise ValueError(
                f"LocalRunner: expected the device 'cpu', got '{device_type}'; a runner of your "
                "own (PyRunner) can measure on others"
            )

    def run(self, runner_inputs):
        one = self._run_custom if self._is_custom else self._run
        futures = []
        self._best = float("inf")  # of this call; the task's best so far comes with the inputs
        for item in runner_inputs:
            futures.append(one(item))
            if self.cooldown_sec > 0:
                time.sleep(self.cooldown_sec)
        return futures

    def race(self, runner_inputs, seconds):
        """Measures candidates of one task alternately, `seconds` in all: for each a time per place
        that the arguments were in."""
        error = self._prepare(runner_inputs[0])
        if error is None:
            reply = self._process.request(
                {
                    "op": "race",
                    "paths": [str(i.artifact_path) for i in runner_inputs],
                    "budget": seconds,
                },
                seconds + self.timeout_sec,
            )
            if "error" not in reply:
                return [LocalRunnerFuture(secs) for secs in reply["secs"]]
            error = reply["error"]
        return [LocalRunnerFuture(None, error) for _ in runner_inputs]

    def _prepare(self, item):
        """Makes the process ready for the task of a candidate; what went wrong, or None."""
        try:
            self.check_device(str(item.device_type))
        except ValueError as error:
            return str(error)
        args = [info.as_json() for info in item.args_info]
        args = [[str(dtype), [int(e) for e in shape]] for _, dtype, shape in args]
        reference = None if item.reference is None else str(item.reference)
        task = {
            "op": "task",
            "args": args,
            "reference": reference,
            "memory_mb": self.memory_limit_mb,
        }
        key = json.dumps(task)
        if self._process.alive and key == self._task:
            return None
        reply = self._process.request(task, max(60.0, self.timeout_sec))
        self._task = key if "error" not in reply else None
        return f"reference: {reply['error']}" if "error" in reply else None

    def _run(self, item):
        error = self._prepare(item)
        if error is not None:
            return LocalRunnerFuture(None, error)
        message = {"op": "run", "path": str(item.artifact_path)}
        if not self.adaptive:
            number, repeat, min_repeat_ms, flush = self.evaluator_config
            message |= {
                "number": number,
                "repeat": repeat,
                "min_repeat_ms": min_repeat_ms,
                "flush": flush,
            }
        else:
            given = float("inf") if item.best_secs is None else item.best_secs
            best = min(given, self._best)
            message |= {"best": best} if best < float("inf") else {}
        reply = self._process.request(message, self.timeout_sec)
        if "secs" in reply:
            self._best = min(self._best, *reply["secs"])
        return LocalRunnerFuture(reply.get("secs"), reply.get("error"))

    def _run_custom(self, item):
        from tvm.support.popen_pool import PopenWorker

        if self._pool is None:
            self._pool = PopenWorker(initializer=self.initializer)
        args_info = [info.as_json() for info in item.args_info]
        try:
            self._pool.send(
                _worker,
                [
                    self.f_alloc_argument,
                    self.f_run_evaluator,
                    self.f_cleanup,
                    tuple(self.evaluator_config),
                    self.alloc_repeat,
                    str(item.artifact_path),
                    str(item.device_type),
                    json.dumps(args_info, default=list),
                ],
                timeout=self.timeout_sec,
            )
            return LocalRunnerFuture([float(s) for s in self._pool.recv()])
        except TimeoutError:
            return LocalRunnerFuture(
                None, f"LocalRunner: Timeout, killed after {self.timeout_sec} seconds"
            )
        except Exception as error:
            return LocalRunnerFuture(
                None, f"LocalRunner: An exception occurred\n{type(error).__name__}: {error}"
            )


def _worker(f_alloc, f_run, f_cleanup, config, alloc_repeat, path, device_type, args_info):
    """Runs in the worker process."""
    import tvm

    alloc = get_global_func_with_default_on_worker(f_alloc, default_alloc_argument)
    run = get_global_func_with_default_on_worker(f_run, default_run_evaluator)
    cleanup = get_global_func_with_default_on_worker(f_cleanup, default_cleanup)
    try:
        device = tvm.runtime.device(device_type, 0)
        module = tvm.runtime.load_module(path)
        arguments = alloc(device, json.loads(args_info), alloc_repeat)
        return run(module, device, EvaluatorConfig(*config), arguments)
    finally:
        cleanup()


def default_alloc_argument(device, args_info, alloc_repeat):
    """`alloc_repeat` lists of arguments with random values."""
    import ml_dtypes  # noqa: F401  gives numpy the small types
    import numpy as np

    import tvm

    rng = np.random.default_rng(0)

    def tensor(dtype, shape):
        if dtype.startswith(("int", "uint", "bool")):
            values = rng.integers(0, 2 if dtype == "bool" else 8, shape)
        else:
            values = rng.random(shape)
        return tvm.runtime.tensor(values.astype(np.dtype(dtype)), device=device)

    return [[tensor(dtype, shape) for _, dtype, shape in args_info] for _ in range(alloc_repeat)]


def default_cleanup():
    """Nothing to do."""
