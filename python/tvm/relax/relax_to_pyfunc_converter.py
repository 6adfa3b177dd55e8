# SPDX-License-Identifier: Apache-2.0
"""Graphs as Python functions on PyTorch's tensors."""

import functools

from tvm import ir, relax, runtime, tir

from .base_py_module import to_torch, to_tvm
from .testing.evaluate import Closure, Evaluator, Frame, Shape, scalar_value
from .torch_operators import OPERATORS


class RelaxExpressionConverter(Evaluator):
    """Runs expressions of graphs on tensors of PyTorch. Operators that PyTorch has no function for
    are compiled, as kernels are."""

    def __init__(self, ir_module):
        super().__init__(ir_module)
        self._compiled = {}

    def eval_Constant(self, e, frame):
        return to_torch(e.data)

    def match(self, infos, values, frame, define=True):
        """Binds symbolic variables. What does not fit PyTorch says itself, where it matters."""
        for info, value in zip(infos, values, strict=True) if define else ():
            if isinstance(info, relax.TupleStructInfo) and isinstance(value, tuple):
                self.match(info.fields, value, frame)
            dims = getattr(info, "shape", getattr(info, "values", None)) or ()
            sizes = value if isinstance(value, Shape) else getattr(value, "shape", ())
            for dim, size in zip(dims, sizes, strict=False):
                if isinstance(dim, tir.Var):
                    frame.sizes.setdefault(dim, int(size))

    def eval_Call(self, e, frame):
        if not isinstance(e.op, ir.Op):
            return super().eval_Call(e, frame)
        name = e.op.name.removeprefix("relax.")
        method = getattr(self, "op_" + name.replace(".", "_"), None)
        if method is not None:
            return method(e, frame)
        args = [self.eval(a, frame) for a in e.args]
        if name in OPERATORS:
            return OPERATORS[name](e.attrs, *args)
        return self._own(e, args)

    def _own(self, e, args):
        """A call compiled for the arguments it has."""
        import torch

        infos = [_info(a) for a in args]
        key = (e.op.name, str(e.attrs), str(infos), str([a for a in args if _is_plain(a)]))
        if key not in self._compiled:
            bb = relax.BlockBuilder()
            given = zip(infos, args, e.args, strict=True)
            params = [
                None if info is None else relax.Var(f"x{i}", info) for i, info in enumerate(infos)
            ]
            values = [
                _as_given(arg, expr) if p is None else p
                for p, (_, arg, expr) in zip(params, given, strict=True)
            ]
            with bb.function("main", [p for p in params if p is not None]):
                bb.emit_func_output(bb.emit(relax.Call(e.op, values, e.attrs, e.sinfo_args)))
            executable = relax.build(bb.get(), "llvm")
            self._compiled[key] = relax.VirtualMachine(executable, runtime.cpu())
        tensors = [a for a in args if isinstance(a, (torch.Tensor, tuple)) and not _is_plain(a)]
        return to_torch(self._compiled[key]["main"](*map(to_tvm, tensors)))

    # ---- calls of other functions ----------------------------------------------------------------
    def outputs(self, e, frame):
        (info,) = e.sinfo_args
        infos = info.fields if isinstance(info, relax.TupleStructInfo) else [info]
        return [
            runtime.empty([scalar_value(d, frame.sizes) for d in i.shape.values], str(i.dtype))
            for i in infos
        ]

    @functools.cached_property
    def kernels(self):
        functions = {
            str(v.name_hint): f.with_attr("global_symbol", str(v.name_hint))
            for v, f in self.mod.functions.items()
            if isinstance(f, tir.PrimFunc)
        }
        return tir.build(ir.IRModule(functions), "llvm")

    def op_call_tir(self, e, frame):
        args = self.eval(e.args[1], frame)
        args = args if isinstance(args, tuple) and not isinstance(args, Shape) else (args,)
        outs = self.outputs(e, frame)
        extra = self.eval(e.args[2], frame) if len(e.args) > 2 else ()
        self.kernels[str(e.args[0].name_hint)](*map(to_tvm, args), *outs, *extra)
        return to_torch(self.result(e, outs))

    op_call_tir_with_grad = op_call_tir

    def op_call_tir_inplace(self, e, frame):
        # In a graph the arguments are gone afterwards; here the caller still has them.
        args = [a.clone() for a in self.eval(e.args[1], frame)]
        fresh, outs, new = self.outputs(e, frame), [], []
        given = [to_tvm(a) for a in args]
        for out, index in zip(fresh, map(int, e.attrs.inplace_indices), strict=True):
            outs.append(out if index < 0 else given[index])
            new += [out] if index < 0 else []
        extra = self.eval(e.args[2], frame) if len(e.args) > 2 else ()
        self.kernels[str(e.args[0].name_hint)](*given, *new, *extra)
        return to_torch(self.result(e, outs))

    def op_call_dps_packed(self, e, frame):
        import tvm_ffi

        callee, args = self.eval(e.args[0], frame), self.eval(e.args[1], frame)
        args = args if isinstance(args, tuple) else (args,)
        outs = self.outputs(e, frame)
        tvm_ffi.get_global_func(str(callee.global_symbol))(*map(to_tvm, args), *outs)
        return to_torch(self.result(e, outs))

    def packed(self, callee, args):
        import tvm_ffi

        return to_torch(tvm_ffi.get_global_func(str(callee.global_symbol))(*map(to_tvm, args)))

    def op_call_py_func(self, e, frame):
        name, args = self.eval(e.args[0], frame), self.eval(e.args[1], frame)
        if name not in self.mod.pyfuncs:
            raise ValueError(f"Python function '{name}' not found")
        return self.mod.pyfuncs[name](*args)

    def convert_expr(self, expr, args):
        """The value of an expression whose variables are the arguments, by name."""
        frame = Frame()
        names = {str(v.name_hint): v for v in relax.analysis.free_vars(expr)}
        for (_, var), value in zip(sorted(names.items()), args, strict=False):
            frame.values[var.vid] = value
        return self.eval(expr, frame)


