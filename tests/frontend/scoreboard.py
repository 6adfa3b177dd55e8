# SPDX-License-Identifier: Apache-2.0
"""Long lists of checks: each in a process of its own, results kept in a file, so that a run can be
stopped and go on, or be shared out."""

import argparse
import json
import multiprocessing
import os
import re
import time
from pathlib import Path

# What is compared runs on processors, and CUDA does not survive the fork of a check.
os.environ["CUDA_VISIBLE_DEVICES"] = ""


def reason_of(error):
    """What a scoreboard says of an exception."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:3])[:240]}"


def _child(pipe, check, name):
    try:
        outcome = check(name)
    except Exception as error:
        outcome = reason_of(error)
    pipe.send(outcome)


def isolated(check, name, limit):
    """What check(name) gives, or raises, as a text; None is well. A process that dies or takes too
    long is one of the reasons."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_child, args=(theirs, check, name))
    process.start()
    theirs.close()
    try:
        outcome = ours.recv() if ours.poll(limit) else f"more than {limit} s"
    except EOFError:
        process.join()
        outcome = f"the process ended with {process.exitcode}"
    if process.is_alive():
        process.join(0.5)
        process.kill()
    process.join()
    return outcome


def read(path):
    """{name: reason} of a file of results; a later line replaces an earlier one."""
    path = Path(path)
    lines = path.read_text().splitlines() if path.exists() else []
    return {row["name"]: row["reason"] for row in map(json.loads, lines)}


def write_section(path, key, lines):
    """Replaces what stands between the marks of a key in a page."""
    path, begin, end = Path(path), f"<!-- {key} -->\n", f"<!-- end of {key} -->"
    before, _, rest = path.read_text().partition(begin)
    _, mark, after = rest.partition(end)
    if not mark:
        raise ValueError(f"{path}: expected the marks of '{key}', got none")
    path.write_text(before + begin + "\n".join(lines) + "\n" + end + after)


def main(doc, names, check, argv=None, table=None):
    """Runs the checks whose whole names match one of the patterns, or all, or a share of them;
    prints those that fail. With --docs the lines of table(results) go to that page."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("names", nargs="*", default=[".*"], help="regular expressions")
    parser.add_argument(
        "--results", type=Path, help="file of results, whose rows are not run again"
    )
    parser.add_argument("--again", action="store_true", help="run those that failed again")
    parser.add_argument("--shard", default="0/1", help="i/n: every n-th, from i")
    parser.add_argument("--report", action="store_true", help="run nothing, show the results")
    parser.add_argument("--limit", type=int, default=300, help="seconds for each")
    parser.add_argument("--time", type=float, default=1e9, help="seconds for all; the rest is left")
    if table is not None:
        parser.add_argument("--docs", type=Path, help="page that gets the scoreboard")
    options = parser.parse_args(argv)
    index, count = map(int, options.shard.split("/"))
    pattern = re.compile("|".join(f"(?:{name})" for name in options.names))
    wanted = [name for name in sorted(names) if pattern.fullmatch(name)][index::count]
    known = read(options.results) if options.results else {}
    if options.again:
        known = {name: reason for name, reason in known.items() if reason is None}
    results = {name: known[name] for name in wanted if name in known}
    end = time.monotonic() + options.time
    for name in wanted:
        begin = time.monotonic()
        if name in results or options.report or begin > end:
            continue
        results[name] = reason = isolated(check, name, min(options.limit, end - begin + 20))
        seconds = round(time.monotonic() - begin, 1)
        if options.results:
            with options.results.open("a") as file:
                row = {"name": name, "reason": reason, "seconds": seconds}
                file.write(json.dumps(row) + "\n")
        if reason is not None:
            print(f"{name}: {reason}", flush=True)
    passed = sum(reason is None for reason in results.values())
    print(f"{passed} passed, {len(results) - passed} failed")
    if table is not None and options.docs:
        write_section(options.docs, table.__name__, table(results))
    return results
