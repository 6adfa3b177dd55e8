# SPDX-License-Identifier: Apache-2.0
"""pickle and copy: a whole object, or an exception."""

import copy
import pickle

import numpy as np
import pytest
import tvm
from tvm import arith, relax, te, tir
from tvm import meta_schedule as ms

from tests.tune import programs


def schedule():
    sch = tir.Schedule(programs.doubled)
    sch.split(sch.get_loops("B")[0], [None, 4])
    return sch


WAYS = {"pickle": lambda x: pickle.loads(pickle.dumps(x)), "deepcopy": copy.deepcopy}
EQUAL = {
    "expression": lambda: tir.Var("x", "int32") + 1,
    "function": lambda: programs.doubled,
    "module": lambda: tvm.IRModule({"main": programs.doubled}),
    "buffer": lambda: tir.decl_buffer((4, 4), "int8"),
    "target": lambda: tvm.target.Target("llvm -num-cores=2"),
    "operator": lambda: tvm.ir.Op.get("tir.exp"),
    "range": lambda: tvm.ir.Range(0, 4),
    "interval": lambda: arith.ConstIntBound(0, 4),
    "array": lambda: tvm.runtime.convert([1, "a", [2.5]]),
    "map": lambda: tvm.runtime.convert({"a": 1}),
    "rule": lambda: ms.schedule_rule.RandomComputeLocation(),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("make", EQUAL.values(), ids=EQUAL)
def test_the_copy_is_equal(make, way):
    value = make()
    again = way(value)
    assert type(again) is type(value) and repr(again) == repr(value)
    if not isinstance(value, tvm.target.Target):  # its text is all of it
        assert tvm.ir.structural_equal(again, value, map_free_vars=True)


@pytest.mark.parametrize("way", [*WAYS.values(), copy.copy], ids=[*WAYS, "copy"])
@pytest.mark.parametrize("dtype", ["float32", "bool", "bfloat16"])
def test_tensors(way, dtype):
    value = tvm.runtime.empty((2, 3), dtype)
    value.copyfrom(np.arange(6).reshape(2, 3) % 2)
    again = way(value)
    assert again.dtype == value.dtype and again.shape == (2, 3)
    np.testing.assert_array_equal(again.numpy(), value.numpy())
    again[0, 0] = 1
    assert value.numpy()[0, 0] == 0


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_passes_do_the_same(way):
    mod = tvm.IRModule({"main": programs.doubled})
    for one in (
        tir.transform.NarrowDataType(16),
        tvm.transform.Sequential([tir.transform.Simplify()]),
    ):
        tvm.ir.assert_structural_equal(way(one)(mod), one(mod))


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_traces_can_be_replayed(way):
    sch = schedule()
    again = tir.Schedule(programs.doubled)
    way(sch.trace).apply_to_schedule(again, remove_postproc=False)
    tvm.ir.assert_structural_equal(again.mod, sch.mod)


def test_a_deep_copy_of_a_schedule_goes_its_own_way():
    sch = schedule()
    before = sch.mod
    again = copy.deepcopy(sch)
    again.vectorize(again.get_loops("B")[-1])
    tvm.ir.assert_structural_equal(sch.mod, before)
    assert not tvm.ir.structural_equal(again.mod, before)


REFUSED = {
    "analyzer": (arith.Analyzer, copy.deepcopy, "Analyzer: cannot be pickled or copied deeply"),
    "database": (ms.database.MemoryDatabase, copy.deepcopy, "cannot be pickled or copied deeply"),
    "schedule": (schedule, pickle.dumps, "Schedule: cannot be pickled .*keep its module"),
    "state": (lambda: schedule().state, pickle.dumps, "ScheduleState: cannot be pickled"),
    "library": (
        lambda: tvm.compile(programs.doubled, "c"),
        pickle.dumps,
        "cannot be pickled; export_library",
    ),
}


@pytest.mark.parametrize("make, way, text", REFUSED.values(), ids=REFUSED)
def test_what_is_more_than_its_fields_is_refused(make, way, text):
    with pytest.raises(TypeError, match=text):
        way(make())


def test_json_of_what_is_more_than_its_fields_is_refused():
    for value in (schedule(), schedule().state):
        with pytest.raises(TypeError, match="not to be loaded"):
            tvm.ir.load_json(tvm.ir.save_json(value))


def test_iterating():
    A = te.placeholder((2, 3), name="A")
    assert [[str(x) for x in row] for row in A] == [
        ["A[0, 0]", "A[0, 1]", "A[0, 2]"], ["A[1, 0]", "A[1, 1]", "A[1, 2]"],
    ]  # fmt: skip
    assert len(list(tir.decl_buffer((3,)))) == 3
    with pytest.raises(TypeError, match="constant size to iterate, got n"):
        list(te.placeholder((te.var("n"),)))


def test_containers_that_contain_themselves():
    loop, table = [], {}
    loop.append(loop)
    table["me"] = [table]
    for value in (loop, table, [1, (loop,)]):
        for call in (
            lambda v: tir.SeqStmt(v),
            lambda v: tir.const(v),
            lambda v: tir.Call("int32", "tir.ret", v),
            lambda v: tvm.runtime.convert(v),
            lambda v: tir.Schedule(programs.doubled).annotate("B", "key", v),
            lambda v: tir.call_extern("int32", "f", v),
            lambda v: tvm.ir.Range(0, v),
            lambda v: v < te.var("n"),
            lambda v: tvm.IRModule({}, attrs={"key": v}),
            lambda v: relax.Function.create_empty([], relax.ObjectStructInfo(), True, {"key": v}),
        ):
            with pytest.raises(RecursionError, match="contains itself|recursion depth"):
                call(value)


def test_an_object_whose_constructor_raised_can_be_shown():
    seen = []

    class Kept(tir.Var):
        def __init__(self):
            seen.append(self)
            super().__init__(None)

    with pytest.raises(TypeError):
        Kept()
    assert repr(seen[0]) == "<Kept without a value>"


def test_a_class_that_forgets_the_constructor_of_its_base():
    class Empty(tir.Var):
        def __init__(self, name):
            pass

    class Full(Empty):
        def __init__(self, name):
            super().__init__(name)
            tir.Var.__init__(self, name, "int32")

    with pytest.raises(TypeError, match=r"Empty.__init__: expected a call of super\(\).__init__"):
        Empty("x")
    assert Full("x").dtype == "int32"
