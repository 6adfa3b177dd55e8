# SPDX-License-Identifier: Apache-2.0
"""A random program with its arguments, and what running it gives."""

import random
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import tvm_ffi
from tvm import tir
from tvm.ir import GlobalVar, IRModule, PointerType, PrimType
from tvm.tir import ForKind, PrimFunc, Var

from .expressions import const
from .idioms import CHANGE_TENSOR, OBSERVE_TENSOR
from .numbers import INTEGERS, Storage, Value, fill, int_range, stored_bound
from .statements import OBSERVE, Statements
from .syntax import add_syntax

_observed = []


@tvm_ffi.register_global_func(OBSERVE, override=True)
def _observe(value):
    _observed.append(int(value))
    return 0


@tvm_ffi.register_global_func(OBSERVE_TENSOR, override=True)
def _observe_tensor(tensor, *values):
    _observed.extend(int(v) for v in np.from_dlpack(tensor))
    _observed.extend(str(v) for v in values)
    return 0


@tvm_ffi.register_global_func(CHANGE_TENSOR, override=True)
def _change_tensor(tensor):
    values = np.from_dlpack(tensor)
    values += np.int32(1)
    return 0


@dataclass
class Argument:
    """A parameter of the program: an array, or a scalar."""

    value: object
    kind: str = "data"
    tolerance: list = field(default_factory=lambda: [0.0])
    padding: int = 0  # elements between rows: the array is part of a larger one

    def copy(self):
        if not isinstance(self.value, np.ndarray):
            return self.value
        shape = self.value.shape
        base = np.zeros([n + self.padding for n in shape], self.value.dtype)
        made = base[(..., *(slice(0, n) for n in shape))]
        made[...] = self.value
        return made


@dataclass
class Program:
    """A module with a function main that is valid for these arguments.

    `features` names what some checks cannot run: "threads" (needs a GPU's lowering), "realize"
    (BufferRealize), "syntax" (nodes without a meaning: only printing and parsing apply), "packed
    types" (arguments whose elements are smaller than a byte, which arrays hold one per byte).
    """

    seed: int
    module: IRModule
    arguments: list
    features: frozenset

    def replaced(self, module):
        return Program(self.seed, module, self.arguments, self.features)

    def outcome(self, run):
        """What `run(*arguments)` does: its result, the arrays afterwards, what was observed."""
        _observed.clear()
        args = [a.copy() for a in self.arguments]
        result = run(*args)
        arrays = [a for a in args if isinstance(a, np.ndarray)]
        return Outcome(result, arrays, list(_observed))

    def interpret(self, module=None):
        return self.outcome(tir.interpret(self.module if module is None else module))

    def difference(self, expected, found):
        """Says how two outcomes differ, or None."""
        if expected.observed != found.observed:
            return f"observed {found.observed}, expected {expected.observed}"
        if not _equal(expected.result, found.result):
            return f"returned {found.result}, expected {expected.result}"
        arrays = [a for a in self.arguments if isinstance(a.value, np.ndarray)]
        for i, (a, x, y) in enumerate(zip(arrays, expected.arrays, found.arrays, strict=True)):
            wrong = ~_close(x, y, a.tolerance[0])
            if wrong.any():
                where = tuple(int(k) for k in np.argwhere(wrong)[0])
                return f"array {i} at {list(where)} holds {y[where]}, expected {x[where]}"
        return None


@dataclass
class Outcome:
    result: object
    arrays: list
    observed: list


def _equal(a, b):
    return a == b or (a is None or b is None) and (a or 0) == (b or 0) or (a != a and b != b)


def _close(x, y, tolerance):
    wide = (lambda a: a) if x.dtype.kind in "iub" else (lambda a: a.astype("float64"))
    x, y = wide(x), wide(y)
    equal = x == y
    if x.dtype.kind == "f":
        with np.errstate(all="ignore"):
            equal |= np.isnan(x) & np.isnan(y)
            equal |= np.abs(x - y) <= tolerance
    return equal


