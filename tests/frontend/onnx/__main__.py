# SPDX-License-Identifier: Apache-2.0
"""All node and model tests of the onnx package: python -m tests.frontend.onnx [pattern]

Prints a scoreboard and what failed; the exit status says whether the list of reasons is right.
"""

import collections
import re
import sys
import time

from .node_cases import cases, complaint, reason


def main():
    pattern = re.compile(sys.argv[1] if len(sys.argv) > 1 else "")
    begin, counts, kinds, wrong = time.time(), collections.Counter(), {}, []
    for name, case in cases().items():
        if not pattern.search(name):
            continue
        said, expected = complaint(case), reason(name)
        counts["passed" if said is None else expected or "failed"] += 1
        kinds.setdefault(name.rpartition("/")[0] or "node", []).append(said is None)
        if said is not None and expected is None:
            wrong.append(f"{name}: {said}")
        if said is None and expected is not None:
            wrong.append(f"{name}: passes, expected to fail: {expected}")
    for line in wrong:
        print(line)
    for kind, passed in kinds.items():
        print(f"{kind}: {sum(passed)} of {len(passed)} pass")
    print(f"{time.time() - begin:.0f} s")
    for why, count in counts.most_common():
        if why != "passed":
            print(f"{count:5} {why}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
