# SPDX-License-Identifier: Apache-2.0
"""`python -m bench NAME...`: measures us and the peers alternately and prints ratios."""

import argparse
import json
import os
import sys


def parse(arguments):
    from .cases import CASES
    from .peers import SUBJECTS

    names = {name: case.__doc__ for name, case in CASES.items()}
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description=__doc__,
        epilog="\n".join(f"  {name:13} {' '.join(doc.split())}" for name, doc in names.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", help="benchmarks to run (all of them)")
    parser.add_argument("--rounds", type=int, default=15, help="samples of each subject (15)")
    parser.add_argument("--seconds", type=float, default=0.03, help="length of a sample (0.03)")
    parser.add_argument("--threads", type=int, default=1, help="for everyone (1, pinned)")
    cpu_time = "measure CPU time instead of wall time: for one thread on a busy machine"
    parser.add_argument("--cpu-time", action="store_true", help=cpu_time)
    parser.add_argument("--without", action="append", default=[], help="leave a subject out")
    parser.add_argument("--peers", help="measure these alone beside us, with commas")
    parser.add_argument("--seed", type=int, default=0, help="of the random data (0)")
    parser.add_argument("--batch", type=int, default=1, help="of whole models (1)")
    limit = "seconds after which the benchmarks of tuning begin no further workload"
    parser.add_argument("--limit", type=float, default=float("inf"), help=limit)
    parser.add_argument("--json", help="also write the rows to this file, for bench.compare")
    keep = "also put the rows into the file of this kind of CPU in bench/results"
    parser.add_argument("--keep", action="store_true", help=keep)
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in CASES]
    if unknown:
        parser.error(f"expected names out of {', '.join(CASES)}; got {', '.join(unknown)}")
    options.peers = options.peers.split(",") if options.peers else None
    unknown = [name for name in options.peers or () if name not in SUBJECTS]
    if unknown:
        parser.error(f"--peers: expected some of {', '.join(SUBJECTS)}; got {', '.join(unknown)}")
    if options.rounds < 2:
        parser.error(f"--rounds: expected at least 2, got {options.rounds}")
    if options.cpu_time and options.threads != 1:
        parser.error(f"--cpu-time: expected one thread, got --threads {options.threads}")
    return options


def main(arguments):
    from . import peers, report, results
    from .cases import CASES

    options = parse(arguments)
    peers.pin(options.threads)
    os.environ["BENCH_CLOCK"] = "cpu" if options.cpu_time else "wall"
    subjects, notes = peers.installed(options.without, options.peers)
    for note in notes:
        print("note:", note)
    rows, failures = [], []
    for name in options.names or CASES:
        try:
            rows += CASES[name](name, subjects, options)
        except Exception as error:  # the other benchmarks still have something to say
            failures.append(f"{name}: {type(error).__name__}: {error}")
    for subject in subjects:
        subject.close()
    print(report.table(rows))
    run = {"cpu": peers.cpu_model(), "threads": options.threads, "rows": report.as_json(rows)}
    if options.json:
        with open(options.json, "w") as file:
            json.dump(run, file, indent=1)
    if options.keep:
        print("kept in", results.keep(run))
    sys.exit("\n".join(failures) if failures else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
