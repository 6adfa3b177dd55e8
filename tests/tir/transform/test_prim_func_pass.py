# SPDX-License-Identifier: Apache-2.0
"""Passes over functions that are given by a callback, and passes that choose among functions."""

import pytest
import tvm
from tvm import tir
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import func


def test_filter_and_apply():
    mod = tvm.IRModule({"f": func([], tir.Evaluate(0), keep=True), "g": func([], tir.Evaluate(0))})
    kept = tt.Filter(lambda f: "keep" in f.attrs)(mod)
    assert [v.name_hint for v in kept.get_global_vars()] == ["f"]
    marked = tt.Apply(lambda f: f.with_attr("mark", 1))(mod)
    assert all("mark" in f.attrs for f in marked.functions.values())


def test_a_callback_may_remove_functions():
    mod = tvm.IRModule({"f": func([], tir.Evaluate(0), keep=True), "g": func([], tir.Evaluate(0))})

    @tt.prim_func_pass(opt_level=0)
    def keep(func, mod, ctx):
        return func if "keep" in func.attrs else None

    @tt.prim_func_pass(opt_level=0)
    def wrong(func, mod, ctx):
        return 1

    assert [v.name_hint for v in keep(mod).get_global_vars()] == ["f"]
    with pytest.raises(TypeError, match="wrong: expected the pass to return a PrimFunc, got int"):
        wrong(mod)
