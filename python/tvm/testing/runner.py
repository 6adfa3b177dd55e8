# SPDX-License-Identifier: Apache-2.0
"""Running a compiled module from its file, as a user of it would."""

import os
import tempfile

import tvm

__all__ = ["local_run"]


def _argument(value, device):
    if hasattr(value, "__array__") or hasattr(value, "__dlpack__"):
        return tvm.runtime.tensor(value, device=device)
    return value


def local_run(mod, device_type, args, evaluator_config=None, export_func="tar", output_format=None):
    """(arguments after the run, times): exports the module, loads the file, and calls its main
    function with the arguments (arrays, tensors, numbers). `export_func` is "tar" or a function
    (module, path), then with the suffix `output_format`."""
    from tvm.meta_schedule.runner import EvaluatorConfig

    if not callable(export_func) and export_func != "tar":
        raise ValueError(
            f"local_run: expected export_func 'tar' or a function, got {export_func!r}"
        )
    suffix = output_format or ("so" if callable(export_func) else "tar")
    config = EvaluatorConfig._normalized(evaluator_config)
    device = tvm.device(device_type, 0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"module.{suffix}")
        export_func(mod, path) if callable(export_func) else mod.export_library(path)
        loaded = tvm.runtime.load_module(path)
        values = [_argument(value, device) for value in args]
        evaluator = loaded.time_evaluator(
            loaded.entry_name,
            device,
            number=config.number,
            repeat=config.repeat,
            min_repeat_ms=config.min_repeat_ms,
        )
        return values, evaluator(*values)
