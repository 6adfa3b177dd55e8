# SPDX-License-Identifier: Apache-2.0
"""PackWeights: products by constant matrices in panels, against NumPy."""

import numpy as np
import pytest
from tvm import relax, tir
from tvm.relax import transform
from tvm.script import relax as R
from tvm.target import Target

from ..legalize.evaluate import evaluate

RNG = np.random.default_rng(0)


def product(shape, weight, dtype="float32", after=lambda y: y):
    x = relax.Var("x", R.Tensor(shape, dtype))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(after(bb.emit(relax.op.matmul(x, weight))))
        bb.emit_func_output(out)
    return bb.get()


@pytest.mark.parametrize(
    "shape, columns",
    [((6, 40), 32), ((1, 1, 40), 64), ((2, 3, 40), 32), ((5, 40), 16 * 16 + 5), ((1, 40), 333)],
)
def test_pack_weights(shape, columns):
    w = RNG.standard_normal((40, columns)).astype("float32")
    bias = RNG.standard_normal(columns).astype("float32")
    mod = product(shape, relax.const(w), after=lambda y: relax.op.add(y, relax.const(bias)))
    packed = transform.PackWeights(16)(mod)
    assert relax.analysis.well_formed(packed)
    lowered = transform.FoldConstant()(transform.LegalizeOps()(packed))
    fused = transform.FuseTIR()(transform.FuseOps()(transform.AnnotateTIROpPattern()(lowered)))
    assert relax.analysis.well_formed(fused)
    x = RNG.standard_normal(shape).astype("float32")
    np.testing.assert_allclose(evaluate(fused, [x]), x @ w + bias, rtol=1e-4, atol=1e-4)
    if columns % 16 == 0:
        (binding,) = fused["main"].body.blocks[0].bindings
        assert tuple(binding.value.args[1][1].data.shape) == (columns // 16, 40, 16)


def test_pack_weights_symbolic_rows():
    n = tir.Var("n", "int64")
    w = RNG.standard_normal((40, 64)).astype("float32")
    packed = transform.PackWeights(16)(product((n, 40), relax.const(w)))
    assert relax.analysis.well_formed(packed)
    x = RNG.standard_normal((7, 40)).astype("float32")
    got = evaluate(transform.FoldConstant()(transform.LegalizeOps()(packed)), [x])
    np.testing.assert_allclose(got, x @ w, rtol=1e-4, atol=1e-4)


def test_pack_weights_of_several_products_once():
    """As in the steps of a recurrent network; its transpose has panels of its own."""
    w = relax.const(RNG.standard_normal((32, 32)).astype("float32"))
    x = relax.Var("x", R.Tensor((1, 32), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(relax.op.matmul(x, w))
            y = bb.emit(relax.op.matmul(y, w))
            y = bb.emit(relax.op.matmul(y, relax.op.permute_dims(w)))
            out = bb.emit_output(relax.op.matmul(y, w))
        bb.emit_func_output(out)
    packed = transform.PackWeights(16)(bb.get())
    assert relax.analysis.well_formed(packed)
    assert packed.script().count("R.permute_dims") == 2
    data, m = RNG.standard_normal((1, 32)).astype("float32"), w.data.numpy()
    got = evaluate(transform.FoldConstant()(transform.LegalizeOps()(packed)), [data])
    want = data.astype("float64") @ m @ m @ m.T @ m
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)


def test_pack_weights_stays_out():
    """Few columns, columns that nearly fill nothing, other types, factors that are not constant."""
    for columns in (8, 40):
        mod = product((4, 40), relax.const(np.ones((40, columns), "float32")))
        assert transform.PackWeights(32)(mod)["main"].same_as(mod["main"])
    half = product((4, 40), relax.const(np.ones((40, 64), "float16"), "float16"), "float16")
    assert transform.PackWeights(32)(half)["main"].same_as(half["main"])
    x = relax.Var("x", R.Tensor((64, 64), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(relax.op.matmul(x, x)))
    mod = bb.get()
    assert transform.PackWeights(32)(mod)["main"].same_as(mod["main"])
    with Target("cuda"):
        assert transform.PackWeights()(half).same_as(half)


@pytest.mark.parametrize("mcpu, width", [("haswell", 16), ("skylake-avx512", 32)])
def test_pack_weights_as_wide_as_two_vectors_of_the_target(mcpu, width):
    mod = product((4, 40), relax.const(np.ones((40, 64), "float32")))
    with Target({"kind": "llvm", "mcpu": mcpu}):
        after = transform.FoldConstant()(transform.PackWeights()(mod))
    binding = after["main"].body.blocks[0].bindings[0]
    assert tuple(binding.value.args[1][1].data.shape) == (64 // width, 40, width)


@pytest.mark.parametrize("columns", [64, 333])
def test_pack_weights_transposed(columns):
    """Panels are made of the matrix as it lies: no transpose of the whole stays."""
    w = RNG.standard_normal((columns, 40)).astype("float32")
    mod = product((3, 40), relax.op.permute_dims(relax.const(w)))
    packed = transform.PackWeights(16)(mod)
    assert relax.analysis.well_formed(packed)
    folded = transform.FoldConstant()(packed)
    x = RNG.standard_normal((3, 40)).astype("float32")
    lowered = transform.LegalizeOps()(folded)
    np.testing.assert_allclose(evaluate(lowered, [x]), x @ w.T, rtol=1e-4, atol=1e-4)
    assert [tuple(p.data.shape) for p in constants(folded)] == [(-(-columns // 16), 40, 16)]
    made = "axes=[0, 2, 1]" if columns % 16 == 0 else "pack_columns"  # with zeros at the end
    assert made in packed.script() and "axes=None" not in packed.script()


def constants(mod):
    found = []
    relax.analysis.post_order_visit(
        mod["main"], lambda e: found.append(e) if isinstance(e, relax.Constant) else None
    )
    return found
