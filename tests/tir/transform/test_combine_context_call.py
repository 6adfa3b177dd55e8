# SPDX-License-Identifier: Apache-2.0
"""Asks for the thread's context once in each body instead of at each use."""

from tvm import tir
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, func, seq


def test_combine_context_call():
    call = lambda: tir.call_intrin(
        "handle", "tir.tvm_thread_context", tir.call_extern("handle", "ctx")
    )
    before = func([], seq(*(tir.Evaluate(tir.call_extern("int32", f, call())) for f in "fg")))
    result = apply(tt.CombineContextCall(), before)
    var = result.body.var
    assert [s.value.args[1].same_as(var) for s in result.body.body] == [True, True]
