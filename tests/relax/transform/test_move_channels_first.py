# SPDX-License-Identifier: Apache-2.0
"""Convolutions in layouts that somebody chose, with their channels first again."""

import numpy as np
import pytest
import tvm
from tvm import ir, relax
from tvm.relax import op, transform
from tvm.script import ir as I
from tvm.script import relax as R

from tests.relax.transform.test_convert_layout import BETWEEN, _with_convolution

LAYOUTS = {
    "NHWC": {"relax.nn.conv2d": ["NHWC", "OHWI"]},
    "NCHW4c": {"relax.nn.conv2d": ["NCHW4c", "OIHW4i4o"]},
    "HWIO": {"relax.nn.conv2d": ["NHWC", "HWIO", "NCHW"]},
}
WEIGHT = np.random.default_rng(0).standard_normal((8, 8, 3, 3), "float32")


def network(between=lambda bb, x: op.nn.relu(x)):
    """Two convolutions with something between them."""
    x = relax.Var("x", relax.TensorStructInfo((2, 8, 6, 6), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(op.nn.conv2d(x, relax.const(WEIGHT), padding=1))
            y = bb.emit(between(bb, y))
            y = bb.emit_output(op.nn.conv2d(y, relax.const(WEIGHT), padding=1))
        bb.emit_func_output(y)
    return bb.get()


def moved(mod):
    after = transform.MoveChannelsFirst()(mod)
    assert relax.analysis.well_formed(after)
    return after


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_was_converted_is_as_it_was(layout):
    mod = network()
    converted = transform.ConvertLayout(LAYOUTS[layout])(mod)
    assert not ir.structural_equal(converted, mod)
    after = transform.CanonicalizeBindings()(moved(converted))
    ir.assert_structural_equal(after, transform.CanonicalizeBindings()(mod))


def test_images_with_channels_last():
    """They are transposed once where they enter and leave."""

    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((1, 6, 6, 8), "float32"), b: R.Tensor((8,), "float32")):
            with R.dataflow():
                w = R.ones(R.shape([8, 3, 3, 8]), "float32")
                y = R.nn.conv2d(x, w, padding=1, data_layout="NHWC", kernel_layout="OHWI")
                z = R.add(y, b)
                R.output(z)
            return z

    assert moved(Before).same_as(Before)  # its weights are not constants
    folded = transform.FoldConstant()(Before)
    after = moved(folded)
    names = [
        binding.value.op.name.split(".")[-1] for binding in after["main"].body.blocks[0].bindings
    ]
    assert names.count("permute_dims") == 4  # the weight, the image, the bias, the result
    assert 'data_layout="NHWC"' not in after["main"].script()
    rng = np.random.default_rng(0)
    args = [rng.standard_normal(shape, "float32") for shape in ((1, 6, 6, 8), (8,))]
    with tvm.transform.PassContext(disabled_pass=["MoveChannelsFirst"]):
        results = [
            relax.VirtualMachine(tvm.compile(each, "llvm"), tvm.cpu())["main"](*args).numpy()
            for each in (folded, after)
        ]
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_that_may_be_between(layout):
    """(test_convert_layout runs them: compiling moves channels first.)"""
    after = moved(transform.ConvertLayout(LAYOUTS[layout])(_with_convolution(*BETWEEN)))
    script = after["main"].script()
    assert not any(f'data_layout="{other}"' in script for other in ("NHWC", "NCHW4c"))


def test_the_kernels_are_those_of_the_model_as_it_was():
    bn = [relax.const(np.linspace(0.5, 1.5, 8).astype("float32")) for _ in range(4)]
    norm = lambda bb, x: op.nn.relu(bb.emit(op.nn.batch_norm(x, *bn, axis=1, training=False)[0]))
    mod = network(norm)
    for layout in LAYOUTS.values():
        converted = transform.ConvertLayout(layout)(mod)
        kernels = []
        for each in (mod, converted):
            found = set()

            @tvm.instrument.pass_instrument
            class Kernels:
                def run_after_pass(self, mod, info, found=found):
                    if info.name == "FuseTIR":
                        found.update(str(v.name_hint) for v in mod.get_global_vars())

            with tvm.transform.PassContext(instruments=[Kernels()]):
                tvm.compile(each, "llvm")
            kernels.append(found)
        assert kernels[0] == kernels[1] and kernels[0]


def _beside(bb, x):
    """Padded, joined with itself, cut again: what has a rule for every layout."""
    both = bb.emit(op.concat([x, bb.emit(op.nn.relu(x))], axis=1))
    wide = bb.emit(op.nn.pad(both, [0, 0, 0, 0, 1, 1, 1, 1]))
    return op.strided_slice(wide, [2, 3], [1, 1], [7, 7])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_has_a_rule_stops_nothing(layout):
    weight = np.concatenate([WEIGHT, WEIGHT], 1)
    x = relax.Var("x", relax.TensorStructInfo((2, 8, 6, 6), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(op.nn.conv2d(x, relax.const(WEIGHT), padding=1))
            y = bb.emit(_beside(bb, y))
            y = bb.emit_output(op.nn.conv2d(y, relax.const(weight), padding=1))
        bb.emit_func_output(y)
    mod = bb.get()
    after = moved(transform.ConvertLayout(LAYOUTS[layout])(mod))
    script = after["main"].script()
    assert "permute_dims" not in script and "layout_transform" not in script
    a = np.random.default_rng(1).standard_normal((2, 8, 6, 6), "float32")
    results = [
        relax.VirtualMachine(tvm.compile(each, "llvm"), tvm.cpu())["main"](a).numpy()
        for each in (mod, after)
    ]
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5, atol=1e-5)
