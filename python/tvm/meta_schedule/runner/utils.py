# SPDX-License-Identifier: Apache-2.0
"""What runners of one's own may use: arguments, and timing."""

from typing import Any

T_ARG_INFO_JSON_OBJ = list[Any]
T_ARG_INFO_JSON_OBJ_LIST = list[T_ARG_INFO_JSON_OBJ]
T_ARGUMENT = Any
T_ARGUMENT_LIST = list[T_ARGUMENT]


def alloc_argument_common(f_random_fill, device, args_info, alloc_repeat):
    """`alloc_repeat` lists of tensors, each filled by `f_random_fill`."""
    import tvm

    repeated = []
    for _ in range(alloc_repeat):
        tensors = []
        for kind, *rest in args_info:
            if kind != "TENSOR":
                raise ValueError(f"alloc_argument_common: expected tensors, got {kind}")
            dtype, shape = rest
            tensor = tvm.runtime.empty([int(e) for e in shape], str(dtype), device)
            f_random_fill(tensor)
            tensors.append(tensor)
        repeated.append(tensors)
    return repeated


def run_evaluator_common(rt_mod, device, evaluator_config, repeated_args):
    """Seconds of one call, for each repetition with each list of arguments."""
    flush = "cache_flush_cpu_non_first_arg" if evaluator_config.enable_cpu_cache_flush else ""
    evaluator = rt_mod.time_evaluator(
        rt_mod.entry_name if hasattr(rt_mod, "entry_name") else "main",
        dev=device,
        number=evaluator_config.number,
        repeat=evaluator_config.repeat,
        min_repeat_ms=evaluator_config.min_repeat_ms,
        f_preproc=flush,
    )
    return [float(s) for args in repeated_args for s in evaluator(*args).results]
