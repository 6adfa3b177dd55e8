# SPDX-License-Identifier: Apache-2.0
"""Comparison by field lists says what tvm-ffi's comparison says, of random nodes and of edge
cases."""

import itertools
import math
import random

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import ir, relax, tir

from tests.fuzz.graph.generate import generate

_reference = tvm_ffi.get_global_func("ffi.StructuralEqual")


def nodes(root):
    """All nodes below one, each once."""
    found, open_nodes = {}, [root]
    while open_nodes:
        node = open_nodes.pop()
        if node not in found:
            found[node] = True
            ir.VisitChildren(node, open_nodes.append)
    return list(found)


def agree(a, b):
    """What both comparisons say, with and without free variables mapped."""
    said = []
    for map_free_vars in (False, True):
        got = ir.structural_equal(a, b, map_free_vars)
        assert got == _reference(a, b, map_free_vars, False), (a, b, map_free_vars)
        said.append(got)
    return said


@pytest.mark.parametrize("seed", range(12))
def test_nodes_of_random_graphs(seed):
    module = relax.transform.LegalizeOps()(generate(seed).module)
    agree(module, ir.load_json(ir.save_json(module)))
    rng, kinds, equal = random.Random(seed), {}, 0
    for func in module.functions.values():
        for node in nodes(func):
            kinds.setdefault(type(node), []).append(node)
    for kind in kinds.values():
        for _ in range(20):
            equal += any(agree(rng.choice(kind), rng.choice(kind)))
    assert equal


def test_values():
    values = [0, 1, True, 1.0, 0.0, -0.0, math.nan, "a", "long enough for the heap", None]
    values += [tvm.DataType("int32"), tvm.DataType("float32"), [1, [2]], [1, [3]], {"a": [1]}]
    values += [{"a": [2]}, {"b": [1]}, tvm_ffi.Shape((1, 2)), tvm_ffi.Shape((1, 3))]
    for a in map(tvm_ffi.convert, values):
        for b in map(tvm_ffi.convert, values):
            agree(a, b)


def test_variables_map_one_to_one():
    x, y, z = (tir.Var(name, "int32") for name in "xyz")
    assert agree(x + y, y + x) == [False, True]
    assert agree(x + x, y + z) == [False, False]
    assert agree(x + y, z + z) == [False, False]
    assert agree(x + tir.Var("x", "int64").astype("int32"), x + y) == [False, False]
    assert agree(tir.Let(x, 1, x + y), tir.Let(z, 1, z + y)) == [True, True]
    assert agree(tir.Let(x, 1, x + y), tir.Let(z, 1, z + x)) == [False, True]


def test_contents_of_tensors_count():
    make = lambda value: relax.const(np.full(3, value, "float32"))
    assert agree(make(1), make(1)) == [True, True]
    assert agree(make(1), make(2)) == [False, False]


def test_classes_defined_in_python():
    @tvm_ffi.dataclasses.py_class("test.structural_equal.Pair", structural_eq="tree")
    class Pair(tvm_ffi.Object):
        first: int
        second: str

    assert agree(Pair(1, "a"), Pair(1, "a")) == [True, True]
    assert agree(Pair(1, "a"), Pair(1, "b")) == [False, False]


def test_a_difference_has_a_place():
    x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
    one, two = (relax.Function([x], relax.Tuple([x, relax.PrimValue(i)])) for i in (1, 2))
    with pytest.raises(ValueError, match="body"):
        ir.assert_structural_equal(one, two)


def test_what_is_shared_is_looked_at_once():
    """f(y, y) of y = f(x, x), and so on: 2 ** 60 ways lead to x."""

    def func():
        x = y = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
        for _ in range(60):
            y = relax.op.add(y, y)
        return relax.Function([x], y, x.struct_info)

    assert ir.structural_equal(func(), func())
    bb = relax.BlockBuilder()
    assert bb.add_func(func(), "f").same_as(bb.add_func(func(), "g"))


def test_a_chain_deeper_than_the_stack():
    deep = [relax.Var("x", relax.TensorStructInfo((2,), "float32"))] * 2
    for _ in range(20000):
        deep = [relax.Tuple([node]) for node in deep]
    assert ir.structural_equal(*deep)


def test_variables_used_before_they_are_defined():
    """What was equal then need not be equal any more."""
    x, y = (tir.Var(name, "int32") for name in "xy")
    sums = {x: x + 1, y: y + 1}  # compared again in the body
    make = lambda first, bound, last: sums[first] + tir.Let(bound, 1, sums[last])
    orders = list(itertools.product((x, y), repeat=3))
    for (first, bound, last), other in itertools.product(orders, repeat=2):
        bodies = last.same_as(other[2]) if not last.same_as(bound) else True
        same = bodies and last.same_as(bound) == other[2].same_as(other[1])
        expected = first.same_as(other[0]) and same
        assert ir.structural_equal(make(first, bound, last), make(*other)) == expected
    info = relax.TensorStructInfo((2,), "float32")
    v, w = (relax.Var(name, info) for name in "vw")

    def sequence(first, bound, last):
        p = relax.Var("p", relax.TupleStructInfo([info]))
        bindings = [relax.VarBinding(p, relax.Tuple([first])), relax.VarBinding(bound, last)]
        return relax.SeqExpr([relax.BindingBlock(bindings)], last)

    programs = [sequence(*order) for order in itertools.product((v, w), repeat=3)]
    for a, b in itertools.product(programs, repeat=2):
        agree(a, b)
