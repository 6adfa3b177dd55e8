#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which lines of the passes the random programs reach. Needs a build with -DTVM_COVERAGE=ON:

cmake -S . -B build-coverage -G Ninja -DTVM_COVERAGE=ON && ninja -C build-coverage
python scripts/pass_coverage.py build-coverage --seconds 120

The lines of TVM_FFI_THROW statements do not count: random programs are valid ones, and tests/error
has the others.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def run_programs(build, seconds):
    """Random programs through the passes; counters of earlier runs are removed first."""
    for counters in build.rglob("*.gcda"):
        counters.unlink()
    env = {**os.environ, "TVM_LIBRARY_PATH": str(build / "lib"), "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, "-m", "tests.fuzz", "--seconds", str(seconds), "--no-reduce"]
    command += ["--keep-going", "--check", "pipeline,passes,compile,kernels"]
    subprocess.run(command, cwd=ROOT, env=env, check=False)


def lines_of(build, part):
    """{source: {line: count}} of the files below src/<part>."""
    found = {}
    for counters in sorted((build / "CMakeFiles/tvm.dir/src" / part).rglob("*.gcda")):
        command = ["gcov", "--json-format", "--stdout", str(counters)]
        output = subprocess.run(command, cwd=build, capture_output=True, text=True, check=True)
        for file in json.loads(output.stdout)["files"]:
            name = os.path.relpath(os.path.join(build, file["file"]), ROOT)
            if name.startswith(f"src/{part}"):
                lines = found.setdefault(name, {})
                for line in file["lines"]:
                    number = line["line_number"]
                    lines[number] = lines.get(number, 0) + line["count"]
    return found


def lines_of_errors(text):
    """The lines of statements that only raise: from TVM_FFI_THROW to the end of the statement."""
    found, inside = set(), False
    for number, line in enumerate(text.splitlines(), 1):
        code = re.sub(r'"(\\.|[^"\\])*"|//.*', '""', line)
        inside = inside or "TVM_FFI_THROW(" in code
        if inside:
            found.add(number)
            inside = not code.split("TVM_FFI_THROW(")[-1].rstrip("} ").endswith(";")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--part", default="tir/transform")
    parser.add_argument("--target", type=float, default=90, help="percent")
    options = parser.parse_args()
    build = options.build.resolve()
    run_programs(build, options.seconds)
    files = lines_of(build, options.part)
    if not files:
        sys.exit(f"expected counters below {build}, got none: was it built with TVM_COVERAGE=ON?")
    errors = 0
    for name, lines in files.items():
        raising = lines_of_errors((ROOT / name).read_text()) & set(lines)
        errors += len(raising)
        for number in raising:
            del lines[number]
    rows = [(sum(map(bool, f.values())), len(f), name) for name, f in files.items()]
    for reached, total, name in sorted(rows, key=lambda row: row[0] / row[1]):
        missing = [n for n, count in sorted(files[name].items()) if not count]
        print(f"{100 * reached / total:5.1f} %  {name}  {_ranges(missing)}")
    reached, total = (sum(row[i] for row in rows) for i in (0, 1))
    print(
        f"{100 * reached / total:.1f} % of {total} lines, target {options.target:.0f} %; "
        f"{errors} lines of TVM_FFI_THROW statements do not count"
    )
    sys.exit(100 * reached < options.target * total)


def _ranges(numbers):
    """[1, 2, 3, 7] -> 1-3 7"""
    result, begin = [], None
    for i, n in enumerate(numbers):
        begin = n if begin is None else begin
        if i + 1 == len(numbers) or numbers[i + 1] != n + 1:
            result.append(f"{begin}-{n}" if n > begin else str(n))
            begin = None
    return " ".join(result)


if __name__ == "__main__":
    main()
