# SPDX-License-Identifier: Apache-2.0
"""What is measured. A case is a function of (name, subjects, options) that returns rows."""

import functools
import subprocess
import sys
import tempfile
import time

import numpy as np

from . import (
    kernels,
    lowered,
    measure,
    models,
    onnx_import,
    peers,
    pytorch,
    rewritten,
    serving,
    simplify_size,
    tuning,
    tuning_result,
    vendor,
)
from .measure import Row


def kernel(name, subjects, options):
    """Float32, nobody schedules ours. Try --threads 2."""
    kernel = (kernels.KERNELS | kernels.LISTED)[name]
    inputs = kernel.inputs(options.seed)
    timed = {}
    for subject in subjects:
        try:
            one = subject.prepare(name, inputs)
        except RuntimeError as error:  # the others still have something to say
            print(f"note: {name}: {error}")
            continue
        if one is not None:
            timed[subject.name] = one
    samples = measure.time_alternating(timed, options.rounds, options.seconds)
    outputs = {who: one.output() for who, one in timed.items()}
    exact = kernel.exact(inputs[0].astype(np.float64)) if kernel.exact else None
    rows = []
    for who, output in outputs.items():
        ulp = None
        if output is not None and exact is not None:
            ulp = measure.max_ulp(output, exact)
        elif output is not None:
            reference = outputs["tvm"]
            # A sum of rounded numbers, and PyTorch's result in them is rounded itself.
            off = 1e-2 if kernel.dtype == "bfloat16" else 1e-3
            size = np.abs(reference).max() if kernel.torch else 1
            np.testing.assert_allclose(output, reference, rtol=off, atol=off * size, err_msg=who)
        rows.append(Row(name, who, samples[who], ulp=ulp))
    return rows


def listed(name, subjects, options):
    """The list by which the default rules are measured, beside PyTorch: products, convolutions."""
    pair = [s for s in subjects if s.name in ("tvm", "torch")]
    rows, ratios = [], {}
    for case in [*("sigmoid", "gelu", "softmax", "layer_norm"), *kernels.LISTED]:
        made = kernel(case, pair, options)
        rows += made
        if len(made) == 2:
            ratios[case] = made[1].ratio(made[0])
    if ratios:
        worst = min(ratios, key=ratios.get)
        mean = float(np.exp(np.mean(np.log(list(ratios.values())))))
        print(f"{name}: x ours {mean:.2f} (mean of {len(ratios)}), {ratios[worst]:.2f} ({worst})")
    return rows


def model(name, subjects, options):
    """A whole model, batch 1, random weights: compilation, a call, the memory it takes; ours also
    without fusion, and compiled from the cache."""
    found, compiled, memory = {}, {}, {}

    def prepare(who, worker):  # its memory is that of one model
        try:
            made = worker.ask(
                "prepare_model", worker.subject.file, name, options.seed, options.batch
            )
        except RuntimeError as error:  # the others still have something to say
            print(f"note: {name}: {error}")
            made = None
        if made is None:
            return worker.close()
        found[who] = peers.Remote(worker, made[0])
        compiled[who], memory[who] = made[1:]

    for subject in subjects:
        prepare(subject.name, peers.Worker(subject.name))
    ours = [subject for subject in subjects if subject.name == "tvm"]
    if ours:
        without = {"BENCH_DISABLED_PASSES": "FuseOps,FuseTIR"}
        prepare("tvm, not fused", peers.Worker("tvm", **without))
        with tempfile.TemporaryDirectory() as cache:
            for _ in range(2):  # the first one fills it
                worker = peers.Worker("tvm", TVM_CACHE_DIR=cache, TVM_CACHE_LIMIT_MB="2000")
                made = worker.ask(
                    "prepare_model", worker.subject.file, name, options.seed, options.batch
                )
                compiled["tvm, from the cache"] = made[1]
                worker.close()
    results = {who: one.results() for who, one in found.items()}
    reference = "torch" if "torch" in results else "tvm"
    for who, got in results.items():
        for a, b in zip(got, results[reference], strict=True):
            if np.abs(a - b).max() > 1e-4 * np.abs(b).max():
                raise AssertionError(f"{who}: other results than those of {reference}")
    samples = measure.time_alternating(found, options.rounds, options.seconds)
    for one in found.values():
        one.worker.close()
    rows = [Row(f"{name}, compile", who, [s]) for who, s in compiled.items() if s is not None]
    rows += [Row(name, who, samples[who]) for who in found]
    sizes = {who: size for who, size in memory.items() if size is not None}
    return rows + [Row(f"{name}, memory", who, [size], "B") for who, size in sizes.items()]


