# SPDX-License-Identifier: Apache-2.0
"""DecomposeOpsForInference and FoldBatchnormToConv2D: against PyTorch and as programs."""

import numpy as np
import pytest
import torch
import tvm
from tvm import ir, relax
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R

from ..legalize.evaluate import evaluate

RNG = np.random.default_rng(0)


def test_decompose_batch_norm():
    @I.ir_module
    class Before:
        @R.function
        def main(
            x: R.Tensor((2, 3, 4, 4), "float32"),
            gamma: R.Tensor((3,), "float32"),
            beta: R.Tensor((3,), "float32"),
            mean: R.Tensor((3,), "float32"),
            var: R.Tensor((3,), "float32"),
        ):
            with R.dataflow():
                bn = R.nn.batch_norm(x, gamma, beta, mean, var, axis=1, epsilon=0.01)
                gv = bn[0]
                m = bn[1]
                R.output(gv, m)
            return (gv, m)

    @I.ir_module
    class Expected:
        @R.function
        def main(
            x: R.Tensor((2, 3, 4, 4), "float32"),
            gamma: R.Tensor((3,), "float32"),
            beta: R.Tensor((3,), "float32"),
            mean: R.Tensor((3,), "float32"),
            var: R.Tensor((3,), "float32"),
        ):
            with R.dataflow():
                lv = R.expand_dims(mean, [0, 2, 3])
                lv1 = R.expand_dims(var, [0, 2, 3])
                lv2 = R.add(lv1, R.const(0.01, "float32"))
                lv3 = R.sqrt(lv2)
                lv4 = R.subtract(x, lv)
                lv5 = R.divide(lv4, lv3)
                lv6 = R.expand_dims(gamma, [0, 2, 3])
                lv7 = R.multiply(lv5, lv6)
                lv8 = R.expand_dims(beta, [0, 2, 3])
                lv9 = R.add(lv7, lv8)
                bn = (lv9, mean, var)
                gv = bn[0]
                m = bn[1]
                R.output(gv, m)
            return (gv, m)

    after = transform.DecomposeOpsForInference()(Before)
    ir.assert_structural_equal(after, Expected)
    ir.assert_structural_equal(transform.DecomposeOpsForInference("main")(Before), Expected)
    assert transform.DecomposeOpsForInference(keep_training=True)(Before).same_as(Before)
    arrays = [RNG.random(s, "float32") for s in ((2, 3, 4, 4), 3, 3, 3, 3)]
    got, mean = evaluate(transform.LegalizeOps()(after), arrays)
    x, gamma, beta, m, v = map(torch.from_numpy, arrays)
    want = torch.nn.functional.batch_norm(x, m, v, gamma, beta, eps=0.01)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(mean, arrays[3])


def test_decompose_wants_a_function_of_the_module():
    mod = ir.IRModule({})
    with pytest.raises(ValueError, match="missing"):
        transform.DecomposeOpsForInference("missing")(mod)


def test_decompose_tensor_to_shape():
    bb = relax.BlockBuilder()
    s = relax.Var("s", R.Tensor((2,), "int64"))
    x = relax.Var("x", R.Tensor((4, 6), "float32"))
    with bb.function("main", [x, s]):
        shape = bb.emit(relax.op.tensor_to_shape(s))
        bb.emit_func_output(bb.emit(relax.op.reshape(x, shape)))
    after = transform.DecomposeOpsForInference()(bb.get())
    assert relax.analysis.well_formed(after)
    bindings = after["main"].body.blocks[0].bindings
    assert bindings[0].value.args[0].global_symbol == "vm.builtin.tensor_to_shape"
    assert isinstance(bindings[1], relax.MatchCast)
    dims = bindings[1].struct_info.values
    result = bindings[-1].var.struct_info.shape.values
    assert all(d.same_as(e) for d, e in zip(dims, result, strict=True))


