# SPDX-License-Identifier: Apache-2.0
"""The order of bindings in dataflow blocks."""

import pytest
from tvm import relax, tir
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tuple(
        R.Tensor((2,), "float32"), R.Tensor((2,), "float32")
    ):
        with R.dataflow():
            b1 = R.exp(x)
            c1 = R.sin(x)
            b2 = R.exp(b1)
            c2 = R.sin(c1)
            d = R.add(c2, b2)
            e = R.cos(x)
            R.output(d, e)
        return (d, e)


def _names(mod):
    assert relax.analysis.well_formed(mod)
    return [b.var.name_hint for b in mod["main"].body.blocks[0].bindings]


@pytest.mark.parametrize(
    "order, direction, expected",
    [
        ("depth-first", "from-inputs", "b1 b2 c1 c2 d e"),
        ("breadth-first", "from-inputs", "b1 c1 e b2 c2 d"),
        ("depth-first", "from-outputs", "c1 c2 b1 b2 d e"),
        ("breadth-first", "from-outputs", "b1 c1 b2 c2 d e"),
    ],
)
def test_orders(order, direction, expected):
    run = transform.TopologicalSort(order, direction)
    after = run(Module)
    assert _names(after) == expected.split()
    assert _names(run(after)) == expected.split()


def test_defaults_and_errors():
    assert _names(transform.TopologicalSort()(Module)) == "b1 b2 c1 c2 d e".split()
    with pytest.raises(ValueError, match="expected order to be 'depth-first' or 'breadth-first'"):
        transform.TopologicalSort("random")(Module)
    with pytest.raises(ValueError, match="expected direction to be .* got 'up'"):
        transform.TopologicalSort(direction="up")(Module)


def test_symbolic_variables_are_defined_before_their_uses():
    bb = relax.BlockBuilder()
    n = tir.Var("n", "int64")
    x = relax.Var("x", R.Tensor(dtype="float32", ndim=1))
    y = relax.Var("y", R.Tensor((2,), "float32"))
    with bb.function("main", [x, y]):
        with bb.dataflow():
            bb.emit(relax.op.exp(y), "a")
            bb.match_cast(x, R.Tensor((n,), "float32"), "b")
            d = bb.emit_output(relax.op.zeros((n,), "float32"), "d")
        bb.emit_func_output(d)
    for order in ("depth-first", "breadth-first"):
        for direction in ("from-inputs", "from-outputs"):
            names = _names(transform.TopologicalSort(order, direction)(bb.get()))
            assert names.index("b") < names.index("d")


def test_long_chains():
    bb = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((2,), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = x
            for _ in range(10000):
                y = bb.emit(relax.op.exp(y))
            y = bb.emit_output(y)
        bb.emit_func_output(y)
    for direction in ("from-inputs", "from-outputs"):
        run = transform.TopologicalSort(direction=direction)
        assert run(bb.get())["main"].same_as(bb.get()["main"])
