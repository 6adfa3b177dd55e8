# SPDX-License-Identifier: Apache-2.0
"""AnnotateTIROpPattern: the pattern of each operator's lowering."""

import pytest
import tvm
from tvm import relax, te, topi
from tvm.relax import transform

ELEMWISE, BROADCAST, INJECTIVE, REDUCE, PRODUCT, OPAQUE = 0, 1, 2, 3, 4, 8


def tensor(*shape, dtype="float32"):
    return te.placeholder(shape, dtype, "x")


CASES = {
    "relu": (ELEMWISE, [tensor(1, 8)], topi.nn.relu),
    "gelu": (ELEMWISE, [tensor(4, 8)], lambda x: topi.multiply(x, topi.erf(topi.add(x, 1.0)))),
    "add": (ELEMWISE, [tensor(4, 8), tensor(4, 8)], topi.add),
    "add_of_ones": (ELEMWISE, [tensor(1, 8), tensor(1, 8)], topi.add),
    "bias": (BROADCAST, [tensor(4, 8), tensor(8)], topi.add),
    "columns": (BROADCAST, [tensor(4, 8), tensor(4, 1)], topi.add),
    "full": (ELEMWISE, [], lambda: topi.full((4, 8), "float32", 1.0)),
    "transpose": (INJECTIVE, [tensor(4, 8)], topi.transpose),
    "reshape": (INJECTIVE, [tensor(4, 8)], lambda x: topi.reshape(x, (8, 4))),
    "take": (INJECTIVE, [tensor(4, 8), tensor(3, dtype="int32")], lambda x, i: topi.take(x, i, 0)),
    "split": (INJECTIVE, [tensor(4, 8)], lambda x: topi.split(x, 2, 1)),
    "sum": (REDUCE, [tensor(4, 8)], lambda x: topi.sum(x, 1)),
    "mean": (REDUCE, [tensor(4, 8)], lambda x: topi.divide(topi.sum(topi.exp(x), 1), 8.0)),
    "argmax": (REDUCE, [tensor(4, 8)], lambda x: topi.argmax(x, 1)),
    "dot": (REDUCE, [tensor(8), tensor(8)], lambda a, b: topi.sum(topi.multiply(a, b), 0)),
    "matmul": (PRODUCT, [tensor(4, 8), tensor(8, 5)], topi.matmul),
    "gemv": (PRODUCT, [tensor(1, 8), tensor(8, 5)], topi.matmul),
    "conv2d": (
        PRODUCT,
        [tensor(1, 3, 8, 8), tensor(4, 3, 3, 3)],
        lambda x, w: topi.nn.conv2d(x, w, 1, 1, 1),
    ),
    "pool": (
        PRODUCT,
        [tensor(1, 3, 8, 8)],
        lambda x: topi.nn.pool2d(x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "max"),
    ),
    "softmax": (PRODUCT, [tensor(4, 8)], topi.nn.softmax),
    "centred": (PRODUCT, [tensor(4, 8)], lambda x: topi.subtract(x, topi.sum(x, 1, True))),
    "sort": (OPAQUE, [tensor(4, 8)], topi.sort),
    "cumsum": (OPAQUE, [tensor(8)], topi.cumsum),
}


def annotated(func):
    mod = tvm.IRModule({"f": func})
    return transform.AnnotateTIROpPattern()(mod)["f"].attrs["op_pattern"]


@pytest.mark.parametrize("name", CASES)
def test_annotate_tir_op_pattern(name):
    pattern, args, compute = CASES[name]
    result = compute(*args)
    results = list(result) if isinstance(result, (list, tvm.ir.Array)) else [result]
    assert annotated(te.create_prim_func([*args, *results])) == pattern


def test_annotate_tir_op_pattern_symbolic():
    n = te.var("n", "int64")
    x, y = te.placeholder((n, 8), name="x"), te.placeholder((n, 8), name="y")
    assert annotated(te.create_prim_func([x, y, topi.add(x, y)])) == ELEMWISE
    assert annotated(te.create_prim_func([x, topi.sum(x, 1)])) == REDUCE


def test_annotate_tir_op_pattern_keeps_what_is_there():
    x = tensor(4)
    func = te.create_prim_func([x, topi.nn.relu(x)]).with_attr("op_pattern", OPAQUE)
    assert annotated(func) == OPAQUE


def test_annotate_tir_op_pattern_of_loops_is_opaque():
    from tvm.script import tir as T

    @T.prim_func
    def loops(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "float32")):
        for i in range(8):
            b[i] = a[i]

    @T.prim_func
    def scatter(a: T.Buffer((8,), "float32"), i: T.Buffer((8,), "int32"), b: T.Buffer((8,))):
        for j in range(8):
            with T.block("s"):
                v = T.axis.spatial(8, j)
                b[i[v]] = a[v]

    @T.prim_func
    def accumulate(a: T.Buffer((8,), "float32"), b: T.Buffer((8,), "float32")):
        for j in range(8):
            with T.block("s"):
                v = T.axis.spatial(8, j)
                b[v] = b[v] + a[v]

    assert [annotated(f) for f in (loops, scatter, accumulate)] == [OPAQUE] * 3


def test_annotate_tir_op_pattern_info():
    info = relax.transform.AnnotateTIROpPattern().info
    assert (info.name, info.opt_level) == ("AnnotateTIROpPattern", 0)
