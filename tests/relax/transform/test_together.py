# SPDX-License-Identifier: Apache-2.0
"""Passes one after the other on a program with all kinds of nodes: the result is well formed, a
second run changes nothing, and its text is read back exactly."""

import pytest
import tvm
from tvm import ir, relax
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def helper(a: R.Tensor(("k",), "float32")) -> R.Tensor(("k",), "float32"):
        with R.dataflow():
            b = R.add(a, a)
            c = R.multiply(b, a)
            R.output(c)
        return c

    @R.function
    def main(x: R.Tensor(("n",), "float32"), c: R.Tensor((), "bool")) -> R.Tensor(
        ("n",), "float32"
    ):
        n = T.int64()
        cls = Module

        @R.function
        def local(p: R.Tensor(("m",), "float32")) -> R.Tensor(("m",), "float32"):
            q = R.add(p, p)
            u = R.multiply(q, q)  # noqa: F841
            return q

        y = x
        dead = R.add(y, y)  # noqa: F841
        if c:
            t = R.add(y, y)
            z = local(t)
        else:
            s = R.multiply(y, y)
            z = R.add(s, y)
        w = cls.helper(z)
        v = R.match_cast(w, R.Tensor((n,), "float32"))
        return v


PASSES = (
    "Normalize",
    "CanonicalizeBindings",
    "EliminateCommonSubexpr",
    "DeadCodeElimination",
    "ConvertToDataflow",
    "ToNonDataflow",
    "NormalizeGlobalVar",
)


def _check(before, after):
    assert relax.analysis.well_formed(after)
    ir.assert_structural_equal(tvm.script.from_source(after.script()), after)
    assert ir.structural_hash(before) == ir.structural_hash(ir.load_json(ir.save_json(before)))


@pytest.mark.parametrize("name", PASSES)
def test_one_pass(name):
    run = getattr(transform, name)()
    once = run(Module)
    _check(Module, once)
    ir.assert_structural_equal(run(once), once)


def test_all_passes():
    mod = Module
    for name in PASSES:
        mod, before = getattr(transform, name)()(mod), mod
        _check(before, mod)


def test_copies_inlining_and_empty_rewritings():
    main = Module["main"]
    ir.assert_structural_equal(relax.utils.copy_with_new_vars(main), main)
    inlined = main.inline_functions({"helper": Module["helper"]})
    assert relax.analysis.well_formed(inlined)
    assert not list(relax.analysis.all_global_vars(inlined))
    assert relax.PyExprMutator().visit_expr(main).same_as(main)
    assert relax.testing.transform.ApplyEmptyCppMutator()(Module).same_as(Module)


@I.ir_module
class Others:
    """Functions without what passes over a few operators look for, but in a local function."""

    @R.function
    def nothing(x: R.Tensor((4, 4), "float32")):
        with R.dataflow():
            y = R.exp(x)
            R.output(y)
        return y

    @R.function
    def inside(x: R.Tensor((2, 3, 4, 4), "float32"), g: R.Tensor((3,), "float32")):
        @R.function
        def local(p: R.Tensor((2, 3, 4, 4), "float32"), q: R.Tensor((3,), "float32")):
            n = R.nn.batch_norm(p, q, q, q, q, axis=1)
            return n[0]

        y = local(x, g)
        return y


@pytest.mark.parametrize(
    "name",
    [
        "AdjustMatmulOrder", "CallTIRRewrite", "CombineParallelMatmul", "DecomposeOpsForInference",
        "DecomposeOpsForTraining", "ExpandMatmulOfSum", "LowerAllocTensor", "LowerRuntimeBuiltin",
        "ReorderPermuteDimsAfterConcat", "ReorderTakeAfterMatmul",
    ],
)  # fmt: skip
def test_passes_over_few_operators_leave_other_functions_and_find_local_ones(name):
    after = getattr(transform, name)()(Others)
    assert after["nothing"].same_as(Others["nothing"])
    changed = "batch_norm" not in after["inside"].script()
    assert changed == name.startswith("Decompose")


def test_functions_of_a_changed_module_are_found_by_name():
    after = transform.DecomposeOpsForInference()(Others)
    assert after.get_global_var("inside").same_as(Others.get_global_var("inside"))
    del after["inside"]
    assert [v.name_hint for v in after.get_global_vars()] == ["nothing"]
    assert [v.name_hint for v in Others.get_global_vars()] == ["inside", "nothing"]
