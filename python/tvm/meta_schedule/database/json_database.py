# SPDX-License-Identifier: Apache-2.0
"""Records in files."""

import os
import os.path as osp

import tvm_ffi

from tvm import _derive

from . import Database

_create_file = tvm_ffi.get_global_func("meta_schedule._create_file")


@_derive.register_node("meta_schedule.JSONDatabase")
class JSONDatabase(Database):
    """Records in two files of JSON lines, `database_workload.json` and
    `database_tuning_record.json` of `work_dir` unless paths are given. Several processes may write
    them at the same time.

    Parameters
    ----------
    allow_missing : whether files that do not exist are made.
    module_equality : "structural", "ignore-tensor" or "anchor-block".
    """

    def __init__(
        self,
        path_workload=None,
        path_tuning_record=None,
        *,
        work_dir=None,
        allow_missing=True,
        module_equality="structural",
    ):
        if work_dir is not None:
            path_workload = path_workload or osp.join(work_dir, "database_workload.json")
            path_tuning_record = path_tuning_record or osp.join(
                work_dir, "database_tuning_record.json"
            )
        if path_workload is None or path_tuning_record is None:
            raise ValueError(
                "JSONDatabase: expected work_dir, or both path_workload and path_tuning_record"
            )
        for path in (path_workload, path_tuning_record):
            if allow_missing:
                folder = osp.dirname(osp.abspath(path))
                try:
                    os.makedirs(folder, exist_ok=True)
                except OSError as error:
                    raise OSError(
                        f"JSONDatabase: cannot make the folder {folder}: {error.strerror}"
                    ) from None
                _create_file(str(path))
            elif not osp.exists(path):
                raise FileNotFoundError(f"JSONDatabase: expected the file {path} to exist")
        _derive.construct(self, str(path_workload), str(path_tuning_record), module_equality)
