# SPDX-License-Identifier: Apache-2.0
"""A short run of random schedules, and the tools around them."""

from tvm import tir

from . import schedule
from .choices import CALLS, extent


def test_random_schedules():
    fuzzer = schedule.Fuzzer(compile_every=15)
    for seed in range(50):
        said = fuzzer.one(seed)
        assert said is None, said
    # The same programs give the same sequences: what is aimed at is found.
    assert not [name for name in CALLS if hasattr(tir.Schedule, name) and not fuzzer.accepted[name]]


def test_a_wrong_primitive_is_found_and_reduced(monkeypatch):
    def wrong(c):
        """Leaves out the last iteration of a loop."""
        rv, loop = c.loop(lambda n: extent(n) > 1)
        sref = c.sch.get_sref(rv)
        shorter = tir.For(loop.loop_var, loop.min, loop.extent - 1, loop.kind, loop.body)
        c.sch.state.replace(sref, shorter)

    monkeypatch.setitem(CALLS, "annotate", wrong)
    texts = []
    for seed in range(8):
        fuzzer = schedule.Fuzzer(length=3, compile_every=0)
        fuzzer.draw = lambda rng: rng.choice(["annotate", "add_unit_loop", "get_block"])
        texts.append(fuzzer.one(seed))
    found = [text.splitlines()[-1] for text in texts if text]
    assert found
    assert all("annotate" in line and "add_unit_loop" not in line for line in found)
