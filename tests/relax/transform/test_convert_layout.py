# SPDX-License-Identifier: Apache-2.0
"""Convolutions in other layouts, and what is between them."""

import numpy as np
import pytest
import tvm
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
    with pytest.raises(
        ValueError, match="an operator whose layouts can be chosen .*, got relax.sort"
    ):
        transform.ConvertLayout({"relax.sort": ["NHWC"]})(mod)
    with pytest.raises(ValueError, match="expected one layout for data and result of"):
        transform.ConvertLayout({"relax.nn.max_pool2d": ["NHWC", "NCHW"]})(mod)
    with pytest.raises(ValueError, match="layout of the weight to be a permutation of OIHW, got"):
        transform.ConvertLayout({"relax.nn.conv2d": ["NCHW", "OIHW4i2i"]})(mod)
    with pytest.raises(AttributeError, match="conv9d"):
        transform.ConvertLayout({"relax.nn.conv9d": ["NCHW", "OIHW"]})(mod)
    assert transform.ConvertLayout({})(mod)["main"].same_as(mod["main"])


# ---- what is between convolutions --------------------------------------------------------------
BLOCKED = {"relax.nn.conv2d": ["NCHW4c", "OIHW4i4o"]}


def _vector(n, dtype="float32"):
    return relax.const(np.linspace(0.5, 1.5, n).astype(dtype))


def _indices(bb, x):
    return relax.const(np.random.default_rng(1).integers(0, 2, (2, 8, 6, 6)))


# Each takes a tensor (2, 8, 6, 6) to one or several tensors; "blocks" where channels may be in
# blocks.
BETWEEN = {
    "relu blocks": lambda bb, x: op.nn.relu(x),
    "bias blocks": lambda bb, x: op.add(x, relax.const(np.ones((8, 1, 1), "float32"))),
    "one bias blocks": lambda bb, x: op.add(x, relax.const(np.ones((1, 1, 1), "float32"))),
    "row blocks": lambda bb, x: op.multiply(x, _vector(6)),
    "where blocks": lambda bb, x: op.where(op.less(x, _vector(6)), x, relax.const(0.5)),
    "clip blocks": lambda bb, x: op.clip(x, 0.1, 0.9),
    "ones_like blocks": lambda bb, x: op.add(op.ones_like(x), x),
    "quantize": lambda bb, x: op.dequantize(
        op.quantize(x, _vector(8), relax.const(np.zeros(8, "int8")), axis=1), _vector(8),
        relax.const(np.zeros(8, "int8")), axis=1),
    "quantize as a whole blocks": lambda bb, x: op.dequantize(
        op.quantize(x, relax.const(0.1), relax.const(np.int8(1))), relax.const(0.1),
        relax.const(np.int8(1))),
    "sum blocks": lambda bb, x: op.sum(x, [2, 3]),
    "sum of channels blocks": lambda bb, x: op.sum(x, [1]),
    "mean kept blocks": lambda bb, x: op.mean(x, [-1], keepdims=True),
    "argmax": lambda bb, x: op.astype(op.argmax(x, 1), "float32"),
    "argmin kept blocks": lambda bb, x: op.astype(op.argmin(x, 2, keepdims=True), "float32"),
    "cumsum": lambda bb, x: op.cumsum(x, 1),
    "sort blocks": lambda bb, x: op.sort(x, 3),
    "topk": lambda bb, x: op.topk(x, 2, axis=1, ret_type="values"),
    "flip": lambda bb, x: op.flip(x, 1),
    "repeat blocks": lambda bb, x: op.repeat(x, 2, 2),
    "take blocks": lambda bb, x: op.take(x, relax.const(np.array([3, 0])), axis=3),
    "gather": lambda bb, x: op.gather_elements(x, _indices(bb, x), axis=1),
    "scatter": lambda bb, x: op.scatter_elements(x, _indices(bb, x), x, axis=2, reduction="add"),
    "softmax": lambda bb, x: op.nn.softmax(x, 1),
    "log_softmax blocks": lambda bb, x: op.nn.log_softmax(x, -1),
    "prelu": lambda bb, x: op.nn.prelu(x, _vector(8), axis=1),
    "batch_norm": lambda bb, x: bb.emit(op.nn.batch_norm(
        x, _vector(8), _vector(8), _vector(8), _vector(8), axis=1, training=False))[0],
    "layer_norm blocks": lambda bb, x: op.nn.layer_norm(x, _vector(6), _vector(6), axes=[-1]),
    "rms_norm blocks": lambda bb, x: op.nn.rms_norm(x, _vector(6), axes=[3]),
    "group_norm": lambda bb, x: op.nn.group_norm(
        x, _vector(8), _vector(8), num_groups=2, channel_axis=1, axes=[2, 3]),
    "instance_norm": lambda bb, x: op.nn.instance_norm(
        x, _vector(8), _vector(8), channel_axis=1, axes=[2, 3]),
    "concat blocks": lambda bb, x: op.concat([x, op.negative(x)], axis=1),
    "split blocks": lambda bb, x: bb.emit(op.split(x, 2, axis=1))[1],
    "split at blocks": lambda bb, x: bb.emit(op.split(x, [4], axis=1))[1],
    "split inside": lambda bb, x: bb.emit(op.split(x, [3], axis=1))[1],
    "stack blocks": lambda bb, x: op.stack([x, op.negative(x)], axis=2),
    "expand_dims blocks": lambda bb, x: op.expand_dims(x, [1, -1]),
    "squeeze blocks": lambda bb, x: op.squeeze(op.mean(x, [2], keepdims=True), [2]),
    "tile blocks": lambda bb, x: op.tile(x, (2, 1, 3)),
    "strided_slice blocks": lambda bb, x: op.strided_slice(x, [2, 3], [1, 0], [5, 6], [2, 1]),
    "pad blocks": lambda bb, x: op.nn.pad(x, (0, 0, 0, 0, 1, 2, 0, 1)),
    "permute_dims blocks": lambda bb, x: op.permute_dims(x, [0, 2, 1, 3]),
    "reversed blocks": lambda bb, x: op.permute_dims(x),
    "max_pool blocks": lambda bb, x: op.nn.max_pool2d(x, (2, 2), (2, 2)),
    "adaptive_pool blocks": lambda bb, x: op.nn.adaptive_avg_pool2d(x, (3, 3)),
    "resize2d": lambda bb, x: op.image.resize2d(x, (12, 12)),
}  # fmt: skip


