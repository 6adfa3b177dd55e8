# SPDX-License-Identifier: Apache-2.0
"""The operator database: what an entry is, and how its cases become calls.

    entry("concat", lambda xs, axis=0: np.concatenate(xs, axis), [
        case([T(2, 3), T(4, 3)]),
        case([T(2, 3), T(2, 1)], axis=1),
    ])

An entry has the parameters of the operator's function in each case, and a reference in NumPy or
PyTorch that takes the same, arrays in place of `T`. From a case follow calls in which the dims are
constants, variables (one for each size above 1, so that equal dims stay equal), or unknown, and
the rank or the dtype is unknown.
"""

import dataclasses
import zlib
from collections.abc import Callable
from typing import Any

import ml_dtypes  # noqa: F401  (names of dtypes for NumPy)
import numpy as np
import tvm
from tvm import relax

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTS = ("int8", "int16", "int32", "int64", "uint8")

# What arithmetic goes wrong on: NaN, infinities, zeros of both signs, denormals, limits.
EDGE = {
    "float": [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-40, 3e38, -7.0],
    "int": [0, 1, -1, 2, -2, 7, -7, "min", "max", 100, -100, 3],
    "uint": [0, 1, 2, 3, 7, 100, "max", 200, 4, 5, 6, 8],
    "bool": [0, 1, 1, 0, 1, 1, 0, 0, 1, 0, 1, 0],
}


def edge_values(dtype):
    """The edge values of a dtype, as an array of 12."""
    kind = next(k for k in ("uint", "int", "bool", "float") if dtype.startswith(k) or k == "float")
    if kind in ("int", "uint"):
        info = np.iinfo(dtype)
        return np.array([getattr(info, v) if isinstance(v, str) else v for v in EDGE[kind]], dtype)
    with np.errstate(over="ignore"):
        return np.array(EDGE[kind]).astype(dtype)


class T:
    """A tensor parameter: shape, dtype, and the range its random elements are drawn from; or its
    values."""

    def __init__(self, *shape, dtype="float32", low=None, high=None, values=None, fixed=()):
        if values is not None:
            values = np.asarray(values).astype(dtype)
            shape = values.shape
        self.shape, self.dtype, self.low, self.high = tuple(shape), dtype, low, high
        self.values = values
        self.fixed = fixed  # dims that stay constants when the others become variables

    def with_dtype(self, dtype):
        """The same with another dtype."""
        if self.values is not None:
            return T(dtype=dtype, values=self.values, fixed=self.fixed)
        return T(*self.shape, dtype=dtype, low=self.low, high=self.high, fixed=self.fixed)

    def array(self, rng):
        if self.values is not None:
            return self.values
        if self.dtype == "bool":
            return rng.integers(0, 2, self.shape).astype("bool")
        if "int" in self.dtype:
            low = self.low if self.low is not None else (0 if self.dtype[0] == "u" else -8)
            return rng.integers(low, 9 if self.high is None else self.high, self.shape).astype(
                self.dtype
            )
        low, high = (-2 if self.low is None else self.low), (2 if self.high is None else self.high)
        return rng.uniform(low, high, self.shape).astype(self.dtype)

    def __repr__(self):
        return f"{self.dtype}{list(self.shape)}"


class S(tuple):
    """A shape parameter: its dims become variables, as those of tensors do."""


@dataclasses.dataclass
class Case:
    """Parameters of one call."""

    params: tuple
    attrs: dict
    symbolic: bool = True  # whether the dims may be variables

    def __repr__(self):
        attrs = [f"{name}={value}" for name, value in self.attrs.items()]
        return ", ".join([*map(str, self.params), *attrs])


@dataclasses.dataclass
class Entry:
    """An operator and its cases."""

    name: str
    reference: Callable | None
    cases: list[Case]
    rtol: float = 1e-5
    calls: list[Any] = dataclasses.field(default_factory=list)  # see `inferred`


ENTRIES: dict[str, Entry] = {}


def case(*params, symbolic=True, **attrs):
    """One case."""
    return Case(params, attrs, symbolic)


def entry(name, reference, cases, **options):
    """Adds an entry."""
    assert name not in ENTRIES, name
    ENTRIES[name] = Entry(name, reference, cases, **options)


