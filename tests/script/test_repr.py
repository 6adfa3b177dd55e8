# SPDX-License-Identifier: Apache-2.0
"""What repr shows: nodes as they are written, also inside containers; tensors by shape and name."""

import tvm
from tvm import ir, relax, te, tir
from tvm.script import relax as R


def test_nodes_in_containers():
    x = tir.Var("x", "int32")
    assert repr(tvm.runtime.convert([x + 1, 2, "a"])) == '(x + 1, 2, "a")'
    assert repr(tvm.runtime.convert({"a": ir.Range(0, 4)})) == '{"a": I.Range(0, 4)}'
    assert repr(tvm.runtime.convert([ir.GlobalVar("main"), [x]])) == '(I.GlobalVar("main"), (x,))'
    v = relax.Var("v", R.Tensor((1,), "float32"))
    assert 'R.Tensor((1,), dtype="float32")' in repr(tvm.runtime.convert([v.struct_info]))


def test_global_vars_of_a_module():
    main = tir.PrimFunc([], tir.Evaluate(0)).with_attr("global_symbol", "main")
    assert repr(tvm.IRModule({"main": main}).get_global_vars()) == '(I.GlobalVar("main"),)'


def test_tensors():
    A = te.placeholder((2, 3), name="A")
    B = te.compute((2, 3), lambda i, j: A[i, j] + 1.0, name="B")
    assert repr(A) == str(A) == "Tensor(shape=(2, 3), op.name=A)"
    assert repr([A, B]) == "[Tensor(shape=(2, 3), op.name=A), Tensor(shape=(2, 3), op.name=B)]"
    n = te.var("n")
    assert repr(te.placeholder((n, 4), name="C")) == "Tensor(shape=(n, 4), op.name=C)"
    assert "T.iter_var(i, " in repr(B.op.axis)
