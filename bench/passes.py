# SPDX-License-Identifier: Apache-2.0
"""Every pass over graphs that needs no arguments, on programs of n and of k times n bindings or
functions: what is linear takes k times as long.

python -m bench.passes [--bindings 100000] [--functions 10000] [--times 10] [PASS...]
"""

import argparse
import inspect
import time

import tvm
from tvm import relax, tir
from tvm.relax import transform

TARGET = "llvm -num-cores=2"


def chain(n):
    """One function of n bindings."""
    x = relax.Var("x", relax.TensorStructInfo([8], "float32"))
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
        x = relax.Var("x", relax.TensorStructInfo([m, 8 + (i % 2) * i], "float32"))
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
LEFT_OUT = {"MetaScheduleApplyDatabase"}


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


def table(form, small, large, names=()):
    """A line for each pass: seconds on the small and the large program."""

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
            first, second = (
                min(_seconds(run, mod) for _ in range(k))
                for mod, k in zip(mods, (3, 1), strict=True)
            )
        except Exception as error:  # a program of this form is not its input
            print(f"{form:22}{name:40}{type(error).__name__}", flush=True)
            continue
        ratio = second / max(first, 1e-6) / (large / small)
        note = "  more than linear" if ratio > 2 and second > 0.05 else ""
        print(f"{form:22}{name:40}{first:9.4f}{second:9.3f}{ratio:7.2f}{note}", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="python -m bench.passes", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--bindings", type=int, default=100000)
    parser.add_argument("--functions", type=int, default=10000)
    parser.add_argument("--times", type=int, default=10)
    options = parser.parse_args()
    print(f"{'program':22}{'pass':40}{'small':>9}{'large':>9}{'ratio':>7}")
    with tvm.target.Target(TARGET):
        for form in FORMS:
            large = options.bindings if form.startswith("bindings") else options.functions
            table(form, large // options.times, large, options.names)


if __name__ == "__main__":
    main()