def all_models(name, subjects, options):
    """Every model in turn, and the memory that exporting 1 GB of weights takes."""
    rows = []
    for one in _within(options.limit, name, models.MODELS):
        rows += model(one, subjects, options)
    return rows + export(f"{name}, memory to export 1 GB", subjects, options)


def export(name, subjects, options):
    """The memory that writing a library with 1 GB of weights takes beyond what is there."""
    worker = peers.Worker("tvm")
    size = worker.ask("export_memory", 10**9)
    worker.close()
    return [Row(name, "tvm", [size], "B")]


def overhead(name, subjects, options):
    """Calling exp on one element: what a call costs."""
    x = [np.ones(1, np.float32)]
    timed = {s.name: one for s in subjects if (one := s.prepare("exp", x))}
    ours = next(s for s in subjects if s.name == "tvm")
    timed["tvm, called as a module"] = ours.prepare("exp", x, "")
    samples = measure.time_alternating(timed, options.rounds, options.seconds)
    return [Row(name, who, samples[who]) for who in timed]


def machine(name, subjects, options):
    """The virtual machine: a step of a chain of 1,000 kernels of one element, and a call of one."""
    workers = [peers.Worker(who) for who in peers.compilers()]
    rows = []
    for mode in ("bytecode", "compiled"):
        for what, count in ((f"{name}, {mode}, step", 1000), (f"{name}, {mode}, call", 1)):
            asked = {
                w.name: functools.partial(w.ask, "machine_seconds", mode, count) for w in workers
            }
            for warm_up in asked.values():
                warm_up()
            rows += [Row(what, *item) for item in measure.alternate(asked, options.rounds).items()]
    for worker in workers:
        worker.close()
    return rows


def import_cost(name, subjects, options):
    """`import tvm` in a new process, PyTorch hidden: time, and memory that stays."""
    probe = str(peers.ROOT / "bench/import_probe.py")

    def run(python):
        command = [python, probe, "tvm"]
        env = peers.environment(python)
        done = subprocess.run(command, env=env, capture_output=True, check=True, text=True)
        seconds, kib = map(float, done.stdout.split())
        return seconds, kib * 1024

    pythons = {who: peers.SUBJECTS[who].python for who in peers.compilers()}
    runs = {who: functools.partial(run, python) for who, python in pythons.items()}
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

    def first(who):
        worker = peers.Worker(who)
        try:
            worker.ask("version")  # imports
            return worker.ask("compile_seconds", 1024)
        finally:
            worker.close()

    cold = {who: functools.partial(first, who) for who in peers.compilers()}
    rows = [
        Row(f"{name}, first", *item) for item in measure.alternate(cold, options.rounds).items()
    ]
    workers = [peers.Worker(who) for who in peers.compilers()]
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
    workers = [peers.Worker(who) for who in peers.compilers()]
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
    workers = [peers.Worker(who) for who in peers.compilers()]
    rows = []
    for what, number in (("function", 20), ("module", 1)):
        for action in ("parse", "print"):
            runs = {w.name: functools.partial(_ask, w, action, what, number) for w in workers}
            # A peer may need a minute for a module, which is long enough to be measured once.
            rounds = 1 if (action, what) == ("parse", "module") else options.rounds
            if what == "function":
                for warm_up in runs.values():
                    warm_up()
            samples = measure.alternate(runs, rounds)
            rows += [Row(f"{action} {what}", who, samples[who]) for who in samples]
    for worker in workers:
        worker.close()
    return rows


