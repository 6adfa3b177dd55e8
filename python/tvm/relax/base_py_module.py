# SPDX-License-Identifier: Apache-2.0
"""Modules of Python functions on PyTorch's tensors beside functions of TIR and of graphs."""

import functools
import inspect

import tvm_ffi

from tvm import ir, runtime, tir
from tvm._aliases import spelled
from tvm.target import Target

from .expr import Function
from .struct_info import TensorStructInfo

_register = tvm_ffi.get_global_func("vm.builtin.register_py_func")


def to_tvm(value):
    """Tensors of PyTorch and arrays as ours, without copies where possible."""
    import torch

    if isinstance(value, torch.Tensor):
        return runtime.from_dlpack(value.detach().contiguous())
    if isinstance(value, (list, tuple)):
        return [to_tvm(v) for v in value]
    return value if not hasattr(value, "__array__") else runtime.tensor(value)


def to_torch(value):
    """Our tensors as PyTorch's, without copies."""
    import torch

    if isinstance(value, runtime.Tensor):
        return torch.from_dlpack(value)
    if isinstance(value, (tvm_ffi.Array, list, tuple)):
        return tuple(to_torch(v) for v in value)
    return value


class ModuleFactory:
    """What a class of BasePyModule becomes: called with a device it is compiled for it. It prints
    and is asked like its IRModule."""

    def __init__(self, ir_module, name):
        self.ir_module, self.__name__ = ir_module, name

    def __call__(self, device=None, target=None):
        return BasePyModule(self.ir_module, device or runtime.cpu(), target)

    def __getattr__(self, name):
        return getattr(self.ir_module, name)

    def __getitem__(self, name):
        return self.ir_module[name]