def network(layout="NCHW", kernel="OIHW", constant=True, more=False, **attrs):
    """A convolution with batch normalisation, as a module and as PyTorch computes it."""
    x = RNG.random((2, 4, 7, 7), "float32")
    w = RNG.random((6, 4, 3, 3), "float32") - 0.5
    params = [RNG.random(6, "float32") + 0.5 for _ in range(4)]
    order = [layout.index(c) for c in "NCHW"]
    to = [("NCHW").index(c) for c in layout]
    wx = np.ascontiguousarray(w.transpose(["OIHW".index(c) for c in kernel]))
    data = relax.Var("x", R.Tensor([x.shape[i] for i in to], "float32"))
    weight = relax.const(wx) if constant else relax.Var("w", R.Tensor(wx.shape, "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [data] if constant else [data, weight]):
        with bb.dataflow():
            conv = bb.emit(
                relax.op.nn.conv2d(data, weight, data_layout=layout, kernel_layout=kernel)
            )
            norm = bb.emit(
                relax.op.nn.batch_norm(
                    conv, *map(relax.const, params), axis=layout.index("C"), training=False, **attrs
                )
            )
            out = relax.op.nn.relu(norm[0])
            out = bb.emit_output(relax.op.add(out, conv) if more else out)
        bb.emit_func_output(out)
    gamma, beta, mean, var = map(torch.from_numpy, params)
    y = torch.nn.functional.conv2d(torch.from_numpy(x), torch.from_numpy(w))
    gamma = gamma if attrs.get("scale", True) else None
    beta = beta if attrs.get("center", True) else None
    want = torch.nn.functional.batch_norm(y, mean, var, gamma, beta, eps=1e-5).relu()
    inputs = [np.ascontiguousarray(x.transpose(to))] + ([] if constant else [wx])
    return bb.get(), inputs, (want + y if more else want).numpy(), order


@pytest.mark.parametrize("layouts", [("NCHW", "OIHW"), ("NHWC", "HWIO"), ("NHWC", "OHWI")])
@pytest.mark.parametrize("attrs", [{}, {"scale": False}, {"center": False}])
def test_fold_batchnorm_to_conv2d(layouts, attrs):
    mod, inputs, want, order = network(*layouts, **attrs)
    after = transform.FoldConstant()(transform.FoldBatchnormToConv2D()(mod))
    names = [b.value.op.name for b in after["main"].body.blocks[0].bindings]
    assert names == ["relax.nn.conv2d", "relax.add", "relax.nn.relu"]
    assert relax.analysis.well_formed(after)
    got = evaluate(transform.LegalizeOps()(after), inputs).transpose(order)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("options", [{"constant": False}, {"more": True}])
def test_fold_batchnorm_to_conv2d_only_where_it_pays(options):
    """Weights that are not known, or a convolution that others use."""
    mod, inputs, want, _ = network(**options)
    after = transform.FoldBatchnormToConv2D()(mod)
    ir.assert_structural_equal(after, mod)
    after = transform.LegalizeOps()(transform.DecomposeOpsForInference()(after))
    np.testing.assert_allclose(evaluate(after, inputs), want, rtol=1e-4, atol=1e-4)


def test_fold_batchnorm_to_conv2d_keeps_training():
    mod, _, _, _ = network()
    training = relax.Var("x", mod["main"].params[0].struct_info)
    bb = relax.BlockBuilder()
    ones = relax.const(np.ones(6, "float32"))
    with bb.function("main", [training]):
        with bb.dataflow():
            conv = bb.emit(
                relax.op.nn.conv2d(training, relax.const(np.ones((6, 4, 3, 3), "float32")))
            )
            norm = bb.emit(relax.op.nn.batch_norm(conv, ones, ones, ones, ones, axis=1))
            out = bb.emit_output(norm[0])
        bb.emit_func_output(out)
    before = bb.get()
    assert transform.FoldBatchnormToConv2D(keep_training=True)(before).same_as(before)
    assert not transform.FoldBatchnormToConv2D()(before).same_as(before)


def folded(model, *inputs):
    """The operators of a model of PyTorch behind the pass, and whether it computes the same."""
    program = torch.export.export(model.eval(), inputs)
    mod = relax.frontend.torch.from_exported_program(program)
    after = transform.FoldConstant()(transform.FoldBatchnormToConv2D()(mod))
    assert relax.analysis.well_formed(after)
    with torch.no_grad():
        want = model(*inputs)
    lowered = transform.LegalizeOps()(transform.DecomposeOpsForInference()(after))
    got = evaluate(lowered, [x.numpy() for x in inputs])
    np.testing.assert_allclose(got[0], want, rtol=1e-4, atol=1e-4)
    bindings = after["main"].body.blocks[0].bindings
    return [b.value.op.name.split(".")[-1] for b in bindings if isinstance(b.value, relax.Call)]


def trained(norm):
    """Statistics as after training: those of a fresh layer hide mistakes."""
    for tensor in (norm.running_mean, norm.running_var, norm.weight, norm.bias):
        if tensor is not None:
            torch.nn.init.uniform_(tensor, 0.5, 1.5)
    return norm


PRODUCTS = {
    "conv1d": lambda nn, bias: (nn.Conv1d(4, 6, 3, bias=bias), nn.BatchNorm1d(6), (2, 4, 9)),
    "conv2d": lambda nn, bias: (nn.Conv2d(4, 6, 3, bias=bias), nn.BatchNorm2d(6), (2, 4, 7, 7)),
    "groups": lambda nn, bias: (
        nn.Conv2d(4, 4, 3, groups=4, bias=bias),
        nn.BatchNorm2d(4),
        (2, 4, 7, 7),
    ),
    "conv3d": lambda nn, bias: (nn.Conv3d(2, 3, 2, bias=bias), nn.BatchNorm3d(3), (1, 2, 4, 4, 4)),
    "conv1d_transpose": lambda nn, bias: (
        nn.ConvTranspose1d(4, 6, 3, bias=bias),
        nn.BatchNorm1d(6),
        (2, 4, 5),
    ),
    "conv2d_transpose": lambda nn, bias: (
        nn.ConvTranspose2d(4, 6, 3, bias=bias),
        nn.BatchNorm2d(6),
        (2, 4, 5, 5),
    ),
    "matmul": lambda nn, bias: (nn.Linear(5, 6, bias=bias), nn.BatchNorm1d(6), (3, 5)),
}


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", PRODUCTS)
def test_fold_behind_products_of_pytorch(kind, bias):
    product, norm, shape = PRODUCTS[kind](torch.nn, bias)
    model = torch.nn.Sequential(product, trained(norm), torch.nn.ReLU())
    names = folded(model, torch.randn(shape))
    assert "batch_norm" not in names
    assert names[-2:] == ["add", "relu"]
    assert names.count("add") == 1


def test_fold_behind_transposed_convolutions_in_groups():
    """Their weights hold the channels of one group: the normalisation stays."""
    convolution = torch.nn.ConvTranspose2d(4, 6, 3, groups=2)
    names = folded(torch.nn.Sequential(convolution, trained(torch.nn.BatchNorm2d(6))), RANDOM)
    assert "batch_norm" in names


RANDOM = torch.from_numpy(RNG.random((2, 4, 5, 5), "float32"))


class Summand(torch.nn.Module):
    """A convolution, a sum, and its normalisation."""

    def __init__(self, *shape, is_shared=False):
        super().__init__()
        self.conv = torch.nn.Conv2d(4, 6, 3, bias=False)
        self.norm = trained(torch.nn.BatchNorm2d(6))
        self.summand = torch.nn.Parameter(torch.randn(shape))
        self.is_shared = is_shared

    def forward(self, x):
        y = self.conv(x)
        z = self.norm(self.summand + y)
        return z * y if self.is_shared else z


@pytest.mark.parametrize(
    ("shape", "is_folded"),
    [((), True), ((1,), True), ((6, 1, 1), True), ((1, 1, 3), False), ((2, 6, 1, 1), False)],
)
def test_fold_through_a_bias_and_no_other_sum(shape, is_folded):
    names = folded(Summand(*shape), RANDOM)
    assert ("batch_norm" not in names) == is_folded


def test_fold_leaves_a_convolution_that_others_use():
    assert "batch_norm" in folded(Summand(6, 1, 1, is_shared=True), RANDOM)


def test_kernels_of_a_convolution_with_bias_and_normalisation():
    """One kernel, and no tuple of moving statistics is left to run time."""
    norm = trained(torch.nn.BatchNorm2d(6))
    model = torch.nn.Sequential(torch.nn.Conv2d(4, 6, 3), norm, torch.nn.ReLU()).eval()
    program = torch.export.export(model, (RANDOM,))
    executable = tvm.compile(relax.frontend.torch.from_exported_program(program), "llvm")
    functions = executable.stats().split("Packed functions")[1]
    assert functions.count("conv2d") == 1
    assert "tuple_getitem" not in functions
    assert not any(name in functions for name in ("multiply", "subtract", "fused_relu", " relu"))
    with torch.no_grad():
        want = model(RANDOM)
    got = relax.VirtualMachine(executable, tvm.cpu())["main"](RANDOM.numpy())[0].numpy()
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