def _with_convolution(*names):
    """Each operator on the result of a convolution, and relu on its result."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((2, 4, 8, 8), "float32"))
    weight = relax.const(np.random.default_rng(0).uniform(-1, 1, (8, 4, 3, 3)).astype("float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(op.nn.conv2d(x, weight))
            outs = [bb.emit_output(op.nn.relu(bb.emit(BETWEEN[n](bb, y)))) for n in names]
        bb.emit_func_output(relax.Tuple(outs))
    return bb.finalize()


def _run(mod, x):
    results = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())["main"](x)
    return [r.numpy() for r in results]


LAYOUTS = pytest.mark.parametrize("desired", [NHWC, BLOCKED], ids=["NHWC", "NCHW4c"])


@LAYOUTS
@pytest.mark.parametrize("name", BETWEEN)
def test_operators_follow(name, desired):
    """The operator works in the layout of the convolution: only what leaves is moved."""
    after = transform.ConvertLayout(desired)(_with_convolution(name))
    assert relax.analysis.well_formed(after)
    kinds = [
        b.value.op.name
        for b in after["main"].body.blocks[0].bindings
        if isinstance(b.value, relax.Call)
    ]
    moved = [
        i
        for i, kind in enumerate(kinds)
        if kind in ("relax.permute_dims", "relax.layout_transform")
    ]
    convolution = kinds.index("relax.nn.conv2d")
    if desired is NHWC or "blocks" in name:
        assert all(i < convolution or i > kinds.index("relax.nn.relu") for i in moved[2:]) or (
            name.startswith(("bias", "one bias", "row", "where", "gather", "scatter"))
        ), kinds
    else:
        assert convolution + 1 in moved, kinds


@LAYOUTS
def test_results_stay(desired):
    before = _with_convolution(*BETWEEN)
    after = transform.ConvertLayout(desired)(before)
    x = np.random.default_rng(2).uniform(-1, 1, (2, 4, 8, 8)).astype("float32")
    for name, want, got in zip(BETWEEN, _run(before, x), _run(after, x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4, err_msg=name)


def test_channels_that_blocks_do_not_divide_stay():
    bb = relax.BlockBuilder()
    shapes = [(1, 3, 4, 4), (8, 3, 3, 3), (8, 8, 1, 1)]
    params = [relax.Var(f"p{i}", R.Tensor(s, "float32")) for i, s in enumerate(shapes)]
    with bb.function("main", params):
        with bb.dataflow():
            y = bb.emit(op.nn.conv2d(params[0], params[1]))
            out = bb.emit_output(op.nn.conv2d(op.nn.relu(y), params[2]))
        bb.emit_func_output(out)
    before = bb.finalize()
    after = transform.ConvertLayout(BLOCKED)(before)
    assert relax.analysis.well_formed(after)
    text = after["main"].script()
    assert text.count('data_layout="NCHW4c"') == 1 and text.count("layout_transform") == 3
    rng = np.random.default_rng(0)
    args = [rng.uniform(-1, 1, s).astype("float32") for s in shapes]
    want, got = (Evaluator(transform.LegalizeOps()(m)).run("main", args) for m in (before, after))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_the_layout_of_a_pool():
    bb = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((1, 3, 8, 8), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(op.nn.avg_pool2d(x, (2, 2)))
        bb.emit_func_output(out)
    before = bb.finalize()
    after = transform.ConvertLayout({"relax.nn.avg_pool2d": ["NHWC"]})(before)
    assert 'layout="NHWC"' in after["main"].script()
    data = np.random.default_rng(0).uniform(-1, 1, (1, 3, 8, 8)).astype("float32")
    want, got = (Evaluator(transform.LegalizeOps()(m)).run("main", [data]) for m in (before, after))
    np.testing.assert_allclose(got, want, rtol=1e-5)
