# SPDX-License-Identifier: Apache-2.0
"""Puts small defects into the passes, one at a time, and asks whether random programs find them:

python -m tests.fuzz.mutate --count 100 --seed 0 --seconds 600

A defect is a changed comparison, a dropped condition, a wrong operand or a skipped statement, in a
line drawn from the sources of all passes. Those that do not compile are drawn again. What nobody
found within the time is printed at the end: it computes the same, or random programs lack
something. The sources are put back, and the libraries built again, whatever happens. It needs a
tree without other changes in those files.
"""

import argparse
import pathlib
import random
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("src/tir/transform",)
CHECKS = "pipeline,passes,compile,kernels"
# name: (what is looked for, what takes its place)
OPERATORS = {
    "comparison": [
        (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "),
        (r" != ", " == "),
    ],
    "condition": [
        (r"\bif \((?!constexpr)[^;{]*\)(?= [^|&]|$)", "if (true)"),
        (r"\bif \((?!constexpr)[^;{]*\)(?= [^|&]|$)", "if (false)"),
        (r" && ", " || "), (r" \|\| ", " && "), (r"\(!", "("),
    ],
    "operand": [
        (r"->a\b", "->b"), (r"->b\b", "->a"), (r"->min\b", "->extent"), (r"->extent\b", "->min"),
        (r" \+ ", " - "), (r" - ", " + "), (r"\b1\b", "2"), (r"\b0\b", "1"),
        (r"->then_case\b", "->else_case.value()"), (r"->value\b", "->body"),
    ],
    "statement": [(r"^(\s+)(?!return|auto|const |using|case|break)\w[\w.>\-\[\]]*(\(| = | \|= ).*;$", r"\1;")],
}  # fmt: skip


def lines_of(path):
    """(number, text) of the lines that hold code; texts and errors are left out."""
    raw = False
    for number, line in enumerate(path.read_text().split("\n")):
        starts = 'R"(' in line
        if not raw and not starts and '"' not in line and not line.lstrip().startswith(("//", "#")):
            yield number, line
        raw = (raw or starts) and ')"' not in line


def defects(rng):
    """Endlessly: (file, line number, name, the line before, the line after)."""
    files = sorted(f for folder in FOLDERS for f in (ROOT / folder).glob("*.cc"))
    while True:
        path, kind = rng.choice(files), rng.choice(list(OPERATORS))
        pattern, replacement = rng.choice(OPERATORS[kind])
        found = [
            (number, line, match)
            for number, line in lines_of(path)
            for match in re.finditer(pattern, line)
        ]
        if found:
            number, line, match = rng.choice(found)
            after = line[: match.start()] + match.expand(replacement) + line[match.end() :]
            yield path, number, kind, line, after


def build():
    command = ["ninja", "-C", str(ROOT / "build"), "--quiet"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def find(seconds, seed):
    """Whether random programs find that something is wrong, and what they say."""
    command = [
        sys.executable, "-m", "tests.fuzz", "--seconds", str(seconds), "--check", CHECKS,
        "--no-reduce", "--seed", str(seed),
    ]  # fmt: skip
    try:
        run = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=2 * seconds + 60, check=False
        )
    except subprocess.TimeoutExpired:
        return "it did not end"
    if run.returncode == 0:
        return None
    said = [line for line in run.stdout.splitlines() if line.startswith("seed ")]
    return said[0] if said else f"status {run.returncode}"


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.mutate", description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the defects and of the programs")
    parser.add_argument("--seconds", type=float, default=600, help="for each defect")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    drawn, survivors = 0, []
    for path, number, kind, before, after in defects(random.Random(options.seed)):
        if drawn == options.count:
            break
        original = path.read_text()
        lines = original.split("\n")
        lines[number] = after
        try:
            path.write_text("\n".join(lines))
            if not build():
                continue
            drawn += 1
            start = time.time()
            said = find(options.seconds, options.seed)
        finally:
            path.write_text(original)
        where = f"{path.relative_to(ROOT)}:{number + 1}: {kind}: {before.strip()} -> {after.strip()}"
        print(f"{drawn}. {where}\n   {said or 'SURVIVED'} ({time.time() - start:.0f} s)", flush=True)
        if said is None:
            survivors.append(where)
    build()
    print(f"{drawn} defects drawn, {drawn - len(survivors)} found, {len(survivors)} not found:")
    print("\n".join(f"  {s}" for s in survivors))
    return 0


if __name__ == "__main__":
    sys.exit(main())
