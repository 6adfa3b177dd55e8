# SPDX-License-Identifier: Apache-2.0
"""A sample of bad calls of every function: none ends the process."""

import random

from .call_values import Values
from .calls import functions, sweep

PARTS = (
    "arith.", "instrument.", "ir.", "meta_schedule.", "relax.", "target.", "te.", "tir.", "topi.",
    "transform.",
)  # fmt: skip


def test_bad_calls_end_no_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some functions write files
    chosen = [f for f in sorted(functions().items()) if f[0].startswith(PARTS)]
    made, deaths = sweep(chosen, range(3), Values(), report=lambda text: None)
    some = random.Random(0).sample(chosen, 200)
    more, others = sweep(some, range(3, 27), Values(), report=lambda text: None)
    assert deaths + others == [], f"{made + more} calls"


def test_a_death_is_seen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def dies(value):
        import os

        os.abort() if value is None else None

    assert sweep([("dies", (dies, ["int"]))], [0], Values(), report=lambda text: None) == (
        1, [("dies", 0, "SIGABRT")],
    )  # fmt: skip
