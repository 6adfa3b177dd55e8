# SPDX-License-Identifier: Apache-2.0
"""How small simplified index expressions are, and how long it takes, here and in the peer:

python -m bench.simplify_size --peer .venv-peer-tvm/bin/python --count 100000

Random expressions are written as nested lists; a worker process per compiler simplifies them and
reports the number of nodes of each result and the CPU time of simplifying it, with what is known of
its variables told to a new analyzer each time."""

import argparse
import json
import os
import random
import subprocess
import sys
import time

NAMES = "ijkn"
BINARY = ["add", "add", "add", "sub", "sub", "mul", "floordiv", "floordiv", "floormod", "floormod"]
BINARY += ["min", "max", "select"]
COMPARE = ["lt", "le", "eq", "ne", "gt", "ge"]


def number(rng, depth):
    if depth == 0 or rng.random() < 0.12:
        return rng.choice(NAMES) if rng.random() < 0.75 else rng.randint(-12, 12)
    op = rng.choice(BINARY)
    a = number(rng, depth - 1)
    if op == "select":
        return [op, condition(rng, depth - 1), a, number(rng, depth - 1)]
    if op in ("floordiv", "floormod", "mul"):
        return [op, a, rng.randint(1, 12)]
    return [op, a, number(rng, depth - 1)]


def condition(rng, depth):
    if depth > 0 and rng.random() < 0.4:
        op = rng.choice(["and", "or", "not"])
        args = [condition(rng, depth - 1) for _ in range(1 if op == "not" else 2)]
        return [op, *args]
    return [rng.choice(COMPARE), number(rng, max(depth - 1, 0)), number(rng, max(depth - 1, 0))]


def programs(seed, count):
    """[expression, ranges of some variables] each."""
    rng = random.Random(seed)
    for _ in range(count):
        make = number if rng.random() < 0.7 else condition
        ranges = {n: [0, rng.randint(1, 16)] for n in NAMES if rng.random() < 0.6}
        yield [make(rng, rng.randint(2, 4)), ranges]


def written(seed, count):
    """One line of text for each."""
    return [json.dumps(p) for p in programs(seed, count)]


def worker():
    """Reads programs, one per line; writes size, text and time of each simplified expression."""
    import tvm

    try:
        from tvm import arith, tir
    except ImportError:  # their newer names
        from tvm import sym as arith
        from tvm import tirx as tir
    nodes = {
        "add": tir.Add,
        "sub": tir.Sub,
        "mul": tir.Mul,
        "floordiv": tir.FloorDiv,
        "floormod": tir.FloorMod,
        "min": tir.Min,
        "max": tir.Max,
        "select": tir.Select,
        "lt": tir.LT,
        "le": tir.LE,
        "gt": tir.GT,
        "ge": tir.GE,
        "eq": tir.EQ,
        "ne": tir.NE,
        "and": tir.And,
        "or": tir.Or,
        "not": tir.Not,
    }

    def build(e, env):
        if isinstance(e, str):
            return env[e]
        if isinstance(e, int):
            return tir.IntImm("int32", e)
        return nodes[e[0]](*(build(a, env) for a in e[1:]))

    def size(e):
        parts = ("a", "b", "condition", "true_value", "false_value", "value", "var", "body")
        kids = [getattr(e, p) for p in parts if hasattr(e, p)]
        kids = [k for k in kids if not isinstance(k, (int, str, float))]
        args = list(e.args) if hasattr(e, "args") else []
        return 1 + sum(size(k) for k in (*kids, *args))

    for line in sys.stdin:
        expr, ranges = json.loads(line)
        env = {n: tir.Var(n, "int32") for n in NAMES}
        built = build(expr, env)
        begin = time.process_time()
        analyzer = arith.Analyzer()
        for name, (low, extent) in ranges.items():
            analyzer.bind(env[name], tvm.ir.Range.from_min_extent(low, extent))
        simple = analyzer.simplify(built)
        seconds = time.process_time() - begin
        print(json.dumps([size(simple), str(simple), seconds]))


def run(python, lines):
    command = [python, __file__, "--worker"]
    env = dict(os.environ)
    if python != sys.executable:
        env.pop("PYTHONPATH", None)  # it would name this package
    text = "\n".join(lines)
    result = subprocess.run(command, input=text, text=True, capture_output=True, env=env)
    if result.returncode:
        raise RuntimeError(f"{python}: {result.stderr[-2000:]}")
    return [json.loads(line) for line in result.stdout.splitlines()]


def seconds(python, lines):
    """CPU time per expression."""
    return sum(r[2] for r in run(python, lines)) / len(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", action="store_true")
    parser.add_argument("--peer", help="the Python of an environment with the peer")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=10, help="how many larger results to print")
    args = parser.parse_args()
    if args.worker:
        return worker()
    if args.peer is None:
        parser.error("--peer: expected the Python of an environment with the peer")
    lines = written(args.seed, args.count)
    ours, peers = run(sys.executable, lines), run(args.peer, lines)
    larger = [i for i in range(len(lines)) if ours[i][0] > peers[i][0]]
    smaller = sum(o[0] < p[0] for o, p in zip(ours, peers, strict=True))
    print(f"{len(lines)} expressions: {100 * (1 - len(larger) / len(lines)):.2f} % no larger than")
    print(f"the peer's, {100 * smaller / len(lines):.2f} % smaller")
    mine, theirs = (sum(r[2] for r in results) / len(lines) for results in (ours, peers))
    print(f"{1e6 * mine:.1f} us of CPU time each, the peer's / ours: {theirs / mine:.2f}")
    for i in larger[: args.show]:
        print(f"{lines[i]}\n  ours {ours[i][0]}: {ours[i][1]}\n  peer {peers[i][0]}: {peers[i][1]}")


if __name__ == "__main__":
    main()
