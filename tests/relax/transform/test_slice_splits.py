# SPDX-License-Identifier: Apache-2.0
"""SliceSplits: parts of a split as slices."""

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import op, transform
from tvm.script import relax as R


def test_slice_splits():
    @R.function(private=True)
    def before(x: R.Tensor((2, 8), "float32")):
        with R.dataflow():
            parts = R.split(x, 2, axis=-1)
            a = parts[1]
            gv = R.exp(a)
            R.output(gv)
        return gv

    @R.function(private=True)
    def expected(x: R.Tensor((2, 8), "float32")):
        with R.dataflow():
            a = R.strided_slice(x, axes=[1], begin=[4], end=[8])
            gv = R.exp(a)
            R.output(gv)
        return gv

    mods = [tvm.IRModule({"main": f}) for f in (before, expected)]
    after = transform.DeadCodeElimination()(transform.SliceSplits()(mods[0]))
    tvm.ir.assert_structural_equal(after, mods[1])


def test_a_split_as_a_whole_stays():
    @R.function(private=True)
    def main(x: R.Tensor((2, 8), "float32")):
        with R.dataflow():
            gv = R.split(x, 2, axis=1)
            R.output(gv)
        return gv

    mod = tvm.IRModule({"main": main})
    assert transform.SliceSplits()(mod).same_as(mod)


@pytest.mark.parametrize("axis, parts", [(0, [1, 4]), (1, 3), (-1, [2])])
def test_parts(axis, parts):
    """Of sizes that only running tells, too."""
    n = tvm.tir.SizeVar("n", "int64")
    x = relax.Var("x", R.Tensor((n, 6) if axis else (6, n), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            split = bb.emit(op.split(x, parts, axis))
            count = len(split.struct_info.fields)
            items = [bb.emit(relax.TupleGetItem(split, i)) for i in range(count)]
            out = bb.emit_output(relax.Tuple([op.negative(item) for item in items]))
        bb.emit_func_output(out)
    mod = bb.get()
    text = transform.DeadCodeElimination()(transform.SliceSplits()(mod)).script()
    assert "R.split" not in text
    data = np.arange(30, dtype="float32").reshape((5, 6) if axis else (6, 5))
    got = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())["main"](data)
    for a, b in zip(got, np.split(data, parts, axis), strict=True):
        np.testing.assert_array_equal(a.numpy(), -b)
