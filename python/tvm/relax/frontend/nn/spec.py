# SPDX-License-Identifier: Apache-2.0
"""What the arguments of exported methods are."""

import inspect
import typing

_MODES = ("plain", "packed", "none")


class Int:
    """An integer, known when the method is called."""

    def __init__(self):
        pass

    def __repr__(self):
        return "int"


class Tensor:
    """A tensor; a text in its shape is a symbolic dimension, the same in all of a method."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = list(shape), str(dtype)

    def __repr__(self):
        return f'Tensor([{", ".join(map(str, self.shape))}], "{self.dtype}")'


class Object:
    """A value that is no tensor: in the method an `object_type(_expr=, _name=)`."""

    def __init__(self, object_type):
        self.object_type = object_type

    def __repr__(self):
        return "object"


class Tuple:
    """A tuple."""

    def __init__(self, name, elements):
        if not isinstance(elements, (tuple, list)):
            raise TypeError(f"spec.Tuple: expected a tuple or a list, got {type(elements)}")
        self.name, self.elements = name, elements

    def __repr__(self):
        return repr(self.elements)


SpecAny = typing.Union[Object, Int, Tensor, Tuple]  # noqa: UP007
ArgSpecType = typing.Union[Int, Tensor]  # noqa: UP007


def _argument(name, spec):
    """A specification as people write it: also `int`, and tuples of specifications."""
    if spec is int or spec == "int":
        return Int()
    if isinstance(spec, (tuple, list)):
        return Tuple(name, type(spec)(_argument(f"{name}_{i}", s) for i, s in enumerate(spec)))
    if isinstance(spec, Tuple):
        items = [_argument(f"{spec.name}_{i}", s) for i, s in enumerate(spec.elements)]
        return Tuple(spec.name, type(spec.elements)(items))
    if isinstance(spec, (Int, Tensor, Object)):
        return spec
    raise TypeError(
        f"spec: expected spec.Tensor, int, spec.Tuple or spec.Object for '{name}', got {spec!r}"
    )


class MethodSpec:
    """The arguments of a method, and how it takes parameters and effects."""

    def __init__(self, method, arg_names, arg_specs, param_mode, effect_mode):
        for mode in (param_mode, effect_mode):
            if mode not in _MODES:
                raise ValueError(f"spec: expected a mode of {', '.join(_MODES)}, got {mode!r}")
        self.method, self.arg_names, self.arg_specs = method, arg_names, arg_specs
        self.param_mode, self.effect_mode = param_mode, effect_mode

    def __repr__(self):
        args = ", ".join(f"{n}: {s!r}" for n, s in zip(self.arg_names, self.arg_specs, strict=True))
        return f"MethodSpec({args}, param_mode={self.param_mode}, effect_mode={self.effect_mode})"

    @staticmethod
    def from_raw(spec, method):
        """{argument: specification, "$": {"param_mode": …, "effect_mode": …}}"""
        if isinstance(spec, MethodSpec):
            return spec
        config = {"param_mode": "plain", "effect_mode": "plain", **spec.get("$", {})}
        given = {name: s for name, s in spec.items() if name != "$"}
        params = inspect.signature(method).parameters
        names = [name for name in params if name in given]
        needed = [n for n, p in params.items() if p.default is p.empty and p.kind < p.VAR_KEYWORD]
        unknown = [name for name in given if name not in params]
        missing = [name for name in needed if name not in given]
        if unknown or missing or set(config) != {"param_mode", "effect_mode"}:
            raise ValueError(
                f"spec: expected the arguments {list(params)} of '{method.__name__}', "
                f"got {list(spec)}"
            )
        specs = [_argument(name, given[name]) for name in names]
        return MethodSpec(method, names, specs, **config)

    @staticmethod
    def from_torch(args, method):
        """As the arguments of PyTorch are."""
        names = list(inspect.signature(method).parameters)[: len(args)]
        return MethodSpec(
            method, names, [_of_torch(n, a) for n, a in zip(names, args, strict=True)],
            param_mode="plain", effect_mode="plain",
        )  # fmt: skip


def _of_torch(name, value):
    if isinstance(value, int):
        return Int()
    if isinstance(value, (tuple, list)):
        items = [_of_torch(f"{name}_{i}", v) for i, v in enumerate(value)]
        return Tuple(name, type(value)(items))
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return Tensor(list(value.shape), str(value.dtype).removeprefix("torch."))
    raise TypeError(
        f"spec: expected a tensor, an int or a tuple for '{name}', got {type(value).__name__}"
    )


class ModuleSpec:
    """The methods of a module that are exported."""

    def __init__(self, module, method_names, method_specs):
        self.module, self.method_names, self.method_specs = module, method_names, method_specs

    @staticmethod
    def from_raw(spec, module):
        """{method: its specification}"""
        if isinstance(spec, ModuleSpec):
            return spec
        for name in spec:
            if not callable(getattr(module, name, None)):
                raise ValueError(f"spec: expected methods of {type(module).__name__}, got '{name}'")
        methods = [MethodSpec.from_raw(s, getattr(module, name)) for name, s in spec.items()]
        return ModuleSpec(module, list(spec), methods)

    def __repr__(self):
        lines = [f"  {n}: {s!r}" for n, s in zip(self.method_names, self.method_specs, strict=True)]
        return "\n".join(["ModuleSpec:", *lines])


MethodSpecType = typing.Union[MethodSpec, dict[str, ArgSpecType]]  # noqa: UP007
ModuleSpecType = typing.Union[ModuleSpec, dict[str, MethodSpecType]]  # noqa: UP007
