# SPDX-License-Identifier: Apache-2.0
"""Traced graphs (torch.fx) as graphs. Functions, methods and modules are brought to the operators
of exported programs, which have the converters."""

import operator

import torch
import tvm_ffi
from torch import fx, nn

from .base_fx_graph_translator import BaseFXGraphImporter
from .program import (
    GraphNode,
    Program,
    ProgramInput,
    TensorMeta,
    ValueRef,
    dtype_name,
    is_supported,
    meta_of,
    source_of,
    tensor_of,
    value_of,
)

_import = tvm_ffi.get_global_func("relax.frontend.torch._import")
_schema = tvm_ffi.get_global_func("relax.frontend.torch._schema")

# Functions and methods whose operator has another name, or several overloads of which none is
# called "default".
_OPERATORS = {
    "__and__": "bitwise_and.Tensor",
    "__or__": "bitwise_or.Tensor",
    "__xor__": "bitwise_xor.Tensor",
    "_to_copy": "_to_copy.default",
    "add": "add.Tensor",
    "add_": "add_.Tensor",
    "and_": "bitwise_and.Tensor",
    "any": "any.dim",
    "arange": "arange.start_step",
    "argsort": "argsort.default",
    "astype": "to.dtype",
    "batch_norm": "batch_norm.default",
    "bitwise_and": "bitwise_and.Tensor",
    "bitwise_or": "bitwise_or.Tensor",
    "bitwise_or_": "bitwise_or_.Tensor",
    "bitwise_xor": "bitwise_xor.Tensor",
    "clamp": "clamp.default",
    "concat": "cat.default",
    "concatenate": "cat.default",
    "conv_transpose2d": "conv_transpose2d.input",
    "conv_transpose3d": "conv_transpose3d.input",
    "copy_": "copy_.default",
    "cross_entropy": "cross_entropy_loss.default",
    "div": "div.Tensor_mode",
    "empty": "empty.memory_format",
    "eq": "eq.Tensor",
    "expand": "expand.default",
    "fill_": "fill_.Scalar",
    "flatten": "flatten.using_ints",
    "floordiv": "floor_divide.default",
    "fmod": "fmod.Tensor",
    "full": "full.default",
    "ge": "ge.Tensor",
    "gru": "gru.input",
    "gt": "gt.Tensor",
    "iadd": "add.Tensor",
    "index_put_": "index_put_.default",
    "layer_norm": "layer_norm.default",
    "le": "le.Tensor",
    "log_softmax": "log_softmax.int",
    "lshift": "bitwise_left_shift.Tensor",
    "lstm": "lstm.input",
    "lt": "lt.Tensor",
    "masked_fill": "masked_fill.Scalar",
    "masked_fill_": "masked_fill_.Scalar",
    "max": "maximum.default",
    "mean": "mean.dim",
    "meshgrid": "meshgrid.indexing",
    "min": "minimum.default",
    "mod": "remainder.Tensor",
    "mul": "mul.Tensor",
    "mul_": "mul_.Tensor",
    "ne": "ne.Tensor",
    "norm": "norm.ScalarOpt_dim",
    "or_": "bitwise_or.Tensor",
    "permute": "permute.default",
    "pow": "pow.Tensor_Tensor",
    "prod": "prod.default",
    "remainder": "remainder.Tensor",
    "rshift": "bitwise_right_shift.Tensor",
    "rsub": "rsub.Tensor",
    "scatter": "scatter.src",
    "select": "select.int",
    "softmax": "softmax.int",
    "split": "split.Tensor",
    "squeeze": "squeeze.dims",
    "std": "std.correction",
    "sub": "sub.Tensor",
    "sum": "sum.dim_IntList",
    "to": "to.dtype",
    "transpose": "transpose.int",
    "truediv": "div.Tensor",
    "type": "to.dtype",
    "unbind": "unbind.int",
    "unflatten": "unflatten.int",
    "var": "var.correction",
    "where": "where.self",
    "xor": "bitwise_xor.Tensor",
}
# The sizes of these may be given one by one.
_VARIADIC = {"view", "reshape", "permute", "expand", "repeat", "tile", "flip", "size", "ones",
             "zeros", "empty", "new_ones", "new_zeros", "einsum"}  # fmt: skip