class _Maker(Statements):
    """Makes the functions of one program."""

    def __init__(self, seed):
        super().__init__(random.Random(seed))
        self.params, self.buffer_map, self.arguments = [], {}, []
        self.module = {}

    def make(self):
        rng = self.rng
        if self.chance(0.25):
            self.helper()
        if self.chance(0.15):
            self.procedure()
        self.sizes = []
        if self.chance(0.5):
            dtype = rng.choice(["int32", "int32", "int64"])
            size = rng.randint(1, 5)
            var = (tir.SizeVar if self.chance(0.5) else Var)("n", dtype)
            self.sizes.append(Value(var, size, size))
        for i in range(rng.randint(2, 4)):
            wanted = [dtype for _, dtype, _ in self.procedures[i:]]  # what procedures write
            self.parameter_buffer("ABCD"[i], wanted[0] if wanted else self.data_type(), "data")
        if self.sizes and not any(
            b.shape[k].same_as(self.sizes[0].node)
            for b in self.buffer_map.values()
            for k in range(len(b.shape))
        ):
            self.scalar_parameter(self.sizes[0].node, self.sizes[0].high)
        self.vars += self.sizes
        for _ in range(rng.randint(0, 2)):
            self.parameter_buffer(self.name("W"), rng.choice(self.floats), "wild", False)
        if self.chance(0.4):
            self.parameter_buffer("any", rng.choice(self.floats), "any")
        if self.chance(0.5):
            self.parameter_buffer(
                "approx", rng.choice(["float32", "float64", "float16", "bfloat16"]), "approx"
            )
        for _ in range(rng.randint(0, 2)):
            self.random_scalar()
        body = self.about_memory() if self.chance(0.25) else self.body(rng.randint(1, 5), 3)
        if self.procedures and (call := self.call_procedure()):
            body.insert(0, call)
        if self.chance(0.1):
            self.features.add("syntax")
            body.append(add_syntax(self))
        ret_type = None
        if self.chance(0.12):
            dtype = rng.choice(["int32", "int64", "float32", "bool"])
            body.append(tir.Evaluate(tir.ret(self.scalar(dtype, 1))))
            ret_type = PrimType(dtype)
        attrs = {"global_symbol": "main", "tir.noalias": True}
        main = PrimFunc(self.params, self.joined(body), ret_type, self.buffer_map, attrs)
        return IRModule({**self.module, GlobalVar("main"): main})

    def about_memory(self):
        """Some of the statements that chance alone puts together too seldom."""
        eight = Value(const(8, "int32"), 8, 8)
        self.parameter_buffer("R", "int32", "data", shape=[eight])
        idioms = [self.idiom_changing, self.idiom_changing, self.idiom_indirect, self.idiom_shared]
        idioms.append(self.idiom_opaque)
        made = [self.rng.choice(idioms)() for _ in range(self.rng.randint(1, 3))]
        return [stmt for stmt in made if stmt is not None] or [self.store()]

    def parameter_buffer(self, name, dtype, kind, writable=True, shape=None):
        rank = self.rng.choice([0, 1, 1, 2, 2, 3]) if shape is None else len(shape)
        index = str(self.sizes[0].node.dtype) if self.sizes else "int32"
        shape = shape or [
            self.rng.choice(self.sizes) if self.sizes and self.chance(0.5) else v
            for v in self.shape(rank, index)
        ]
        strides, offset, factor = [], None, 0
        if rank > 1 and self.chance(0.1) and (dtype in INTEGERS or dtype in _NATIVE):
            strides = [Var(self.name("s"), index) for _ in shape]
        if self.chance(0.05):
            offset, factor = Var(self.name("offset"), index), 1
        buffer = tir.decl_buffer(
            [e.node for e in shape], dtype, name, strides=strides, elem_offset=offset,
            offset_factor=factor,
        )  # fmt: skip
        if dtype.startswith(("float4", "float6")):
            self.features.add("packed types")
        handle = Var(name.lower() + "_handle", "handle")
        self.params.append(handle)
        self.buffer_map[handle] = buffer
        sizes = [e.high for e in shape]
        value = fill(self.rng, kind, dtype, sizes)
        store = Storage(buffer, shape, kind, kind in ("data", "wild"), writable, root=buffer.data)
        self.stores.append(store)
        self.arguments.append(Argument(value, kind, store.tolerance, 1 if strides else 0))

    def scalar_parameter(self, var, value):
        self.params.append(var)
        self.arguments.append(Argument(value))

    def random_scalar(self):
        dtype = self.rng.choice(["int32", "int64", "float32", "uint8", "float64", "int16"])
        var = Var(self.name("a"), dtype)
        value = self.rng.randint(0, 7)
        self.scalar_parameter(var, float(value) if dtype.startswith("float") else value)
        if dtype in ("int32", "int64"):
            self.vars.append(Value(var, value, value))
        elif dtype in INTEGERS:
            self.vars.append(Value(var, *int_range(dtype)))
        else:
            self.vars.append(Value(var, value, value))

    def helper(self):
        """A private function of scalars."""
        types = [self.rng.choice(["int32", "float32", "uint8", "int64"]) for _ in range(2)]
        result = self.rng.choice([*self.integers, "float32"])
        params = [Var(self.name("x"), t) for t in types]
        known = []
        for p, t in zip(params, types, strict=True):
            bound = stored_bound(t) if t == "float32" else None
            limits = (-bound, bound) if bound else (0, 7) if t in ("int32", "int64") else (0, 255)
            known.append(Value(p, *limits))
        with self.saved(vars=known):
            if result in ("int32", "int64"):
                value = self.index(result).node
            else:
                value = self.integer(result) if result in INTEGERS else self.stored(result)
        var = GlobalVar(self.name("helper"))
        self.module[var] = PrimFunc(
            params, tir.Evaluate(tir.ret(value)), PrimType(result), None, {}
        )
        self.functions.append((var, types, result))

    def procedure(self):
        """A private function that writes through a pointer."""
        dtype, size = self.rng.choice([*self.integers, *self.floats]), self.rng.randint(1, 3)
        data = Var(self.name("p"), PointerType(PrimType(dtype), "global"))
        buffer = tir.Buffer(data, dtype, [size], [], const(0, "int32"), self.name("P"))
        store = Storage(buffer, [Value(const(size, "int32"), size, size)], root=data)
        i = Var(self.name("i"), "int32")
        with self.saved(vars=[Value(i, 0, size - 1)], stores=[store]):
            stmt = tir.For(i, const(0, "int32"), const(size, "int32"), ForKind.SERIAL, self.store())
        var = GlobalVar(self.name("procedure"))
        self.module[var] = PrimFunc([data], tir.DeclBuffer(buffer, stmt), None, None, {})
        self.procedures.append((var, dtype, size))


_NATIVE = ("float16", "float32", "float64")


def generate(seed):
    """The program of a seed: always the same one."""
    maker = _Maker(seed)
    module = maker.make()
    return Program(seed, module, maker.arguments, frozenset(maker.features))


def node_kinds(module):
    """How often each kind of node and each operator occurs in a module."""
    found = Counter()

    def count(node):
        found[node.__tvm_ffi_type_info__.type_key] += 1
        if isinstance(node, tir.Call) and not isinstance(node.op, GlobalVar):
            found["op " + node.op.name] += 1

    for func in module.functions.values():
        found["tir.PrimFunc"] += 1
        tir.stmt_functor.post_order_visit(func.body, count)
    return found


def shares(programs):
    """The share of programs in which each kind of node occurs, the rarest first."""
    programs = list(programs)
    total = Counter()
    for program in programs:
        total.update(set(node_kinds(program.module)))
    ordered = sorted(total.items(), key=lambda item: item[1])
    return {kind: number / len(programs) for kind, number in ordered}
