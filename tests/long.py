# SPDX-License-Identifier: Apache-2.0
"""Long random runs in pieces: python -m tests.long --seconds 3600 [--only programs,graphs]

A piece is a kind of run with seeds of its own and takes about a minute. Pieces can be spread over
machines (--shard 2/4) and gone on with after an end (--state FILE remembers which are done). The
exit status says whether a piece failed; its output, with the seed, is printed.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[1]
RUNS = {
    "programs": ["tests.fuzz"],
    "schedules": ["tests.fuzz.schedule"],
    "graphs": ["tests.fuzz.graph"],
    "rules": ["tests.fuzz.rules"],
    "calls": ["tests.fuzz.calls"],
    "onnx": ["tests.fuzz.onnx_files"],
    "archives": ["tests.fuzz.archive_files"],
    "executables": ["tests.fuzz.executable_files"],
}
SEEDS = 1_000_000  # between two pieces


def pieces(names, seed):
    """(name, first seed) without end, each kind in turn."""
    while True:
        for name in names:
            yield name, seed
        seed += SEEDS


def run(name, seed, seconds):
    """Whether a piece was well; its output is printed when it was not."""
    command = [sys.executable, "-m", *RUNS[name], "--seed", str(seed), "--seconds", str(seconds)]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=seconds + 600
        )
    except subprocess.TimeoutExpired as late:
        print(f"{name}, seed {seed}: no end after {late.timeout:.0f} s", flush=True)
        return False
    lines = done.stdout.strip().splitlines()
    print(f"{name}, seed {seed}: {lines[-1] if lines else done.returncode}", flush=True)
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n", flush=True)
    return done.returncode == 0


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.long", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300, help="for everything")
    parser.add_argument(
        "--piece", type=float, help="seconds for one; else a minute, or every kind's share"
    )
    parser.add_argument("--only", default=",".join(RUNS), help="names of runs, with commas")
    parser.add_argument("--seed", type=int, default=0, help="of the first pieces")
    parser.add_argument("--shard", default="1/1", help="which of how many parts, such as 2/4")
    parser.add_argument("--state", type=pathlib.Path, help="file of the pieces that are done")
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := [name for name in names if name not in RUNS]:
        parser.error(f"--only: expected some of {', '.join(RUNS)}, got {unknown[0]}")
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
        if run(*piece, left):
            done.append(list(piece))
        else:
            well = False
        if options.state:
            options.state.write_text(json.dumps(done))
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
