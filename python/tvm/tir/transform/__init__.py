# SPDX-License-Identifier: Apache-2.0
"""Passes over TIR: every registered `tir.transform.X` is a function here that makes the pass."""

import tvm_ffi

from tvm._derive import fill
from tvm.ir.transform import ModulePass, _pass_decorator

__getattr__, __dir__ = fill(__name__)


def _make_prim_func_pass(func, info):
    def run(mod, ctx):
        from tvm.tir import PrimFunc

        result = mod.clone()
        for var, f in mod.functions_items():
            if isinstance(f, PrimFunc):
                result[var] = func(f, mod, ctx)
        return result

    return ModulePass(tvm_ffi.convert(run), info)


prim_func_pass = _pass_decorator(_make_prim_func_pass)
prim_func_pass.__doc__ = "Makes a pass of a function (func, module, context) -> func or of a class."
