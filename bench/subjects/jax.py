# SPDX-License-Identifier: Apache-2.0
"""Functions compiled by JAX."""

import jax
import numpy as np
from jax import numpy as jnp
from programs import Timed


def _layer_norm(a, scale, bias):
    centred = a - a.mean(1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(1, keepdims=True) + 1e-5) * scale + bias


FUNCTIONS = {
    "sigmoid": jax.nn.sigmoid,
    "exp": jnp.exp,
    "tanh": jnp.tanh,
    "erf": jax.scipy.special.erf,
    "log": jnp.log,
    "gelu": lambda a: jax.nn.gelu(a, approximate=False),
    "softmax": lambda a: jax.nn.softmax(a, 1),
    "layer_norm": _layer_norm,
    "row_sum": lambda a: a.sum(1),
    "column_sum": lambda a: a.sum(0),
    "transpose": jnp.transpose,
    "matmul": jnp.matmul,
    "conv2d": lambda a, w: jax.lax.conv(a, w, (1, 1), "VALID"),
}


def prepare(name, inputs):
    function = jax.jit(FUNCTIONS[name])
    arrays = [jnp.asarray(x) for x in inputs]
    call = lambda: function(*arrays).block_until_ready()
    return Timed(call, lambda: np.asarray(call()))
