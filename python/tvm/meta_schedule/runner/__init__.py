# SPDX-License-Identifier: Apache-2.0
"""Runners: how long libraries take."""

from abc import abstractmethod
from typing import Literal

import tvm_ffi

from tvm import _derive

from ..utils import Interface, registered
from ..utils import create as _create

RunnerInput = _derive.node_class("meta_schedule.RunnerInput", __name__)
RunnerResult = _derive.node_class("meta_schedule.RunnerResult", __name__)


class RunnerFuture(Interface):
    """A result that may still be on its way."""

    def __init__(self, f_done, f_result=None):
        self._done, self._result = f_done, f_result

    def done(self):
        """Whether the result is there."""
        return bool(self._done())

    def result(self):
        """The RunnerResult; waits for it."""
        return self._result()


class PyRunnerFuture(RunnerFuture):
    """Base of user-defined futures: `done` and `result`."""

    def __init__(self):
        super().__init__(None)

    @abstractmethod
    def done(self):
        raise NotImplementedError

    @abstractmethod
    def result(self):
        raise NotImplementedError


class Runner(Interface):
    """Measures libraries: nothing in it is local, so that it may work anywhere."""

    @abstractmethod
    def run(self, runner_inputs):
        """A RunnerFuture for each RunnerInput."""
        raise NotImplementedError

    @staticmethod
    def create(kind="local", *args, **kwargs):
        """The runner of a kind: "local" or "rpc"."""
        return _create({"local": LocalRunner, "rpc": RPCRunner}, kind, "runner", args, kwargs)


Runner.RunnerType = Runner | Literal["local", "rpc"]
create = Runner.create


class PyRunner(Runner):
    """Base of user-defined runners."""


from .config import EvaluatorConfig, RPCConfig  # noqa: E402
from .local_runner import LocalRunner, LocalRunnerFuture  # noqa: E402
from .rpc_runner import RPCRunner  # noqa: E402


@registered("meta_schedule.runner.get_local_runner")
def get_local_runner():
    """A LocalRunner with its defaults."""
    return LocalRunner()
