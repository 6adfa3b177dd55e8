# SPDX-License-Identifier: Apache-2.0
"""Random primitives on random programs: python -m tests.fuzz.schedule --seconds 300

Every sequence must keep what the program computes (interpreted, now and then compiled), the
consistency of the state, and replay from trace, JSON and Python. Primitives that were accepted
least are tried most. A failure prints the shortest sequence found that still fails, and how to run
it again; at the end is printed how often each primitive was accepted and refused.
"""

import argparse
import collections
import random
import sys
import time

import numpy as np
import tvm
from tvm import tir
from tvm.testing.features import host_target
from tvm.tir.schedule.testing import verify_trace_roundtrip

from .choices import CALLS, METHODS, Chooser, NothingToTry
from .stages import WANTED_BY, arguments, program

# Primitives after which code for the CPU cannot be made, or which others must not follow.
NO_CPU = {"bind", "set_scope", "set_axis_separator", "unsafe_hide_buffer_access"}
LAST = {"unsafe_hide_buffer_access"}


def attempt(sch, name, seed):
    """The schedule after one call; None when the primitive was refused or there is no place for it.

    Nothing but ScheduleError may come out of a call, and what it left must be as it was.
    """
    before, trial = sch.mod, sch.copy()
    trial.seed(seed)
    try:
        CALLS[name](Chooser(trial, random.Random(seed)))
    except (tir.ScheduleError, NothingToTry) as error:
        tvm.ir.assert_structural_equal(before, sch.mod)
        return None, isinstance(error, tir.ScheduleError)
    return trial, False


def start(func):
    return tir.Schedule(func, debug_mask="all", seed=1, error_render_level="fast")


def run(func, steps):
    """The schedule after the steps (name, seed), without those that are refused."""
    sch = start(func)
    for name, seed in steps:
        sch = attempt(sch, name, seed)[0] or sch
    return sch


def check(func, sch, seed, compiled):
    """Raises unless the schedule computes what the function does and can be replayed."""
    after = sch.mod["main"]
    tir.analysis.verify_well_formed(after)
    again = start(func)
    sch.trace.apply_to_schedule(again, remove_postproc=False)
    tvm.ir.assert_structural_equal(sch.mod, again.mod)
    verify_trace_roundtrip(sch, func)
    expected = arguments(func, random.Random(seed))
    tir.interpret(func)(*expected)
    ways = {"interpreted": tir.interpret(after)}
    if compiled:
        ways["compiled"] = tvm.compile(sch.mod, target=host_target())["main"]
    for how, call in ways.items():
        got = arguments(func, random.Random(seed))
        call(*got)
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=how)


def complaint(func, steps, seed, compiled):
    """What is wrong with a sequence, or None."""
    try:
        sch = run(func, steps)
        check(func, sch, seed, compiled and for_cpu(sch))
    except Exception as error:  # whatever it is, it is a failure
        return f"{type(error).__name__}: {error}"
    return None


def for_cpu(sch):
    text = sch.mod.script()
    return (
        not NO_CPU & {METHODS[i.kind.name] for i in sch.trace.insts} and 'scope="local"' not in text
    )


def reduced(func, steps, seed, compiled):
    """The steps without those that the failure does not need."""
    for i in reversed(range(len(steps))):
        fewer = steps[:i] + steps[i + 1 :]
        if complaint(func, fewer, seed, compiled) is not None:
            steps = fewer
    return steps


class Fuzzer:
    def __init__(self, length=8, compile_every=10):
        self.length, self.compile_every = length, compile_every
        self.accepted, self.refused = collections.Counter(), collections.Counter()

    def draw(self, rng):
        """The name of a primitive, most likely one with few acceptances."""
        names = sorted(CALLS)
        return rng.choices(names, [1 / (1 + self.accepted[n]) ** 2 for n in names])[0]

    def grow(self, func, rng, steps):
        """A schedule of accepted steps; they are noted as they are made."""
        sch = start(func)
        for _ in range(3 * self.length):
            steps.append((self.draw(rng), rng.randrange(1 << 30)))
            after, was_refused = attempt(sch, *steps[-1])
            if after is None:
                self.refused[steps.pop()[0]] += was_refused
                continue
            sch = after
            if len(steps) == self.length or steps[-1][0] in LAST:
                break
        return sch

    def one(self, seed):
        """None, or the text about a failure."""
        rng, steps = random.Random(seed), []
        rarest = min(WANTED_BY, key=lambda name: self.accepted[name])
        wanted = WANTED_BY[rarest] if seed % 2 else None
        func = program(rng, wanted)
        compiled = self.compile_every > 0 and seed % self.compile_every == 0
        try:
            sch = self.grow(func, rng, steps)
            check(func, sch, seed, compiled and for_cpu(sch))
        except Exception as error:
            text = failure(func, steps, seed, compiled, f"{type(error).__name__}: {error}")
            return text + f" --wanted {wanted}" * bool(wanted)
        self.accepted.update(METHODS[inst.kind.name] for inst in sch.trace.insts)
        return None


def failure(func, steps, seed, compiled, said):
    steps = reduced(func, steps, seed, compiled)
    said = complaint(func, steps, seed, compiled) or said
    words = ",".join(f"{name}:{number}" for name, number in steps)
    text = f"{said}\n{func.script()}"
    try:
        text += "\n".join(run(func, steps).trace.simplified(False).as_python())
    except Exception as error:
        text += f"while applying: {error}"
    return f"{text}\n--seed {seed} --steps {words}" + " --compile-every 1" * compiled


def main(given=None):
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.schedule", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--programs", type=int, help="how many; else as many as the time allows")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--steps", help="run this sequence alone, as a failure printed it")
    parser.add_argument("--wanted", help="a stage of the program of that sequence")
    parser.add_argument("--length", type=int, default=8, help="primitives tried per program")
    parser.add_argument("--compile-every", type=int, default=10, help="compile one of so many")
    parser.add_argument("--least", type=int, default=0, help="fail if one is accepted less often")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at a failure")
    options = parser.parse_args(given)
    if options.steps is not None:
        steps = [word.split(":") for word in options.steps.split(",")]
        func = program(random.Random(options.seed), options.wanted)
        steps = [(name, int(number)) for name, number in steps]
        said = complaint(func, steps, options.seed, options.compile_every == 1)
        print(failure(func, steps, options.seed, options.compile_every == 1, said))
        return said is not None
    begin, seed, failures = time.time(), options.seed, 0
    fuzzer = Fuzzer(options.length, options.compile_every)
    while (
        time.time() - begin < options.seconds
        if options.programs is None
        else seed - options.seed != options.programs
    ):
        said = fuzzer.one(seed)
        if said is not None:
            failures += 1
            print(f"{said}\n", flush=True)
            if not options.keep_going:
                break
        seed += 1
    print(f"{seed - options.seed} programs in {time.time() - begin:.0f} s, {failures} failures")
    for name in sorted(METHODS.values()):
        rare = "  too rare" if fuzzer.accepted[name] < options.least else ""
        print(f"  {name:26} accepted {fuzzer.accepted[name]:6}", end="")
        print(f" refused {fuzzer.refused[name]:6}{rare}")
    few = [name for name in METHODS.values() if fuzzer.accepted[name] < options.least]
    return bool(failures or few)


if __name__ == "__main__":
    sys.exit(main())
