# SPDX-License-Identifier: Apache-2.0
"""`python -m tvm.meta_schedule.testing.tune_te`: tunes one of the workloads of te_workload."""

import argparse

from ..tir_integration import compile_tir, tune_tir
from . import te_workload


def _parse_args(arguments=None):
    parser = argparse.ArgumentParser(prog="tune_te", description=__doc__)
    parser.add_argument("--workload", required=True, choices=list(te_workload.CONFIGS))
    parser.add_argument("--index", type=int, default=0, help="of the workload's sizes (0)")
    parser.add_argument("--target", default="llvm", help="(llvm: this machine)")
    parser.add_argument("--num-trials", type=int, required=True)
    parser.add_argument("--work-dir", required=True)
    parser.add_argument("--num-tuning-cores", type=int, help="(all)")
    parser.add_argument("--seed", type=int)
    args = parser.parse_args(arguments)
    sizes = len(te_workload.CONFIGS[args.workload][1])
    if not 0 <= args.index < sizes:
        parser.error(f"--index: expected a number below {sizes}, got {args.index}")
    return args


def main(arguments=None):
    """Tunes; prints the best schedule, and returns the database."""
    args = _parse_args(arguments)
    func = te_workload.create_te_workload(args.workload, args.index)
    database = tune_tir(
        func,
        args.target,
        args.work_dir,
        args.num_trials,
        num_tuning_cores=args.num_tuning_cores or "physical",
        seed=args.seed,
    )
    best = compile_tir(database, func, args.target)
    print("no schedule was found" if best is None else best.trace)
    return database


if __name__ == "__main__":
    main()
