# SPDX-License-Identifier: Apache-2.0
"""`python -m tvm.meta_schedule.testing.distributed_measure_candidates`: measures the records of a
database that have no time yet."""

import argparse

from tvm.target import Target

from ..arg_info import ArgInfo
from ..builder import Builder, BuilderInput
from ..database import JSONDatabase, TuningRecord
from ..runner import Runner, RunnerInput
from ..task_scheduler.loop import device_of
from ..utils import remove_build_dir

BATCH = 64  # candidates that are built together


def _parse_args(arguments=None):
    parser = argparse.ArgumentParser(prog="distributed_measure_candidates", description=__doc__)
    parser.add_argument("--work-dir", required=True, help="of the database")
    return parser.parse_args(arguments)


def measure_candidates(database, builder, runner):
    """Builds and runs every record without a time or a reason why it has none; what comes out
    becomes a record. Returns how many were measured."""
    waiting = [
        r for r in database.get_all_tuning_records() if not r.run_secs and r.error_msg is None
    ]
    for begin in range(0, len(waiting), BATCH):
        batch = waiting[begin : begin + BATCH]
        targets = [Target("llvm") if r.target is None else r.target for r in batch]
        built = builder.build(
            [
                BuilderInput(r.as_measure_candidate().sch.mod, t)
                for r, t in zip(batch, targets, strict=True)
            ]
        )
        for record, target, lib in zip(batch, targets, built, strict=True):
            args = record.args_info or ArgInfo.from_entry_func(
                record.workload.mod, remove_preproc=False
            )
            secs, error = None, lib.error_msg
            if error is None:
                run = RunnerInput(lib.artifact_path, device_of(target), args)
                result = runner.run([run])[0].result()
                secs, error = result.run_secs, result.error_msg
                remove_build_dir(str(lib.artifact_path))
            database.commit_tuning_record(
                TuningRecord(record.trace, record.workload, secs, target, args, error)
            )
    return len(waiting)


def main(arguments=None):
    """Measures on this machine."""
    args = _parse_args(arguments)
    database = JSONDatabase(work_dir=args.work_dir, allow_missing=False)
    count = measure_candidates(database, Builder.create("local"), Runner.create("local"))
    print(f"{count} candidates measured")
    return count


if __name__ == "__main__":
    main()
