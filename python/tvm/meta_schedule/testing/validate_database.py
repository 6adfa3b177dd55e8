# SPDX-License-Identifier: Apache-2.0
"""`python -m tvm.meta_schedule.testing.validate_database`: runs the best records of a database
again and compares what they compute with the programs as they were written."""

import argparse
import sys

import numpy as np
import tvm_ffi

import tvm
from tvm import ir
from tvm.target import Target

from ..arg_info import ArgInfo
from ..builder import BuilderInput, LocalBuilder
from ..database import JSONDatabase
from ..runner import LocalRunner, RunnerInput
from ..runner.utils import run_evaluator_common
from ..task_scheduler.loop import as_written, mean
from ..utils import registered, remove_build_dir
from .tune_utils import generate_input_data

DELIMITOR = "\n" + "-" * 30 + "\n"


def _parse_args(arguments=None):
    parser = argparse.ArgumentParser(prog="validate_database", description=__doc__)
    parser.add_argument("--work-dir", required=True, help="of a tuning run")
    parser.add_argument("--target", default="llvm", help="of the records (llvm: this machine)")
    parser.add_argument("--top-k", type=int, default=10, help="records of each workload (10)")
    parser.add_argument("--timeout", type=float, default=30, help="seconds for one record (30)")
    args = parser.parse_args(arguments)
    if args.top_k < 1:
        parser.error(f"--top-k: expected at least 1, got {args.top_k}")
    return args


def get_device_type(target):
    """The device a target's code runs on, by name."""
    return tvm.device(target).type


def get_runtime_device(target):
    """The first device of a target."""
    return tvm.runtime.device(get_device_type(target), 0)


def check_and_run(func, *args, **kwargs):
    """Calls a function, given itself or the name it is registered by."""
    if isinstance(func, str):
        found = tvm_ffi.get_global_func(func, allow_missing=True)
        if found is None:
            raise ValueError(f"check_and_run: expected a registered function, got {func!r}")
        func = found
    return func(*args, **kwargs)


class OriginalModule:
    """A module as a key: structurally equal ones are the same."""

    def __init__(self, mod):
        self.mod = mod

    def __eq__(self, other):
        return isinstance(other, OriginalModule) and ir.structural_equal(self.mod, other.mod)

    def __hash__(self):
        return ir.structural_hash(self.mod)


def initializer():
    """For worker processes: importing this module registers what they need."""


@registered("tvm.meta_schedule.testing.default_input_generator")
def default_input_generator(mod):
    """Random tensors for the parameters of a module's entry function."""
    infos = ArgInfo.from_entry_func(mod, remove_preproc=False)
    return to_tvm_tensor(
        [generate_input_data([int(e) for e in i.shape], str(i.dtype)) for i in infos]
    )


def to_numpy(a):
    """Tensors as arrays."""
    return [t.numpy() for t in a]


def to_tvm_tensor(a):
    """Arrays as tensors."""
    return [tvm.runtime.tensor(np.asarray(x)) for x in a]


def is_failed_record(record):
    """Whether a record has no measured time."""
    return not record.run_secs or not np.isfinite(mean(record.run_secs))


def print_with_counter_func(counter, total):
    """A function that prints a result as one of many."""

    def print_result(result, *, original_mod=None, scheduled_mod=None, trace=None, **facts):
        shown = " ".join(f"{key}={value}" for key, value in facts.items())
        print(f"[{counter}/{total}] {result} {shown}".rstrip(), flush=True)
        if result != "pass":
            for text in (original_mod, scheduled_mod, trace):
                if text is not None:
                    print(text, end=DELIMITOR)

    return print_result


