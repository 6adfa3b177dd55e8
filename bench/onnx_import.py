# SPDX-License-Identifier: Apache-2.0
"""Importing ONNX models beside ONNX Runtime and torch.compile, each step in a process of its own.

python -m bench.onnx_import [MODEL…]    medians of --rounds runs that take turns; --json FILE
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .measure import Row
from .peers import environment
from .programs import peak_bytes, resident_bytes

THREADS = 2


# ---- steps, in the child: each prints seconds and bytes ------------------------------------------
def _session(path, optimise):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    if not optimise:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return lambda: onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def ort_load(path, name):
    return _session(path, False)


def ort_optimise(path, name):
    return _session(path, True)


def tvm_import(path, name):
    from tvm.relax.frontend.onnx import from_onnx

    return lambda: from_onnx(path)


def tvm_compile(path, name):
    import tvm

    return lambda: tvm.compile(path, target="llvm")


def torch_compile(path, name):
    import torch

    from .model_ops import torch_module
    from .models import Model

    torch.set_num_threads(THREADS)
    model = Model(name)
    module, inputs = torch_module(model), [torch.from_numpy(x) for x in model.inputs()]
    return lambda: torch.compile(module, dynamic=False)(*inputs)


STEPS = {f.__name__: f for f in (ort_load, ort_optimise, tvm_import, tvm_compile, torch_compile)}


def step(which, path, name):
    """Seconds, the memory that stays beside that of mapped files, and the most there was."""
    call, kept = STEPS[which](path, name), []
    private, before = resident_bytes("RssAnon"), resident_bytes()
    begin = time.perf_counter()
    peak = peak_bytes(lambda: kept.append(call()))
    seconds = time.perf_counter() - begin
    print(json.dumps([seconds, resident_bytes("RssAnon") - private, peak - before]))


def latency(path, name):
    """Seconds of a call: imported, and the same graph made by BlockBuilder; they take turns."""
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    from .model_ops import relax_module
    from .models import Model

    model = Model(name)
    made = [from_onnx(path), relax_module(model)]
    machines = [
        relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())["main"] for mod in made
    ]
    args = [tvm.runtime.tensor(x) for x in model.inputs()]
    samples = [[], []]
    for _ in range(25):
        for run, taken in zip(machines, samples, strict=True):
            begin = time.perf_counter()
            run(*args)
            taken.append(time.perf_counter() - begin)
    print(json.dumps(samples))


# ---- the parent ----------------------------------------------------------------------------------
def child(*arguments, **variables):
    command = [sys.executable, "-m", "bench.onnx_import", "--child", *map(str, arguments)]
    env = environment(sys.executable) | {"TVM_NUM_THREADS": str(THREADS)} | variables
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def sample(name, rounds, folder):
    """Bytes of weights, (seconds, memory that stays, peak) of each step by round, and calls."""
    from .model_ops import onnx_model
    from .models import Model

    path = Path(folder) / f"{name}.onnx"
    path.write_bytes(onnx_model(Model(name)))
    steps = {"tvm_import": [], "ort_load": [], "cold": [], "cached": [], "ort_optimise": []}
    steps["torch_compile"] = []
    for number in range(rounds):
        cache = {
            "TVM_CACHE_DIR": str(Path(folder) / f"cache{number}"),
            "TVM_CACHE_LIMIT_MB": "4000",
        }
        inductor = {"TORCHINDUCTOR_CACHE_DIR": str(Path(folder) / f"inductor{number}")}
        for which in ("tvm_import", "ort_load", "ort_optimise"):
            steps[which].append(child(which, path, name))
        for key in ("cold", "cached"):
            steps[key].append(child("tvm_compile", path, name, **cache))
        if number == 0:  # minutes for some of them
            steps["torch_compile"].append(child("torch_compile", path, name, **inductor))
    return path.stat().st_size, steps, child("latency", path, name)


def rows(name, rounds):
    """The same as rows of the table: ours first, then whom it is measured by."""
    with tempfile.TemporaryDirectory() as folder:
        weights, steps, (imported, twin) = sample(name, rounds, folder)

    def column(which, i=0):
        return [run[i] for run in steps[which]]

    return [
        Row(f"{name}.onnx, import", "tvm", column("tvm_import")),
        Row(f"{name}.onnx, import", "onnxruntime, as it is", column("ort_load")),
        Row(f"{name}.onnx, memory of import", "tvm", column("tvm_import", 1), "B"),
        Row(f"{name}.onnx, memory of import", "weights", [weights], "B"),
        Row(f"{name}.onnx, compile", "tvm", column("cold")),
        Row(f"{name}.onnx, compile", "torch.compile", column("torch_compile")),
        Row(f"{name}.onnx, from the cache", "tvm", column("cached")),
        Row(f"{name}.onnx, from the cache", "onnxruntime, optimised", column("ort_optimise")),
        Row(f"{name}.onnx, a call", "tvm", imported),
        Row(f"{name}.onnx, a call", "tvm, made by BlockBuilder", twin),
        Row(f"{name}.onnx, peak of compiling", "tvm", column("cold", 2), "B"),
        Row(f"{name}.onnx, peak of compiling", "weights", [weights], "B"),
    ]


def measure(name, rounds, folder):
    weights, steps, (imported, twin) = sample(name, rounds, folder)
    seconds = {key: statistics.median(s for s, _, _ in runs) for key, runs in steps.items()}
    return {
        "model": name,
        "MB": weights / 1e6,
        "seconds": seconds,
        "load / import": seconds["ort_load"] / seconds["tvm_import"],
        "import, memory / weights": statistics.median(k for _, k, _ in steps["tvm_import"])
        / weights,
        "torch.compile / cold": seconds["torch_compile"] / seconds["cold"],
        "ORT optimised / cached": seconds["ort_optimise"] / seconds["cached"],
        "BlockBuilder / imported": statistics.median(twin) / statistics.median(imported),
        "peak / weights": statistics.median(p for _, _, p in steps["cold"]) / weights,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", nargs=3)
    options = parser.parse_args()
    if options.child:
        which, path, name = options.child
        latency(path, name) if which == "latency" else step(which, path, name)
        return
    from .models import MODELS

    rows = []
    for name in options.models or MODELS:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(name, options.rounds, folder))
        for key, number in rows[-1].items():
            if isinstance(number, float):
                print(f"{name:14} {key:26} {number:8.3f}", flush=True)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
