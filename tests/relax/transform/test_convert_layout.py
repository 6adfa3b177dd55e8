# SPDX-License-Identifier: Apache-2.0
"""Convolutions in other layouts, and what is between them."""

import numpy as np
import pytest
from tvm import ir, relax
from tvm.relax import op, transform
from tvm.relax.testing.evaluate import Evaluator
from tvm.script import ir as I
from tvm.script import relax as R

NHWC = {"relax.nn.conv2d": ["NHWC", "OHWI"]}


def test_one_convolution():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3, 8, 8), "float32"), w: R.Tensor((4, 3, 3, 3), "float32")):
            with R.dataflow():
                a = R.nn.conv2d(x, w)
                b = R.nn.relu(a)
                R.output(b)
            return b

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3, 8, 8), "float32"), w: R.Tensor((4, 3, 3, 3), "float32")):
            with R.dataflow():
                x1 = R.permute_dims(x, axes=[0, 2, 3, 1])
                w1 = R.permute_dims(w, axes=[0, 2, 3, 1])
                a = R.nn.conv2d(x1, w1, data_layout="NHWC", kernel_layout="OHWI", out_layout="NHWC")
                b1 = R.nn.relu(a)
                b2 = R.permute_dims(b1, axes=[0, 3, 1, 2])
                b = b2
                R.output(b)
            return b

    after = transform.ConvertLayout(NHWC)(Before)
    ir.assert_structural_equal(after, Expected)
    assert relax.analysis.well_formed(after)


def _network():
    bb = relax.BlockBuilder()
    shapes = [(1, 4, 6, 6), (4, 4, 3, 3), (4, 1, 1), (4,), (4,), (4,), (4,), (2, 8, 1, 1)]
    params = [relax.Var(f"p{i}", R.Tensor(s, "float32")) for i, s in enumerate(shapes)]
    x, w, bias, gamma, beta, mean, variance, v = params
    with bb.function("main", params):
        with bb.dataflow():
            a = bb.emit(op.add(op.nn.conv2d(x, w, padding=1), bias))
            normal = bb.emit(
                op.nn.batch_norm(a, gamma, beta, mean, variance, axis=1, training=False)
            )
            b = bb.emit(op.nn.relu(bb.emit(normal[0])))
            c = bb.emit(op.concat([b, x], axis=1))
            d = bb.emit(op.nn.max_pool2d(c, (2, 2), (2, 2)))
            e = bb.emit(op.nn.conv2d(d, v))
            parts = bb.emit(op.split(e, 2, axis=1))
            f = bb.emit(op.maximum(bb.emit(parts[0]), bb.emit(parts[1])))
            g = bb.emit(op.mean(f, axis=[2, 3], keepdims=True))
            h = bb.emit_output(op.flatten(op.nn.softmax(op.add(f, g), axis=3)))
        bb.emit_func_output(h)
    return bb.finalize(), shapes


def test_transposes_are_at_the_borders_only():
    mod, shapes = _network()
    after = transform.ConvertLayout(NHWC)(mod)
    assert relax.analysis.well_formed(after)
    calls = [b.value for b in after["main"].body.blocks[0].bindings]
    moved = [c for c in calls if isinstance(c, relax.Call) and c.op.name == "relax.permute_dims"]
    # x, w, the bias, v, and the end
    assert len(moved) == 5
    rng = np.random.default_rng(0)
    args = [rng.uniform(0.1, 1, s).astype("float32") for s in shapes]
    legalize = transform.LegalizeOps()
    want, got = (Evaluator(legalize(m)).run("main", args) for m in (mod, after))
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_layouts_by_call():
    mod, _ = _network()
    seen = []

    def choose(call):
        seen.append(call.op.name)
        return NHWC if "padding=[1" in str(call) else {}

    after = transform.ConvertLayout({}, choose)(mod)
    assert relax.analysis.well_formed(after)
    assert after["main"].script().count('data_layout="NHWC"') == 1
    assert "relax.nn.conv2d" in seen


def test_errors():
    mod, _ = _network()
    with pytest.raises(
        ValueError, match="layout of the data to be a permutation of NCHW, got NHWQ"
    ):
        transform.ConvertLayout({"relax.nn.conv2d": ["NHWQ", "OHWI"]})(mod)
    with pytest.raises(ValueError, match="expected the layouts of data, weight and maybe"):
        transform.ConvertLayout({"relax.nn.conv2d": ["NHWC"]})(mod)
    with pytest.raises(ValueError, match="expected an operator with a layout rule, got relax.sort"):
        transform.ConvertLayout({"relax.sort": ["NHWC"]})(mod)
    assert transform.ConvertLayout({})(mod)["main"].same_as(mod["main"])
