# SPDX-License-Identifier: Apache-2.0
"""Answers the runner, one JSON object per line, with what its own environment has."""

import functools
import gc
import importlib
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def serve(requests, answers):
    import graphs
    import patterns
    import programs
    import schedules
    import tuning

    import scripts

    prepared, shared = [], []

    def prepare(subject, name, files, *more, function="prepare"):
        import numpy as np

        module = importlib.import_module(f"subjects.{subject}")
        if not hasattr(module, function):
            return None
        inputs = [np.load(file) for file in files]
        shared.append(inputs)  # not everyone keeps the memory that it reads
        prepared.append(getattr(module, function)(name, inputs, *more))
        return len(prepared) - 1 if prepared[-1] else None

    def prepare_model(subject, name, seed, batch=1):
        module = importlib.import_module(f"subjects.{subject}")
        if not hasattr(module, "prepare_model"):
            return None
        model = programs.TimedModel(module, name, seed, batch)
        prepared.append(model)
        return len(prepared) - 1, model.compile_seconds, model.memory

    def results(index, file):
        import numpy as np

        np.savez(file, *prepared[index].results())

    def output(index, file):
        import numpy as np

        one = prepared[index]
        if one.output:
            np.save(file, one.output())
        return one.output is not None

    def forget(index):
        prepared[index] = None
        gc.collect()

    def version():
        import tvm

        return tvm.__version__

    actions = {
        "prepare": prepare,
        "prepare_file": functools.partial(prepare, function="prepare_file"),
        "prepare_model": prepare_model,
        "results": results,
        "forget": forget,
        "time": lambda index, number: prepared[index].time(number),
        "in_turns": lambda indices, number: programs.in_turns(
            [prepared[i].call for i in indices], number
        ),
        "output": output,
        "version": version,
        "machine_seconds": programs.machine_seconds,
        "export_memory": programs.export_memory,
        "compile_seconds": programs.compile_seconds,
        "schedule_seconds": schedules.seconds,
        "lower_seconds": programs.lower_seconds,
        "pool_ready_seconds": lambda: programs.pool().ready_seconds(),
        "pool_task_seconds": lambda count: programs.pool().task_seconds(count),
        "pattern_seconds": patterns.seconds,
        "graph_seconds": graphs.seconds,
        "script_seconds": scripts.seconds,
        "seconds_per_trial": tuning.seconds_per_trial,
    }
    for line in requests:
        request = json.loads(line)
        try:
            answer = {"value": actions[request["action"]](*request["args"])}
        except Exception as error:  # the runner reports it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    # What the compiler prints must not end up between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    serve(sys.stdin, answers)
