# SPDX-License-Identifier: Apache-2.0
"""Passes over TIR: every registered `tir.transform.X` is a function here that makes the pass."""

import enum

import tvm_ffi

from tvm._derive import fill, node_class
from tvm.ir.transform import _pass_decorator

__getattr__, __dir__ = fill(__name__)


prim_func_pass = _pass_decorator(tvm_ffi.get_global_func("tir.transform.CreatePrimFuncPass"))
_PrimFuncPass = node_class("tir.PrimFuncPass", __name__)  # what it makes
prim_func_pass.__doc__ = """Makes a pass of a function (func, module, context) -> func, or of
a class. Where the result is None, the function is removed."""


# ---- options ------------------------------------------------------------------------------------
class HoistedConditionals(enum.Flag):
    """Which conditions HoistExpression moves."""

    Never = 0
    IfElseStmt = 1
    IfElseExpr = 2
    BooleanExpression = 4
    UsingBlockVar = 8
    All = IfElseStmt | IfElseExpr | BooleanExpression | UsingBlockVar


class HoistedLetBindings(enum.Flag):
    """Which lets HoistExpression moves."""

    Never = 0
    RequiredByConditional = 1
    LetStmt = 2
    LetExpr = 4
    All = RequiredByConditional | LetStmt | LetExpr


def _config(name):
    """The options of a pass as a dict: PassContext(config={"tir.X": XConfig(option=value)})."""

    def __init__(self, **options):
        dict.__init__(
            self, {k: v.value if isinstance(v, enum.Flag) else v for k, v in options.items()}
        )

    doc = f"Options of {name}, for the key tir.{name} of a PassContext."
    return type(name + "Config", (dict,), {"__init__": __init__, "__doc__": doc})


LoopPartitionConfig = _config("LoopPartition")
InjectDoubleBufferConfig = _config("InjectDoubleBuffer")
UnrollLoopConfig = _config("UnrollLoop")
ReduceBranchingThroughOvercomputeConfig = _config("ReduceBranchingThroughOvercompute")
RemoveNoOpConfig = _config("RemoveNoOp")
SimplifyConfig = _config("Simplify")
HoistIfThenElseConfig = _config("HoistIfThenElse")
HoistExpressionConfig = _config("HoistExpression")
