# SPDX-License-Identifier: Apache-2.0
"""Measuring on remote devices: the interface only."""

from . import PyRunner
from .config import EvaluatorConfig, RPCConfig


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

    def run(self, runner_inputs):
        raise NotImplementedError(
            "RPCRunner: remote measuring is not available yet; use runner='local', or a runner of "
            "your own (PyRunner) that reaches the device"
        )
