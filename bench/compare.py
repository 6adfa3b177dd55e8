# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.compare BEFORE AFTER`: what got slower between two files that --json wrote, or
between the results that two commits keep (--keep).

    git stash; python -m bench list --json before.json
    git stash pop; python -m bench list --json after.json
    python -m bench.compare before.json after.json
    python -m bench.compare HEAD~20 HEAD

Each of our times is taken relative to the peers of its own run, which cancels a machine that was
slower as a whole. A difference counts beyond the spread of the samples. Ends with status 1 where
something is slower.
"""

import argparse
import json
import math
import pathlib
import sys

from . import results

LEAST = 0.05  # what no run of this length can tell from noise


def _spread(row):
    return row["spread"] or 0.0


def by_case(rows):
    """{case: {subject: row}}"""
    cases = {}
    for row in rows:
        cases.setdefault(row["case"], {})[row["subject"]] = row
    return cases


def changes(before, after):
    """{case: (after / before, the part of it that may be noise)} of what both have."""
    before, after, found = by_case(before), by_case(after), {}
    for case in (case for case in before if case in after):
        old, new = before[case], after[case]
        if "tvm" not in old or "tvm" not in new:
            continue
        peers = [who for who in old if who != "tvm" and who in new]
        drift = [new[who]["median"] / old[who]["median"] for who in peers]
        machine = math.exp(sum(map(math.log, drift)) / len(drift)) if drift else 1.0
        ratio = new["tvm"]["median"] / old["tvm"]["median"] / machine
        noise = 2 * (_spread(old["tvm"]) + _spread(new["tvm"]))
        if peers:
            noise += sum(_spread(old[w]) + _spread(new[w]) for w in peers) / len(peers)
        found[case] = ratio, max(LEAST, noise)
    return found


def report(found):
    """(lines, whether something is slower)"""
    lines, is_slower = [], False
    for case, (ratio, noise) in sorted(found.items(), key=lambda item: -item[1][0]):
        slower, faster = ratio > 1 + noise, ratio < 1 / (1 + noise)
        is_slower |= slower
        if slower or faster:
            word = "slower" if slower else "faster"
            lines.append(f"{word} {ratio:6.2f} (noise {noise:.0%})  {case}")
    if found:
        mean = math.exp(sum(math.log(r) for r, _ in found.values()) / len(found))
        lines.append(f"{len(found)} cases, after / before by geometric mean {mean:.3f}")
    return lines, is_slower


def main(arguments):
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.add_argument("before")
    parser.add_argument("after")
    options = parser.parse_args(arguments)
    before, after = (_runs(name) for name in (options.before, options.after))
    both = [kind for kind in before if kind in after]
    if not both:
        parser.error("expected two runs on the same kind of CPU with as many threads")
    is_slower = False
    for kind in both:
        lines, slower = report(changes(before[kind], after[kind]))
        if len(both) > 1:
            print(*kind, sep=", threads: ")
        print("\n".join(lines))
        is_slower |= slower
    sys.exit(is_slower)


def _runs(name):
    """{(CPU, threads): rows} of a file, or of a commit."""
    path = pathlib.Path(name)
    runs = [json.loads(path.read_text("utf-8"))] if path.exists() else results.of_commit(name)
    return {(run["cpu"], run["threads"]): run["rows"] for run in runs}


if __name__ == "__main__":
    main(sys.argv[1:])
