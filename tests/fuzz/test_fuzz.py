# SPDX-License-Identifier: Apache-2.0
"""A short run of the random programs, and the tools around them."""

import pytest
import tvm
import tvm.testing
from tvm import tir
from tvm.script import tir as T

from . import programs
from .checks import CHECKS, complaint
from .kinds import KINDS, rare


@pytest.mark.parametrize("check", CHECKS)
def test_random_programs(check):
    make = programs.generate_kernel if check == "kernels" else programs.generate
    for seed in range({"compile": 6, "kernels": 10}.get(check, 25)):
        program = make(seed)
        said = complaint(check, program)
        assert said is None, f"seed {seed}: {said}\n{program.module.script()}"


def test_a_seed_is_one_program():
    for seed in range(5):
        a, b = programs.generate(seed), programs.generate(seed)
        tvm.ir.assert_structural_equal(a.module, b.module)
        assert a.module.script() == b.module.script()


def test_every_node_kind_occurs():
    """In at least one program of a hundred."""
    assert len(KINDS) > 45
    found = programs.shares(programs.generate(seed) for seed in range(500))
    assert not rare(found)
    found.pop("tir.While")
    assert rare(found) == ["tir.While"]


def test_minimise_keeps_what_fails():
    @T.prim_func
    def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in T.parallel(8):
            B[i] = A[i] + 1
        if B[0] > 3:
            for i in range(8):
                B[i] = A[i] * (A[7 - i] + 2) - T.max(A[i], 5)
        x: T.int32 = A[0] + B[0]
        A[1] = x

    def has_max(module):
        return programs.node_kinds(module)["tir.Max"] > 0

    module = tvm.IRModule({"main": main})
    smaller = tvm.testing.minimise(module, has_max)
    kinds = programs.node_kinds(smaller)
    assert kinds["tir.Max"] == 1 and not {"tir.For", "tir.IfThenElse", "tir.LetStmt"} & set(kinds)
    with pytest.raises(ValueError, match="expected a module that fails"):
        tvm.testing.minimise(smaller, lambda module: False)


def test_a_wrong_pass_is_found():
    """The comparison notices a program that computes something else."""

    @tir.transform.prim_func_pass(opt_level=0)
    def wrong(func, mod, ctx):
        def change(node):
            return tir.Sub(node.a, node.b) if isinstance(node, tir.Add) else None

        return func.with_body(tir.stmt_functor.ir_transform(func.body, None, change))

    found = 0
    for seed in range(30):
        program = programs.generate(seed)
        if program.features or "tir.While" in programs.node_kinds(program.module):
            continue  # cannot be run, or would never end
        try:
            result = program.interpret(wrong(program.module))
            found += program.difference(program.interpret(), result) is not None
        except IndexError:
            found += 1
    assert found > 5
