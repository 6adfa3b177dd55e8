# SPDX-License-Identifier: Apache-2.0
"""Questions about expressions that are small as objects and huge written out."""

import time

import pytest
import tvm
from tvm import arith, tir

X = tir.Var("x", "int32")
C3, C16 = (tir.IntImm("int32", c) for c in (3, 16))
# What one more step makes of an expression. All but "sum" defeat plain folding.
STEPS = {
    "sum": lambda e: tir.Add(e, e),
    "polynomial": lambda e: tir.Add(tir.Mul(e, e), C3),
    "remainder": lambda e: tir.FloorMod(tir.Add(tir.Mul(e, e), C3), C16),
    "least": lambda e: tir.Min(tir.Add(e, C3), tir.FloorDiv(e, C3)),
    "select": lambda e: tir.Select(tir.LT(e, C3), tir.Add(e, C3), tir.Sub(e, C16)),
    "choice": lambda e: tir.if_then_else(tir.LT(e, C3), tir.Add(e, C3), tir.Sub(e, C16)),
}
RANGE = tvm.ir.Range(0, 8)
QUESTIONS = {
    "simplify": lambda e: arith.Analyzer().simplify(e),
    "rewrite_simplify": lambda e: arith.Analyzer().rewrite_simplify(e),
    "canonical_simplify": lambda e: arith.Analyzer().canonical_simplify(e),
    "const_int_bound": lambda e: arith.Analyzer().const_int_bound(e),
    "modular_set": lambda e: arith.Analyzer().modular_set(e),
    "int_set": lambda e: arith.Analyzer().int_set(e, {X: arith.IntervalSet(0, 5)}),
    "can_prove": lambda e: arith.Analyzer().can_prove(tir.LT(e, C16)),
    "detect_linear_equation": lambda e: arith.detect_linear_equation(e, [X]),
    "deduce_bound": lambda e: arith.deduce_bound(X, tir.LT(e, C16), {}, {}),
    "map_indices": lambda e: tir.IndexMap([X], [e], None).map_indices([X + 1]),
}


def shared(step, times):
    e = X
    for _ in range(times):
        e = step(e)
    return e


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_time_grows_with_the_nodes_there_are(step, question):
    """Three times the nodes, and 2^12 times as many written out."""
    seconds = []
    for times in (6, 18):
        e = shared(step, times)
        begin = time.process_time()
        question(e)
        seconds.append(time.process_time() - begin)
    assert seconds[1] < 200 * seconds[0] + 1
