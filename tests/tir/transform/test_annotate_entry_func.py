# SPDX-License-Identifier: Apache-2.0
"""Marks the function that calling the module calls."""

import tvm
from tvm import tir
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import buffer, func


def test_annotate_entry_func_marks_the_only_one():
    mod = tvm.IRModule({"f": func([buffer((4,))], tir.Evaluate(0), global_symbol="f")})
    assert bool(tt.AnnotateEntryFunc()(mod)["f"].attrs["tir.is_entry_func"])
    mod["g"] = func([buffer((4,))], tir.Evaluate(0), global_symbol="g")
    assert "tir.is_entry_func" not in tt.AnnotateEntryFunc()(mod)["f"].attrs