def schedules(name, subjects, options):
    """Making schedules and applying primitives: a tiled matmul, a function of 200 blocks."""
    workers = [peers.Worker(who) for who in peers.compilers()]
    rows = []
    whats = ["make, matmul", "make and tile, matmul", "make, 200 blocks"]
    for what in [*whats, "make and schedule, 200 blocks"]:
        asked = {w.name: functools.partial(w.ask, "schedule_seconds", what) for w in workers}
        samples = measure.alternate(asked, options.rounds)
        rows += [Row(f"{name}, {what}", *item) for item in samples.items()]
    for worker in workers:
        worker.close()
    return rows


def integers(name, subjects, options):
    """Integer analysis: 100,000 random index expressions, each simplified by a new analyzer that is
    told what is known of its variables. CPU time."""
    lines = simplify_size.written(options.seed, 100_000)
    asked = {
        who: functools.partial(simplify_size.seconds, peers.SUBJECTS[who].python, lines)
        for who in peers.compilers()
    }
    samples = measure.alternate(asked, min(options.rounds, 3))
    return [Row(f"{name}, one of 100,000", *item) for item in samples.items()]


def _within(limit, name, workloads):
    """The workloads one by one, as long as there is time; says how far it is."""
    begin = time.monotonic()
    for i, workload in enumerate(workloads):
        spent = time.monotonic() - begin
        if spent > limit:
            print(f"note: {name}: left out for --limit: {', '.join(list(workloads)[i:])}")
            return
        print(f"{name} {i + 1}/{len(workloads)}, {spent:.0f} s: {workload}", file=sys.stderr)
        yield workload


def trials(name, subjects, options):
    """Tuning: wall time per distinct program compiled, run, checked and recorded (--threads 2)."""
    workers = [peers.Worker(who) for who in peers.compilers()]
    rows = []
    for workload in _within(options.limit, name, tuning.TIMED):
        runs = {
            w.name: functools.partial(w.ask, "seconds_per_trial", workload, 64) for w in workers
        }
        samples = measure.alternate(runs, 2)
        rows += [Row(f"trial, {workload}", *item) for item in samples.items()]
    for worker in workers:
        worker.close()
    return rows


def tuned(name, subjects, options):
    """20 workloads: the default schedule beside the best of 100 trials (--threads 2), some with
    peers; the winner beside the fastest of the ten best."""
    rows, gains = [], {}
    for workload in _within(options.limit, name, tuning.WORKLOADS):
        trials = tuning.TRIALS.get(workload, 100)
        timed = tuning_result.timed(workload, trials)
        if kernel_name := tuning.PEERS.get(workload):
            inputs = tuning_result.inputs(workload)
            for peer in [s for s in subjects if s.name in ("numpy", "torch", "copy")]:
                if one := peer.prepare(kernel_name, inputs):
                    timed[peer.name] = one
        samples = measure.time_alternating(timed, options.rounds, options.seconds)
        own = [who for who in timed if who.startswith(tuning_result.PLACE)]
        fastest = min(own, key=lambda who: np.median(samples[who]))
        case = [Row(workload, who, samples[who]) for who in timed if who not in own]
        case.append(Row(workload, "tvm, fastest of ten", samples[fastest]))
        gains[workload] = next(r for r in case if r.subject == tuning_result.DEFAULT).ratio(case[0])
        shown = ", ".join(f"{r.subject} {r.ratio(case[0]):.2f}" for r in case[1:])
        print(f"  x ours: {shown}", file=sys.stderr)
        rows += case
    if gains:
        worst = min(gains, key=gains.get)
        mean = float(np.exp(np.mean(np.log(list(gains.values())))))
        print(f"{name}: x default {mean:.2f} (mean of {len(gains)}), {gains[worst]:.2f} ({worst})")
    return rows


