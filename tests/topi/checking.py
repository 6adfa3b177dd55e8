# SPDX-License-Identifier: Apache-2.0
"""Runs an operator, compiled with the default rules, and compares it with a reference."""

import numpy as np
import tvm
from tvm import te, tir

random = np.random.default_rng


def values(*shape, dtype="float32", seed=0, low=-3, high=3):
    """Random numbers of a type."""
    x = random(seed).uniform(low, high, shape)
    return x > 0 if dtype == "bool" else np.asarray(x).astype(dtype)


def compiled(build, arrays, symbolic=False):
    """A function from arrays to arrays; with `symbolic` no size is known when it is compiled."""
    tensors, sizes = [], {}
    for i, a in enumerate(arrays):
        # Equal sizes are one variable; 1 stays, as what repeats has to be known.
        shape = [
            sizes.setdefault(n, te.size_var(f"n{n}", "int64")) if symbolic and n > 1 else n
            for n in a.shape
        ]
        tensors.append(te.placeholder(shape, str(a.dtype), f"A{i}"))
    results = build(*tensors)
    single = isinstance(results, te.Tensor)
    results = [results] if single else list(results)
    func = te.create_prim_func([*tensors, *results])
    module = tvm.compile(func, target="llvm")
    known = {var.name: n for n, var in sizes.items()}

    def extent(e):
        if isinstance(e, tir.IntImm):
            return int(e)
        value = tir.stmt_functor.substitute(
            e, {v: tir.IntImm("int64", n) for n, v in sizes.items()}
        )
        return int(tvm.arith.Analyzer().simplify(value))

    def call(*inputs):
        outs = [tvm.runtime.empty([extent(e) for e in r.shape], str(r.dtype)) for r in results]
        module(*map(tvm.runtime.tensor, inputs), *outs)
        outs = [o.numpy() for o in outs]
        return outs[0] if single else outs

    call.func, call.known = func, known
    return call


def check(build, arrays, expected, symbolic=False, rtol=1e-5, atol=1e-5):
    """The operator on arrays gives what is expected: values, shape and type."""
    got = compiled(build, arrays, symbolic)(*arrays)
    expected = expected(*arrays) if callable(expected) else expected
    pairs = [(got, expected)] if isinstance(got, np.ndarray) else zip(got, expected, strict=True)
    for g, e in pairs:
        e = np.asarray(e)
        assert g.shape == e.shape
        if g.dtype.kind in "fV":
            np.testing.assert_allclose(
                g.astype("float64"), e.astype("float64"), rtol=rtol, atol=atol
            )
        else:
            np.testing.assert_array_equal(g, e)


def blocks(func):
    """The names of the blocks of a function, in order."""
    names = []

    def visit(node):
        if isinstance(node, tir.Block) and node.name_hint != "root":
            names.append(str(node.name_hint))

    tir.stmt_functor.post_order_visit(func.body, visit)
    return names