class BasePyModule:
    """A module ready to run: its functions of all kinds are attributes that take tensors of
    PyTorch; Python functions whose first parameter is `self` get this object."""

    def __init__(self, ir_mod, device, target=None):
        if not isinstance(ir_mod, ir.IRModule):
            raise TypeError(f"BasePyModule: expected an IRModule, got {type(ir_mod).__name__}")
        self.ir_mod, self.device = ir_mod, device
        is_cpu = device.dlpack_device_type() == 1
        self.target = Target(target or ("llvm" if is_cpu else Target.from_device(device)))
        self.pyfuncs = {}
        self._prim_funcs, self._relax_names = {}, []
        for var, func in ir_mod.functions.items():
            if isinstance(func, tir.PrimFunc):
                self._prim_funcs[str(var.name_hint)] = func
            elif isinstance(func, Function):
                self._relax_names.append(str(var.name_hint))
        for name in self._prim_funcs:
            setattr(self, name, _TIRFunction(self, name))
        for name in self._relax_names:
            setattr(self, name, functools.partial(self._call_relax, name))
        for name, func in ir_mod.pyfuncs.items():
            self.add_python_function(name, func)

    @classmethod
    def _of_ir_module(cls, ir_module, name):
        """What @I.ir_module makes of a class that derives from this one."""
        return ModuleFactory(ir_module, name)

    @functools.cached_property
    def compiled_tir_funcs(self):
        """The PrimFuncs as one compiled module."""
        mod = ir.IRModule({n: f.with_attr("global_symbol", n) for n, f in self._prim_funcs.items()})
        return tir.build(mod, self.target)

    @functools.cached_property
    def relax_vm(self):
        """The graphs in a virtual machine."""
        from tvm.runtime.vm import VirtualMachine

        from .vm_build import build

        return VirtualMachine(build(self.ir_mod, self.target), self.device)

    def add_python_function(self, name, func):
        """Adds or replaces a Python function; graphs call it by R.call_py_func."""
        if not callable(func):
            raise TypeError(f"add_python_function: expected a function, got {type(func).__name__}")
        try:
            takes_self = next(iter(inspect.signature(func).parameters), None) == "self"
        except (TypeError, ValueError):
            takes_self = False
        self.pyfuncs[name] = func
        setattr(self, name, functools.partial(func, self) if takes_self else func)

    # ---- calls -----------------------------------------------------------------------------------
    def call_py_func(self, func_name, args):
        """Calls a Python function with tensors of PyTorch."""
        if func_name not in self.pyfuncs:
            raise ValueError(f"Python function '{func_name}' not found")
        return getattr(self, func_name)(*to_torch([to_tvm(a) for a in args]))

    @spelled
    def call_tir(self, tir_func, args, out_sinfo):
        """Calls a PrimFunc, by name or as an attribute, that writes new tensors."""
        name = tir_func if isinstance(tir_func, str) else getattr(tir_func, "name", None)
        if isinstance(tir_func, ir.GlobalVar):
            name = str(tir_func.name_hint)
        if name not in self._prim_funcs:
            raise ValueError(f"call_tir: expected a PrimFunc of the module, got {tir_func!r}")
        args = [to_tvm(a) for a in (args if isinstance(args, (list, tuple)) else [args])]
        outs = self._outputs(out_sinfo, _sizes(self._prim_funcs[name], args))
        self.compiled_tir_funcs[name](*args, *outs)
        return to_torch(outs[0] if len(outs) == 1 else outs)

    @spelled
    def call_dps_packed(self, func_name, args, out_sinfo):
        """Calls a global function that writes new tensors."""
        args = [to_tvm(a) for a in (args if isinstance(args, (list, tuple)) else [args])]
        outs = self._outputs(out_sinfo, {})
        self.get_function(func_name)(*args, *outs)
        return to_torch(outs[0] if len(outs) == 1 else outs)

    def _outputs(self, out_sinfo, sizes):
        infos = out_sinfo if isinstance(out_sinfo, (list, tuple)) else [out_sinfo]
        infos = [info() if callable(info) else info for info in infos]  # R.Tensor(...) is a proxy
        return [runtime.empty(_shape(i, sizes), str(i.dtype), self.device) for i in infos]

    def _call_relax(self, name, *args):
        for func_name in self.pyfuncs:  # other modules may have functions of these names
            _register(func_name, functools.partial(self._from_graph, func_name))
        return to_torch(self.relax_vm[name](*(to_tvm(a) for a in args)))

    def _from_graph(self, func_name, *args):
        result = to_tvm(self.call_py_func(func_name, args))
        if not isinstance(result, (runtime.Tensor, list)):
            raise TypeError(
                f"call_py_func: expected '{func_name}' to return tensors, "
                f"got {type(result).__name__}"
            )
        return result

    # ---- what is there ---------------------------------------------------------------------------
    def get_function(self, name):
        """The compiled or global function of a name, or None for a Python function."""
        if name in self._prim_funcs:
            return self.compiled_tir_funcs[name]
        if name in self._relax_names:
            return self.relax_vm[name]
        if name in self.pyfuncs:
            return None
        function = tvm_ffi.get_global_func(name, allow_missing=True)
        if function is None:
            raise ValueError(f"function '{name}' not found")
        return function

    def list_functions(self):
        """{kind: names}"""
        return {
            "tir": list(self._prim_funcs),
            "relax": list(self._relax_names),
            "python": list(self.pyfuncs),
        }

    def _printable(self):
        mod = self.ir_mod.clone()
        mod.pyfuncs.update(self.pyfuncs)
        return mod

    def script(self, **options):
        """The module as TVMScript, Python functions included."""
        return self._printable().script(**options)

    def show(self, style=None, black_format=None, **options):
        """Prints the module."""
        self._printable().show(style=style, black_format=black_format, **options)


class _TIRFunction:
    """A PrimFunc as an attribute: called, it takes tensors of PyTorch and writes into them."""

    def __init__(self, module, name):
        self.module, self.name = module, name

    def __call__(self, *args):
        self.module.compiled_tir_funcs[self.name](*(to_tvm(a) for a in args))


def _sizes(func, args):
    """{name of a symbolic variable: value} by the shapes of the arguments."""
    sizes = {}
    for param, arg in zip(func.params, args, strict=False):
        buffer = func.buffer_map.get(param)
        for dim, size in zip(buffer.shape, arg.shape, strict=False) if buffer is not None else ():
            if isinstance(dim, tir.Var):
                sizes[dim.name] = int(size)
    return sizes


def _shape(info, sizes):
    if not isinstance(info, TensorStructInfo) or info.shape is None:
        raise ValueError(f"Cannot infer concrete output shape from {info}")
    dims = []
    for dim in info.shape:
        if isinstance(dim, tir.PrimExpr) and not isinstance(dim, tir.IntImm):
            known = {v: sizes[v.name] for v in tir.analysis.undefined_vars(dim) if v.name in sizes}
            values = {v: tir.const(size, v.dtype) for v, size in known.items()}
            dim = tir.stmt_functor.substitute(dim, values)
            from tvm.arith import Analyzer

            dim = Analyzer().simplify(dim)
        if not isinstance(dim, (int, tir.IntImm)):
            raise ValueError(f"Cannot infer concrete output shape from {info}: {dim} is not known")
        dims.append(int(dim))
    return dims
