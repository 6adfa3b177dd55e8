# SPDX-License-Identifier: Apache-2.0
"""Log files: one for the tuner, one per task."""

import logging
import logging.config
import os


def get_logger(name):
    """The logger of a module or a task."""
    return logging.getLogger(name)


def get_logging_func(logger):
    """A function (level, file, line, message) that logs, or None without a logger."""
    if logger is None:
        return None

    def log(level, filename, lineno, message):
        name = filename if lineno < 0 else f"{filename}:{lineno}"
        logger.log(int(level), "%s: %s", name, message)

    return log


def create_loggers(log_dir, params, logger_config=None, disable_existing_loggers=False):
    """Loggers named by `params` ({"logger_name": …} and other values), each with a file of that
    name in `log_dir`; `logger_config` (of `logging.config`) may replace this, with the values of
    `params` put into its texts."""
    os.makedirs(log_dir, exist_ok=True)
    config = {
        "version": 1,
        "disable_existing_loggers": disable_existing_loggers,
        "formatters": {"file": {"format": "%(asctime)s [%(levelname)s] %(message)s"}},
        "handlers": {},
        "loggers": {},
        **(logger_config or {}),
    }
    for values in params:
        name = values["logger_name"]
        if logger_config is None:
            config["handlers"][name] = {
                "class": "logging.FileHandler",
                "filename": os.path.join(log_dir, name.rsplit(".", 1)[-1] + ".log"),
                "formatter": "file",
                "delay": True,
            }
            config["loggers"][name] = {"level": "DEBUG", "handlers": [name], "propagate": False}
    logging.config.dictConfig(config)


def get_loggers_from_work_dir(work_dir, task_names):
    """A logger per task, in `work_dir`/logs."""
    log_dir = os.path.join(work_dir, "logs")
    safe = ["".join(c if c.isalnum() or c in "-_" else "_" for c in name) for name in task_names]
    names = [f"tvm.meta_schedule.logging.task_{i:02d}_{name}" for i, name in enumerate(safe)]
    create_loggers(log_dir, [{"logger_name": name} for name in names])
    return [get_logger(name) for name in names]
