# SPDX-License-Identifier: Apache-2.0
"""Reports and collectors."""

import numpy as np
import pytest
import tvm
from tvm import runtime
from tvm.runtime.profiling import (
    Count,
    Duration,
    MetricCollector,
    PAPIMetricCollector,
    Percent,
    Ratio,
    Report,
    profile_function,
)

CALLS = [
    {"Name": "add", "Duration (us)": Duration(2.0), "Percent": Percent(20.0), "Ratio": Ratio(0.5)},
    {"Name": "mul", "Duration (us)": Duration(5.0), "Percent": Percent(50.0), "Ratio": Ratio(0.25)},
    {"Name": "add", "Duration (us)": Duration(3.0), "Percent": Percent(30.0), "Ratio": Ratio(0.5)},
]


def report():
    return Report(CALLS, {"cpu0": {"Duration (us)": Duration(11.0)}}, {"Threads": Count(2)})


def test_table():
    assert report().table() == (
        "Name  Duration (us)  Percent  Ratio  Count\n"
        "add   5.00           50.00    0.50   2\n"
        "mul   5.00           50.00    0.25   1\n"
        "Sum   10.00          100.00          3\n"
        "\n"
        "cpu0  11.00\n"
        "Threads: 2\n"
    )
    plain = report().table(sort=False, aggregate=False, col_sums=False).splitlines()
    assert [line.split()[0] for line in plain[1:4]] == ["add", "mul", "add"]
    assert str(report()) == report().table()


def test_csv_and_json():
    lines = report().csv().splitlines()
    assert lines[:2] == ["Name,Duration (us),Percent,Ratio", "add,2.0,20.0,0.5"]
    again = Report.from_json(report().json())
    assert again.calls == CALLS and again.json() == report().json()
    for bad in ("{}", '{"calls": [{"a": 1}], "device_metrics": {}, "configuration": {}}', "[]"):
        with pytest.raises(ValueError, match="Report: expected"):
            Report.from_json(bad)
    assert runtime.Report is Report


class Collector(MetricCollector):
    def init(self, devices):
        self.devices = [d.device for d in devices]

    def start(self, device):
        return 5

    def stop(self, started):
        return {"Events": Count(started)}


def test_profile_function(compile_c, kernels):
    mod = runtime.load_module(compile_c(kernels["two"]))
    x, y = runtime.tensor(np.ones(4, "float32")), runtime.empty((4,))
    collector = Collector()
    metrics = profile_function(mod, tvm.cpu(), [collector], "double", warmup_iters=1)(x, y)
    assert metrics["Events"] == Count(5) and metrics["Duration (us)"].microseconds > 0
    assert collector.devices == [tvm.cpu()] and y.numpy().tolist() == [2, 2, 2, 2]
    with pytest.raises(AttributeError, match="did you mean 'double'"):
        profile_function(mod, tvm.cpu(), [], "doubel")
    with pytest.raises(NotImplementedError, match="no PAPI"):
        PAPIMetricCollector()
