# SPDX-License-Identifier: Apache-2.0
"""Databases: what was measured, and the best of it."""

from abc import abstractmethod
from typing import Literal

import tvm_ffi

from tvm import _derive

from ..progress import duration
from ..utils import UserDefined, forward_attributes, stand_for
from ..utils import create as _create


def _function(name):
    return tvm_ffi.get_global_func("meta_schedule._" + name)


def _method(name):
    return tvm_ffi.get_global_func("meta_schedule.Database." + name)


def _shown(self):
    return f"{type(self).__tvm_ffi_type_info__.type_key}({hex(self.__chandle__())})"


@_derive.register_node("meta_schedule.Workload")
class Workload(_derive.Node):
    """A module that was tuned."""

    def __repr__(self):
        names = ", ".join(str(var.name_hint) for var in self.mod.functions)
        return f"meta_schedule.Workload({names}, hash {self.shash & (2**64 - 1):016x})"

    @staticmethod
    def from_json(json_obj):
        """Reads what as_json gave."""
        return _function("workload_from_json")(json_obj)


@_derive.register_node("meta_schedule.TuningRecord")
class TuningRecord(_derive.Node):
    """One measured schedule of a workload; without times a failure, and why it failed."""

    def __repr__(self):
        secs = [float(s) for s in self.run_secs or ()]
        if secs:
            result = duration(sum(secs) / len(secs))
        else:
            result = "not measured" if self.error_msg is None else f"failed: {self.error_msg}"
        steps = len(self.trace.insts)
        what = f"{steps} instructions" if steps else "the default schedule"
        return f"meta_schedule.TuningRecord({result}, {what}, {self.workload}, {self.target})"

    @staticmethod
    def from_json(json_obj, workload):
        """Reads what as_json gave."""
        return _function("tuning_record_from_json")(json_obj, workload)


@_derive.register_node("meta_schedule.Database")
class Database(_derive.Node):
    """A collection of records."""

    _not_pickled = "records are kept in a JSONDatabase, or copied by dump_pruned"

    __repr__ = _shown

    def __len__(self):
        return _function("database_size")(self)

    def get_top_k(self, workload, top_k):
        """The fastest records of a workload, best first; failures are not among them."""
        return list(_method("get_top_k")(self, workload, top_k))

    def get_all_tuning_records(self):
        """All records, in the order they came, failures among them."""
        return list(_method("get_all_tuning_records")(self))

    def query(self, mod, target, *, workload_name="main", kind="schedule"):
        """The best there is for a module and a target: its "schedule", "record" or "ir_module";
        None when there is nothing."""
        kinds = {
            "schedule": self.query_schedule,
            "record": self.query_tuning_record,
            "ir_module": self.query_ir_module,
        }
        return _create(kinds, kind, "Database.query", (mod, target, workload_name), {})

    def __enter__(self):
        _function("enter_database")(self)
        return self

    def __exit__(self, ptype, value, trace):
        _function("exit_database")()

    @staticmethod
    def current():
        """The innermost `with database:`, or None."""
        return _function("current_database")()

    @staticmethod
    def create(kind="json", *args, **kwargs):
        """The database of a kind: "json", "memory", "union", "ordered_union", or a function for
        ScheduleFnDatabase."""
        if callable(kind):
            return ScheduleFnDatabase(kind, *args, **kwargs)
        kinds = {
            "json": JSONDatabase,
            "memory": MemoryDatabase,
            "union": UnionDatabase,
            "ordered_union": OrderedUnionDatabase,
        }
        return _create(kinds, kind, "database", args, kwargs)


Database.DatabaseType = Database | Literal["json", "memory"]
create = Database.create


MemoryDatabase = _derive.node_class("meta_schedule.MemoryDatabase", __name__)


@_derive.register_node("meta_schedule.UnionDatabase")
class UnionDatabase(Database):
    """Answers with the fastest record of several databases."""

    def __init__(self, *databases):
        _derive.construct(self, databases)


@_derive.register_node("meta_schedule.OrderedUnionDatabase")
class OrderedUnionDatabase(Database):
    """Answers with the record of the first database that has one."""

    def __init__(self, *databases):
        _derive.construct(self, databases)


@_derive.register_node("meta_schedule.ScheduleFnDatabase")
class ScheduleFnDatabase(Database):
    """Answers with what a function makes of the schedule."""

    def __init__(self, schedule_fn, module_equality="structural"):
        _derive.construct(self, schedule_fn, module_equality)


@_derive.register_node("meta_schedule.PyDatabase")
class _PyDatabase(Database):
    """The node behind a user-defined database."""


forward_attributes(_PyDatabase)


class PyDatabase(UserDefined):
    """Base of user-defined databases."""

    _key = "meta_schedule.PyDatabase"

    @abstractmethod
    def has_workload(self, mod):
        """Whether the workload is known."""
        raise NotImplementedError

    @abstractmethod
    def commit_workload(self, mod):
        """The workload of a module, added when it is new."""
        raise NotImplementedError

    @abstractmethod
    def commit_tuning_record(self, record):
        """Stores a record."""
        raise NotImplementedError

    @abstractmethod
    def get_top_k(self, workload, top_k):
        """The fastest records of a workload, best first."""
        raise NotImplementedError

    @abstractmethod
    def get_all_tuning_records(self):
        """All records, in the order they came."""
        raise NotImplementedError

    @abstractmethod
    def __len__(self):
        """How many records there are."""
        raise NotImplementedError

    def query_tuning_record(self, mod, target, workload_name=None):
        """The best record of a module for a target, or None."""
        return self._without("query_tuning_record").query_tuning_record(
            mod, target, workload_name or "main"
        )

    def query_schedule(self, mod, target, workload_name=None):
        """The module scheduled by its best record, or None."""
        return self._without("query_schedule").query_schedule(mod, target, workload_name or "main")

    def query_ir_module(self, mod, target, workload_name=None):
        """The module as its best record schedules it, or None."""
        return self._without("query_ir_module").query_ir_module(
            mod, target, workload_name or "main"
        )

    def _without(self, method):
        """A database around this object that lacks one of its methods: with it,
        `super().query_…` would come back here for ever."""
        node = _derive.without_value(_PyDatabase)
        stand_for(node, self, without=(method,))
        return node


from .json_database import JSONDatabase  # noqa: E402
