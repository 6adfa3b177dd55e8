# SPDX-License-Identifier: Apache-2.0
"""Runs a legalised graph binding by binding: PrimFuncs are compiled, the rest is Python."""

import functools

import numpy as np
import tvm
from tvm import relax, tir


class NotLowered(Exception):
    """A call of an operator that is left."""


@functools.cache
def _compiled(func):
    return tvm.compile(func.with_attr("global_symbol", "main"), target="llvm")


class _Evaluator:
    def __init__(self, mod):
        self.mod, self.values, self.sizes = mod, {}, {}

    def size(self, e):
        e = tir.stmt_functor.substitute(e, self.sizes) if self.sizes else e
        return int(tvm.arith.Analyzer().simplify(e))

    def bind(self, dims, shape):
        for dim, size in zip(dims, shape, strict=True):
            if isinstance(dim, tir.Var):
                self.sizes.setdefault(dim, tir.IntImm("int64", int(size)))

    def __call__(self, expr):
        if isinstance(expr, relax.Var):
            return self.values[expr]
        if isinstance(expr, relax.Constant):
            return expr.data.numpy()
        if isinstance(expr, relax.Tuple):
            return tuple(map(self, expr.fields))
        if isinstance(expr, relax.TupleGetItem):
            return self(expr.tuple_value)[expr.index]
        if isinstance(expr, relax.ShapeExpr):
            return tuple(self.size(e) for e in expr.values)
        if isinstance(expr, relax.PrimValue):
            value = expr.value
            return value.value if hasattr(value, "value") else self.size(value)
        if isinstance(expr, relax.Call):
            return self.call(expr)
        raise TypeError(f"evaluate: {type(expr).__name__}")

    def call(self, call):
        name = getattr(call.op, "name", None)
        if name == "relax.tensor_to_shape":
            return tuple(int(x) for x in self(call.args[0]))
        if name != "relax.call_tir":
            raise NotLowered(name)
        infos = call.sinfo_args[0]
        infos = infos.fields if isinstance(infos, relax.TupleStructInfo) else [infos]
        outs = [
            tvm.runtime.empty([self.size(d) for d in i.shape.values], str(i.dtype)) for i in infos
        ]
        args = [
            tvm.runtime.tensor(a) if isinstance(a, np.ndarray) else a for a in self(call.args[1])
        ]
        extra = self(call.args[2]) if len(call.args) > 2 else ()
        _compiled(self.mod[call.args[0]])(*args, *outs, *extra)
        results = tuple(o.numpy() for o in outs)
        return results if isinstance(call.sinfo_args[0], relax.TupleStructInfo) else results[0]

    def run(self, func, arrays):
        for param, array in zip(func.params, arrays, strict=True):
            self.values[param] = array
            self.bind(param.struct_info.shape.values, array.shape)
        for block in func.body.blocks:
            for binding in block.bindings:
                self.values[binding.var] = value = self(binding.value)
                if isinstance(binding, relax.MatchCast):
                    self.bind(binding.struct_info.values, value)
        return self(func.body.body)


def evaluate(mod, arrays):
    """What `main` gives for arrays."""
    return _Evaluator(mod).run(mod["main"], arrays)
