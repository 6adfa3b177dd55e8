# SPDX-License-Identifier: Apache-2.0
"""Trains a model that SetupTrainer prepared, on a virtual machine."""

import math

import numpy as np

from tvm.runtime import Tensor, tensor

from .setup_trainer import Names


class Trainer(Names):
    """Keeps the parameters and states of a model, and steps them."""

    def __init__(self, train_mod, vm, device, zero_init_param_state=True):
        self.mod, self.vm, self.device = train_mod, vm, device
        attrs = train_mod.attrs or {}
        for key in ("input_num", "param_num", "state_num", "optim_state"):
            if key not in attrs:
                raise ValueError(f"Trainer: expected a module that SetupTrainer made, got no {key}")
        self._inputs, self._count = int(attrs["input_num"]), int(attrs["param_num"])
        self._state_count = int(attrs["state_num"])
        params = train_mod[self.ADJOINT_FUNC].params
        end = self._inputs + self._count
        self._param_vars = list(params[self._inputs : end])
        self._state_vars = list(params[end : end + self._state_count])
        self._params, self._states = [None] * self._count, [None] * self._state_count
        self._optim_state = [self._on_device(s) for s in attrs["optim_state"]]
        if zero_init_param_state:
            self.zero_init_params()
            self.zero_init_states()

    # ---- values ---------------------------------------------------------------------------------
    def _on_device(self, value):
        array = value.numpy() if isinstance(value, Tensor) else np.asarray(value)
        return tensor(array, self.device)

    @staticmethod
    def _shape(var):
        dims = [getattr(d, "value", None) for d in var.struct_info.shape.values]
        if None in dims:
            raise ValueError(f"Trainer: expected '{var.name_hint}' to have a constant shape")
        return dims

    def _zeros(self, variables):
        return [
            tensor(np.zeros(self._shape(v), str(v.struct_info.dtype)), self.device)
            for v in variables
        ]

    def zero_init_params(self):
        """All parameters zero."""
        self._params = self._zeros(self._param_vars)

    def zero_init_states(self):
        """All states zero."""
        self._states = self._zeros(self._state_vars)

    def xaiver_uniform_init_params(self):
        """Matrices and kernels uniform in ±sqrt(6 / (fan in + fan out)), the others zero."""
        self._params = []
        for var in self._param_vars:
            shape, dtype = self._shape(var), str(var.struct_info.dtype)
            if len(shape) < 2:
                self._params.append(tensor(np.zeros(shape, dtype), self.device))
                continue
            field = math.prod(shape[2:])
            bound = math.sqrt(6.0 / (shape[0] * field + shape[1] * field))
            values = np.random.uniform(-bound, bound, shape).astype(dtype)
            self._params.append(tensor(values, self.device))

    def _load(self, what, variables, values):
        """Values by name, or in order."""
        names = [v.name_hint for v in variables]
        if isinstance(values, dict):
            missing, unknown = set(names) - set(values), set(values) - set(names)
            if missing or unknown:
                raise ValueError(
                    f"Trainer: expected the {what} {names}, got {sorted(map(str, values))}"
                )
            values = [values[name] for name in names]
        if len(values) != len(variables):
            raise ValueError(f"Trainer: expected {len(variables)} {what}, got {len(values)}")
        loaded = [self._on_device(v) for v in values]
        for var, value in zip(variables, loaded, strict=True):
            info = var.struct_info
            if list(value.shape) != self._shape(var) or str(value.dtype) != str(info.dtype):
                raise ValueError(
                    f"Trainer: expected {info} for '{var.name_hint}', got {value.dtype}"
                    f"{list(value.shape)}"
                )
        return loaded

    def load_params(self, params):
        """Sets the parameters, given in order or by name."""
        self._params = self._load("parameters", self._param_vars, params)

    def load_states(self, states):
        """Sets the states, given in order or by name."""
        self._states = self._load("states", self._state_vars, states)

    def export_params(self):
        """The parameters by name."""
        return {v.name_hint: p for v, p in zip(self._param_vars, self._params, strict=True)}

    def export_states(self):
        """The states by name."""
        return {v.name_hint: s for v, s in zip(self._state_vars, self._states, strict=True)}

    # ---- steps ----------------------------------------------------------------------------------
    def _arguments(self, values):
        if any(v is None for v in (*self._params, *self._states)):
            raise RuntimeError("Trainer: expected parameters and states to be set, got none")
        return [*map(self._on_device, values), *self._params, *self._states]

    @staticmethod
    def _several(values):
        return list(values) if isinstance(values, (list, tuple)) else [values]

    def predict(self, *input_instances):
        """The model's results, without the states."""
        if len(input_instances) != self._inputs:
            raise ValueError(f"Trainer: expected {self._inputs} inputs, got {len(input_instances)}")
        found = self.vm[self.BACKBONE_FUNC](*self._arguments(input_instances))
        if isinstance(found, Tensor):
            return found
        results = list(found)[: len(found) - self._state_count]
        return results[0] if len(results) == 1 else results

    def update(self, input_instances, targets):
        """One step; gives the loss before it."""
        args = self._arguments(self._several(input_instances))
        targets = [self._on_device(t) for t in self._several(targets)]
        result, gradients = self.vm[self.ADJOINT_FUNC](*args, *targets)
        results = [result] if isinstance(result, Tensor) else list(result)
        if self._state_count:
            self._states = results[len(results) - self._state_count :]
        new, state = self.vm[self.OPTIMIZER_FUNC](
            list(self._params), list(gradients), list(self._optim_state)
        )
        self._params, self._optim_state = list(new), list(state)
        return results[0]

    def profile_adjoint(self, input_instances, targets):
        """How long each part of a step takes."""
        args = self._arguments(self._several(input_instances))
        targets = [self._on_device(t) for t in self._several(targets)]
        return self.vm.profile(self.ADJOINT_FUNC, *args, *targets)