def _as_given(value, expr):
    """An argument that is part of the call, with numbers in place of its variables."""
    if isinstance(value, Shape):
        return relax.ShapeExpr(value)
    if isinstance(expr, relax.PrimValue):
        return relax.PrimValue(tir.const(value, expr.value.dtype))
    return expr


def _is_plain(value):
    return isinstance(value, (Shape, int, float, str, bool)) or value is None


def _info(value):
    """What is known of an argument; None for what is part of the call."""
    import torch

    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        return relax.TensorStructInfo(list(value.shape), dtype)
    if isinstance(value, tuple) and not isinstance(value, Shape):
        return relax.TupleStructInfo([_info(v) for v in value])
    return None


class RelaxToPyFuncConverter:
    """Makes Python functions of functions of a module."""

    def __init__(self, ir_module):
        self.ir_module = ir_module

    def convert(self, relax_function_names):
        """A module in which these functions are Python functions: `mod.pyfuncs[name](x)`."""
        names = [relax_function_names] if isinstance(relax_function_names, str) else None
        names = list(relax_function_names) if names is None else names
        converter = RelaxExpressionConverter(self.ir_module)
        converted = {}
        for name in names:
            func = self.ir_module[name] if name in self.ir_module else None
            if not isinstance(func, relax.Function):
                raise ValueError(f"expected a Relax function of the module, got '{name}'")
            converted[name] = _python_function(converter, name, func)
        mod = self.ir_module.clone()
        mod.pyfuncs.update({**self.ir_module.pyfuncs, **converted})
        for name in names:
            del mod[name]
        return mod


def _python_function(converter, name, func):
    def run(*args):
        if len(args) != len(func.params):
            raise ValueError(f"Expected {len(func.params)} arguments, got {len(args)}")
        return converter.apply(Closure(func, Frame()), list(args))

    run.__name__ = name
    run.__script_source__ = f"def {name}(*args):\n    ...  # a graph, run by PyTorch"
    return run


def convert_relax_to_pyfunc(ir_module, relax_function_names):
    """RelaxToPyFuncConverter(ir_module).convert(relax_function_names)"""
    return RelaxToPyFuncConverter(ir_module).convert(relax_function_names)
