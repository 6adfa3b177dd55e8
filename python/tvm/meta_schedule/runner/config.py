# SPDX-License-Identifier: Apache-2.0
"""How runners measure, and where."""

from typing import NamedTuple


def unavailable(what):
    """Raises what all of remote measuring says for now."""
    raise NotImplementedError(
        f"{what}: remote measuring is not available yet; use runner='local', or a runner of your "
        "own (PyRunner) that reaches the device"
    )


class EvaluatorConfig(NamedTuple):
    """Fixed measuring: `repeat` times the mean of `number` calls, more of them until
    `min_repeat_ms` are over."""

    number: int = 3
    repeat: int = 1
    min_repeat_ms: int = 100
    enable_cpu_cache_flush: bool = False

    @staticmethod
    def _normalized(config):
        config = EvaluatorConfig() if config is None else EvaluatorConfig(*config)
        if config.number < 1 or config.repeat < 1 or config.min_repeat_ms < 0:
            raise ValueError(
                "EvaluatorConfig: expected number and repeat of at least 1 and min_repeat_ms of at "
                f"least 0, got {tuple(config)[:3]}"
            )
        return config


class RPCConfig(NamedTuple):
    """Where a tracker of remote devices is."""

    tracker_host: str | None = None
    tracker_port: None | int | str = None
    tracker_key: str | None = None
    session_priority: int = 1
    session_timeout_sec: int = 10

    def connect_tracker(self):
        """A session with the tracker."""
        unavailable("RPCConfig.connect_tracker")

    def connect_server(self):
        """A session with a device."""
        unavailable("RPCConfig.connect_server")

    def count_num_servers(self, allow_missing=True):
        """How many devices the tracker has."""
        unavailable("RPCConfig.count_num_servers")
