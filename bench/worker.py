# SPDX-License-Identifier: Apache-2.0
"""Answers the runner, one JSON object per line, with the `tvm` of its own environment."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def serve(requests, answers):
    import programs
    import schedules
    import tuning

    import scripts

    prepared = []

    def unary(name, file):
        import numpy as np

        prepared.append(programs.unary(name, np.load(file)))
        return len(prepared) - 1

    def output(index, file):
        import numpy as np

        np.save(file, prepared[index].output())

    def version():
        import tvm

        return tvm.__version__

    actions = {
        "unary": unary,
        "time": lambda index, number: prepared[index].time(number),
        "output": output,
        "version": version,
        "compile_seconds": programs.compile_seconds,
        "schedule_seconds": schedules.seconds,
        "lower_seconds": programs.lower_seconds,
        "pool_ready_seconds": lambda: programs.pool().ready_seconds(),
        "pool_task_seconds": lambda count: programs.pool().task_seconds(count),
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