# Without a dimension these reduce the whole tensor.
_WHOLE = {"any", "mean", "sum"}
# What says nothing about the result.
_IGNORED = {"inplace", "_stacklevel", "device", "layout", "memory_format", "requires_grad",
            "pin_memory", "return_indices", "training", "scale_grad_by_freq", "sparse", "max_norm",
            "norm_type", "size_average", "reduce", "out"}  # fmt: skip
_CASTS = {"float": "float32", "half": "float16", "bool": "bool", "int": "int32", "long": "int64",
          "double": "float64", "bfloat16": "bfloat16"}  # fmt: skip
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _named(target, *args, **kwargs):
    return f"aten.{target}", list(args), kwargs


def _conv(kind):
    def convert(module, x, param):
        args = [x, param("weight"), param("bias"), module.stride, module.padding]
        if module.padding_mode != "zeros":
            raise ValueError(
                f"{type(module).__name__}: expected padding_mode 'zeros', got "
                f"'{module.padding_mode}'"
            )
        if "transpose" in kind:
            args += [module.output_padding, module.groups, module.dilation]
        else:
            args += [module.dilation, module.groups]
        suffix = "padding" if isinstance(module.padding, str) else "default"
        if kind in ("conv_transpose2d", "conv_transpose3d"):
            suffix = "input"
        return _named(f"{kind}.{suffix}", *args)

    return convert


def _avg_pool(dims):
    def convert(module, x, param):
        args = [module.kernel_size, module.stride, module.padding, module.ceil_mode]
        divisor = getattr(module, "divisor_override", None)
        return _named(f"avg_pool{dims}d.default", x, *args, module.count_include_pad, divisor)

    return convert


def _max_pool(dims):
    def convert(m, x, param):
        args = [m.kernel_size, m.stride, m.padding, m.dilation, m.ceil_mode]
        return _named(f"max_pool{dims}d.default", x, *args)

    return convert


def _instance_norm(m, x, param):
    args = [param("weight"), param("bias"), param("running_mean"), param("running_var")]
    uses_input = m.training or m.running_mean is None
    return _named("instance_norm.default", x, *args, uses_input, m.momentum, m.eps, False)


def _batch_norm(m, x, param):
    args = [param("weight"), param("bias"), param("running_mean"), param("running_var")]
    return _named("batch_norm.default", x, *args, m.training, m.momentum, m.eps, False)


def _cross_entropy(m, x, param, target):
    reduction = _REDUCTIONS[m.reduction]
    args = [param("weight"), reduction, m.ignore_index, m.label_smoothing]
    return _named("cross_entropy_loss.default", x, target, *args)


