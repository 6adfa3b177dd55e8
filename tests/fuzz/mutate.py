# SPDX-License-Identifier: Apache-2.0
"""Puts small defects into the passes and asks whether random programs find them:

python -m tests.fuzz.mutate draw --tree COPY --count 100 --seed 0
python -m tests.fuzz.mutate run --tree COPY --seconds 600 --jobs 16

A defect is a changed comparison, a dropped condition, a wrong operand or a skipped statement, in a
line drawn from the sources of all passes. COPY is another checkout of the repository, configured
for building: `draw` puts all defects into its sources, each behind a switch that the variable
TVM_MUTANT of the environment throws, and builds it once; what does not compile is drawn again.
`run` throws one switch after the other: half of the time random programs go through the passes of
the file alone, half of it through everything. What they do not find the tests of the file are asked
about (`--order tests,programs` the other way round). The report at the end has what nobody found:
it computes the same, or something is missing; and apart from it where only time ran out.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import time

FOLDERS = ("src/tir/transform",)
CHECKS = "pipeline,passes,compile,kernels"
# name: (what is looked for, what takes its place)
OPERATORS = {
    "comparison": [
        (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "),
        (r" != ", " == "),
    ],
    "condition": [
        (r"^.*$", "true"), (r"^.*$", "false"), (r" && ", " || "), (r" \|\| ", " && "),
        (r"(?<![\w)])!(?=[\w(])", ""),
    ],
    "operand": [
        (r"->a\b", "->b"), (r"->b\b", "->a"), (r"->min\b", "->extent"), (r"->extent\b", "->min"),
        (r" \+ ", " - "), (r" - ", " + "), (r"\b1\b", "2"), (r"\b0\b", "1"),
        (r"->then_case\b", "->else_case.value()"), (r"->value\b", "->body"),
    ],
    "statement": [(r"^.*$", "")],
}  # fmt: skip
# The parts of a line that an expression fills, or a whole statement.
CONDITION = re.compile(r"^(\s*(?:\} else )?(?:if|while) \()(.+)(\)(?: \{| return.*;| continue;)?)$")
VALUE = re.compile(r"^(\s*(?:return |(?!using|auto\* )[\w:<>*&, .\->\[\]]+ [|&]?= ))(.+)(;)$")
STATEMENT = re.compile(
    r"^(\s+)(?!return\b|if\b|while\b|for\b)(\w[\w.>\-\[\]]*(?:\(| = | \|= ).*)(;)$"
)
SWITCH = """#pragma once
#include <cstdlib>
inline bool IsMutant(int number) {
  static const int chosen = [] {
    const char* text = std::getenv("TVM_MUTANT");
    return text ? std::atoi(text) : -1;
  }();
  return chosen == number;
}
"""


def balanced(text):
    depth = 0
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if depth < 0:
            return False
    return depth == 0


def lines_of(text):
    """(number, line) of those that hold code; texts and errors are left out."""
    raw = False
    for number, line in enumerate(text.split("\n")):
        starts = 'R"(' in line
        if not raw and not starts and '"' not in line and not line.lstrip().startswith(("//", "#")):
            yield number, line
        raw = (raw or starts) and ')"' not in line


def switched(line, kind, pattern, replacement, rng):
    """(the line with the defect behind a switch {k}, the line as the defect has it), or None."""
    if kind == "statement":
        found = STATEMENT.match(line)
        if not found or not balanced(found[2]):
            return None
        return f"{found[1]}if (!IsMutant({{k}})) {found[2]};", f"{found[1]};"
    found = CONDITION.match(line)
    if found and (" = " in found[2] or ";" in found[2]):  # it declares something
        return None
    found = found or (VALUE.match(line) if pattern != r"^.*$" else None)
    if not found or not balanced(found[2]) or not balanced(found[1] + "x" + found[3].rstrip("{")):
        return None
    places = list(re.finditer(pattern, found[2]))
    if not places:
        return None
    at = rng.choice(places)
    wrong = found[2][: at.start()] + replacement + found[2][at.end() :]
    return (
        f"{found[1]}IsMutant({{k}}) ? ({wrong}) : ({found[2]}){found[3]}",
        f"{found[1]}{wrong}{found[3]}",
    )


def defects(tree, rng):
    """Endlessly: (file, line number, kind, the line, with a switch, with the defect)."""
    files = sorted(f for folder in FOLDERS for f in (tree / folder).glob("*.cc"))
    texts = {f: list(lines_of(f.read_text())) for f in files}
    while True:
        path, kind = rng.choice(files), rng.choice(list(OPERATORS))
        pattern, replacement = rng.choice(OPERATORS[kind])
        found = [
            (number, line, result)
            for number, line in texts[path]
            if (result := switched(line, kind, pattern, replacement, rng))
        ]
        if found:
            number, line, (both, wrong) = rng.choice(found)
            yield path, number, kind, line, both, wrong


def write(tree, originals, chosen):
    """The sources with all chosen defects behind their switches."""
    (tree / "mutant.h").write_text(SWITCH)
    for path, original in originals.items():
        lines = original.split("\n")
        for k, (_, number, _, _, both, _) in chosen.items():
            if chosen[k][0] == path:
                lines[number] = both.replace("{k}", str(k))
        text = "\n".join(lines)
        if text != original:
            text = f'#include "{tree / "mutant.h"}"\n#line 1 "{path}"\n' + text
        if path.read_text() != text:
            path.write_text(text)


def wrong_lines(tree):
    """(file, line number) of what the compiler refuses; None where it refuses nothing."""
    command = ["ninja", "-C", str(tree / "build"), "-k", "0"]
    run = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    if run.returncode == 0:
        return None
    found = set()
    for name, line in re.findall(r"^(?:\S*?)(src/\S+\.cc):(\d+):\d+: error", run.stdout, re.M):
        found.add((tree / name, int(line) - 1))
    # An error inside a template says where it comes from further up.
    for name, line in re.findall(r"(src/\S+\.cc):(\d+):\d+:\s+required from", run.stdout):
        found.add((tree / name, int(line) - 1))
    if not found:
        sys.exit(run.stdout[-4000:])
    return found


def draw(options):
    tree = options.tree.resolve()
    source = defects(tree, random.Random(options.seed))
    originals = {f: f.read_text() for folder in FOLDERS for f in (tree / folder).glob("*.cc")}
    chosen, refused, k = {}, set(), 0
    while True:
        while len(chosen) < options.count:
            defect = next(source)
            place = defect[0], defect[1]
            if place not in refused and all((d[0], d[1]) != place for d in chosen.values()):
                chosen[k] = defect
                k += 1
        write(tree, originals, chosen)
        wrong = wrong_lines(tree)
        if wrong is None:
            break
        dropped = [k for k, d in chosen.items() if (d[0], d[1]) in wrong]
        print(f"{len(dropped)} of {len(chosen)} do not compile", flush=True)
        if not dropped:
            sys.exit(f"errors outside of the lines that were changed: {sorted(wrong)}")
        for number in dropped:
            refused.add(chosen.pop(number)[:2])
    table = {
        k: f"{d[0].relative_to(tree)}:{d[1] + 1}: {d[2]}: {d[3].strip()} -> {d[5].strip()}"
        for k, d in chosen.items()
    }
    (tree / "mutants.json").write_text(json.dumps(table, indent=1))
    print(f"seed {options.seed}: {len(table)} defects in {tree / 'mutants.json'}")


def passes_in(path):
    """The passes that a source registers and that run alone."""
    from .checks import single_passes  # needs the package, which drawing is to build

    found = re.findall(r"TVM_PASS\w*\(tir,\s*(\w+)", path.read_text())
    return [name for name in found if name in single_passes()]


def run_with(tree, number, command, seconds):
    """The command in a tree, with a defect switched on."""
    env = {**os.environ, "TVM_MUTANT": number, "TVM_NUM_THREADS": "1", "PYTHONPATH": "python"}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=tree, env=env, capture_output=True, text=True,
        timeout=2 * seconds + 60, check=False,
    )  # fmt: skip


def random_run(tree, number, seconds, seed, *more):
    """What random programs say that is wrong, or None."""
    command = ["tests.fuzz", "--seconds", str(seconds), "--no-reduce", "--seed", str(seed), *more]
    run = run_with(tree, number, command, seconds)
    said = [line for line in run.stdout.splitlines() if line.startswith("seed ")]
    if said:
        return said[0]
    failed = run.returncode not in (0, 1) or "Error" in run.stderr
    return f"status {run.returncode}: {run.stderr.strip()[-200:]}" if failed else None


def programs(tree, number, path, options):
    """What random programs say, first with the passes of the file alone, or None."""
    seconds, alone, said = options.seconds, passes_in(path), None
    if alone:
        seconds /= 2
        only = ("--check", "passes", "--pass", ",".join(alone))
        said = random_run(tree, number, seconds, options.seed, *only)
    return said or random_run(tree, number, seconds, options.seed, "--check", options.check)


def tests(tree, number, path, options):
    """What the tests of the file say, or None."""
    files = sorted((tree / "tests" / "tir" / "transform").glob(f"test_{path.stem}*.py"))
    if not files:
        return None
    run = run_with(tree, number, ["pytest", "-x", "-q", *map(str, files)], 120)
    said = (run.stdout.strip() or run.stderr.strip()).splitlines()
    return None if run.returncode == 0 else f"status {run.returncode}: {said[-1] if said else ''}"


ASKED = {"programs": programs, "tests": tests}


def find(tree, number, where, options):
    """(who found a defect: programs, tests, time or nobody; what they said; seconds). That
    something did not end says little: it may be slow on this machine."""
    path, start, late = tree / where.split(":")[0], time.time(), []
    for who in options.order.split(","):
        try:
            said = ASKED[who](tree, number, path, options)
        except subprocess.TimeoutExpired:
            late.append(who)
            continue
        if said is not None:
            return who, said, time.time() - start
    said = f"did not end: {', '.join(late)}" if late else ""
    return "time" if late else "nobody", said, time.time() - start


def run_all(options):
    tree = options.tree.resolve()
    table = json.loads((tree / "mutants.json").read_text())
    numbers = [n for n in table if options.only is None or n in options.only.split(",")]
    healthy = random_run(tree, "-1", 5, options.seed, "--check", options.check)
    if healthy is not None:
        sys.exit(f"without a defect, random programs say: {healthy}")
    found = {who: [] for who in (*ASKED, "time", "nobody")}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = {pool.submit(find, tree, n, table[n], options): n for n in numbers}
        for job in concurrent.futures.as_completed(jobs):
            who, said, seconds = job.result()
            where = f"{jobs[job]}. {table[jobs[job]]}"
            print(f"{where}\n   {who}: {said} ({seconds:.0f} s)", flush=True)
            found[who].append(where)
    count = ", ".join(f"{len(found[who])} by {who}" for who in found)
    print(f"{len(numbers)} defects: found {count}")
    for who in ("tests", "time", "nobody"):
        print(f"found by {who}:", *found[who], sep="\n  ")


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz.mutate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)
    for name, function in {"draw": draw, "run": run_all}.items():
        command = commands.add_parser(name)
        command.set_defaults(function=function)
        command.add_argument("--tree", type=pathlib.Path, required=True, help="the other checkout")
        command.add_argument("--seed", type=int, default=0)
        if name == "draw":
            command.add_argument("--count", type=int, default=100)
            continue
        command.add_argument("--seconds", type=float, default=600, help="for each defect")
        command.add_argument("--jobs", type=int, default=os.cpu_count())
        command.add_argument("--check", default=CHECKS)
        command.add_argument("--order", default="programs,tests", help="who is asked, with commas")
        command.add_argument("--only", help="numbers of defects, with commas")
    options = parser.parse_args()
    options.function(options)


if __name__ == "__main__":
    main()
