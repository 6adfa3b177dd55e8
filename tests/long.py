# SPDX-License-Identifier: Apache-2.0
"""Long random runs in pieces: python -m tests.long --seconds 3600 [--only programs,graphs]

A piece is a kind of run with seeds of its own and takes about a minute. Pieces can be spread over
machines (--shard 2/4) and gone on with after an end (--state FILE remembers which are done). The
exit status says whether a piece failed; its output, with the seed, is printed.

`--sample` is one piece of every kind that does the same on every machine, however fast: so many
programs, graphs or files as take about five minutes on two cores.
"""

import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[1]
# kind: its module, and how many make a minute of one core
RUNS = {
    "programs": ("tests.fuzz", 1500),
    "schedules": ("tests.fuzz.schedule", 1200),
    "graphs": ("tests.fuzz.graph", 700),
    "rules": ("tests.fuzz.rules", 30_000),
    "calls": ("tests.fuzz.calls", 24),
    "onnx": ("tests.fuzz.onnx_files", 200_000),
    "archives": ("tests.fuzz.archive_files", 8000),
    "executables": ("tests.fuzz.executable_files", 80_000),
}
SEEDS = 1_000_000  # between two pieces


def pieces(names, seed):
    """(name, first seed) without end, each kind in turn."""
    while True:
        for name in names:
            yield name, seed
        seed += SEEDS


def run(name, seed, limit, amount):
    """Whether a piece was well, of so many `--seconds` or `--programs`; its output is printed when
    it was not."""
    command = [sys.executable, "-m", RUNS[name][0], "--seed", str(seed), limit, str(amount)]
    longest = 600 + (amount if limit == "--seconds" else 1200)
    begin = time.time()
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=longest)
    except subprocess.TimeoutExpired as late:
        print(f"{name}, seed {seed}: no end after {late.timeout:.0f} s", flush=True)
        return False
    lines, took = done.stdout.strip().splitlines(), time.time() - begin
    said = lines[-1] if lines else done.returncode
    print(f"{name}, seed {seed}: {said} ({took:.0f} s)", flush=True)
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n", flush=True)
    return done.returncode == 0


def sample(names, seed):
    """Whether one piece of each kind was well, two at a time."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        pieces = [pool.submit(run, name, seed, "--programs", RUNS[name][1]) for name in names]
        return all([piece.result() for piece in pieces])


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.long", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300, help="for everything")
    parser.add_argument(
        "--piece", type=float, help="seconds for one; else a minute, or every kind's share"
    )
    parser.add_argument("--sample", action="store_true", help="one piece of a fixed size each")
    parser.add_argument("--only", default=",".join(RUNS), help="names of runs, with commas")
    parser.add_argument("--seed", type=int, default=0, help="of the first pieces")
    parser.add_argument("--shard", default="1/1", help="which of how many parts, such as 2/4")
    parser.add_argument("--state", type=pathlib.Path, help="file of the pieces that are done")
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := [name for name in names if name not in RUNS]:
        parser.error(f"--only: expected some of {', '.join(RUNS)}, got {unknown[0]}")
    if options.sample:
        print(f"seed {options.seed}, a sample", flush=True)
        return 0 if sample(names, options.seed) else 1
    shard, count = map(int, options.shard.split("/"))
    length = options.piece or min(60, options.seconds / len(names))
    done = []
    if options.state and options.state.exists():
        done = json.loads(options.state.read_text())
    print(f"seed {options.seed}, shard {options.shard}, {len(done)} pieces done before", flush=True)
    end, well = time.time() + options.seconds, True
    for i, piece in enumerate(pieces(names, options.seed)):
        if i % count != shard - 1 or list(piece) in done:
            continue
        left = min(length, end - time.time())
        if left < 1:
            break
        if run(*piece, "--seconds", left):
            done.append(list(piece))
        else:
            well = False
        if options.state:
            options.state.write_text(json.dumps(done))
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