def inferred(name, *calls):
    """Adds an entry of which nothing can be run: pairs of a function that makes the call and the
    struct info it has."""
    entry(name, None, [], calls=list(calls))


def with_dtypes(dtypes, *params, **attrs):
    """The same case for several dtypes."""

    def change(param, dtype):
        if isinstance(param, list):
            return [change(p, dtype) for p in param]
        return param.with_dtype(dtype) if isinstance(param, T) else param

    return [case(*(change(p, dtype) for p in params), **attrs) for dtype in dtypes]


# ---- calls --------------------------------------------------------------------------------------
VARIANTS = ("static", "symbolic", "ndim", "rank", "dtype")


class Variables:
    """One variable for each size above 1."""

    def __init__(self):
        self.by_size = {}

    def __call__(self, size):
        if size not in self.by_size:
            self.by_size[size] = tvm.tir.Var(f"n{size}", "int64")
        return self.by_size[size]

    def dims(self, shape, fixed=()):
        return [
            self(d) if d > 1 and i not in fixed and i - len(shape) not in fixed else d
            for i, d in enumerate(shape)
        ]

    def values(self):
        return {var: tvm.tir.IntImm("int64", size) for size, var in self.by_size.items()}


def struct_info(tensor, variant, variables):
    """What is known of a tensor in a variant."""
    if variant == "static":
        return relax.TensorStructInfo(tensor.shape, tensor.dtype)
    if variant == "symbolic":
        return relax.TensorStructInfo(variables.dims(tensor.shape, tensor.fixed), tensor.dtype)
    if variant == "ndim":
        return relax.TensorStructInfo(dtype=tensor.dtype, ndim=len(tensor.shape))
    if variant == "rank":
        return relax.TensorStructInfo(dtype=tensor.dtype)
    return relax.TensorStructInfo(tensor.shape, dtype="")


def make_call(entry, case, variant):
    """(call, parameters of a function around it, variables)."""
    variables, params = Variables(), []

    def convert(param):
        if isinstance(param, T):
            params.append(relax.Var(f"x{len(params)}", struct_info(param, variant, variables)))
            return params[-1]
        if isinstance(param, S):
            return variables.dims(param) if variant == "symbolic" else list(param)
        if isinstance(param, list):
            return [convert(p) for p in param]
        return param(variables) if callable(param) else param

    function = relax.op
    for word in entry.name.split("."):
        function = getattr(function, word)
    call = function(*map(convert, case.params), **case.attrs)
    return call, params, variables


def infer(entry, case, variant):
    """(struct info of the call, variables); the call is normalised by a builder."""
    call, params, variables = make_call(entry, case, variant)
    builder = relax.BlockBuilder()
    with builder.testing_scope(def_vars=list(variables.by_size.values())):
        return builder.normalize(call).struct_info, variables


def tensors(case):
    """All tensor parameters of a case."""
    found = []

    def visit(param):
        if isinstance(param, T):
            found.append(param)
        elif isinstance(param, list):
            list(map(visit, param))

    list(map(visit, case.params))
    return found


def put_edges(array, rng):
    """The array with what arithmetic goes wrong on in about a third of its places."""
    values = np.array(EDGE["float"][:6], "float64").astype(array.dtype)
    array = array.copy()
    places = rng.random(array.shape) < 0.34
    array[places] = rng.choice(values, int(places.sum()))
    return array


def arrays(entry, case, edges=False):
    """The parameters of the reference, always the same for one case; `edges`: with NaN, infinities
    and zeros among the numbers of floating-point tensors."""
    rng = np.random.default_rng(zlib.crc32(f"{entry.name}({case})".encode()))

    def convert(param):
        if isinstance(param, T):
            array = param.array(rng)
            has_place = edges and param.values is None and param.dtype.startswith("float")
            return put_edges(array, rng) if has_place else array
        if isinstance(param, list):
            return [convert(p) for p in param]
        return list(param) if isinstance(param, S) else param

    return [convert(p) for p in case.params]


def expected(entry, case, edges=False):
    """The arrays that the reference gives, as a nested tuple."""
    with np.errstate(all="ignore"):
        result = entry.reference(*arrays(entry, case, edges), **case.attrs)
    if isinstance(result, (tuple, list)):
        return tuple(map(np.asarray, result))
    return np.asarray(result)
