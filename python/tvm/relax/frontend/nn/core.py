# SPDX-License-Identifier: Apache-2.0
"""Tensors, parameters, effects and modules: what a model is made of."""

from collections import OrderedDict

import numpy as np

from tvm import relax as rx
from tvm import runtime, tir
from tvm.relax.block_builder import BlockBuilder

from ._tensor_op import _TensorOp
from .subroutine import SubroutineMixin

_default_dtype = "float32"


def get_default_dtype():
    """The dtype of parameters that are given none."""
    return _default_dtype


def set_default_dtype(dtype):
    """Sets the dtype of parameters that are given none."""
    global _default_dtype
    _default_dtype = str(dtype)


def current_builder():
    """The builder of the function that is being exported."""
    builder = BlockBuilder.current()
    if builder is None:
        raise RuntimeError(
            "nn: expected operators to be called while a model is exported (export_tvm, jit) or "
            "inside of `with bb.function(...)`"
        )
    return builder


def as_dims(shape, named=None):
    """A shape with a variable for each text; `named` keeps them, so that equal texts are one."""
    named = {} if named is None else named
    dims = []
    for dim in shape:
        if isinstance(dim, str):
            dim = named.setdefault(dim, tir.Var(dim, "int64"))
        elif not isinstance(dim, tir.PrimExpr):
            dim = int(dim)
            if dim < 0:
                raise ValueError(f"nn: expected dimensions that are not negative, got {dim}")
        dims.append(dim)
    return dims


def _numpy_dtype(dtype):
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, dtype, dtype))


class Tensor(_TensorOp):
    """A tensor of the graph that is being built."""

    def __init__(self, *, _expr):
        info = _expr.struct_info
        if not isinstance(info, rx.TensorStructInfo) or info.shape is None:
            raise TypeError(f"nn.Tensor: expected a tensor of known shape, got {info}")
        self._expr = _expr

    @staticmethod
    def from_const(data):
        """A constant."""
        return Tensor(_expr=rx.const(data))

    @staticmethod
    def from_scalar(data, dtype):
        """A constant without dimensions."""
        return Tensor(_expr=rx.const(data, dtype=dtype))

    @staticmethod
    def from_struct_info(struct_info, name="tensor"):
        """A variable of which this is known."""
        return Tensor(_expr=rx.Var(name, struct_info))

    @staticmethod
    def placeholder(shape, dtype, name="tensor"):
        """A variable; a text in its shape is a symbolic dimension."""
        return Tensor(_expr=rx.Var(name, rx.TensorStructInfo(as_dims(shape), dtype)))

    @property
    def shape(self):
        """Dimensions: ints, and expressions where they are symbolic."""
        dims = self._expr.struct_info.shape
        return [int(d) if isinstance(d, tir.IntImm) else d for d in dims]

    @property
    def ndim(self):
        return int(self._expr.struct_info.ndim)

    @property
    def dtype(self):
        return str(self._expr.struct_info.dtype)

    def __repr__(self):
        return f'Tensor({self.shape}, "{self.dtype}")'


class Parameter(Tensor):
    """A weight: a tensor that may have data, given before or after the model is exported."""

    def __init__(self, shape, dtype=None):
        self._dims = list(shape)
        self._data = None
        self.attrs = OrderedDict()
        self._expr = rx.Var(
            "param", rx.TensorStructInfo(as_dims(shape), dtype or get_default_dtype())
        )

    @property
    def data(self):
        """The weight itself, or None."""
        return self._data

    @data.setter
    def data(self, data):
        self._data = None if data is None else self.checked(data)

    def checked(self, data, name="data"):
        """Data as a tensor, which must be of this parameter's shape and dtype."""
        if isinstance(data, Parameter):
            data = data.data
        if not isinstance(data, (runtime.Tensor, np.ndarray)):
            if not hasattr(data, "__dlpack__"):
                raise TypeError(
                    f"Parameter: expected a tensor or an array for '{name}', "
                    f"got {type(data).__name__}"
                )
            if getattr(data, "requires_grad", False):
                data = data.detach()
            data = runtime.from_dlpack(data.contiguous() if hasattr(data, "contiguous") else data)
        if isinstance(data, np.ndarray):
            data = runtime.tensor(data)
        shape, dtype = self.shape, self.dtype
        fits = len(shape) == len(data.shape) and all(
            not isinstance(a, int) or a == b for a, b in zip(shape, data.shape, strict=True)
        )
        if not fits or str(data.dtype) != dtype:
            raise ValueError(
                f"Parameter: expected {shape} of {dtype} for '{name}', "
                f"got {list(data.shape)} of {data.dtype}"
            )
        return data

    def to(self, dtype=None):
        """Changes the dtype, of data that there is as well."""
        if dtype is None or dtype == self.dtype:
            return
        shape = self._expr.struct_info.shape
        self._expr = rx.Var(self._expr.name_hint, rx.TensorStructInfo(shape, dtype))
        if self._data is not None:
            self._data = runtime.tensor(self._data.numpy().astype(_numpy_dtype(dtype)))


