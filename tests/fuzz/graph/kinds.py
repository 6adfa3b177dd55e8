# SPDX-License-Identifier: Apache-2.0
"""Which kinds of nodes random graphs are made of, and which of them are too rare."""

import re

import tvm
from tvm import relax

SHARE = 0.01  # of the programs have every kind
KINDS = {
    *("relax.expr." + name for name in (
        "Var", "DataflowVar", "Call", "Tuple", "TupleGetItem", "ShapeExpr", "Constant", "PrimValue",
        "StringImm", "DataTypeImm", "VarBinding", "MatchCast", "BindingBlock", "DataflowBlock",
        "SeqExpr", "If", "Function", "ExternFunc",
    )),
    *("relax." + name for name in (
        "ObjectStructInfo", "PrimStructInfo", "ShapeStructInfo", "TensorStructInfo",
        "TupleStructInfo", "FuncStructInfo",
    )),
    "ir.GlobalVar", "tir.PrimFunc", "local function", "recursion", "R.call_tir", "R.assert_op",
    "R.call_tir_inplace", "R.call_dps_packed", "R.call_pure_packed", "R.memory.view", "R.unique",
}  # fmt: skip


def kinds(module):
    """The kinds that a program has."""
    found = set(re.findall(r'"type": ?"([\w.]+)"', tvm.ir.save_json(module)))
    found |= {"R." + name for name in re.findall(r"R\.([\w.]+)\(", module.script())}
    for func in module.functions.values():
        if isinstance(func, relax.Function):
            for value in relax.analysis.get_var2val(func).values():
                if isinstance(value, relax.Function):
                    found.add("local function")
    if relax.analysis.detect_recursion(module):
        found.add("recursion")
    return found


def rare(counts, programs):
    """The kinds that fewer programs have than should."""
    return sorted(k for k in KINDS if counts[k] < SHARE * programs)