_MODULES = {
    nn.Identity: lambda m, x, p: _named("alias.default", x),
    nn.Dropout: lambda m, x, p: _named("dropout.default", x, m.p, m.training),
    nn.ReLU: lambda m, x, p: _named("relu.default", x),
    nn.ReLU6: lambda m, x, p: _named("relu6.default", x),
    nn.SELU: lambda m, x, p: _named("selu.default", x),
    nn.SiLU: lambda m, x, p: _named("silu.default", x),
    nn.Sigmoid: lambda m, x, p: _named("sigmoid.default", x),
    nn.Tanh: lambda m, x, p: _named("tanh.default", x),
    nn.Hardsigmoid: lambda m, x, p: _named("hardsigmoid.default", x),
    nn.Hardswish: lambda m, x, p: _named("hardswish.default", x),
    nn.Hardtanh: lambda m, x, p: _named("hardtanh.default", x, m.min_val, m.max_val),
    nn.CELU: lambda m, x, p: _named("celu.default", x, m.alpha),
    nn.ELU: lambda m, x, p: _named("elu.default", x, m.alpha),
    nn.GELU: lambda m, x, p: _named("gelu.default", x, m.approximate),
    nn.LeakyReLU: lambda m, x, p: _named("leaky_relu.default", x, m.negative_slope),
    nn.Softplus: lambda m, x, p: _named("softplus.default", x, m.beta, m.threshold),
    nn.Softmax: lambda m, x, p: _named("softmax.int", x, m.dim),
    nn.LogSoftmax: lambda m, x, p: _named("log_softmax.int", x, m.dim),
    nn.PReLU: lambda m, x, p: _named("prelu.default", x, p("weight")),
    nn.Flatten: lambda m, x, p: _named("flatten.using_ints", x, m.start_dim, m.end_dim),
    nn.PixelShuffle: lambda m, x, p: _named("pixel_shuffle.default", x, m.upscale_factor),
    nn.Linear: lambda m, x, p: _named("linear.default", x, p("weight"), p("bias")),
    nn.Embedding: lambda m, x, p: _named("embedding.default", p("weight"), x),
    nn.LayerNorm: lambda m, x, p: _named(
        "layer_norm.default", x, m.normalized_shape, p("weight"), p("bias"), m.eps
    ),
    nn.GroupNorm: lambda m, x, p: _named(
        "group_norm.default", x, m.num_groups, p("weight"), p("bias"), m.eps
    ),
    nn.BatchNorm1d: _batch_norm,
    nn.BatchNorm2d: _batch_norm,
    nn.BatchNorm3d: _batch_norm,
    nn.InstanceNorm1d: _instance_norm,
    nn.InstanceNorm2d: _instance_norm,
    nn.InstanceNorm3d: _instance_norm,
    nn.Conv1d: _conv("conv1d"),
    nn.Conv2d: _conv("conv2d"),
    nn.Conv3d: _conv("conv3d"),
    nn.ConvTranspose1d: _conv("conv_transpose1d"),
    nn.ConvTranspose2d: _conv("conv_transpose2d"),
    nn.ConvTranspose3d: _conv("conv_transpose3d"),
    nn.AvgPool1d: _avg_pool(1),
    nn.AvgPool2d: _avg_pool(2),
    nn.AvgPool3d: _avg_pool(3),
    nn.MaxPool1d: _max_pool(1),
    nn.MaxPool2d: _max_pool(2),
    nn.MaxPool3d: _max_pool(3),
    nn.AdaptiveAvgPool1d: lambda m, x, p: _named("adaptive_avg_pool1d.default", x, m.output_size),
    nn.AdaptiveAvgPool2d: lambda m, x, p: _named("adaptive_avg_pool2d.default", x, m.output_size),
    nn.AdaptiveAvgPool3d: lambda m, x, p: _named("adaptive_avg_pool3d.default", x, m.output_size),
    nn.CrossEntropyLoss: _cross_entropy,
}