class Object:
    """A value that is no tensor."""

    def __init__(self, *, _expr, _name):
        if not isinstance(_expr, rx.Var):
            _expr = current_builder().emit(_expr, _name)
        self._expr, self._name = _expr, _name


class Effect:
    """State that methods change in place, passed from call to call."""

    def emit_init(self, name_hint, builder):
        """Emits the first state; gives its variables."""
        raise NotImplementedError(f"{type(self).__name__}: expected a method emit_init")

    def create(self, name_hint):
        """Parameters for the state of a function; they become its state."""
        raise NotImplementedError(f"{type(self).__name__}: expected a method create")

    def set_state(self, state_vars):
        """Takes over a state."""
        raise NotImplementedError(f"{type(self).__name__}: expected a method set_state")

    def finalize(self):
        """The state at the end of a function."""
        raise NotImplementedError(f"{type(self).__name__}: expected a method finalize")

    def to(self, dtype=None):
        """Changes the dtype of what it holds."""


def walk(name, value, kind):
    """(name, value) of everything of a kind in a module, in the order in which it was set."""
    if isinstance(value, kind):
        yield name, value
    elif isinstance(value, (ModuleList, ModuleDict)):
        items = enumerate(value) if isinstance(value, ModuleList) else value.items()
        for key, item in items:
            yield from walk(f"{name}.{key}" if name else str(key), item, kind)
    elif isinstance(value, Module):
        for key, item in value.__dict__.items():
            yield from walk(f"{name}.{key}" if name else key, item, kind)


class Module(SubroutineMixin):
    """A part of a model: its attributes that are parameters, effects or modules belong to it."""

    def named_parameters(self, prefix=""):
        """(name, parameter), in the order in which they were set."""
        yield from walk(prefix, self, Parameter)

    def parameters(self):
        for _, param in self.named_parameters():
            yield param

    def state_dict(self, *, prefix="", destination=None):
        """{name: parameter}, by PyTorch's names."""
        destination = OrderedDict() if destination is None else destination
        destination.update(walk(prefix.removesuffix("."), self, Parameter))
        return destination

    def load_state_dict(self, state_dict, strict=True):
        """Takes the data of parameters, tensors of PyTorch or arrays, by name.

        Gives the names that are missing, and those that nothing here has; with `strict` either is
        an error. After an error the module is as it was.
        """
        own = self.state_dict()
        missing = [name for name in own if name not in state_dict]
        unexpected = [name for name in state_dict if name not in own]
        if strict and (missing or unexpected):
            raise KeyError(
                f"load_state_dict: expected a tensor for each parameter, "
                f"missing {missing}, unexpected {unexpected}"
            )
        found = {n: own[n].checked(v, n) for n, v in state_dict.items() if n in own}
        for name, data in found.items():
            own[name].data = data
        return missing, unexpected

    def __call__(self, *args, **kwargs):
        if not hasattr(self, "forward"):
            raise NotImplementedError(f"{type(self).__name__}: expected a method forward")
        return self.forward(*args, **kwargs)

    def to(self, dtype=None):
        """Changes the dtype of all parameters and effects."""
        for item in self.__dict__.values():
            if isinstance(item, (Module, Parameter, Effect)):
                item.to(dtype)
        if dtype is not None and isinstance(getattr(self, "dtype", None), str):
            self.dtype = dtype

    def export_tvm(self, spec, debug=False, allow_extern=False):
        """The methods that `spec` names as functions of a module, and the parameters they take.

        Returns (IRModule, [(name, Parameter)]), and with `allow_extern` the external modules too.
        """
        from .exporter import Exporter
        from .spec import ModuleSpec

        spec = ModuleSpec.from_raw(spec, self)
        with Exporter(debug=debug) as exporter:
            mod, params, externs = exporter.build(spec)
        if allow_extern:
            return mod, params, externs
        if externs:
            raise ValueError(
                f"export_tvm: expected allow_extern=True, for the model calls {len(externs)} "
                f"external module(s)"
            )
        return mod, params

    def jit(self, spec, device="cpu", pipeline="default", out_format="torch", debug=False):
        """The methods compiled, as functions of PyTorch's tensors: `model.jit(spec)["forward"](x)`.
        All parameters need data."""
        from .spec import ModuleSpec
        from .torch import TorchModule

        if out_format != "torch":
            raise ValueError(f"jit: expected out_format 'torch', got {out_format!r}")
        spec = ModuleSpec.from_raw(spec, self)
        mod, params = self.export_tvm(spec, debug=debug)
        missing = [name for name, param in params if param.data is None]
        if missing:
            raise ValueError(f"jit: expected data for every parameter, got none for {missing}")
        device = runtime.device(device) if isinstance(device, str) else device
        executable = rx.build(mod, _target(device), relax_pipeline=pipeline)
        data = [runtime.tensor(param.data, device) for _, param in params]
        return TorchModule(spec, rx.VirtualMachine(executable, device), data)