def _ask(worker, action, what, number):
    return worker.ask("script_seconds", action, what, number)


def lowering(name, subjects, options):
    """The default pipeline of TIR passes on 2,000 functions, also without our default schedules."""
    workers = [peers.Worker(who) for who in peers.compilers()]
    rows = []
    for scheduled in (False, True):
        what = f"{name}, 2000 functions, " + ("default" if scheduled else "no schedules")
        runs = {w.name: functools.partial(w.ask, "lower_seconds", 2000, scheduled) for w in workers}
        for warm_up in runs.values():
            warm_up()
        samples = measure.alternate(runs, options.rounds)
        rows += [Row(what, *item) for item in samples.items()]
    for worker in workers:
        worker.close()
    return rows


def pattern(name, subjects, options):
    """20 patterns over 2,000 bindings matched, and fused; every sum of them rewritten."""
    workers = [peers.Worker(who) for who in peers.compilers()]
    rows = []
    for action, bindings in (("match", 2000), ("fuse", 2000), ("rewrite", 200), ("rewrite", 2000)):
        runs = {
            w.name: functools.partial(w.ask, "pattern_seconds", action, bindings, 20)
            for w in workers
        }
        samples = measure.alternate(runs, options.rounds)
        rows += [Row(f"{name}, {action} {bindings} bindings", *item) for item in samples.items()]
    for worker in workers:
        worker.close()
    return rows


GRAPH_ACTIONS = {
    "emit": 10000,
    "normalise": 10000,
    "print": 2000,
    "parse": 1000,
    "compare": 10000,
    "hash": 10000,
    "well_formed": 10000,
    "legalize": 2000,
}


def graph(name, subjects, options):
    """Chains of operators built, printed, read, compared, checked and lowered; BERT lowered."""
    workers = [peers.Worker(who) for who in peers.compilers()]
    rows = []
    for action, bindings in (*GRAPH_ACTIONS.items(), ("BERT", 0)):
        runs = {
            w.name: functools.partial(w.ask, "graph_seconds", action, bindings) for w in workers
        }
        samples = measure.alternate(runs, options.rounds)
        what = f"{action} {bindings} bindings" if bindings else "lower BERT"
        rows += [Row(f"{name}, {what}", *item) for item in samples.items()]
    for worker in workers:
        worker.close()
    return rows


def lowered_operators(name, subjects, options):
    """Operators of graphs as they are lowered beside the same written as tensor expressions."""
    rows = []
    for operator in lowered.OPERATORS:
        rows += lowered.rows(operator, options)
    return rows


def rewritten_models(name, subjects, options):
    """Models in other layouts and in bfloat16 beside themselves; weights transformed when they are
    loaded beside copies of them; a model larger than memory."""
    rows = []
    for what, case in rewritten.CASES.items():
        rows += case(what, options)
    return rows


def imported_models(name, subjects, options):
    """Models as ONNX files: import, compilation, a call and memory, beside ONNX Runtime's load,
    torch.compile, and the same graphs made by BlockBuilder."""
    rows = []
    for model in models.MODELS:
        rows += onnx_import.rows(model, min(options.rounds, 3))
    return rows


CASES = {
    **dict.fromkeys(kernels.KERNELS, kernel),
    "list": listed,
    "turns": vendor.turns,
    "products": vendor.products,
    "convolutions": vendor.convolutions,
    "quantized": vendor.quantized,
    **dict.fromkeys(models.MODELS, model),
    "models": all_models,
    "export": export,
    "overhead": overhead,
    "machine": machine,
    "import": import_cost,
    "compile": compile_latency,
    "lower": lowering,
    "pool": pool,
    "script": script,
    "pattern": pattern,
    "graph": graph,
    "lowered": lowered_operators,
    "rewritten": rewritten_models,
    "onnx": imported_models,
    **serving.CASES,
    "pytorch": pytorch.case,
    "integers": integers,
    "schedule": schedules,
    "trials": trials,
    "tuned": tuned,
}
