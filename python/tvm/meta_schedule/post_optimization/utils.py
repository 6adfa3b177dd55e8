# SPDX-License-Identifier: Apache-2.0
"""Files of records, line by line."""

import contextlib
import json
import os

from ..database import JSONDatabase


def write_file(json_list, log="/tmp/file.json", mode="w"):
    """Writes values as lines of JSON; returns the path."""
    with open(log, mode, encoding="utf-8") as file:
        file.writelines(json.dumps(value) + "\n" for value in json_list)
    return log


def clean_file(filename):
    """Removes a file, if it is there."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(filename)


def get_time(log):
    """The times of all records in a file, in their order; failures have none."""
    with open(log, encoding="utf-8") as file:
        return [secs for line in file for secs in json.loads(line)["secs"] or ()]


def read_cfg_file(path_tuning_file, path_workload_file):
    """{number of a workload: its records that ran, the fastest first}, for those that have some."""
    database = JSONDatabase(path_workload_file, path_tuning_file, allow_missing=False)
    numbers, workloads = {}, {}
    for record in database.get_all_tuning_records():
        number = numbers.setdefault(record.workload.shash, len(numbers))
        workloads.setdefault(number, record.workload)
    best = {n: database.get_top_k(w, len(database)) for n, w in workloads.items()}
    return {n: list(records) for n, records in best.items() if len(records)}
