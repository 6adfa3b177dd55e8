# SPDX-License-Identifier: Apache-2.0
"""Every pass over graphs that needs no arguments, on programs of n and of k times n bindings or
functions: what is linear takes k times as long.

python -m bench.passes [--bindings 100000] [--functions 10000] [--times 10] [PASS...]

With --peer PYTHON, an interpreter that has Apache TVM, its passes of the same names run on the same
programs, and the last column says how many times longer they take on the large one. All times are
of the processor.
"""

import argparse
import inspect
import json
import os
import subprocess
import time

import tvm
from tvm import relax
from tvm.relax import transform

# What the peer calls them.
tir = tvm.tir if hasattr(tvm, "tir") else tvm.tirx
Tensor = relax.TensorStructInfo if hasattr(relax, "TensorStructInfo") else relax.TensorType

TARGET = {"kind": "llvm", "num-cores": 2}


def chain(n):
    """One function of n bindings."""
    x = relax.Var("x", Tensor([8], "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            y = x
            for i in range(n):
                y = bb.emit(relax.op.add(y, x) if i % 3 else relax.op.exp(y))
            y = bb.emit_output(y)
        bb.emit_func_output(y)
    return bb.get()


def functions(n):
    """n functions; of each two, one has a shape of its own."""
    bb = relax.BlockBuilder()
    for i in range(n):
        m = tir.Var("m", "int64")
        x = relax.Var("x", Tensor([m, 8 + (i % 2) * i], "float32"))
        with bb.function(f"f{i}", [x]):
            with bb.dataflow():
                y = bb.emit(relax.op.exp(bb.emit(relax.op.add(x, x))))
                y = bb.emit_output(relax.op.reshape(y, [-1]))
            bb.emit_func_output(y)
    return bb.get()


def kernels(mod):
    """The same as calls of kernels."""
    return transform.AnnotateTIROpPattern()(transform.LegalizeOps()(mod))


def fused(mod):
    """The same with calls of functions that become one kernel each."""
    return transform.FuseOps()(mod)


FORMS = {
    "bindings": (chain,),
    "bindings of kernels": (chain, kernels),
    "functions": (functions,),
    "functions of kernels": (functions, kernels),
    "functions of groups": (functions, kernels, fused),
}
# Not passes over graphs of their own: they ask for files, devices or a tuner.
LEFT_OUT = {"FewShotTuning", "MetaScheduleApplyDatabase"}


def passes():
    """{name: pass} of those that can be made without arguments."""
    found = {}
    for name in dir(transform):
        make = getattr(transform, name)
        if not name[:1].isupper() or inspect.isclass(make) or name in LEFT_OUT:
            continue
        try:
            inspect.signature(make).bind()
        except (TypeError, ValueError):
            continue
        found[name] = make()
    return found


def _seconds(run, mod):
    begin = time.process_time()
    run(mod)
    return time.process_time() - begin


def measured(form, small, large, names=()):
    """(pass, seconds on the small and on the large program, or the name of an error)"""

    def made(n):
        mod, *stages = n, *FORMS[form]
        for stage in stages:
            mod = stage(mod)
        return mod

    mods = made(small), made(large)
    for name, run in passes().items():
        if names and name not in names:
            continue
        try:
            yield (
                name,
                *(
                    min(_seconds(run, mod) for _ in range(k))
                    for mod, k in zip(mods, (3, 1), strict=True)
                ),
            )
        except Exception as error:  # a program of this form is not its input
            yield name, type(error).__name__, None


def of_peer(python, arguments):
    """{(form, pass): seconds on the large program} in another interpreter."""
    command = [python, __file__, "--json", *arguments]
    ours = ("PYTHONPATH", "TVM_LIBRARY_PATH")
    env = {name: value for name, value in os.environ.items() if name not in ours}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    return {(form, name): second for form, name, _, second in rows if second is not None}


def main():
    parser = argparse.ArgumentParser(prog="python -m bench.passes", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--bindings", type=int, default=100000)
    parser.add_argument("--functions", type=int, default=10000)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--form", choices=FORMS, help="of the program; else all")
    parser.add_argument("--peer", help="an interpreter with Apache TVM")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each pass")
    options = parser.parse_args()
    sizes = {"bindings": options.bindings, "functions": options.functions}
    shared = [*options.names, *(f"--{name}={n}" for name, n in sizes.items())]
    if not options.json:
        last = f"{'peer':>9}{'times':>7}" if options.peer else ""
        print(f"{'program':22}{'pass':40}{'small':>9}{'large':>9}{'ratio':>7}{last}")
    with tvm.target.Target(TARGET):
        for form in [options.form] if options.form else FORMS:
            large = sizes[form.split()[0]]
            peer = {}
            if options.peer:
                arguments = [*shared, f"--times={options.times}", f"--form={form}"]
                peer = of_peer(options.peer, arguments)
            for name, first, second in measured(form, large // options.times, large, options.names):
                if options.json:
                    print(json.dumps([form, name, first, second]), flush=True)
                elif second is None:
                    print(f"{form:22}{name:40}{first}", flush=True)
                else:
                    ratio = second / max(first, 1e-6) / options.times
                    other = peer.get((form, name))
                    last = f"{other:9.3f}{other / max(second, 1e-6):7.1f}" if other else ""
                    note = "  more than linear" if ratio > 2 and second > 0.05 else ""
                    row = f"{form:22}{name:40}{first:9.4f}{second:9.3f}{ratio:7.2f}"
                    print(row + last + note, flush=True)


if __name__ == "__main__":
    main()
