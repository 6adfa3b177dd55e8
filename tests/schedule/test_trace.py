# SPDX-License-Identifier: Apache-2.0
"""Traces: replay, texts, decisions, simplification."""

import json

import pytest
import tvm
from tvm import tir
from tvm.tir.schedule import Instruction, InstructionKind, Trace

from .checking import apply
from .programs import dynamic, elementwise, matmul


def sampled():
    sch = tir.Schedule(matmul, seed=5)
    i, j, k = sch.get_loops("C")
    tiles = sch.sample_perfect_tile(i, 2, max_innermost_factor=8)
    i0, i1 = sch.split(i, tiles)
    sch.parallel(i0)
    sch.get_loops("C")  # nobody uses these
    step = sch.sample_categorical([0, 16, 64], [0.2, 0.3, 0.5])
    sch.annotate("C", "unroll", step)
    sch.enter_postproc()
    sch.unroll(i1)
    return sch


def test_python():
    lines = list(map(str, sampled().trace.as_python()))
    assert lines[:2] == [
        'b0 = sch.get_block(name="C", func_name="main")',
        "l1, l2, l3 = sch.get_loops(block=b0)",
    ]
    assert lines[2].startswith(
        "v4, v5 = sch.sample_perfect_tile(loop=l1, n=2, max_innermost_factor=8, decision=["
    )
    assert lines[3] == (
        "l6, l7 = sch.split(loop=l1, factors=[v4, v5], preserve_unit_iters=True, "
        "disable_predication=False)"
    )
    assert lines[-2:] == ["sch.enter_postproc()", "sch.unroll(loop=l7)"]
    text = str(sampled().trace)
    assert text.splitlines()[1] == "def apply_trace(sch: tir.Schedule) -> None:"


def test_one_result_of_a_list():
    sch = tir.Schedule(matmul)
    sch.get_child_blocks(sch.get_block("root"))
    assert sch.trace.as_python()[1] == "b1, = sch.get_child_blocks(block_or_loop=b0)"


def test_json():
    sch = sampled()
    data = json.loads(json.dumps(sch.trace.as_json(), default=list))
    insts, decisions = data
    assert insts[0] == ["GetBlock", [], ["C", "main"], ["b0"]]
    assert insts[3] == ["Split", ["l1", "v4", "v5"], [True, False], ["l6", "l7"]]
    assert [d[0] for d in decisions] == [2, 7]
    again = tir.Schedule(matmul)
    Trace.apply_json_to_schedule(data, again)
    tvm.ir.assert_structural_equal(sch.mod, again.mod)
    without = sch.trace.as_json(remove_postproc=True)
    assert len(without[0]) == len(insts) - 2


def test_json_of_neighbours():
    """Attributes that were added later, and None written as text."""
    sch = tir.Schedule(elementwise)
    Trace.apply_json_to_schedule(
        [
            [
                ["GetBlock", [], ["B", "main"], ["b0"]],
                ["GetLoops", ["b0"], [], ["l1", "l2"]],
                ["Split", ["l1", "None", 4], [True], ["l3", "l4"]],
            ],
            [],
        ],
        sch,
    )
    assert len(sch.get_loops("B")) == 3


@pytest.mark.parametrize(
    "data, match",
    [
        ([], "expected \\[instructions, decisions\\], got a list of 0"),
        ([[["Splat", [], [], []]], []], "got 'Splat', did you mean 'Split'"),
        ([[["GetLoops", ["b0"], [], []]], []], "defined before, got 'b0'"),
        ([[["GetLoops", [], [], []]], []], "expected 1 inputs and 0 attributes of GetLoops"),
        ([[["GetBlock", [], ["C", None], []]], []], "expected 0 results of GetBlock, got 1"),
        ([[["GetBlock", []]], []], "expected \\[kind, inputs, attrs, outputs\\]"),
        ([1, []], "expected a list of instructions"),
        ([[], [[0]]], "expected \\[index, value\\]"),
    ],
)
def test_bad_json(data, match):
    with pytest.raises(ValueError, match=match):
        Trace.apply_json_to_schedule(data, tir.Schedule(matmul))


def test_replay_leaves_out_postprocessing():
    sch = sampled()
    again = tir.Schedule(matmul)
    sch.trace.apply_to_schedule(again, remove_postproc=True)
    assert len(again.trace.insts) == len(sch.trace.insts) - 2


def test_decisions():
    sch = sampled()
    (tile,) = [i for i in sch.trace.insts if i.kind.name == "SamplePerfectTile"]
    old = list(sch.trace.get_decision(tile))
    assert old[0] * old[1] == 16
    trace = sch.trace.with_decision(tile, [2, 8], remove_postproc=False)
    assert list(trace.get_decision(tile)) == [2, 8]
    assert list(sch.trace.get_decision(tile)) == old
    again = tir.Schedule(matmul)
    trace.apply_to_schedule(again, remove_postproc=False)
    assert [int(again.get(l).extent) for l in again.get_loops("C")[:2]] == [2, 8]
    assert sch.trace.get_decision(sch.trace.insts[0]) is None


def test_decision_provider():
    sch = sampled()
    seen = []

    def decide(inst, inputs, attrs, decision):
        seen.append(str(inst.kind.name))
        return [4, 4] if inst.kind.name == "SamplePerfectTile" else decision

    again = tir.Schedule(matmul)
    sch.trace.apply_to_schedule(again, remove_postproc=False, decision_provider=decide)
    assert [int(again.get(l).extent) for l in again.get_loops("C")[:2]] == [4, 4]
    assert len(seen) == len(sch.trace.insts)


def test_simplified():
    sch = sampled()
    simple = sch.trace.simplified(remove_postproc=True)
    assert [str(i.kind.name) for i in simple.insts] == [
        "GetBlock",
        "GetLoops",
        "SamplePerfectTile",
        "Split",
        "Parallel",
        "SampleCategorical",
        "GetBlock",
        "Annotate",
    ]
    assert len(simple.decisions) == 2


def test_append_and_pop():
    sch = sampled()
    trace = Trace([], {})
    for inst in sch.trace.insts:
        trace.append(inst, sch.trace.get_decision(inst))
    again = tir.Schedule(matmul)
    trace.apply_to_schedule(again, remove_postproc=False)
    tvm.ir.assert_structural_equal(sch.mod, again.mod)
    last = trace.pop()
    assert last.kind.name == "Unroll" and len(trace.insts) == len(sch.trace.insts) - 1
    empty = Trace([], {})
    assert empty.pop() is None


def test_instructions_by_hand():
    sch = tir.Schedule(elementwise)
    block = tir.schedule.BlockRV()
    kind = InstructionKind.get("GetBlock")
    assert kind.is_pure and not InstructionKind.get("Split").is_pure
    trace = Trace([Instruction(kind, [], ["B", "main"], [block])], {})
    trace.apply_to_schedule(sch, remove_postproc=False)
    assert len(sch.trace.insts) == 1
    with pytest.raises(ValueError, match="InstructionKind: expected the name of a primitive"):
        InstructionKind.get("Nothing")


def test_show(capsys):
    tir.Schedule(elementwise).show()
    assert "apply_trace" in capsys.readouterr().out


def test_variables_of_the_program():
    """What names a symbolic size is about the program that it is applied to."""

    def primitives(sch):
        n = sch.mod["main"].buffer_map[sch.mod["main"].params[0]].shape[0]
        i, j = sch.get_loops("B")
        sch.annotate_buffer_access(sch.get_block("B"), 0, "read", lambda vi, vj: [(0, n), (0, 8)])
        sch.split(j, [None, n])

    apply(dynamic, primitives, sizes={"n": 3})
