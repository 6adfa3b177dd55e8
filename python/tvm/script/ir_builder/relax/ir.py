# SPDX-License-Identifier: Apache-2.0
"""The functions of the graph's builder that are no operators."""

import builtins

from tvm import relax, runtime
from tvm._aliases import spelled
from tvm.ir import DictAttrs, IRModule
from tvm.ir.function import own_name
from tvm.relax import ExternFunc
from tvm.relax.expr import as_info
from tvm.relax.utils import convert_to_expr, gen_call_tir_inputs

from ..base import IRBuilder
from ..ir import IRModuleFrame, def_function, lookup_vdevice
from . import frame
from .frame import function_frame, native

py_print, py_tuple, py_str = builtins.print, builtins.tuple, builtins.str
const = relax.const
stop_lift_params = relax.op.builtin.stop_lift_params


def _info(value):
    """Struct info, from what stands for it: R.Tensor((2, 3))."""
    return as_info(value)


# ---- functions ----------------------------------------------------------------------------------
def function(is_pure=True, is_private=False):
    """The frame of a function."""
    return frame.FunctionFrame(is_pure, is_private)


@spelled
def arg(name, struct_info):
    """A parameter."""
    func = function_frame("arg")
    func.params.append(relax.Var(name, _info(struct_info)))
    return func.params[-1]


def func_name(name):
    func = function_frame("func_name")
    if func.name is not None:
        raise ValueError(f"func_name: expected one name, got {func.name} and {name}")
    func.name = name


def func_attr(attrs):
    """Attributes of the function."""
    func = function_frame("func_attr")
    if func.is_private and "global_symbol" in attrs:
        raise ValueError("func_attr: expected no global_symbol of a private function")
    attrs = {own_name(key): value for key, value in attrs.items()}
    for key in attrs:
        if key in func.attrs:
            raise ValueError(f"func_attr: expected each attribute once, got '{key}' twice")
    func.attrs.update(attrs)


def func_ret_struct_info(ret_sinfo):
    func = function_frame("func_ret_struct_info")
    if func.ret_struct_info is not None:
        raise ValueError("func_ret_struct_info: expected once in a function, got twice")
    func.ret_struct_info = _info(ret_sinfo)


def func_ret_value(value):
    """What the function returns."""
    func = function_frame("return")
    if func.output is not None:
        raise ValueError("return: expected one in a function, got two")
    if IRBuilder.current().frames[-1] is not func:
        raise ValueError("return: expected at the end of the function, outside of blocks")
    func.begin_body()
    func.output = native.result(func.block_builder, convert_to_expr(value))


# ---- blocks -------------------------------------------------------------------------------------
def dataflow():
    """The frame of a dataflow block."""
    return frame.BlockFrame()


def output(*vars):
    """Ends a dataflow block; other blocks see these variables of it."""
    frames = IRBuilder.current().frames
    if not frames or not isinstance(frames[-1], frame.BlockFrame):
        raise ValueError("output: expected at the end of a dataflow block")
    if frames[-1].output_vars is not None:
        raise ValueError("output: expected once in a dataflow block, got twice")
    for var in vars:
        if not isinstance(var, relax.DataflowVar):
            raise ValueError(f"output: expected variables of the dataflow block, got {var!r}")
    frames[-1].output_vars = [*vars]


def SeqExpr():
    """The frame of a sequence."""
    return frame.SeqExprFrame()


def If(condition):
    return frame.IfFrame(convert_to_expr(condition))


def Then():
    return frame.ThenFrame()


def Else():
    return frame.ElseFrame()


# ---- bindings -----------------------------------------------------------------------------------
@spelled
def emit(value, annotate_struct_info=None, name=""):
    """Binds a value to a new variable."""
    return frame.emit(convert_to_expr(value), _info(annotate_struct_info), name)


@spelled
def emit_match_cast(value, struct_info, annotate_struct_info=None, name=""):
    """Binds a value whose struct info is checked at run time."""
    func = function_frame("match_cast")
    func.begin_body()
    info = _info(annotate_struct_info)
    value, struct_info = convert_to_expr(value), _info(struct_info)
    return native.match_cast(func.block_builder, value, struct_info, info, name)


def emit_var_binding(value):
    """Adds a binding that is in normal form."""
    function_frame("emit_var_binding").block_builder.emit_normalized(value)
    return value.var


