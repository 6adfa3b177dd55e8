# SPDX-License-Identifier: Apache-2.0
"""Alternating measurement, and the error of a float32 result in units in the last place."""

import dataclasses
import math
import statistics
import time

import numpy as np


@dataclasses.dataclass
class Row:
    """What one subject did in one case; `samples` are of the same rounds for all subjects."""

    case: str
    subject: str
    samples: list
    unit: str = "s"
    ulp: float | None = None

    @property
    def median(self):
        return statistics.median(self.samples)

    @property
    def spread(self):
        """Half the distance between the quartiles, relative to the median."""
        if len(self.samples) == 1:
            return 0.0
        low, _, high = statistics.quantiles(self.samples, n=4)
        return (high - low) / 2 / self.median

    def ratio(self, ours):
        """How many times what we need: the median over rounds, which cancels a drifting clock.
        What takes long was not part of the rounds."""
        if len(self.samples) != len(ours.samples):
            return self.median / ours.median
        return statistics.median(
            p / q if q else math.inf for p, q in zip(self.samples, ours.samples, strict=True)
        )


def calibrate(timed, seconds):
    """(number, seconds of one call): how many calls last about `seconds`; also the warm-up."""
    number = 1
    while True:
        took = timed.time(number)
        if took >= seconds / 2:
            return max(1, round(number * seconds / took)), took / number
        number = max(number * 2, int(number * seconds / max(took, 1e-9) / 2))


# Threads of other subjects spin for a while after their work: on the cores that the next one needs.
QUIET = 0.05
# Seconds of a call that is measured once: no noise hides what matters of it.
SLOW = 2.0


def alternate(subjects, rounds):
    """{name: samples}: every round takes one sample of each, in an order that rotates."""
    names = list(subjects)
    samples = {name: [] for name in names}
    for i in range(rounds):
        for name in names[i % len(names) :] + names[: i % len(names)]:
            samples[name].append(subjects[name]())
    return samples


def medians(ours, theirs, rounds):
    """Median seconds of two calls, each made once a round after one that is not counted."""

    def seconds(call):
        begin = time.perf_counter()
        call()
        return time.perf_counter() - begin

    calls = {who: lambda call=call: seconds(call) for who, call in enumerate((ours, theirs))}
    for call in calls.values():
        call()
    return [statistics.median(samples) for samples in alternate(calls, rounds).values()]


def time_alternating(timed, rounds, seconds):
    """Seconds per call, for {name: Timed or Remote}."""
    calibrated = {name: calibrate(t, seconds) for name, t in timed.items()}
    slow = {name: [took] for name, (_, took) in calibrated.items() if took > SLOW}

    def sample(name):
        def run():
            time.sleep(QUIET)
            timed[name].time(1)  # wakes its own threads
            number = calibrated[name][0]
            return timed[name].time(number) / number

        return run

    return slow | alternate({name: sample(name) for name in timed if name not in slow}, rounds)


def max_ulp(result, exact):
    """The largest error of float32 `result` against float64 `exact`; 0.5 is correct rounding."""
    result, exact = np.asarray(result).ravel(), np.asarray(exact).ravel()
    rounded = exact.astype(np.float32)
    finite = np.isfinite(rounded)
    if not np.array_equal(result[~finite], rounded[~finite], equal_nan=True):
        return float("inf")
    step = np.spacing(np.abs(rounded[finite])).astype(np.float64)
    error = np.abs(result[finite].astype(np.float64) - exact[finite]) / step
    return float(np.max(error, initial=0.0)) if np.all(np.isfinite(error)) else float("inf")
