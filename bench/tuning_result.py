# SPDX-License-Identifier: Apache-2.0
"""Our schedules before and after tuning, ready to be timed side by side."""

import functools
import tempfile

from . import programs, tuning


def timed(workload, trials):
    """{subject: Timed} for the default schedule and the best one found."""
    import numpy as np
    import tvm
    from tvm import meta_schedule as ms

    func, target = tuning.function(workload), programs.host_target()
    with tempfile.TemporaryDirectory() as folder:
        database = ms.tune_tir(func, target, folder, trials)
        best = ms.compile_tir(database, func, target)
    rng = np.random.default_rng(0)
    shapes = [[int(e) for e in func.buffer_map[p].shape] for p in func.params]
    args = [tvm.runtime.tensor(rng.random(s).astype("float32")) for s in shapes]
    before, after = tvm.compile(func, target=target), tvm.compile(best.mod, target=target)
    return {
        "tvm": programs.Timed(functools.partial(after, *args), args[-1].numpy),
        "tvm, default": programs.Timed(functools.partial(before, *args), args[-1].numpy),
    }