def make_alloc_arg_and_check(
    inputs, original_mod, scheduled_mod, trace, original_res, original_run_secs, print_result
):
    """(f_alloc_argument, f_run_evaluator) for a LocalRunner: candidates are called with `inputs`,
    what these are afterwards is compared with `original_res`, and `print_result` is told. The
    modules are texts: they go to another process."""

    def alloc_argument(device, args_info, alloc_repeat):
        tensors = lambda: [tvm.runtime.tensor(x, device=device) for x in inputs]
        return [tensors() for _ in range(alloc_repeat)]

    def run_evaluator(rt_mod, device, evaluator_config, repeated_args):
        args = alloc_argument(device, None, 1)[0]
        rt_mod(*args)
        device.sync()
        pairs = zip(to_numpy(args), original_res, strict=True)
        same = all(np.allclose(got, want, rtol=1e-3, atol=1e-3) for got, want in pairs)
        secs = run_evaluator_common(rt_mod, device, evaluator_config, repeated_args)
        print_result(
            "pass" if same else "wrong answer",
            original_mod=original_mod,
            scheduled_mod=scheduled_mod,
            trace=trace,
            original_secs=mean(original_run_secs),
            seconds=mean(secs),
        )
        return secs

    return alloc_argument, run_evaluator


def local_build_and_run(mod, target, device, inputs):
    """(what the arguments are afterwards, seconds of a call), in this process."""
    lib = tvm.compile(mod, target=target)
    args = [tvm.runtime.tensor(x, device=device) for x in inputs]
    lib(*args)
    outputs = to_numpy(args)
    timer = lib.time_evaluator(lib.entry_name if hasattr(lib, "entry_name") else "main", device)
    return outputs, [float(s) for s in timer(*args).results]


def _validate(records, target, builder, runner, number, total):
    """How many of a workload's records are wrong."""
    mod = records[0].workload.mod
    mods = [as_written(mod)] + [r.as_measure_candidate().sch.mod for r in records]
    built = builder.build([BuilderInput(m, target) for m in mods])
    if built[0].error_msg is not None:
        raise ValueError(f"validate_database: the program does not build: {built[0].error_msg}")
    failures = 0
    try:
        for i, (record, lib) in enumerate(zip(records, built[1:], strict=True)):
            error, secs = lib.error_msg, None
            if error is None:
                args = record.args_info or ArgInfo.from_entry_func(mod, remove_preproc=False)
                run = RunnerInput(
                    lib.artifact_path, get_device_type(target), args, built[0].artifact_path
                )
                result = runner.run([run])[0].result()
                error, secs = result.error_msg, result.run_secs
            failures += error is not None
            print_with_counter_func(number + i, total)(
                "pass" if error is None else f"fail: {error}",
                trace=record.trace,
                seconds="-" if secs is None else f"{mean(secs):.3g}",
                recorded=f"{mean(record.run_secs):.3g}",
            )
    finally:
        for lib in built:
            if lib.artifact_path is not None:
                remove_build_dir(str(lib.artifact_path))
    return failures


def main(arguments=None):
    """Checks the records; returns how many are wrong."""
    args = _parse_args(arguments)
    target = Target(args.target)
    database = JSONDatabase(work_dir=args.work_dir, allow_missing=False)
    workloads = {}
    for record in database.get_all_tuning_records():
        fits = record.target is None or str(record.target) == str(target)
        if fits and not is_failed_record(record):
            workloads.setdefault(OriginalModule(record.workload.mod), []).append(record)
    chosen = []
    for records in workloads.values():
        last = {str(r.trace): r for r in records}  # of several measurements
        chosen.append(sorted(last.values(), key=lambda r: mean(r.run_secs))[: args.top_k])
    total = sum(map(len, chosen))
    if total == 0:
        raise ValueError(
            f"validate_database: expected records for {target} in {args.work_dir}, found none"
        )
    builder, runner, done, failures = LocalBuilder(), LocalRunner(timeout_sec=args.timeout), 0, 0
    for records in chosen:
        failures += _validate(records, target, builder, runner, done + 1, total)
        done += len(records)
    print(f"{total - failures} of {total} records are right")
    return failures


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
