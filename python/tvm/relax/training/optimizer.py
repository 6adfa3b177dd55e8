# SPDX-License-Identifier: Apache-2.0
"""Optimizers: functions from parameters, gradients and state to new parameters and state."""

import numpy as np
import tvm_ffi

from tvm import relax
from tvm.relax import op
from tvm.runtime import tensor


class Optimizer:
    """An optimizer. `init` says which parameters it is for; then `state` is its first state, and
    `get_function` the step: (parameters, gradients, state) -> (parameters, state), all tuples."""

    def __init__(self, name):
        self.name, self.param_list, self._state, self.dtype = name, None, None, None

    def init(self, params):
        """For these parameters: tensors of known shapes and of one floating-point type."""
        if self.param_list is not None:
            raise ValueError(f"{self.name}: expected init once, got it again")
        self.param_list = [params] if isinstance(params, relax.Var) else list(params)
        if not self.param_list:
            raise ValueError(f"{self.name}: expected at least one parameter, got none")
        names = set()
        for param in self.param_list:
            info = param.struct_info
            known = isinstance(info, relax.TensorStructInfo) and info.shape is not None
            if not known or "float" not in str(info.dtype):
                raise ValueError(
                    f"{self.name}: expected tensors of floating-point numbers and known shapes, "
                    f"got {info} for '{param.name_hint}'"
                )
            if str(info.dtype) != (self.dtype or str(info.dtype)):
                raise ValueError(
                    f"{self.name}: expected parameters of one type, got {self.dtype} and "
                    f"{info.dtype}"
                )
            if param.name_hint in names:
                raise ValueError(
                    f"{self.name}: expected each parameter once, got '{param.name_hint}'"
                )
            names.add(param.name_hint)
            self.dtype = str(info.dtype)
        self._state = tvm_ffi.convert([tensor(np.asarray(v)) for v in self._first_state()])
        return self

    @property
    def state(self):
        """The state before the first step."""
        if self._state is None:
            raise RuntimeError(f"{self.name}: expected init before the state is asked for")
        return self._state

    @state.setter
    def state(self, value):
        self._state = value

    def get_function(self):
        """The step as a function of the graph."""
        if self.param_list is None:
            raise RuntimeError(f"{self.name}: expected init before the function is asked for")
        infos = [p.struct_info for p in self.param_list]
        states = [relax.TensorStructInfo(s.shape, str(s.dtype)) for s in self.state]
        params = [
            relax.Var("params", relax.TupleStructInfo(infos)),
            relax.Var("gradients", relax.TupleStructInfo(infos)),
            relax.Var("optim_states", relax.TupleStructInfo(states)),
        ]
        bb = relax.BlockBuilder()
        with bb.function(self.name, params):
            with bb.dataflow():
                items = [
                    [bb.emit(var[i]) for i in range(len(var.struct_info.fields))] for var in params
                ]
                steps = bb.emit(op.add(items[2][0], relax.const(1, "int64")), "num_steps")
                new, state = self._step(bb, *items[:2], [steps, *items[2][1:]])
                result = [bb.emit_output(relax.Tuple(v)) for v in (new, state)]
            bb.emit_func_output(relax.Tuple(result))
        return bb.get()[self.name]

    # ---- what an optimizer is --------------------------------------------------------------------
    def _first_state(self):
        """The number of steps, and whatever else there is."""
        return [np.int64(0)]

    def _step(self, bb, params, gradients, state):
        """(new parameters, new state); the number of steps is counted already."""
        raise NotImplementedError

    def _zeros(self):
        return [
            np.zeros([int(d) for d in p.struct_info.shape.values], self.dtype)
            for p in self.param_list
        ]

    def _const(self, value):
        return relax.const(value, self.dtype)

    def _scaled(self, value, factor):
        return op.multiply(self._const(factor), value)

    def _decayed(self, bb, param, gradient, decay):
        if decay == 0:
            return gradient
        return bb.emit(op.add(self._scaled(param, decay), gradient))


class SGD(Optimizer):
    """p -= lr * (g + weight_decay * p)"""

    def __init__(self, lr, weight_decay=0):
        super().__init__("SGD")
        self.lr, self.weight_decay = float(lr), float(weight_decay)

    def _step(self, bb, params, gradients, state):
        new = []
        for p, g in zip(params, gradients, strict=True):
            g = self._decayed(bb, p, g, self.weight_decay)
            new.append(bb.emit(op.subtract(p, self._scaled(g, self.lr)), p.name_hint + "_new"))
        return new, state


class MomentumSGD(Optimizer):
    """v = momentum * v + (1 - dampening) * g; p -= lr * v, or with nesterov
    p -= lr * (g + momentum * v)"""

    def __init__(self, lr, momentum, dampening=0, weight_decay=0, nesterov=False):
        super().__init__("MomentumSGD")
        self.lr, self.momentum, self.dampening = float(lr), float(momentum), float(dampening)
        self.weight_decay, self.nesterov = float(weight_decay), nesterov

    def _first_state(self):
        return [np.int64(0), *self._zeros()]

    def _step(self, bb, params, gradients, state):
        new, velocities = [], []
        for p, g, v in zip(params, gradients, state[1:], strict=True):
            g = self._decayed(bb, p, g, self.weight_decay)
            own = g if self.dampening == 0 else self._scaled(g, 1 - self.dampening)
            v = bb.emit(op.add(self._scaled(v, self.momentum), own))
            step = bb.emit(op.add(g, self._scaled(v, self.momentum))) if self.nesterov else v
            new.append(bb.emit(op.subtract(p, self._scaled(step, self.lr)), p.name_hint + "_new"))
            velocities.append(v)
        return new, [state[0], *velocities]


class Adam(Optimizer):
    """Steps by the mean of the gradients over the root of their mean square, both of late ones."""

    def __init__(self, lr, betas=(0.9, 0.999), eps=1e-08, weight_decay=0):
        super().__init__("Adam")
        self.lr, self.betas = float(lr), (float(betas[0]), float(betas[1]))
        self.eps, self.weight_decay = float(eps), float(weight_decay)

    def _first_state(self):
        one = np.ones((), self.dtype)
        return [np.int64(0), one, one, *self._zeros(), *self._zeros()]

    def _step(self, bb, params, gradients, state):
        products = [
            bb.emit(self._scaled(product, beta))
            for product, beta in zip(state[1:3], self.betas, strict=True)
        ]
        count = len(params)
        moments = [list(state[3 : 3 + count]), list(state[3 + count :])]
        new = []
        for i, (p, g) in enumerate(zip(params, gradients, strict=True)):
            g = self._decayed(bb, p, g, self.weight_decay)
            corrected = []
            for k, value in enumerate((g, op.multiply(g, g))):
                mean = op.add(
                    self._scaled(moments[k][i], self.betas[k]),
                    self._scaled(value, 1 - self.betas[k]),
                )
                moments[k][i] = bb.emit(mean)
                corrected.append(
                    bb.emit(op.divide(moments[k][i], op.subtract(self._const(1), products[k])))
                )
            root = op.add(op.sqrt(corrected[1]), self._const(self.eps))
            step = self._scaled(op.divide(corrected[0], root), self.lr)
            new.append(bb.emit(op.subtract(p, step), p.name_hint + "_new"))
        return new, [state[0], *products, *moments[0], *moments[1]]
