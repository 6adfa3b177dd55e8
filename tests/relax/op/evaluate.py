# SPDX-License-Identifier: Apache-2.0
"""Runs a lowered graph function binding by binding: kernels are compiled and called, packed functions
called; nothing of it is shared with the virtual machine."""

import numpy as np
import tvm
import tvm_ffi
from tvm import relax



class Evaluator:
    """The values of a function's variables; `sizes` are those of its symbolic variables."""

    def __init__(self, mod, sizes):
        self.mod, self.sizes, self.values = mod, sizes, {}
        self.analyzer = tvm.arith.Analyzer()

    def number(self, expr):
        return int(self.analyzer.simplify(tvm.tir.stmt_functor.substitute(expr, self.sizes)))

    def empty(self, info):
        shape = [self.number(d) for d in info.shape.values]
        return tvm.runtime.empty(shape, str(info.dtype))

    def __call__(self, expr):
        if isinstance(expr, relax.Var):
            return self.values[expr]
        if isinstance(expr, relax.Constant):
            return expr.data
        if isinstance(expr, relax.Tuple):
            return tuple(self(field) for field in expr.fields)
        if isinstance(expr, relax.TupleGetItem):
            return self(expr.tuple_value)[expr.index]
        if isinstance(expr, relax.PrimValue):
            value = expr.value
            return value.value if isinstance(value, tvm.tir.FloatImm) else self.number(value)
        if isinstance(expr, relax.StringImm):
            return expr.value
        if isinstance(expr, relax.ShapeExpr):
            return tvm_ffi.Shape([self.number(d) for d in expr.values])
        assert isinstance(expr, relax.Call), f"not lowered: {expr}"
        name = str(getattr(expr.op, "name", ""))
        if name == "relax.call_tir":
            return self.call_tir(expr)
        if name == "relax.call_pure_packed":
            function = tvm_ffi.get_global_func(str(expr.args[0].global_symbol))
            return function(*(self(arg) for arg in expr.args[1:]))
        raise NotImplementedError(f"not lowered: {name}")

    def call_tir(self, call):
        info = call.sinfo_args[0]
        outputs = info.fields if isinstance(info, relax.TupleStructInfo) else [info]
        outputs = [self.empty(i) for i in outputs]
        kernel = tvm.compile(self.mod[call.args[0]], target="llvm")
        extra = list(self(call.args[2])) if len(call.args) > 2 else []
        kernel(*self(call.args[1]), *outputs, *extra)
        return tuple(outputs) if isinstance(info, relax.TupleStructInfo) else outputs[0]

    def run(self, name, arguments):
        function = self.mod[name]
        for param, value in zip(function.params, arguments, strict=True):
            self.values[param] = tvm.runtime.tensor(np.asarray(value))
        for block in function.body.blocks:
            for binding in block.bindings:
                self.values[binding.var] = self(binding.value)
        return to_numpy(self(function.body.body))


def to_numpy(value):
    """The arrays of a nested tuple of tensors."""
    if isinstance(value, (tuple, list, tvm_ffi.Array)):
        return tuple(map(to_numpy, value))
    return value.numpy()


def run_lowered(call, params, arguments, sizes=None):
    """The result of a call after LegalizeOps."""
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        builder.emit_func_output(builder.emit(call))
    mod = relax.transform.LegalizeOps()(builder.finalize())
    return Evaluator(mod, sizes or {}).run("main", arguments)
