# SPDX-License-Identifier: Apache-2.0
"""What it costs when a number behind the default rules is off by two (src/schedule/rules/costs.h).

`python -m bench.costs build FOLDER` compiles the tree with every number replaced by a variable of
the environment that has its name, copies the libraries to FOLDER, and compiles the tree as it was.
`python -m bench.costs measure FOLDER [NAME…]` halves and doubles each number, compiles the
operators whose code that changes, and times both in turns.

The operators are those of the survey and of `list`. Ratios are the seconds with the number halved
or doubled by those with the number as it is: above 1 the number is better as it is.
"""

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADER = "src/schedule/rules/costs.h"
# One number, or several of one declaration.
DECLARATION = re.compile(r"inline constexpr (\w+) (\w+ = [^;]+);")
SAMPLE, LONGEST = 0.005, 0.5  # seconds: of a sample, at least; of an operator, beyond 3 turns
READ = """#include <cstdlib>
#include <string>
namespace tvm::tir::cost {
inline double Measured(const char* name, double value) {
  const char* given = std::getenv(name);
  return given != nullptr ? std::stod(given) : value;
}
}  // namespace tvm::tir::cost
"""


def numbers(text):
    """{name: value} of a header."""
    found = {}
    for _, declared in DECLARATION.findall(text):
        for one in re.split(r",\s*", declared.replace("\n", " ")):
            name, value = one.split("=")
            found[name.strip()] = eval(value, {})  # such as 1 << 16
    return found


def replaced(text):
    """The header with numbers that are read when the library is loaded."""

    def declare(match):
        kind, declared = match.groups()
        each = re.sub(
            r"(\w+) = ([^,]+)",
            lambda one: f'{one[1]} = static_cast<{kind}>(Measured("{one[1]}", {one[2].strip()}))',
            declared,
        )
        return f"inline const {kind} {each};"

    text = DECLARATION.sub(declare, text)
    return text.replace("#include <cstdint>\n", "#include <cstdint>\n" + READ)


def build(folder):
    """The libraries with such a header, in FOLDER: the tree has it while they are built."""
    header = ROOT / HEADER
    text = header.read_text()
    compile_tree = ["cmake", "--build", ROOT / "build"]
    try:
        header.write_text(replaced(text))
        subprocess.run(compile_tree, check=True)
        shutil.copytree(ROOT / "build/lib", folder, dirs_exist_ok=True)
    finally:
        header.write_text(text)
    subprocess.run(compile_tree, check=True)


# ---- in a process that has loaded those libraries -----------------------------------------------
def _programs():
    """(name, PrimFunc) of operators of known shapes."""
    from tvm import te

    from . import kernels, survey

    for name, func in survey.cases().items():
        if not name.startswith("dynamic"):
            yield name, func
    for name, kernel in (kernels.LISTED | kernels.KERNELS).items():
        inputs = [
            te.placeholder(shape, kernel.dtype, f"x{i}") for i, shape in enumerate(kernel.shapes)
        ]
        yield name, te.create_prim_func([*inputs, kernel.te(te, *inputs)])


def compiled(folder, base, threads, most):
    """Writes digests of all operators; of those that differ from `base`, `most` are exported."""
    import tvm

    from . import survey

    target = tvm.target.Target(f"llvm -num-cores={threads}")
    before = json.loads((base / "digests.json").read_text()) if base else None
    programs = list(_programs())
    digests = {name: survey.digest(func, target) for name, func in programs}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "digests.json").write_text(json.dumps(digests))
    differ = [i for i, (name, _) in enumerate(programs) if before and digests[name] != before[name]]
    for i in differ[:: math.ceil(len(differ) / most) or 1]:
        tvm.compile(programs[i][1], target).export_library(str(folder / f"{i}.so"))
    print(len(differ))


