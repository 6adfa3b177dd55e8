# SPDX-License-Identifier: Apache-2.0
"""A module of cases as a program of its own: its tables come as soon as each is there."""

import argparse

from . import peers, report


def main(prog, description, cases):
    """`cases`: {name: what takes the options and gives rows}."""
    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument("names", nargs="*", choices=[[], *cases], default=[])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.03)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    peers.pin(options.threads)
    for name in options.names or cases:
        print(report.table(cases[name](options)), flush=True)
