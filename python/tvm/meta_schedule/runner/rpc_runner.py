# SPDX-License-Identifier: Apache-2.0
"""Measuring on remote devices: the interface only."""

from collections.abc import Callable
from typing import Any

from tvm_ffi import Device, Module

from ..logging import get_logger
from . import PyRunner, PyRunnerFuture, RunnerResult
from .config import EvaluatorConfig, RPCConfig, unavailable
from .utils import T_ARG_INFO_JSON_OBJ_LIST, T_ARGUMENT_LIST

logger = get_logger(__name__)
_Session = Any
T_CREATE_SESSION = Callable[[RPCConfig], _Session]
T_UPLOAD_MODULE = Callable[[_Session, str, str], Module]
T_ALLOC_ARGUMENT = Callable[
    [_Session, Device, T_ARG_INFO_JSON_OBJ_LIST, int], list[T_ARGUMENT_LIST]
]
T_RUN_EVALUATOR = Callable[
    [_Session, Module, Device, EvaluatorConfig, list[T_ARGUMENT_LIST]], list[float]
]
T_CLEANUP = Callable[[_Session | None, str | None], None]


class RPCRunnerFuture(PyRunnerFuture):
    """A result that another process works on."""

    def __init__(self, future, timeout_sec):
        super().__init__()
        self.future, self.timeout_sec = future, timeout_sec

    def done(self):
        return self.future.done()

    def result(self):
        try:
            return RunnerResult([float(s) for s in self.future.result(self.timeout_sec)], None)
        except TimeoutError:
            return RunnerResult(None, f"RPCRunner: timed out after {self.timeout_sec} s")
        except Exception as error:
            return RunnerResult(None, f"RPCRunner: {type(error).__name__}: {error}")


class RPCRunner(PyRunner):
    """Takes its arguments and says that remote measuring is not available yet."""

    def __init__(
        self,
        rpc_config=None,
        evaluator_config=None,
        cooldown_sec=0.0,
        alloc_repeat=1,
        f_create_session=None,
        f_upload_module=None,
        f_alloc_argument=None,
        f_run_evaluator=None,
        f_cleanup=None,
        max_workers=None,
        initializer=None,
    ):
        self.rpc_config = RPCConfig() if rpc_config is None else rpc_config
        self.evaluator_config = EvaluatorConfig._normalized(evaluator_config)
        self.cooldown_sec, self.alloc_repeat = cooldown_sec, alloc_repeat
        self.f_create_session, self.f_upload_module = f_create_session, f_upload_module
        self.f_alloc_argument, self.f_run_evaluator = f_alloc_argument, f_run_evaluator
        self.f_cleanup, self.max_workers, self.initializer = f_cleanup, max_workers, initializer

    def check_device(self, device_type):
        """Says so before a tuning run begins."""
        unavailable("RPCRunner")

    def run(self, runner_inputs):
        unavailable("RPCRunner")


def default_create_session(rpc_config):
    """A session with a device of the tracker."""
    unavailable("default_create_session")


def default_upload_module(session, local_path, remote_path):
    """The library, loaded on the device."""
    unavailable("default_upload_module")


def default_alloc_argument(session, device, args_info, alloc_repeat):
    """Arguments on the device."""
    unavailable("default_alloc_argument")


def default_run_evaluator(session, rt_mod, device, evaluator_config, repeated_args):
    """Seconds of calls on the device."""
    unavailable("default_run_evaluator")


def default_cleanup(session, remote_path):
    """Removes what was uploaded."""
    unavailable("default_cleanup")
