# SPDX-License-Identifier: Apache-2.0
"""Our schedules before and after tuning, ready to be timed side by side."""

import functools
import tempfile
import time

from . import programs, tuning

DEFAULT = "tvm, default"
PLACE = "tvm, place "  # of the ten best


def inputs(workload):
    """Random arguments, without the result."""
    import numpy as np

    rng = np.random.default_rng(0)
    func = tuning.function(workload)
    shapes = [[int(e) for e in func.buffer_map[p].shape] for p in func.params]
    return [rng.random(s).astype("float32") for s in shapes[:-1]]


def timed(workload, trials):
    """{subject: Timed} for the best schedule found, the default one, and the ten best."""
    import numpy as np
    import tvm
    from tvm import meta_schedule as ms

    func, target = tuning.function(workload), programs.host_target()
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        database = ms.tune_tir(func, target, folder, trials)
        rate = tuning.distinct(database) / (time.perf_counter() - begin)
        print(f"{workload}: {rate:.0f} trials per second", flush=True)
        best = ms.compile_tir(database, func, target)
        top = database.get_top_k(database.get_all_tuning_records()[0].workload, 10)
        mods = {"tvm": best.mod, DEFAULT: func}
        for i, record in enumerate(top[1:]):
            mods[f"{PLACE}{i + 2}"] = record.as_measure_candidate().sch.mod
    result = [int(e) for e in func.buffer_map[func.params[-1]].shape]
    args = [tvm.runtime.tensor(x) for x in [*inputs(workload), np.zeros(result, "float32")]]
    timed = {}
    for who, mod in mods.items():
        call = functools.partial(tvm.compile(mod, target=target), *args)
        timed[who] = programs.Timed(call, args[-1].numpy)
    timed[f"{PLACE}1"] = timed["tvm"]
    return timed
