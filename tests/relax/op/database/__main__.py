# SPDX-License-Identifier: Apache-2.0
"""What the database covers: python -m tests.relax.op.database"""

import sys

from . import ENTRIES, S, tensors

# The shapes of their results are in the data.
WITHOUT_SYMBOLIC = {"dynamic_strided_slice"}


def has_zero(case):
    shapes = [t.shape for t in tensors(case)] + [p for p in case.params if isinstance(p, S)]
    return any(0 in shape for shape in shapes)


def has_edge(case):
    """Its values are chosen, or numbers among which edge values can be put."""
    given = (t for t in tensors(case))
    return any(t.values is not None or t.dtype.startswith("float") for t in given)


ROWS = {
    "zero size": has_zero,
    "symbolic shape": lambda case: case.symbolic,
    "edge value": has_edge,
}


def missing():
    """{kind of row: operators that take tensors and have none}"""
    computed = [e for e in ENTRIES.values() if any(map(tensors, e.cases))]
    absent = {
        kind: [e.name for e in computed if not any(map(test, e.cases))]
        for kind, test in ROWS.items()
    }
    absent["symbolic shape"] = sorted({*absent["symbolic shape"]} - WITHOUT_SYMBOLIC)
    return absent


def main():
    cases = sum(len(e.cases) for e in ENTRIES.values())
    calls = sum(len(e.calls) for e in ENTRIES.values())
    run = sum(e.reference is not None for e in ENTRIES.values())
    print(
        f"{len(ENTRIES)} operators: {run} run in {cases} cases, the rest inferred in {calls} calls"
    )
    for kind, names in missing().items():
        print(f"without a row of {kind}: {', '.join(names) or 'none'}")
    sys.exit(any(missing().values()))


if __name__ == "__main__":
    main()
