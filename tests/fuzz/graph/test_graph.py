# SPDX-License-Identifier: Apache-2.0
"""A short run of the random graphs, and the tools around them."""

import collections

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import op
from tvm.relax.testing.evaluate import Mismatch

from .checks import CHECKS, complaint, difference
from .generate import Program, generate
from .kinds import kinds, rare
from .reduce import reduced


@pytest.mark.parametrize("check", CHECKS)
def test_random_graphs(check):
    for seed in range({"compiled": 5, "toggled": 5}.get(check, 25)):
        program = generate(seed)
        said = complaint(check, program)
        assert said is None, f"seed {seed}: {said}\n{program.module.script()}"


# Each once made a pass, the parser or the generator wrong.
@pytest.mark.parametrize(
    "seed, check",
    [
        (0, "roundtrip"),
        (49, "legalized"),
        (376, "passes"),
        (496, "passes"),
        (8008394, "roundtrip"),
        (3368, "passes"),  # float16 is not float32
        (100655, "passes"),  # an item of a tuple, outside of the block that made it
        (200141, "legalized"),  # a dimension was said to be less than is known of it
        (301352, "evaluated"),  # an element of nothing
        (400794, "passes"),  # a scalar beside a tensor in low precision
        (2006976, "evaluated"),  # a part of a tensor is a tensor of its own
    ],
)
def test_seeds_that_failed(seed, check):
    assert complaint(check, generate(seed)) is None


def test_a_seed_is_one_program():
    for seed in range(5):
        a, b = generate(seed), generate(seed)
        tvm.ir.assert_structural_equal(a.module, b.module)
        assert difference(tuple(a.args), tuple(b.args)) is None


def test_every_kind_occurs():
    """In at least one program of a hundred."""
    counts = collections.Counter()
    for seed in range(300):
        counts.update(kinds(generate(seed).module))
    assert not rare(counts, 300)
    del counts["relax.expr.If"]
    assert rare(counts, 300) == ["relax.expr.If"]


def _program():
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo([2, 3], "float32"))
    with bb.function("main", [x]):
        a = bb.emit(op.tanh(x))
        b = bb.emit(op.sin(a))
        c = bb.emit(op.matmul(b, op.permute_dims(a)))
        bb.emit_func_output(bb.emit(op.add(c, c)))
    return Program(0, bb.get(), [np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)])


def test_a_wrong_pass_is_found_and_the_program_reduced():
    @relax.expr_functor.mutator
    class Wrong(relax.PyExprMutator):
        def visit_call_(self, call):
            call = super().visit_call_(call)
            return op.cos(call.args[0]) if call.op.name == "relax.sin" else call

    def fails(program):
        module = program.module.clone()
        module["main"] = Wrong(module).visit_expr(module["main"])
        return difference(program.evaluate(), program.evaluate(module)) is not None

    program = _program()
    assert fails(program)
    smaller = reduced(program, fails)
    bindings = [b for block in smaller.module["main"].body.blocks for b in block.bindings]
    assert [b.value.op.name for b in bindings][-1] == "relax.sin" and len(bindings) <= 2
    assert fails(smaller)


def test_values_that_are_not_what_is_said_are_found():
    program = _program()
    program.args = [np.zeros((3, 2), "float32")]
    with pytest.raises(Mismatch, match="expected 2|got 3"):
        program.evaluate()
