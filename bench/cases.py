# SPDX-License-Identifier: Apache-2.0
"""What is measured. A case is a function of (name, subjects, options) that returns rows."""

import functools
import math
import subprocess

import numpy as np

from . import kernels, measure, peers, programs, tuning, tuning_result
from .measure import Row

EXACT = {
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "exp": np.exp,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "log": np.log,
}


def unary(name, subjects, options):
    """Elementwise on 1024x1024 float32."""
    x = np.random.default_rng(options.seed).normal(0, 3, (1024, 1024)).astype(np.float32)
    if name == "log":
        x = np.exp(x)
    timed = {s.name: t for s in subjects if (t := s.unary(name, x)) is not None}
    samples = measure.time_alternating(timed, options.rounds, options.seconds)
    exact = EXACT[name](x.astype(np.float64))
    return [
        Row(name, who, samples[who], ulp=measure.max_ulp(timed[who].output(), exact))
        for who in timed
    ]


def kernel(name, subjects, options):
    """Float32, nobody schedules ours. Try --threads 2."""
    inputs = kernels.KERNELS[name].inputs(options.seed)
    timed = {s.name: s.kernel(name, inputs) for s in subjects if hasattr(s, "kernel")}
    samples = measure.time_alternating(timed, options.rounds, options.seconds)
    expected = timed["tvm"].output()
    for who, one in timed.items():
        np.testing.assert_allclose(one.output(), expected, rtol=1e-3, atol=1e-3, err_msg=who)
    return [Row(name, who, samples[who]) for who in timed]


def overhead(name, subjects, options):
    """Calling exp on one element: what a call costs."""
    x = np.ones(1, np.float32)
    timed = {s.name: s.unary("exp", x) for s in subjects}
    timed["tvm, main function"] = programs.unary("exp", x, by_function=True)
    samples = measure.time_alternating(timed, options.rounds, options.seconds)
    return [Row(name, who, samples[who]) for who in timed]


def import_cost(name, subjects, options):
    """`import tvm` in a new process, PyTorch hidden: time, and memory that stays."""
    probe = str(peers.ROOT / "bench/import_probe.py")

    def run(python):
        command = [python, probe, "tvm"]
        env = peers.environment(python)
        done = subprocess.run(command, env=env, capture_output=True, check=True, text=True)
        seconds, kib = map(float, done.stdout.split())
        return seconds, kib * 1024

    runs = {who: functools.partial(run, python) for who, python in peers.pythons().items()}
    for warm_up in runs.values():
        warm_up()
    samples = measure.alternate(runs, options.rounds)
    return [
        Row(f"{name}, {what}", who, [s[i] for s in samples[who]], unit)
        for i, (what, unit) in enumerate([("time", "s"), ("memory", "B")])
        for who in samples
    ]


def compile_latency(name, subjects, options):
    """Sigmoid from expression to callable, first in a process, and later ones."""

    def first(who, python):
        worker = peers.Worker(who, python)
        try:
            worker.ask("version")  # imports
            return worker.ask("compile_seconds", 1024)
        finally:
            worker.close()

    pythons = peers.pythons()
    cold = {who: functools.partial(first, who, python) for who, python in pythons.items()}
    rows = [
        Row(f"{name}, first", *item) for item in measure.alternate(cold, options.rounds).items()
    ]
    workers = [peers.Worker(who, python) for who, python in pythons.items()]
    columns = iter(range(1025, 1 << 20))
    warm = {w.name: lambda w=w: w.ask("compile_seconds", next(columns)) for w in workers}
    for warm_up in warm.values():
        warm_up()
    samples = measure.alternate(warm, options.rounds)
    for worker in workers:
        worker.close()
    return rows + [Row(f"{name}, later", *item) for item in samples.items()]


def pool(name, subjects, options):
    """Worker processes: the first answer of a new one; one of many empty tasks (--threads 2)."""
    workers = [peers.Worker(who, python) for who, python in peers.pythons().items()]
    rows = []
    for what, *action in (("ready", "pool_ready_seconds"), ("task", "pool_task_seconds", 1000)):
        asked = {w.name: functools.partial(w.ask, *action) for w in workers}
        samples = measure.alternate(asked, options.rounds)
        rows += [Row(f"{name}, {what}", *item) for item in samples.items()]
    for worker in workers:
        worker.close()
    return rows


def script(name, subjects, options):
    """Printing and parsing TVMScript: a function of 50 lines, a module of 2,000 functions."""
    workers = [peers.Worker(who, python) for who, python in peers.pythons().items()]
    rows = []
    for what, number in (("function", 20), ("module", 1)):
        for action in ("parse", "print"):
            runs = {w.name: functools.partial(_ask, w, action, what, number) for w in workers}
            # A peer may need a minute for a module.
            rounds = options.rounds if what == "function" else min(options.rounds, 2)
            samples = measure.alternate(runs, rounds)
            rows += [Row(f"{action} {what}", who, samples[who]) for who in samples]
    for worker in workers:
        worker.close()
    return rows


def schedules(name, subjects, options):
    """Making schedules and applying primitives: a tiled matmul, a function of 200 blocks."""
    workers = [peers.Worker(who, python) for who, python in peers.pythons().items()]
    rows = []
    whats = ["make, matmul", "make and tile, matmul", "make, 200 blocks"]
    for what in [*whats, "make and schedule, 200 blocks"]:
        asked = {w.name: functools.partial(w.ask, "schedule_seconds", what) for w in workers}
        samples = measure.alternate(asked, options.rounds)
        rows += [Row(f"{name}, {what}", *item) for item in samples.items()]
    for worker in workers:
        worker.close()
    return rows


def trials(name, subjects, options):
    """Tuning: wall time per distinct program compiled, run, checked and recorded (--threads 2)."""
    workers = [peers.Worker(who, python) for who, python in peers.pythons().items()]
    rows = []
    for workload in ("matmul 512", "matmul 1024", "conv2d 56x56x64"):
        runs = {
            w.name: functools.partial(w.ask, "seconds_per_trial", workload, 64) for w in workers
        }
        samples = measure.alternate(runs, 2)
        rows += [Row(f"trial, {workload}", *item) for item in samples.items()]
    for worker in workers:
        worker.close()
    return rows


def tuned(name, subjects, options):
    """20 workloads: the default schedule beside the best of 100 trials (--threads 2)."""
    rows = []
    for workload in tuning.WORKLOADS:
        timed = tuning_result.timed(workload, 100)
        samples = measure.time_alternating(timed, options.rounds, options.seconds)
        rows += [Row(workload, who, samples[who]) for who in timed]
    return rows


def _ask(worker, action, what, number):
    return worker.ask("script_seconds", action, what, number)


def lowering(name, subjects, options):
    """The default pipeline of TIR passes on a module of 2,000 functions."""
    workers = [peers.Worker(who, python) for who, python in peers.pythons().items()]
    runs = {w.name: lambda w=w: w.ask("lower_seconds", 2000) for w in workers}
    for warm_up in runs.values():
        warm_up()
    samples = measure.alternate(runs, options.rounds)
    for worker in workers:
        worker.close()
    return [Row(f"{name}, 2000 functions", *item) for item in samples.items()]


CASES = {
    **dict.fromkeys(programs.UNARY, unary),
    **dict.fromkeys(kernels.KERNELS, kernel),
    "overhead": overhead,
    "import": import_cost,
    "compile": compile_latency,
    "lower": lowering,
    "pool": pool,
    "script": script,
    "schedule": schedules,
    "trials": trials,
    "tuned": tuned,
}
