# SPDX-License-Identifier: Apache-2.0
"""Compiled methods as functions of PyTorch's tensors."""

from tvm import runtime

from . import spec as _spec


class TorchModule:
    """`module["forward"](x)` takes and gives tensors of PyTorch, without copies on the CPU."""

    def __init__(self, spec, vm, params):
        self.spec, self.vm, self.params = spec, vm, params
        has_effects = vm.module.implements_function("_initialize_effect")
        self.effects = list(vm["_initialize_effect"]()) if has_effects else []

    def __getitem__(self, method_name):
        names = self.spec.method_names
        if method_name not in names:
            raise ValueError(f"TorchModule: expected a method of {names}, got '{method_name}'")
        spec, function = self.spec.method_specs[names.index(method_name)], self.vm[method_name]
        has_effects = bool(self.effects) and spec.effect_mode != "none"

        def call(*args):
            if len(args) != len(spec.arg_names):
                raise TypeError(
                    f"{method_name}: expected the arguments {spec.arg_names}, got {len(args)}"
                )
            values = [
                _to_tvm(n, a, s)
                for n, a, s in zip(spec.arg_names, args, spec.arg_specs, strict=True)
            ]
            if has_effects:
                values += _as_mode(spec.effect_mode, self.effects)
            result = function(*values, *_as_mode(spec.param_mode, self.params))
            if has_effects:
                result, self.effects = result[0], list(result[1])
            return _to_torch(result)

        call.__name__ = method_name
        return call


def _as_mode(mode, values):
    return [] if mode == "none" else list(values) if mode == "plain" else [list(values)]


def _to_tvm(name, value, spec):
    import torch

    if isinstance(spec, _spec.Int):
        if not isinstance(value, int):
            raise TypeError(f"expected an int for '{name}', got {type(value).__name__}")
        return runtime.ShapeTuple([value])
    if isinstance(spec, _spec.Tuple):
        items = zip(value, spec.elements, strict=True)
        return [_to_tvm(f"{name}_{i}", v, s) for i, (v, s) in enumerate(items)]
    if isinstance(spec, _spec.Tensor):
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"expected a torch.Tensor for '{name}', got {type(value).__name__}")
        return runtime.from_dlpack(value.detach().contiguous())
    return value


def _to_torch(value):
    import torch
    import tvm_ffi

    if isinstance(value, runtime.Tensor):
        return torch.from_dlpack(value)
    if isinstance(value, (list, tuple, tvm_ffi.Array)):
        return [_to_torch(v) for v in value]
    return value
