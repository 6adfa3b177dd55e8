# SPDX-License-Identifier: Apache-2.0
"""What runners of one's own may use: arguments, and timing."""

from .local_runner import default_run_evaluator as run_evaluator_common


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


__all__ = ["alloc_argument_common", "run_evaluator_common"]