def timed(base, changed, threads, rounds):
    """{operator: seconds as changed / as it is}, the best of samples in turns, of those that are
    in the folder `changed`."""
    import numpy as np
    import tvm

    target = tvm.target.Target(f"llvm -num-cores={threads}")
    clock = time.process_time if threads == 1 else time.perf_counter
    rng, ratios = np.random.default_rng(0), {}
    for i, (name, func) in enumerate(_programs()):
        if not (changed / f"{i}.so").exists():
            continue
        if not (base / f"{i}.so").exists():
            tvm.compile(func, target).export_library(str(base / f"{i}.so"))
        arrays = []
        for param in func.params:
            buffer = func.buffer_map[param]
            tensor = tvm.runtime.empty([int(n) for n in buffer.shape], str(buffer.dtype))
            tensor.copyfrom(rng.integers(1, 4, tensor.shape).astype(tensor.numpy().dtype))
            arrays.append(tensor)
        calls = [tvm.runtime.load_module(str(f / f"{i}.so"))["main"] for f in (base, changed)]

        def sample(call, number, arrays=arrays):
            begin = clock()
            for _ in range(number):
                call(*arrays)
            return clock() - begin

        number = 1
        while sample(calls[0], number) < SAMPLE:
            number *= 2
        best, begin = [math.inf, math.inf], clock()
        for turn in range(2 * rounds):
            best[turn % 2] = min(best[turn % 2], sample(calls[turn % 2], number))
            if turn >= 5 and turn % 2 and clock() - begin > LONGEST:
                break
        ratios[name] = best[1] / best[0]
    return ratios


# ---- the parent ----------------------------------------------------------------------------------
def _child(folder, threads, step, *arguments, **variables):
    env = os.environ | variables
    env |= {"TVM_LIBRARY_PATH": str(folder), "TVM_NUM_THREADS": str(threads)}
    env["TVM_CACHE_LIMIT_MB"] = "0"  # the cache's keys know nothing of these variables
    command = [sys.executable, "-m", "bench.costs", step, *map(str, arguments)]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{step} with {variables}: {done.stderr[-2000:]}")
    return done.stdout


def scaled(value, factor):
    """Half or twice a number; of a ratio that says how much more is tolerated, what is beyond 1."""
    return 1 + (value - 1) * factor if 0.5 < value < 2 and value != 1 else value * factor


def cell(differ, ratios):
    """What the ratios of operators come to, out of so many whose code differs, and who is off by a
    tenth."""
    if not ratios:
        return "no code differs"
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    text = f"{mean:.2f} ({len(ratios)} of {differ})"
    for name in dict.fromkeys((max(ratios, key=ratios.get), min(ratios, key=ratios.get))):
        if not 0.9 < ratios[name] < 1.1:
            text += f"; {ratios[name]:.2f} {name}"
    return text


def measure(folder, names, threads, rounds, most):
    """Prints a row of a table in Markdown for each number."""
    values = numbers((ROOT / HEADER).read_text())
    if unknown := set(names) - set(values):
        sys.exit(f"expected names out of {', '.join(values)}; got {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as scratch:
        base = Path(scratch) / "base"
        _child(folder, threads, "compiled", base, "-", threads, most)
        print("| number | is | halved | doubled |\n| --- | --- | --- | --- |", flush=True)
        for name in names or values:
            row = []
            for factor in (0.5, 2):
                changed = Path(scratch) / f"{name}-{factor}"
                variables = {name: str(scaled(values[name], factor))}
                step = ("compiled", changed, base, threads, most)
                differ, found = int(_child(folder, threads, *step, **variables)), "{}"
                if differ:
                    found = _child(folder, threads, "timed", base, changed, threads, rounds)
                row.append(cell(differ, json.loads(found)))
                shutil.rmtree(changed)
            print(f"| `{name}` | {values[name]} | {row[0]} | {row[1]} |", flush=True)


def _step(name, *arguments):
    """What a child does; arguments are words of its command line."""
    if name == "compiled":
        to, base, threads, most = arguments
        compiled(Path(to), None if base == "-" else Path(base), int(threads), int(most))
    else:
        base, changed, threads, rounds = arguments
        print(json.dumps(timed(Path(base), Path(changed), int(threads), int(rounds))))


def main(arguments):
    if arguments and arguments[0] in ("compiled", "timed"):
        _step(*arguments)
        return
    parser = argparse.ArgumentParser(
        prog="python -m bench.costs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=["build", "measure"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="numbers to measure (all of them)")
    parser.add_argument("--threads", type=int, default=1, help="of the kernels; one: CPU time")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--most", type=int, default=12, help="operators to time, of those that differ"
    )
    options = parser.parse_intermixed_args(arguments)
    folder = options.folder.resolve()
    if options.what == "build":
        build(folder)
    else:
        measure(folder, options.names, options.threads, options.rounds, options.most)


if __name__ == "__main__":
    main(sys.argv[1:])
