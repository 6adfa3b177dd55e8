# SPDX-License-Identifier: Apache-2.0
"""DecomposeOpsForTraining: as a program, and against PyTorch."""

import numpy as np
import torch
import tvm
from tvm import ir, relax
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R

RNG = np.random.default_rng(0)


@I.ir_module
class Norms:
    @R.function
    def main(
        x: R.Tensor((2, 3, 4, 5), "float32"),
        gamma: R.Tensor((3,), "float32"),
        beta: R.Tensor((3,), "float32"),
        mean: R.Tensor((3,), "float32"),
        var: R.Tensor((3,), "float32"),
        scale: R.Tensor((4, 5), "float32"),
        shift: R.Tensor((4, 5), "float32"),
    ):
        with R.dataflow():
            bn = R.nn.batch_norm(x, gamma, beta, mean, var, axis=1, momentum=0.2)
            y = bn[0]
            m = bn[1]
            v = bn[2]
            z = R.nn.layer_norm(y, scale, shift, axes=[-2, -1])
            R.output(y, m, v, z)
        return (y, m, v, z)


def test_as_a_program():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32"), g: R.Tensor((4,), "float32")):
            with R.dataflow():
                y = R.nn.layer_norm(x, g, g, axes=[-1], center=False)
                R.output(y)
            return y

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32"), g: R.Tensor((4,), "float32")):
            with R.dataflow():
                lv = R.mean(x, axis=[1])
                lv1 = R.variance(x, axis=[1])
                lv2 = R.expand_dims(lv1, [1])
                lv3 = R.add(lv2, R.const(1e-5, "float32"))
                lv4 = R.sqrt(lv3)
                lv5 = R.expand_dims(lv, [1])
                lv6 = R.subtract(x, lv5)
                lv7 = R.divide(lv6, lv4)
                lv8 = R.expand_dims(g, [0])
                lv9 = R.multiply(lv7, lv8)
                y = lv9
                R.output(y)
            return y

    ir.assert_structural_equal(transform.DecomposeOpsForTraining()(Before), Expected)


def test_as_torch():
    mod = transform.DecomposeOpsForTraining("main")(Norms)
    assert relax.analysis.well_formed(mod) and "norm" not in mod.script()
    shapes = [(2, 3, 4, 5), (3,), (3,), (3,), (3,), (4, 5), (4, 5)]
    args = [RNG.random(s).astype("float32") for s in shapes]
    vm = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    found = vm["main"](*args)
    x, gamma, beta, mean, var, scale, shift = (torch.from_numpy(a.copy()) for a in args)
    biased = x.var((0, 2, 3), unbiased=False)
    y = torch.nn.functional.batch_norm(x, mean.clone(), var.clone(), gamma, beta, True)
    expected = [
        y, 0.8 * mean + 0.2 * x.mean((0, 2, 3)), 0.8 * var + 0.2 * biased,
        torch.nn.functional.layer_norm(y, (4, 5), scale, shift),
    ]  # fmt: skip
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)
