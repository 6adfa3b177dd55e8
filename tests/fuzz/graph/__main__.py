# SPDX-License-Identifier: Apache-2.0
"""Checks random graphs: python -m tests.fuzz.graph --seconds 300 [--check passes,roundtrip]

A failure prints its seed and a reduced program. The exit status says whether there was one, or a
kind of node in fewer than 1 % of many programs.
"""

import argparse
import collections
import re
import sys
import time

from .checks import CHECKS, complaint
from .generate import generate
from .kinds import KINDS, kinds, rare
from .reduce import reduced

ENOUGH = 1000  # programs, to say that a kind is too rare


def essence(text):
    """A complaint without what changes while a program shrinks: numbers, names and values."""
    return re.sub(r"-?\d[\d.e+-]*|\[.*?\]|'\w+'", "#", text.splitlines()[0])[:70]


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.graph", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--programs", type=int, help="how many; else as many as the time allows")
    parser.add_argument("--check", default=",".join(CHECKS), help="names of checks, with commas")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at a failure")
    parser.add_argument("--no-reduce", action="store_true", help="show programs as they are")
    options = parser.parse_args()
    checks = options.check.split(",")
    unknown = [c for c in checks if c not in CHECKS]
    if unknown:
        parser.error(f"--check: expected some of {', '.join(CHECKS)}, got {unknown[0]}")
    start, failures, seed = time.time(), {}, options.seed
    found = collections.Counter()
    while (
        time.time() - start < options.seconds
        if options.programs is None
        else seed < options.seed + options.programs
    ):
        program = generate(seed)
        found.update(kinds(program.module))
        for check in checks:
            said = complaint(check, program)
            if said is None:
                continue
            key = (check, essence(said))
            failures.setdefault(key, []).append(seed)
            if len(failures[key]) == 1:
                print(f"seed {seed}, {check}: {said}", flush=True)

                def fails(smaller, check=check, said=said):
                    again = complaint(check, smaller)
                    return again is not None and essence(again) == essence(said)

                if not options.no_reduce:
                    program = reduced(program, fails)
                print(program.module.script(), flush=True)
        seed += 1
        if failures and not options.keep_going:
            break
    count = seed - options.seed
    print(f"{count} programs in {time.time() - start:.1f} s, {len(failures)} kinds of failures")
    for (check, text), seeds in failures.items():
        print(f"  {check}: {text}: {len(seeds)} programs, such as {seeds[:5]}")
    print(f"{len(KINDS)} kinds of nodes, and how many programs have them:")
    for kind in sorted(KINDS, key=lambda kind: found[kind]):
        print(f"  {kind}: {found[kind]} ({found[kind] / count:.1%})")
    sys.exit(bool(failures) or (count >= ENOUGH and bool(rare(found, count))))


if __name__ == "__main__":
    main()