def emit_te(func, *args, primfunc_name_hint=None, **kwargs):
    """A call of a function made from a tensor expression, which the module gets."""
    module = IRBuilder.current().find(IRModuleFrame)
    if module is None:
        raise ValueError("emit_te: expected to be inside a function of an I.ir_module")
    prim_func, inputs, infos, tir_vars = gen_call_tir_inputs(func, *args, **kwargs)
    base = name = primfunc_name_hint or func.__name__
    suffix = 0
    while name in module.global_vars:
        suffix += 1
        name = f"{base}{suffix}"
    prim_func = prim_func.without_attr("global_symbol")
    def_function(name, prim_func)
    var = module.global_vars[name]
    native.set_info(var, native.info_of(prim_func))
    return relax.op.call_tir(var, inputs, infos, tir_vars)


# ---- expressions --------------------------------------------------------------------------------
def _infos(value):
    """A struct info, or several, as a list."""
    if value is None:
        return []
    return [_info(v) for v in (value if isinstance(value, (list, py_tuple)) else [value])]


@spelled
def call_packed(func, *args, sinfo_args=None, **kwargs):
    """A call of a function that is found by name at run time."""
    sinfo_args = _infos(sinfo_args)
    attrs = DictAttrs(kwargs) if kwargs else None
    return relax.Call(ExternFunc(func), [convert_to_expr(a) for a in args], attrs, sinfo_args)


@spelled
def call_py_func(py_func_name, *args, out_sinfo):
    """A call of a Python function of the module; the arguments may be one tuple."""
    if len(args) == 1 and isinstance(args[0], (list, py_tuple, relax.Tuple)):
        args = args[0]
    return relax.op.call_py_func(py_func_name, args, out_sinfo)


@spelled
def Call(op, args, attrs=None, sinfo_args=None):
    """A call of anything: what no operator's function can make."""
    return relax.Call(op, [convert_to_expr(a) for a in args], attrs, _infos(sinfo_args))


@spelled
def emit_with_sinfo(op, args, sinfo_args=None):
    """A call of an operator with what is known of its result."""
    from tvm.ir import Op

    args = args if isinstance(args, (list, py_tuple)) else [args]
    return relax.Call(Op.get(op), [convert_to_expr(a) for a in args], None, _infos(sinfo_args))


def to_vdevice(data, dst_vdevice):
    """The data on another device, also given as "cuda:0"."""
    if isinstance(dst_vdevice, py_str):
        dst_vdevice = find_vdevice(dst_vdevice)
    return relax.op.to_vdevice(data, dst_vdevice)


def find_vdevice(text):
    """The device of the module that a text "cuda:0:global" names."""
    kind, *rest = text.split(":")
    return lookup_vdevice(kind, int(rest[0]) if rest and rest[0] else 0)


def tuple(*fields):
    return relax.Tuple(fields)


def shape(value):
    return relax.ShapeExpr(value)


def prim_value(value):
    return relax.PrimValue(value)


def str(value):
    return relax.StringImm(value)


def dtype(value):
    return relax.DataTypeImm(value)


def rewriter(rewriter_mod):
    """A class (or a module) with the functions `pattern` and `replacement` as a rewriter."""
    from tvm.relax.dpl import PatternMatchingRewriter
    from tvm.script.parser.ir import ir_module

    if not isinstance(rewriter_mod, IRModule):
        rewriter_mod = ir_module(rewriter_mod)
    return PatternMatchingRewriter.from_module(rewriter_mod)


rewriter.dispatch_token = "ir"


_DEVICES = "cpu cuda device ext_dev hexagon metal opencl rocm vpi vulkan webgpu".split()
globals().update({name: getattr(runtime, name) for name in _DEVICES})
__all__ = [
    *"function arg func_name func_attr func_ret_struct_info func_ret_value dataflow output".split(),
    *"SeqExpr If Then Else emit emit_match_cast emit_var_binding emit_te const call_packed".split(),
    *"call_py_func Call emit_with_sinfo to_vdevice tuple shape prim_value str dtype".split(),
    *_DEVICES,
    "rewriter",
    "stop_lift_params",
    "ExternFunc",
]


def __getattr__(name):
    if name[:1] == "_":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from tvm.script.ir_builder import relax as package  # what it derives has this name as well

    return getattr(package, name)
