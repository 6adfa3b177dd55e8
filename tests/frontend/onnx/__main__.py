# SPDX-License-Identifier: Apache-2.0
"""All node and model tests of the onnx package, with the shapes of their inputs as they are, as
names, and unknown: python -m tests.frontend.onnx [static/test_add.* …]

Prints what fails; the exit status says whether the list of reasons is right. Shares of the tests
run side by side with --shard i/n --results FILE."""

import collections
import sys

from .. import scoreboard
from .node_cases import CLOSE, SHAPES, cases, complaint, is_expected, reason


def check(name):
    shapes, _, case = name.partition("/")
    return complaint(cases()[case], shapes)


def node_tests(results):
    """How many pass, by the shapes of inputs, and why the others do not."""
    lines = [
        "| inputs | node tests | pass | model tests | pass |",
        "| --- | --- | --- | --- | --- |",
    ]
    for shapes in SHAPES:
        passed = {"node": [], "model": []}
        for name, said in results.items():
            kind, _, case = name.partition("/")
            if kind == shapes:
                passed["model" if "/" in case else "node"].append(said is None)
        counts = [f"{len(p)} | {sum(p)}" for p in passed.values()]
        if any(passed.values()):
            lines.append(f"| {shapes} | {' | '.join(counts)} |")
    whys = collections.Counter(
        reason(*name.split("/", 1))
        or ("half precision closer than it rounds" if CLOSE.search(name) else "not known yet")
        for name, said in results.items()
        if said
    )
    lines += ["", "| fail | need |", "| --- | --- |"]
    return lines + [f"| {count} | {why} |" for why, count in whys.most_common()]


def main():
    every = [f"{shapes}/{name}" for shapes in SHAPES for name in cases()]
    results = scoreboard.main(__doc__, every, check, table=node_tests)
    print("\n".join(node_tests(results)))
    wrong = [n for n, said in results.items() if not is_expected(*n.split("/", 1), said)]
    for name in wrong:
        print(f"{name}: {results[name] or 'passes, which is not expected'}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
