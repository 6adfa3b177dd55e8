# SPDX-License-Identifier: Apache-2.0
"""Measure callbacks: what happens to results."""

from abc import abstractmethod
from typing import Literal

from ..database import TuningRecord
from ..logging import get_logger
from ..utils import Interface, remove_build_dir
from ..utils import create as _create

logger = get_logger(__name__)


class MeasureCallback(Interface):
    """Called after each round with its candidates and results."""

    @abstractmethod
    def apply(self, task_scheduler, task_id, measure_candidates, builder_results, runner_results):
        """Does something with the results."""
        raise NotImplementedError

    @staticmethod
    def create(kind="default"):
        """The callbacks of a kind: "default"."""
        default = lambda: [AddToDatabase(), RemoveBuildArtifact(), UpdateCostModel()]
        return _create({"default": default}, kind, "measure callbacks", (), {})


MeasureCallback.CallbackListType = list[MeasureCallback] | MeasureCallback | Literal["default"]
create = MeasureCallback.create


class PyMeasureCallback(MeasureCallback):
    """Base of user-defined callbacks."""


class AddToDatabase(MeasureCallback):
    """Commits results, failures among them."""

    def apply(self, task_scheduler, task_id, measure_candidates, builder_results, runner_results):
        database = task_scheduler.database_
        if database is None:
            return
        context = task_scheduler.tasks_[task_id].ctx
        workload = database.commit_workload(context.mod)
        lost, why = 0, None
        for candidate, result in zip(measure_candidates, runner_results, strict=True):
            record = TuningRecord(
                candidate.sch.trace,
                workload,
                result.run_secs,
                context.target,
                candidate.args_info,
                result.error_msg,
                candidate.program,
            )
            try:
                database.commit_tuning_record(record)
            except OSError as error:
                lost, why = lost + 1, error
        if lost:  # a full disk: the records are in memory, and the search goes on
            logger.warning("%d record(s) in memory only: %s", lost, why)


class RemoveBuildArtifact(MeasureCallback):
    """Removes the libraries of the round."""

    def apply(self, task_scheduler, task_id, measure_candidates, builder_results, runner_results):
        for result in builder_results:
            if result.artifact_path is not None:
                remove_build_dir(str(result.artifact_path))


class UpdateCostModel(MeasureCallback):
    """Lets the cost model learn."""

    def apply(self, task_scheduler, task_id, measure_candidates, builder_results, runner_results):
        model = task_scheduler.cost_model_
        context = task_scheduler.tasks_[task_id].ctx
        if model is not None:
            model.update(context, measure_candidates, runner_results)