class TorchFXImporter(BaseFXGraphImporter):
    """Imports one traced graph."""

    def __init__(self, default_image_layout="NCHW"):
        super().__init__()
        if default_image_layout not in ("NCHW", "NHWC"):
            raise ValueError(
                f"default_image_layout: expected 'NCHW' or 'NHWC', got {default_image_layout!r}"
            )
        self.default_image_layout = default_image_layout
        self._constants = {}  # name -> tensor, beside the parameters
        self._current = {}  # node -> what stands for a placeholder or an attribute

    def from_fx(
        self,
        model,
        input_info,
        keep_params_as_input,
        unwrap_unit_return_tuple,
        no_bind_return_tuple,
        custom_convert_map=None,
        name="main",
    ):
        self.update_convert_map(custom_convert_map or {})
        self._modules = dict(model.named_modules())
        self._tensors = dict(model.named_parameters(remove_duplicate=False))
        inputs, nodes, result = self._placeholders(model.graph, list(input_info)), [], None
        for node in model.graph.nodes:
            if node.op == "get_attr":
                self._current[node] = self._attribute(model, node.target)
            elif node.op == "output":
                result = self._argument(node.args[0])
            elif node.op != "placeholder":
                nodes.append(self._call(node))
        for key, tensor in sorted(model.named_parameters(remove_duplicate=False)):
            inputs.append(ProgramInput(key, "parameter", meta_of(tensor), tensor_of(tensor)))
        for key, tensor in self._constants.items():
            inputs.append(ProgramInput(key, "constant", meta_of(tensor), tensor_of(tensor)))
        program = Program(inputs, nodes, result, {}, dtype_name(torch.get_default_dtype()))
        flags = (keep_params_as_input, unwrap_unit_return_tuple, no_bind_return_tuple)
        _import(self._handle, program, *flags, True, name)
        return self._imported()

    def _placeholders(self, graph, input_info):
        inputs = []
        for i, given in enumerate(input_info):
            meta = TensorMeta(*_sizes_and_type(i, given))
            inputs.append(ProgramInput(f"inp_{i}", "user", meta))
        position = 0
        for node in graph.nodes:
            if node.op != "placeholder" or _is_symbol(node):
                continue
            assert position < len(input_info), (
                f"from_fx: expected input_info for the placeholder '{node.name}', got "
                f"{len(input_info)} inputs"
            )
            self._current[node] = ValueRef(f"inp_{position}")
            position += 1
        return inputs

    def _attribute(self, model, target):
        try:
            value = operator.attrgetter(target)(model)
        except AttributeError:
            raise RuntimeError(f"the graph reads '{target}', which its module lacks") from None
        if not isinstance(value, torch.Tensor):
            return value_of(value)
        return self._tensor(target, value)

    def _tensor(self, name, value):
        if value is None:
            return None
        if name not in self._tensors:
            self._constants[name] = value
        return ValueRef(name)

    def _argument(self, arg):
        if isinstance(arg, fx.Node):
            return self._current.get(arg) or ValueRef(arg.name)
        if isinstance(arg, (list, tuple)):
            return [self._argument(item) for item in arg]
        if isinstance(arg, dict):  # of results, in order
            return [self._argument(item) for item in arg.values()]
        if isinstance(arg, slice):
            bounds = (arg.start, arg.stop, arg.step)
            return {"slice": [self._argument(bound) for bound in bounds]}
        return "..." if arg is Ellipsis else value_of(arg)

    def _retrieve_args(self, arg):
        current = self._current.get(arg) if isinstance(arg, fx.Node) else None
        if isinstance(current, ValueRef):
            return self.env[current]
        return super()._retrieve_args(arg)

    def _call(self, node):
        custom = self._custom(node)
        target, args, kwargs = "custom", [], {}
        if custom is None:
            target, args, kwargs = self._operator(node)
        source = source_of(node)
        return GraphNode(node.name, target, args, kwargs, None, source, custom)

    def _custom(self, node):
        if node.op == "call_module":
            convert = self.convert_map.get(type(self._modules[node.target]))
            return None if convert is None else lambda: convert(node)
        return super()._custom(node)

    def _operator(self, node):
        """(operator, arguments, keywords) for a call of a module, a function or a method."""
        args = [self._argument(arg) for arg in node.args]
        kwargs = {key: self._argument(value) for key, value in node.kwargs.items()}
        if node.op == "call_module":
            return self._module(node.target, args, kwargs)
        if isinstance(node.target, torch._ops.OpOverload):
            return str(node.target), args, kwargs
        name = node.target if node.op == "call_method" else node.target.__name__
        return self._function(name, args, kwargs)

    def _module(self, path, args, kwargs):
        module = self._modules[path]
        convert = _MODULES.get(type(module))
        if convert is None:
            raise AssertionError(f"Unsupported module type {type(module)} ('{path}')")

        def param(name):
            return self._tensor(f"{path}.{name}", getattr(module, name))

        target, args, kwargs = convert(module, args[0], param, *args[1:], **kwargs)
        return target, value_of_config(args), kwargs

    def _function(self, name, args, kwargs):
        if name in ("getitem", "getattr", "size", "numel", "dim"):
            return f"fx.{name}", args[:1] + ([args[1:]] if name == "size" else args[1:]), {}
        if name in _CASTS and len(args) == 1:
            return "aten.to.dtype", [args[0], _CASTS[name]], {}
        if name == "interpolate":
            return "fx.interpolate", args, {**kwargs, "layout": self.default_image_layout}
        if name in ("tensor", "is_floating_point", "item", "lerp"):
            return f"fx.{name}", args, {k: v for k, v in kwargs.items() if k not in _IGNORED}
        target = self._target(name)
        if name in _WHOLE and len(args) == 1 and "dim" not in kwargs:
            target = f"aten.{name}.default"
        if name in _VARIADIC and len(args) > 1 and not isinstance(args[1], list):
            args = [args[0], args[1:]]
        if name in ("ones", "zeros", "empty") and args and not isinstance(args[0], list):
            args = [args]
        if name == "arange" and len(args) == 1:
            args = [0, *args]
        if name == "arange" and "end" in kwargs and not args:
            kwargs.setdefault("start", 0)
        if name in ("to", "type", "astype"):
            return self._cast(args, kwargs)
        return target, *_fit(target, args, kwargs)

    def _cast(self, args, kwargs):
        dtypes = [a for a in [*args[1:], *kwargs.values()] if isinstance(a, str) and _is_dtype(a)]
        if not dtypes:
            return "aten.alias.default", args[:1], {}
        return "aten.to.dtype", [args[0], dtypes[0]], {}

    def _target(self, name):
        target = f"aten.{_OPERATORS.get(name, name + '.default')}"
        if is_supported(target):
            return target
        raise AssertionError(f"Unsupported function target {name}")


