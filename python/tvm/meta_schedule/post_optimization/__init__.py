# SPDX-License-Identifier: Apache-2.0
"""Refining the best schedules of a finished run, one decision at a time."""

import itertools
import json
import math
import os

from tvm import tir
from tvm.target import Target

from ..builder import BuilderInput, LocalBuilder
from ..database import JSONDatabase, TuningRecord
from ..logging import get_logger
from ..runner import LocalRunner, RunnerInput
from ..task_scheduler.loop import device_of, mean
from ..utils import remove_build_dir
from .utils import clean_file, get_time, read_cfg_file, write_file

logger = get_logger(__name__)
MOST_TILES = 10000  # ways to divide one loop that are considered


def _tiles(extent, parts, innermost):
    """The ways to write `extent` as a product of `parts` factors, at most MOST_TILES of them."""
    if parts == 1:
        return [[extent]] if extent <= innermost else []
    divisors = [d for d in range(1, extent + 1) if extent % d == 0]
    tiles = ([d, *rest] for d in divisors for rest in _tiles(extent // d, parts - 1, innermost))
    return list(itertools.islice(tiles, MOST_TILES))


class Space:
    """The decisions of a record's trace and the values that each may take.

    A point has an index into the values for each decision; neighbours along one of them differ
    little.
    """

    def __init__(self, data, workload, target):
        self.record, self.workload, self.target = data, workload, Target(target)
        self.trace = data.trace
        self.knobs, self.values = [], []
        for inst, decision in self.trace.decisions.items():
            values = self._values(inst, decision)
            if values and len(values) > 1:
                self.knobs.append(inst)
                self.values.append(values)

    @staticmethod
    def _values(inst, decision):
        kind = str(inst.kind.name)
        if kind == "SampleCategorical":
            return list(range(len(inst.attrs[0])))
        if kind == "SamplePerfectTile":
            tile = [int(t) for t in decision]
            innermost = int(inst.attrs[1]) if len(inst.attrs) > 1 else math.prod(tile)
            return sorted(_tiles(math.prod(tile), len(tile), innermost), key=lambda t: t[::-1])
        return None

    def __len__(self):
        return math.prod(len(v) for v in self.values)

    def __repr__(self):
        return f"Space({' x '.join(str(len(v)) for v in self.values)} = {len(self)} schedules)"

    def start(self):
        """The point of the record itself."""
        point = []
        for inst, values in zip(self.knobs, self.values, strict=True):
            decision = self.trace.decisions[inst]
            if not isinstance(values[0], int):
                decision = [int(t) for t in decision]
            point.append(values.index(decision))
        return tuple(point)

    def get_value(self, key, pos):
        """The value with index `pos` of the decision with number `key`."""
        return self.values[key][pos]

    def template(self, values):
        """The schedule of a point, or None where it is not possible."""
        trace = self.trace
        for inst, options, at in zip(self.knobs, self.values, values, strict=True):
            trace = trace.with_decision(inst, options[at], False)
        sch = tir.Schedule(self.workload.mod)
        try:
            trace.apply_to_schedule(sch, False)
        except Exception as error:  # this choice does not go with the others
            logger.debug("%s", error)
            return None
        return sch


class Droplet:
    """Follows the decisions downhill: measures the neighbours of the best point, moves to the best
    of them, and looks further away where none is better."""

    def __init__(self, json_file, workload_file, target, log=None, pvalue=0.05):
        self.database = JSONDatabase(workload_file, json_file)
        self.target, self.log, self.pvalue = Target(target), log, pvalue
        self.builder, self.runner = LocalBuilder(), LocalRunner()
        records = [r for r in self.database.get_all_tuning_records() if self._fits(r)]
        if not records:
            raise ValueError(
                f"Droplet: expected records with decisions for {self.target}, found none"
            )
        self._begin(min(records, key=lambda r: mean(r.run_secs)))

    def _fits(self, record):
        """Whether the record is one to start from: the default schedule decides nothing."""
        same = record.target is None or str(record.target) == str(self.target)
        return bool(record.run_secs) and same and len(record.trace.decisions) > 0

    def _begin(self, record):
        self.space = Space(record, record.workload, self.target)
        self.best, self.best_secs = self.space.start(), mean(record.run_secs)
        self.step, self.seen, self.waiting = 1, {self.best}, []

    def has_next(self):
        """Whether there are points left that may be better."""
        self.waiting = self.waiting or self.search_space(self.step)
        while not self.waiting and self.step < max(map(len, self.space.values), default=0):
            self.step *= 2
            self.waiting = self.search_space(self.step)
        return bool(self.waiting)

    def search_space(self, factor=1):
        """The new points `factor` away from the best one along each decision."""
        found = []
        for key, values in enumerate(self.space.values):
            for at in (self.best[key] - factor, self.best[key] + factor):
                point = (*self.best[:key], at, *self.best[key + 1 :])
                if 0 <= at < len(values) and point not in self.seen:
                    found.append(point)
        return found

    def next_batch(self, batch_size):
        """The next points, with their schedules."""
        batch = []
        while len(batch) < batch_size and self.has_next():
            point = self.waiting.pop(0)
            self.seen.add(point)
            sch = self.space.template(point)
            if sch is not None:
                batch.append((point, sch))
        return batch

    def update(self, results):
        """Moves to the best of the results [(point, seconds)], if it is better."""
        point, secs = min(results, key=lambda item: item[1], default=(None, math.inf))
        if secs < self.best_secs * (1 - self.pvalue / 10):
            self.best, self.best_secs, self.step, self.waiting = point, secs, 1, []

    def tune(self, n_trial=100):
        """Measures up to `n_trial` points; every one becomes a record of the database."""
        record, left = self.space.record, n_trial
        while left > 0 and (batch := self.next_batch(min(left, 16))):
            left -= len(batch)
            built = self.builder.build([BuilderInput(s.mod, self.target) for _, s in batch])
            results = []
            for (point, sch), lib in zip(batch, built, strict=True):
                secs, error = None, lib.error_msg
                if error is None:
                    run = RunnerInput(
                        lib.artifact_path,
                        device_of(self.target),
                        record.args_info,
                        None,
                        self.best_secs,
                    )
                    measured = self.runner.run([run])[0].result()
                    secs, error = measured.run_secs, measured.error_msg
                self.database.commit_tuning_record(
                    TuningRecord(
                        sch.trace, record.workload, secs, self.target, record.args_info, error
                    )
                )
                if secs:
                    results.append((point, mean(secs)))
            for path in {os.path.dirname(str(b.artifact_path)) for b in built if b.artifact_path}:
                remove_build_dir(os.path.join(path, "lib.so"))
            self.update(results)
        if self.log is not None:
            with open(self.log, "w", encoding="utf-8") as file:
                json.dump({"seconds": self.best_secs, "point": self.best}, file)
        return self.best_secs


class PostOpt:
    """Refines the best schedule of every workload in a work directory; what is measured becomes
    records there."""

    def __init__(self, work_dir, target, trials=100):
        self.work_dir, self.target, self.trials = work_dir, Target(target), trials

    def run(self):
        """Refines them all."""
        files = [
            os.path.join(self.work_dir, f"database_{name}.json")
            for name in ("tuning_record", "workload")
        ]
        for file in files:
            if not os.path.exists(file):
                raise FileNotFoundError(f"PostOpt: expected {file}, written by a tuning run")
        droplet = Droplet(*files, self.target)
        for records in read_cfg_file(*files).values():
            best = next(filter(droplet._fits, records), None)
            if best is None:
                continue
            droplet._begin(best)
            before = droplet.best_secs
            after = droplet.tune(self.trials)
            logger.info("PostOpt: %.3f us -> %.3f us", before * 1e6, after * 1e6)
