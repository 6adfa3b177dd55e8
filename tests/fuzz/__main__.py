# SPDX-License-Identifier: Apache-2.0
"""Checks random programs: python -m tests.fuzz --seconds 300 [--check passes,compile] [--target c]

A failure prints its seed and a reduced program. The exit status says whether there was one, or a
kind of node in fewer than 1 % of many programs.
"""

import argparse
import collections
import re
import sys
import time

import tvm.testing

from . import programs
from .checks import CHECKS, TARGETS, choose_passes, choose_target, complaint, single_passes
from .kinds import KINDS, SHARE, rare

ENOUGH = 1000  # programs, to say that a kind is too rare


def essence(text):
    """A complaint without what changes while a program shrinks: numbers and quoted text."""
    return re.sub(r"-?\d[\d.e+-]*|\[.*?\]", "#", text.splitlines()[0])[:60]


def reduced(check, program, said):
    """The smallest program found about which the check says the same."""

    def fails(module):
        again = complaint(check, program.replaced(module))
        return again is not None and essence(again) == essence(said)

    return tvm.testing.minimise(program.module, fails)


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--programs", type=int, help="how many; else as many as the time allows")
    parser.add_argument("--check", default=",".join(CHECKS), help="names of checks, with commas")
    parser.add_argument("--pass", dest="passes", help="of the check passes, with commas; else all")
    parser.add_argument("--target", choices=TARGETS, help="to lower and compile for; else the host")
    parser.add_argument("--kinds", action="store_true", help="all kinds of nodes, and operators")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at a failure")
    parser.add_argument("--no-reduce", action="store_true", help="show programs as they are")
    options = parser.parse_args()
    checks = options.check.split(",")
    unknown = [c for c in checks if c not in CHECKS]
    if unknown:
        parser.error(f"--check: expected some of {', '.join(CHECKS)}, got {unknown[0]}")
    if options.target:
        choose_target(options.target)
    if options.passes:
        choose_passes(options.passes.split(","))
        if unknown := [p for p in options.passes.split(",") if p not in single_passes()]:
            parser.error(f"--pass: expected passes that run alone, got {unknown[0]}")
    start, failures, seed, kinds = time.time(), {}, options.seed, collections.Counter()
    while (
        time.time() - start < options.seconds
        if options.programs is None
        else seed < options.seed + options.programs
    ):
        plain = programs.generate(seed)
        kinds.update(set(programs.node_kinds(plain.module)))
        for check in checks:
            program = programs.generate_kernel(seed) if check == "kernels" else plain
            said = complaint(check, program)
            if said is None:
                continue
            key = (check, essence(said))
            failures.setdefault(key, []).append(seed)
            if len(failures[key]) == 1:
                print(f"seed {seed}, {check}: {said}", flush=True)
                smaller = program.module if options.no_reduce else reduced(check, program, said)
                print(smaller.script(), flush=True)
        seed += 1
        if failures and not options.keep_going:
            break
    count = seed - options.seed
    print(f"{count} programs in {time.time() - start:.1f} s, {len(failures)} kinds of failures")
    for (check, text), seeds in failures.items():
        print(f"  {check}: {text}: {len(seeds)} programs, such as {seeds[:5]}")
    shares = {kind: kinds[kind] / count for kind in (set(kinds) if options.kinds else KINDS)}
    ordered = sorted(shares.items(), key=lambda item: item[1])
    print(f"{len(KINDS)} kinds of nodes; the rarest:" if not options.kinds else "kinds of nodes:")
    for kind, share in ordered if options.kinds else ordered[:5]:
        print(f"  {kind:24} in {100 * share:6.2f} % of the programs")
    too_rare = rare({kind: kinds[kind] / count for kind in KINDS}) if count >= ENOUGH else []
    if too_rare:
        print(f"expected each in {100 * SHARE:.0f} % of the programs: {', '.join(too_rare)}")
    sys.exit(bool(failures or too_rare))


if __name__ == "__main__":
    main()