def _sizes_and_type(i, given):
    """What the user says of an input."""
    if not isinstance(given, (list, tuple)) or len(given) != 2 or isinstance(given[0], (int, str)):
        raise TypeError(f"from_fx: expected (shape, dtype) as input_info[{i}], got {given!r}")
    shape, dtype = given
    return [int(s) if isinstance(s, int) else s for s in shape], dtype_name(dtype)


def _is_symbol(node):
    """Whether a placeholder is a symbolic size, which shapes of tensors have brought already."""
    value = node.meta.get("val", node.meta.get("example_value"))
    grapharg = node.meta.get("grapharg")
    if isinstance(value, torch.SymInt):
        return True
    return grapharg is not None and getattr(grapharg, "fake_tensor", 0) is None


def _is_dtype(text):
    return isinstance(getattr(torch, text, None), torch.dtype)


def value_of_config(args):
    """Arguments from a module's settings: tuples become lists."""
    return [list(a) if isinstance(a, (tuple, torch.Size)) else a for a in args]


def _fit(target, args, kwargs):
    """The arguments for an operator's schema: functions call its first one `input`, and have
    further ones that do not matter."""
    names = [str(name) for name in _schema(target)[0]]
    fitted = {}
    for key, value in kwargs.items():
        key = {"input": names[0], "axis": "dim"}.get(key, key)
        if key in names:
            fitted[key] = value
        elif key not in _IGNORED:
            raise ValueError(f"{target}: expected no argument '{key}'")
    if "reduction" in fitted and isinstance(fitted["reduction"], str):
        fitted["reduction"] = _REDUCTIONS[fitted["reduction"]]
    return args[: len(names)], fitted


def from_fx(
    model,
    input_info,
    *,
    keep_params_as_input=False,
    unwrap_unit_return_tuple=False,
    no_bind_return_tuple=False,
    custom_convert_map=None,
    default_image_layout="NCHW",
):
    """The module of a graph that torch.fx traced. `input_info` has (shape, dtype) of each input."""
    if not isinstance(model, fx.GraphModule):
        raise TypeError(f"from_fx: expected a torch.fx.GraphModule, got {type(model).__name__}")
    if not isinstance(input_info, (list, tuple)):
        raise TypeError(
            f"from_fx: expected a list of (shape, dtype) as input_info, got {input_info!r}"
        )
    return TorchFXImporter(default_image_layout).from_fx(
        model,
        input_info,
        keep_params_as_input,
        unwrap_unit_return_tuple,
        no_bind_return_tuple,
        custom_convert_map,
    )
