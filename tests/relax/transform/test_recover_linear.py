# SPDX-License-Identifier: Apache-2.0
"""A product of rows that were joined and taken apart again is one of the tensor itself."""

import re

import numpy as np
import tvm
from tvm import relax
from tvm.relax import op, transform
from tvm.script import relax as R

from .test_recover_structure import build

WEIGHT = relax.const(np.random.default_rng(0).random((6, 64), "float32"))


def activated(x):
    flat = op.matmul(op.reshape(x, (8, 6)), WEIGHT)
    return op.nn.gelu(op.reshape(flat + relax.const(np.ones(64, "float32")), (2, 4, 64)))


def test_recover_linear():
    @R.function(private=True)
    def before(x: R.Tensor((2, 4, 6), "float32"), w: R.Tensor((6, 5), "float32")):
        with R.dataflow():
            flat = R.reshape(x, (8, 6))
            product = R.matmul(flat, w)
            gv = R.reshape(product, (2, 4, 5))
            R.output(gv)
        return gv

    @R.function(private=True)
    def expected(x: R.Tensor((2, 4, 6), "float32"), w: R.Tensor((6, 5), "float32")):
        with R.dataflow():
            gv = R.matmul(x, w)
            R.output(gv)
        return gv

    mods = [tvm.IRModule({"main": f}) for f in (before, expected)]
    after = transform.DeadCodeElimination()(transform.RecoverLinear()(mods[0]))
    tvm.ir.assert_structural_equal(after, mods[1])


def test_columns_that_move_stay():
    def make(x, w):
        return op.reshape(op.matmul(op.reshape(x, (8, 6)), w), (2, 5, 4))

    mod = build(make, (2, 4, 6), (6, 5))
    assert transform.RecoverLinear()(mod).same_as(mod)


def test_matrices_are_not_repeated():
    """One for all batches is as it is; of fewer batches than the result has it must be repeated."""

    def spread(x, w):
        return op.matmul(x, op.broadcast_to(w, (3, 4, 5)))

    mod = build(spread, (3, 2, 4), (4, 5))
    after = transform.DeadCodeElimination()(transform.RecoverLinear()(mod))
    tvm.ir.assert_structural_equal(after, build(op.matmul, (3, 2, 4), (4, 5)))
    mod = build(spread, (1, 2, 4), (4, 5))
    assert transform.RecoverLinear()(mod).same_as(mod)


def joined(x, y, result):
    flat = [op.reshape(t, (6, *t.struct_info.shape.values[2:])) for t in (x, y)]
    return op.reshape(op.matmul(*flat), result)


def test_products_of_joined_batches():
    mod = build(lambda x, y: joined(x, y, (2, 3, 4, 7)), (2, 3, 4, 5), (2, 3, 5, 7))
    expected = build(op.matmul, (2, 3, 4, 5), (2, 3, 5, 7))
    after = transform.DeadCodeElimination()(transform.RecoverLinear()(mod))
    tvm.ir.assert_structural_equal(after, expected)


def test_batches_that_are_joined_otherwise_stay():
    for shapes in [((2, 3, 4, 5), (3, 2, 5, 7)), ((3, 2, 4, 5), (3, 2, 5, 7))]:
        mod = build(lambda x, y: joined(x, y, (2, 3, 4, 7)), *shapes)
        assert transform.RecoverLinear()(mod).same_as(mod)
    mod = build(lambda x, y: joined(x, y, (2, 3, 7, 4)), (2, 3, 4, 5), (2, 3, 5, 7))
    assert transform.RecoverLinear()(mod).same_as(mod)


def test_products_that_others_need_stay():
    def make(x, w):
        flat = op.matmul(op.reshape(x, (8, 6)), w)
        return relax.Tuple([op.reshape(flat, (2, 4, 5)), op.exp(flat)])

    mod = build(make, (2, 4, 6), (6, 5))
    # `make` spells the product twice; as one value it has two uses.
    mod = transform.EliminateCommonSubexpr()(mod)
    assert transform.RecoverLinear()(mod).same_as(mod)


def test_what_follows_is_in_the_kernel_of_the_product():
    text = tvm.compile(build(activated, (2, 4, 6)), target="llvm").as_text()
    kernels = [n for n in re.findall(r"call\s+(\S+)", text) if not n.startswith("vm.")]
    assert kernels == ["fused_matmul_add_gelu"]
