# SPDX-License-Identifier: Apache-2.0
"""Products in float16 or bfloat16, and what lies between them."""

import numpy as np
import pytest
import tvm
from tvm import ir, relax
from tvm.relax import transform
from tvm.relax.testing.evaluate import Evaluator
from tvm.script import ir as I
from tvm.script import relax as R


def test_products_and_what_follows():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 3), "float32")):
            with R.dataflow():
                a = R.matmul(x, w)
                b = R.nn.relu(a)
                c = R.matmul(b, w)
                d = R.nn.softmax(c)
                R.output(d)
            return d

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 3), "float32")):
            with R.dataflow():
                x1 = R.astype(x, "float16")
                w1 = R.astype(w, "float16")
                a32 = R.matmul(x1, w1, out_dtype="float32")
                a = R.astype(a32, "float16")
                b = R.nn.relu(a)
                c = R.matmul(b, w1, out_dtype="float32")
                d = R.nn.softmax(c)
                R.output(d)
            return d

    after = transform.ToMixedPrecision()(Before)
    ir.assert_structural_equal(after, Expected)
    assert relax.analysis.well_formed(after)
    rng = np.random.default_rng(0)
    args = [rng.uniform(-1, 1, s).astype("float32") for s in ((2, 3), (3, 3))]
    want, got = (Evaluator(m).run("main", args) for m in (Before, after))
    np.testing.assert_allclose(got, want, rtol=1e-2)


def test_accumulator_constants_tuples_and_inputs():
    bb = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((2, 3), "float32"))
    w = relax.const(np.ones((3, 4), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            a = bb.emit(relax.op.matmul(x, w))
            parts = bb.emit(relax.op.split(a, 2, axis=1))
            joined = bb.emit(relax.op.concat([bb.emit(parts[0]), bb.emit(parts[1])], axis=1))
            b = bb.emit(relax.op.matmul(joined, relax.op.permute_dims(w)))
            out = bb.emit_output(relax.op.add(b, x))
        bb.emit_func_output(out)
    mod = bb.finalize()
    after = transform.ToMixedPrecision("float16", ["x"])(mod)
    assert relax.analysis.well_formed(after)
    main = after["main"]
    assert str(main.params[0].struct_info.dtype) == "float16"
    assert str(main.ret_struct_info.dtype) == "float32"
    text = main.script()
    assert "R.wrap_param" in text and "R.concat" in text
    kinds = {
        b.var.name_hint: str(getattr(b.var.struct_info, "dtype", ""))
        for b in main.body.blocks[0].bindings
    }
    assert "float16" in kinds.values()
    args = [np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)]
    want = Evaluator(mod).run("main", args)
    got = Evaluator(after).run("main", [args[0].astype("float16")])
    np.testing.assert_allclose(got, want, rtol=2e-2, atol=2e-2)


def test_what_is_not_a_product_stays():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), i: R.Tensor((2, 3), "int32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.astype(i, "float32")
                c = R.add(a, b)
                R.output(c)
            return c

    ir.assert_structural_equal(transform.ToMixedPrecision()(Module), Module)
    with pytest.raises(ValueError, match="expected out_dtype float32 or float16, got int8"):
        transform.ToMixedPrecision("int8")(Module)
    with pytest.raises(ValueError, match="expected out_dtype float32 or bfloat16, got float16"):
        transform.ToMixedPrecision("float16", dtype="bfloat16")(Module)
    with pytest.raises(ValueError, match="expected dtype float16 or bfloat16, got float64"):
        transform.ToMixedPrecision(dtype="float64")(Module)


def _perceptron():
    rng = np.random.default_rng(0)
    bb = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((8, 64), "float32"))
    weights = [relax.const(rng.uniform(-0.2, 0.2, (64, 64)).astype("float32")) for _ in range(3)]
    with bb.function("main", [x]):
        with bb.dataflow():
            value = x
            for weight in weights:
                value = bb.emit(relax.op.nn.relu(bb.emit(relax.op.matmul(value, weight))))
            out = bb.emit_output(relax.op.nn.softmax(value))
        bb.emit_func_output(out)
    return bb.finalize(), rng.uniform(-1, 1, (8, 64)).astype("float32")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_weights_are_cast_once(dtype):
    """The compiled program holds the weights in low precision and never casts them."""
    mod, x = _perceptron()
    low = transform.ToMixedPrecision(dtype=dtype)(mod)
    assert relax.analysis.well_formed(low)
    assert low["main"].script().count("R.wrap_param") == 3
    folded = transform.FoldConstant()(low)
    held = []
    relax.analysis.post_order_visit(
        folded["main"],
        lambda e: held.append(str(e.data.dtype)) if isinstance(e, relax.Constant) else None,
    )
    assert held == [dtype] * 3 and "wrap_param" not in folded["main"].script()
    want, got = (
        relax.VirtualMachine(tvm.compile(m, "llvm"), tvm.cpu())["main"](x).numpy()
        for m in (mod, low)
    )
    assert np.abs(got - want).max() <= 2e-2 * np.abs(want).max()
