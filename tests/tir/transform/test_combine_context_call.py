# SPDX-License-Identifier: Apache-2.0
"""Asks for the thread's context once in each body instead of at each use."""

from tvm import tir
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, func, loop, seq


def use(name):
    context = tir.call_intrin("handle", "tir.tvm_thread_context", tir.call_extern("handle", "ctx"))
    return tir.Evaluate(tir.call_extern("int32", name, context))


def test_combine_context_call():
    before = func([], seq(use("f"), use("g")))
    result = apply(tt.CombineContextCall(), before)
    var = result.body.var
    assert [s.value.args[1].same_as(var) for s in result.body.body] == [True, True]


def test_other_threads_have_another_context():
    inner = loop(4, lambda i: use("g"), kind="parallel")
    result = apply(tt.CombineContextCall(), func([], seq(use("f"), inner, use("h"))))
    var, (first, parallel, last) = result.body.var, result.body.body
    assert first.value.args[1].same_as(var) and last.value.args[1].same_as(var)
    own = parallel.body.var
    assert not own.same_as(var) and parallel.body.body.value.args[1].same_as(own)