def _target(device):
    from tvm.target import Target

    return Target("llvm") if device.type == "cpu" else Target.from_device(device)


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules=None):
        self.modules = OrderedDict(modules or {})

    def __iter__(self):
        return iter(self.modules.values())

    def __getitem__(self, key):
        return self.modules[key]

    def __setitem__(self, key, module):
        self.modules[key] = module

    def __len__(self):
        return len(self.modules)

    def __contains__(self, key):
        return key in self.modules

    def keys(self):
        return self.modules.keys()

    def values(self):
        return self.modules.values()

    def items(self):
        return self.modules.items()

    def get(self, key, default=None):
        return self.modules.get(key, default)

    def update(self, modules):
        self.modules.update(modules)

    def clear(self):
        self.modules.clear()

    def pop(self, key):
        return self.modules.pop(key)

    def to(self, dtype=None):
        for module in self.modules.values():
            module.to(dtype)


class ModuleList(Module):
    """Modules by position; called, each takes what the one before it gives."""

    def __init__(self, modules):
        self.modules = list(modules)

    def __iter__(self):
        return iter(self.modules)

    def __getitem__(self, idx):
        return self.modules[idx]

    def __setitem__(self, idx, module):
        self.modules[idx] = module

    def __len__(self):
        return len(self.modules)

    def append(self, module):
        self.modules.append(module)

    def to(self, dtype=None):
        for module in self.modules:
            module.to(dtype)

    def forward(self, x):
        for module in self.modules:
            x = module(x)
        return x


def wrap_nested(expr, name):
    """Binds an expression: a Tensor, or a tuple of what its fields are."""
    if not isinstance(expr, rx.DataflowVar):
        expr = current_builder().emit(expr, name)
    info = expr.struct_info
    if isinstance(info, rx.TensorStructInfo):
        return Tensor(_expr=expr)
    if isinstance(info, rx.TupleStructInfo):
        fields = range(len(info.fields))
        return tuple(wrap_nested(rx.TupleGetItem(expr, i), f"{name}.{i}") for i in fields)
    raise TypeError(f"wrap_nested: expected tensors, got {info}")


def unwrap_nested(value):
    """The expression of what a method returns."""
    if isinstance(value, (Tensor, Object)):
        return value._expr
    if isinstance(value, (tuple, list)):
        return rx.Tuple([unwrap_nested(v) for v in value])
    if isinstance(value, (int, float, tir.PrimExpr)):
        return rx.PrimValue(value)
    raise TypeError(
        f"nn: expected a method to return tensors, objects, numbers or tuples of them, "
        f"got {type(value).__name__}"
    )
