# SPDX-License-Identifier: Apache-2.0
"""Products whose number of rows is known when they run have a schedule for one row."""

import numpy as np
import pytest
import tvm
from tvm import relax, te, tir
from tvm.relax.frontend import nn

DEPTH, COLUMNS = 48, 40


def _product(rows, is_transposed, relu=False):
    x = te.placeholder((rows, 1, DEPTH), "float32", "x")
    w = te.placeholder((COLUMNS, DEPTH) if is_transposed else (DEPTH, COLUMNS), "float32", "w")
    k = te.reduce_axis((0, DEPTH), "k")
    at = (lambda j, k: w[j, k]) if is_transposed else (lambda j, k: w[k, j])
    y = te.compute((rows, 1, COLUMNS), lambda i, o, j: te.sum(x[i, o, k] * at(j, k), k), "y")
    if relu:
        y = te.compute(y.shape, lambda *i: te.max(y(*i), 0.0), "z")
    return te.create_prim_func([x, w, y])


def _conditions(func):
    """The conditions of the scheduled function on the number of rows."""
    func = func.with_attr("target", tvm.target.Target("llvm -mcpu=x86-64-v3 -num-cores=2"))
    func = tir.transform.DefaultSchedule()(tvm.IRModule({"main": func}))["main"]
    found = []

    def visit(node):
        if isinstance(node, tir.IfThenElse) and isinstance(node.condition, tir.EQ):
            found.append(str(node.condition.a))

    tir.stmt_functor.post_order_visit(func.body, visit)
    return found


@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize("relu", [False, True])
def test_results(is_transposed, relu):
    func = _product(tir.Var("m", "int64"), is_transposed, relu)
    assert _conditions(func) == ["m"]
    run = tvm.compile(func, "llvm")
    rng = np.random.default_rng(0)
    w = rng.standard_normal((COLUMNS, DEPTH)).astype("float32")
    for rows in (0, 1, 2, 5, 16):
        x = rng.standard_normal((rows, 1, DEPTH)).astype("float32")
        out = tvm.runtime.tensor(np.full((rows, 1, COLUMNS), 7.0, "float32"))
        given = w if is_transposed else np.ascontiguousarray(w.T)
        run(tvm.runtime.tensor(x), tvm.runtime.tensor(given), out)
        expected = x @ w.T
        expected = np.maximum(expected, 0) if relu else expected
        np.testing.assert_allclose(out.numpy(), expected, rtol=1e-4, atol=1e-4)


def test_what_has_one_schedule():
    m = tir.Var("m", "int64")
    x = te.placeholder((m, DEPTH), "float32", "x")
    k = te.reduce_axis((0, DEPTH), "k")
    assert _conditions(_product(3, True)) == []  # its rows are known
    assert _conditions(te.create_prim_func([x, te.compute((m, DEPTH), lambda *i: x(*i) + 1)])) == []
    sums = te.compute((m,), lambda i: te.sum(x[i, k], k))  # no matrix
    assert _conditions(te.create_prim_func([x, sums])) == []
    n = tir.Var("n", "int64")
    w = te.placeholder((n, DEPTH), "float32", "w")  # its columns are not known either
    both = te.compute((m, n), lambda i, j: te.sum(x[i, k] * w[j, k], k))
    assert _conditions(te.create_prim_func([x, w, both])) == []


def test_weights_that_are_arguments_are_not_copied():
    spec = {"forward": {"x": nn.spec.Tensor((1, "n", DEPTH), "float32")}}
    mod, params = nn.Linear(DEPTH, COLUMNS).export_tvm(spec)
    pipeline = tvm.get_global_func("relax.pipeline._compile")
    with tvm.target.Target("llvm") as target:
        lowered = pipeline(target)(mod)
    names = [v.name_hint for v, f in lowered.functions.items() if isinstance(f, tir.PrimFunc)]
    assert not any("transpose" in name and "NT" not in name for name in names), names
    vm = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    rng = np.random.default_rng(0)
    w, b = (rng.standard_normal([int(d) for d in p.shape]).astype("float32") for _, p in params)
    for length in (1, 3):
        x = rng.standard_normal((1, length, DEPTH)).astype("float32")
        np.testing.assert_allclose(
            vm["forward"](x, w, b).numpy(), x @ w.T + b, rtol=1e-4, atol=1e-4
        )
