# SPDX-License-Identifier: Apache-2.0
"""Puts the bodies of private functions where they are called."""

import numpy as np
import tvm
import tvm.relax
from tvm import tir
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import buffer, func, seq, store


def test_inlined_arguments_are_evaluated_before_the_body():
    """An address has a name; what is read is what was there."""
    A, x = buffer((4,), "int32"), tir.Var("x", "int32")
    helper = tvm.ir.GlobalVar("helper")
    p = tir.Var("p", tvm.ir.PointerType(tvm.ir.PrimType("int32")))
    view = tir.decl_buffer((2,), "int32", name="V", data=p)
    body = tir.DeclBuffer(view, seq(store(view, 0, x + 1), store(view, 1, x + 2)))
    address = tir.call_intrin(
        "handle", "tir.tvm_access_ptr", tir.type_annotation("int32"), A.data, 1, 2, 3
    )
    main = func([A], tir.Evaluate(tir.Call("void", helper, [address, A[1]])), global_symbol="main")
    mod = tt.InlinePrivateFunctions()(
        tvm.IRModule({helper: tir.PrimFunc([p, x], body), "main": main})
    )
    a = np.array([0, 5, 0, 0], "int32")
    tir.interpret(mod["main"])(a)
    assert a.tolist() == [0, 6, 7, 0]


def test_inline_private_functions():
    A, x = buffer((4,), "int32"), tir.Var("x", "int32")
    helper = tvm.ir.GlobalVar("helper")
    p = tir.Var("p", tvm.ir.PointerType(tvm.ir.PrimType("int32")))
    view = tir.decl_buffer((4,), "int32", name="V", data=p)
    mod = tvm.IRModule(
        {
            helper: tir.PrimFunc([p, x], tir.DeclBuffer(view, store(view, x, 7))),
            "main": func(
                [A], tir.Evaluate(tir.Call("void", helper, [A.data, 2])), global_symbol="main"
            ),
        }
    )
    mod = tt.InlinePrivateFunctions()(mod)
    assert [v.name_hint for v in mod.get_global_vars()] == ["main"]
    a = np.zeros(4, "int32")
    tir.interpret(mod["main"])(a)
    assert a.tolist() == [0, 0, 7, 0]


def test_functions_of_other_languages_stay():
    helper = func([buffer((4,))], tir.Evaluate(0), global_symbol="main")
    mod = tvm.IRModule({"other": tvm.relax.ExternFunc("other"), "main": helper})
    tvm.ir.assert_structural_equal(tt.InlinePrivateFunctions()(mod), mod)
