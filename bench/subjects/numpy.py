# SPDX-License-Identifier: Apache-2.0
"""Ufuncs and products into a preallocated result."""

import functools

import numpy as np
from programs import Timed


def prepare(name, inputs):
    if name == "matmul":  # OpenBLAS
        out = np.empty((inputs[0].shape[0], inputs[1].shape[1]), np.float32)
        return Timed(functools.partial(np.matmul, *inputs, out=out), lambda: out)
    out = np.empty_like(inputs[0])
    if name == "sigmoid":

        def call():
            np.negative(inputs[0], out=out)
            np.exp(out, out=out)
            np.add(out, 1, out=out)
            np.reciprocal(out, out=out)

    elif name in ("exp", "tanh", "log"):
        call = functools.partial(getattr(np, name), *inputs, out=out)
    else:
        return None
    return Timed(call, lambda: out)
