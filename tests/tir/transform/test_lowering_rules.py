# SPDX-License-Identifier: Apache-2.0
"""Rules of users for intrinsics: `register_intrin_lowering`."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.ir import register_intrin_lowering
from tvm.script import tir as T
from tvm.testing.features import host_target

KIND = host_target().split()[0]


def elementwise(op):
    @T.prim_func
    def func(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            B[i] = op(A[i])

    return func


@pytest.fixture
def rule():
    """Registers rules, and takes them back."""
    made = []

    def register(name, f, target=KIND):
        register_intrin_lowering(name, target, f=f, level=99)
        made.append((name, target))

    yield register
    for name, target in made:
        tvm.ir.Op.get(name).reset_attr(f"{target}.FLowerIntrinsic")


def run(func):
    a, b = np.linspace(0, 1, 16, dtype="float32"), np.zeros(16, "float32")
    # The cache on disk knows the program, not the rules.
    tvm.compile(func, target=host_target())(a, b)
    return a, b


def test_a_rule_overrides_ours(rule):
    rule("tir.exp", lambda call: call.args[0] * 2.0 + 1.0)
    a, b = run(elementwise(T.exp))
    np.testing.assert_array_equal(b, a * 2 + 1)


def test_a_rule_of_another_target_does_not_count(rule):
    rule("tir.exp", lambda call: call.args[0] * 2.0, target="opencl")
    a, b = run(elementwise(T.exp))
    np.testing.assert_allclose(b, np.exp(a), rtol=1e-6)


def test_a_rule_for_all_targets(rule):
    rule("tir.exp", lambda call: call.args[0] + 3.0, target="default")
    a, b = run(elementwise(T.exp))
    np.testing.assert_array_equal(b, a + 3)


def test_a_rule_may_use_its_own_operator_and_decline(rule):
    rule("tir.tanh", lambda call: tir.tanh(call.args[0]) + 1.0)
    rule("tir.exp", lambda call: None)
    a, b = run(elementwise(lambda x: T.tanh(x) + T.exp(x)))
    np.testing.assert_allclose(b, np.tanh(a) + 1 + np.exp(a), rtol=1e-6)


def test_an_operator_of_the_user(rule):
    tvm.ir.Op.get("tir.exp")  # its table is there
    rule("tir.twice_of_user", lambda call: call.args[0] * 2.0, target="default")
    op = lambda x: tir.call_intrin("float32", "tir.twice_of_user", x)
    a, b = run(elementwise(op))
    np.testing.assert_array_equal(b, a * 2)


def test_a_rule_that_gives_another_type_is_refused(rule):
    rule("tir.exp", lambda call: tir.Cast("int32", call.args[0]))
    with pytest.raises(TypeError, match="expected a value of float32.* for tir.exp, got int32"):
        run(elementwise(T.exp))
