# SPDX-License-Identifier: Apache-2.0
"""Reports of measurements, and measuring one function with collectors."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm_ffi

from .device import device as _device


@dataclass(frozen=True)
class Count:
    """A number of events."""

    value: int

    def __str__(self):
        return f"{self.value:,}"


@dataclass(frozen=True)
class Duration:
    """A time in microseconds."""

    microseconds: float

    def __str__(self):
        return f"{self.microseconds:,.2f}"


@dataclass(frozen=True)
class Percent:
    """A share, 100 for the whole."""

    percent: float

    def __str__(self):
        return f"{self.percent:.2f}"


@dataclass(frozen=True)
class Ratio:
    """A quotient of two measurements."""

    ratio: float

    def __str__(self):
        return f"{self.ratio:.2f}"


# class -> (its key in JSON, its field); text has the key "string"
_METRICS = {
    Count: ("count", "value"),
    Duration: ("microseconds", "microseconds"),
    Percent: ("percent", "percent"),
    Ratio: ("ratio", "ratio"),
}


def _encode(value):
    for cls, (key, field) in _METRICS.items():
        if isinstance(value, cls):
            return {key: getattr(value, field)}
    return {"string": str(value)}


def _decode(value):
    if isinstance(value, dict) and len(value) == 1:
        ((key, payload),) = value.items()
        if key == "string":
            return payload
        for cls, (name, _) in _METRICS.items():
            if key == name:
                return cls(payload)
    raise ValueError(f"Report: expected a metric such as {{'microseconds': 1.5}}, got {value!r}")


def _amount(value):
    """The number of a metric, or None."""
    field = _METRICS.get(type(value), (None, None))[1]
    return getattr(value, field) if field else None


class Report:
    """Measured calls: one dictionary of metrics per call, metrics per device, and how it was
    measured."""

    def __init__(
        self,
        calls: Iterable[Mapping[str, Any]],
        device_metrics: Mapping[str, Mapping[str, Any]],
        configuration: Mapping[str, Any],
    ) -> None:
        self.calls = [dict(call) for call in calls]
        self.device_metrics = {name: dict(metrics) for name, metrics in device_metrics.items()}
        self.configuration = dict(configuration)

    def _columns(self, calls):
        return list(dict.fromkeys(key for call in calls for key in call))

    def csv(self) -> str:
        """One line per call."""
        columns, text = self._columns(self.calls), io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        for call in self.calls:
            amounts = {key: _amount(value) for key, value in call.items()}
            row = [call.get(c, "") if amounts.get(c) is None else amounts[c] for c in columns]
            writer.writerow(row)
        return text.getvalue()

    def table(self, sort: bool = True, aggregate: bool = True, col_sums: bool = True) -> str:
        """Text for people: calls of one name together, the longest first, sums below."""
        calls = self._aggregated() if aggregate else self.calls
        if sort:
            calls = sorted(calls, key=lambda c: -(_amount(c.get("Duration (us)")) or 0))
        columns = self._columns(calls)
        rows = [[str(call.get(c, "")) for c in columns] for call in calls]
        if col_sums and calls:
            rows.append(["Sum" if i == 0 else self._sum(calls, c) for i, c in enumerate(columns)])
        rows += [[""] * len(columns)] if self.device_metrics else []
        for name, metrics in self.device_metrics.items():
            rows.append([name, *(str(metrics.get(c, "")) for c in columns[1:])])
        widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
        lines = [
            "  ".join(f"{cell:<{w}}" for cell, w in zip(r, widths, strict=True))
            for r in [columns, *rows]
        ]
        lines += [f"{key}: {value}" for key, value in self.configuration.items()]
        return "\n".join(line.rstrip() for line in lines) + "\n"

    @staticmethod
    def _sum(calls, column):
        values = [call.get(column) for call in calls]
        kinds = {type(value) for value in values}
        if len(kinds) != 1 or (kind := kinds.pop()) not in _METRICS or kind is Ratio:
            return ""
        return str(kind(sum(map(_amount, values))))

    def _aggregated(self):
        groups = {}
        for call in self.calls:
            key = tuple((k, str(v)) for k, v in call.items() if _amount(v) is None)
            groups.setdefault(key, []).append(call)
        merged = []
        for group in groups.values():
            row = {}
            for key, value in group[0].items():
                amounts = [_amount(call.get(key)) for call in group]
                together = None not in amounts and not isinstance(value, Ratio)
                row[key] = type(value)(sum(amounts)) if together else value
            row.setdefault("Count", Count(len(group)))
            merged.append(row)
        return merged

    def json(self) -> str:
        """The whole report; from_json reads it."""
        encode = lambda metrics: {key: _encode(value) for key, value in metrics.items()}
        return json.dumps(
            {
                "calls": [encode(call) for call in self.calls],
                "device_metrics": {name: encode(m) for name, m in self.device_metrics.items()},
                "configuration": encode(self.configuration),
            }
        )

    @classmethod
    def from_json(cls, s: str) -> Report:
        """The report of `json()`."""
        data = json.loads(s)
        decode = lambda metrics: {key: _decode(value) for key, value in metrics.items()}
        try:
            calls = [decode(call) for call in data["calls"]]
            devices = {name: decode(m) for name, m in data["device_metrics"].items()}
            return cls(calls, devices, decode(data["configuration"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"Report: expected the JSON text of a report: {error!r}") from error

    def __str__(self):
        return self.table()


class DeviceWrapper:
    """A device, as collectors get it."""

    def __init__(self, dev: Any) -> None:
        self.device = dev


class MetricCollector:
    """Base of collectors: `init` once, then `start` and `stop` round every measured call."""

    def init(self, devices: list[DeviceWrapper]) -> None:
        """Called once with the devices (DeviceWrapper) that are measured."""

    def start(self, device: DeviceWrapper) -> Any:
        """Called before a call; what it returns is handed to `stop`."""

    def stop(self, started: Any) -> dict[str, Any]:
        """Called after a call with what `start` returned, `started`; returns a dictionary."""
        return {}


class PAPIMetricCollector(MetricCollector):
    """Hardware counters through PAPI, which this build does not have."""

    def __init__(self, metric_names: Mapping[Any, Sequence[str]] | None = None) -> None:
        raise NotImplementedError(
            "PAPIMetricCollector: this build has no PAPI; write a MetricCollector"
        )


def marked_times(reset: bool = False) -> dict[int, tuple[int, float]]:
    """{number of a marked part: (how often it ran, its seconds in all)}.

    Code that is compiled with `PassContext(config={"tir.instrument_lwp": True})`, or that calls
    `T.start_profile_intrinsic` and `T.end_profile_intrinsic`, records them. `reset` begins anew.
    """
    times = tvm_ffi.get_global_func("tir._marked_times")(reset)
    return {int(k): (int(v[0]), float(v[1])) for k, v in times.items()}


def profile_function(
    mod: Any,
    dev: Any,
    collectors: Iterable[MetricCollector] | None,
    func_name: str | None = None,
    warmup_iters: int = 10,
) -> Callable[..., dict[str, Any]]:
    """A function that calls `func_name` of `mod` (its entry by default) and returns metrics.

    They are a dictionary: "Duration (us)" and what the collectors add.
    """
    dev = _device(dev)
    function = mod.get_function(func_name, True) if func_name else mod
    wrapper, collectors = DeviceWrapper(dev), list(collectors or ())
    for collector in collectors:
        collector.init([wrapper])

    def profile(*args):
        for _ in range(warmup_iters):
            function(*args)
        dev.sync()
        started = [collector.start(wrapper) for collector in collectors]
        begin = time.perf_counter()
        function(*args)
        dev.sync()
        metrics = {"Duration (us)": Duration((time.perf_counter() - begin) * 1e6)}
        # The last one started is the first to stop: the others measure it, not the reverse.
        for collector, state in zip(reversed(collectors), reversed(started), strict=True):
            metrics.update(collector.stop(state))
        return metrics

    return profile
