# SPDX-License-Identifier: Apache-2.0
"""Random programs of the graph language, each from its seed.

Programs are made so that their results do not depend on rounding: what grows goes through tanh, and
only integers are compared, divided or counted.
"""

import random
from dataclasses import dataclass

import numpy as np
from tvm import ir, relax, tir
from tvm.relax import op
from tvm.relax.testing.evaluate import Evaluator, Shape, scalar_value

from . import kernels

FLOATS, INTS = ("float32", "float64"), ("int32", "int64")


@dataclass
class Program:
    seed: int
    module: ir.IRModule
    args: list

    def evaluate(self, module=None):
        return Evaluator(module or self.module).run("main", [_copied(a) for a in self.args])


def _copied(value):
    if isinstance(value, np.ndarray):
        return value.copy()
    return tuple(map(_copied, value)) if type(value) is tuple else value


def _key(dims):
    return tuple(str(d) for d in dims)


class Body:
    """Makes the bindings of one function, or of a branch: what they may use is in `pool`."""

    def __init__(self, program, builder, pool, dims, depth=0, pure=True):
        self.program, self.rng, self.bb = program, program.rng, builder
        self.pool, self.dims, self.depth, self.pure = list(pool), list(dims), depth, pure
        self.in_dataflow = False

    # ---- what there is --------------------------------------------------------------------------
    def tensors(self, dtypes=None, rank=None, known=True):
        found = []
        for var in self.pool:
            info = var.struct_info
            if not isinstance(info, relax.TensorStructInfo) or info.ndim < 0:
                continue
            if known != isinstance(info.shape, relax.ShapeExpr):
                continue
            if (dtypes is None or str(info.dtype) in dtypes) and rank in (None, info.ndim):
                found.append(var)
        return found

    def tensor(self, dtypes=None, rank=None):
        found = self.tensors(dtypes, rank)
        return self.rng.choice(found) if found else None

    def like(self, x):
        """A tensor of the shape and type of another one."""
        key = _key(x.struct_info.shape.values)
        return self.rng.choice(
            [
                t
                for t in self.tensors((str(x.struct_info.dtype),))
                if _key(t.struct_info.shape.values) == key
            ]
        )

    def values(self, kind):
        return [v for v in self.pool if isinstance(v.struct_info, kind)]

    def dim(self):
        """A dimension of this scope."""
        d = self.rng.choice([*self.dims, 1, 2, 3])
        return d + 1 if self.rng.random() < 0.2 else d

    # ---- bindings -------------------------------------------------------------------------------
    def emit(self, expr, name=""):
        is_output = self.in_dataflow and self.rng.random() < 0.3
        var = (self.bb.emit_output if is_output else self.bb.emit)(expr, name)
        self.pool.append(var)
        return var

    def step(self):
        names = [n for n in ACTIONS if not (self.in_dataflow and n in NOT_IN_DATAFLOW)]
        name = self.rng.choices(names, [ACTIONS[n] for n in names])[0]
        expr = getattr(self, "make_" + name)()
        if expr is not None:
            self.emit(expr)

    def run(self, steps):
        while steps > 0:
            count = min(steps, self.rng.randint(1, 4))
            steps -= count
            if self.rng.random() < 0.5 or self.in_dataflow:
                for _ in range(count):
                    self.step()
                continue
            self.in_dataflow = True
            before = len(self.pool)
            with self.bb.dataflow():
                for _ in range(count):
                    self.step()
                if len(self.pool) > before:
                    last = self.pool[-1]
                    if isinstance(last, relax.DataflowVar):
                        self.pool.append(self.bb.emit_output(last))
            self.in_dataflow = False
            self.pool = [v for v in self.pool if not isinstance(v, relax.DataflowVar)]

    def results(self, count):
        """Some of the last values, as the result of the function."""
        found = [v for v in self.pool[-8:] if isinstance(v.struct_info, relax.TensorStructInfo)]
        found = found or self.tensors()
        chosen = self.rng.sample(found, min(count, len(found)))
        return chosen[0] if len(chosen) == 1 else relax.Tuple(chosen)

    def nested(self, params, steps, finish):
        """A function around bindings that may use what is here: its body is a branch."""
        builder = relax.BlockBuilder()
        inner = Body(self.program, builder, [*self.pool, *params], self.dims, self.depth + 1)
        with builder.function("nested", params, private=True):
            inner.run(steps)
            builder.emit_func_output(finish(inner))
        return builder.get()["nested"]

    # ---- elementwise ----------------------------------------------------------------------------
    def bounded(self, expr, x):
        """What may have grown, in [-1, 1] again."""
        return op.tanh(expr) if str(x.struct_info.dtype) in FLOATS else expr

    def make_unary(self):
        x = self.tensor(FLOATS + INTS)
        if x is None:
            return None
        if str(x.struct_info.dtype) in INTS:
            return self.rng.choice([op.abs, op.negative, op.sign, op.nn.relu, op.bitwise_not])(x)
        return self.rng.choice(
            [op.tanh, op.sigmoid, op.sin, op.cos, op.erf, op.abs, op.negative]
            + [op.nn.relu, op.nn.silu, op.nn.gelu]
        )(x)

    def make_binary(self):
        x = self.tensor(FLOATS + INTS)
        if x is None:
            return None
        y = self.like(x)
        functions = [op.add, op.subtract, op.multiply, op.maximum, op.minimum]
        if str(x.struct_info.dtype) in INTS:
            functions += [op.floor_divide, op.floor_mod, op.bitwise_and, op.bitwise_xor]
        if x.struct_info.ndim > 0 and self.rng.random() < 0.3:  # broadcast
            y = op.sum(y, axis=self.rng.randrange(x.struct_info.ndim), keepdims=True)
        return self.bounded(self.rng.choice(functions)(x, y), x)

    def make_with_scalar(self):
        x = self.tensor(FLOATS + INTS)
        if x is None:
            return None
        number = tir.const(self.rng.randint(-3, 3), str(x.struct_info.dtype))
        args = [x, relax.PrimValue(number)]
        if self.rng.random() < 0.5:
            args.reverse()
        return self.bounded(self.rng.choice([op.add, op.multiply, op.maximum])(*args), x)

    def make_compare(self):
        x = self.tensor(INTS)
        if x is None:
            return None
        functions = [op.less, op.less_equal, op.greater, op.equal, op.not_equal]
        return self.rng.choice(functions)(x, self.like(x))

    def make_logic(self):
        x = self.tensor(("bool",))
        if x is None:
            return None
        if self.rng.random() < 0.3:
            return op.logical_not(x)
        return self.rng.choice([op.logical_and, op.logical_or, op.logical_xor])(x, self.like(x))

    def make_where(self):
        condition, x = self.tensor(("bool",)), self.tensor(FLOATS + INTS)
        if condition is None or x is None:
            return None
        shape = condition.struct_info.shape.values
        if _key(shape) == _key(x.struct_info.shape.values) or not shape:
            return op.where(condition, x, self.like(x))
        return None

    def make_cast(self):
        x = self.tensor(INTS + ("bool", "float32"))
        if x is None:
            return None
        to = FLOATS if str(x.struct_info.dtype) == "float32" else FLOATS + INTS
        return self.bounded_cast(x, self.rng.choice(to))

    def bounded_cast(self, x, dtype):
        expr = op.astype(x, dtype)
        return op.sin(expr) if dtype in FLOATS else expr

    # ---- reductions, products -------------------------------------------------------------------
    def make_reduce(self):
        x = self.tensor(FLOATS + INTS)
        if x is None or x.struct_info.ndim == 0:
            return None
        axis = self.rng.choice([None, self.rng.randrange(x.struct_info.ndim)])
        function = self.rng.choice([op.sum, op.max, op.min])
        if str(x.struct_info.dtype) in FLOATS:
            function = self.rng.choice([function, op.mean])
        return self.bounded(function(x, axis=axis, keepdims=self.rng.random() < 0.5), x)

    def make_integers(self):
        x = self.tensor(INTS)
        if x is None or x.struct_info.ndim == 0:
            return None
        axis = self.rng.randrange(x.struct_info.ndim)
        is_empty = x.struct_info.shape is not None and x.struct_info.shape.values[axis] == 0
        if self.rng.random() < 0.5 and not is_empty:  # nothing is the largest of none
            return op.argmax(x, axis=axis, keepdims=self.rng.random() < 0.5)
        return op.cumsum(x, axis=axis)

    def make_norm(self):
        x = self.tensor(FLOATS)
        if x is None or x.struct_info.ndim == 0:
            return None
        dtype, dims = str(x.struct_info.dtype), x.struct_info.shape.values
        if self.rng.random() < 0.5:
            return op.nn.softmax(x, axis=self.rng.randrange(len(dims)))
        ones, zeros = op.ones([dims[-1]], dtype), op.zeros([dims[-1]], dtype)
        # A variance near zero would make rounding visible.
        return op.nn.layer_norm(x, ones, zeros, axes=[-1], epsilon=0.5)

    def make_matmul(self):
        x = self.tensor(FLOATS, rank=2)
        if x is None:
            return None
        return self.bounded(op.matmul(x, op.permute_dims(self.like(x))), x)

    # ---- shapes ---------------------------------------------------------------------------------
    def make_reshape(self):
        x = self.tensor()
        if x is None:
            return None
        dims = list(x.struct_info.shape.values)
        kind = self.rng.randrange(3)
        if kind == 0 and len(dims) > 1:
            i = self.rng.randrange(len(dims) - 1)
            dims[i : i + 2] = [dims[i] * dims[i + 1]]
        elif kind == 1:
            dims.insert(self.rng.randint(0, len(dims)), 1)
        else:
            dims = dims[::-1]
        return op.reshape(x, dims)

    def make_move(self):
        x = self.tensor()
        rank = x.struct_info.ndim if x is not None else 0
        if rank == 0:
            return None
        axis = self.rng.randrange(rank)
        kind = self.rng.randrange(8)
        dim = x.struct_info.shape.values[axis]
        if kind == 0:
            return op.permute_dims(x, self.rng.sample(range(rank), rank))
        if kind == 1:
            return op.expand_dims(x, axis)
        if kind == 2:
            return op.flip(x, axis)
        if kind == 3:
            return op.repeat(x, 2, axis)
        if kind == 4:
            return op.tile(x, [1] * axis + [2] + [1] * (rank - axis - 1))
        if kind == 5 and rank == 2:
            return self.rng.choice([op.triu, op.tril])(x, self.rng.randint(-1, 1))
        if isinstance(dim, tir.IntImm):
            if dim.value <= 1:
                return op.squeeze(x, axis) if dim.value else op.flip(x, axis)
            begin = self.rng.randrange(dim.value)
            end = self.rng.randint(begin + 1, max(begin + 1, 4))
            return op.strided_slice(x, [axis], [begin], [end])
        return op.strided_slice(x, [axis], [0], [1])

    def make_join(self):
        x = self.tensor()
        if x is None:
            return None
        if x.struct_info.ndim == 0 or self.rng.random() < 0.4:
            return op.stack([x, self.like(x)], axis=self.rng.randint(0, x.struct_info.ndim))
        return op.concat([x, self.like(x), x], axis=self.rng.randrange(x.struct_info.ndim))

    def make_split(self):
        x = self.tensor()
        if x is None:
            return None
        dims = x.struct_info.shape.values
        axes = [i for i, d in enumerate(dims) if isinstance(d, tir.IntImm) and d.value >= 2]
        if not axes:
            return None
        axis = self.rng.choice(axes)
        parts = self.rng.choice([2, [1], [1, 2]])
        return op.split(x, parts, axis)

    def make_take(self):
        x = self.tensor()
        if x is None or x.struct_info.ndim == 0:
            return None
        indices = relax.const(np.zeros(self.rng.randint(1, 3), "int64"))
        axis = self.rng.randrange(x.struct_info.ndim)
        size = x.struct_info.shape.values[axis]
        is_empty = isinstance(size, tir.IntImm) and size.value == 0
        return None if is_empty else op.take(x, indices, axis=axis)

    def make_broadcast(self):
        x = self.tensor()
        if x is None:
            return None
        return op.broadcast_to(x, [self.dim(), *x.struct_info.shape.values])

    # ---- new values -----------------------------------------------------------------------------
    def make_create(self):
        dims = [self.dim() for _ in range(self.rng.randint(0, 2))]
        dtype = self.rng.choice(FLOATS + INTS)
        if self.rng.random() < 0.5:
            return self.rng.choice([op.zeros, op.ones])(dims, dtype)
        return op.full(dims, relax.const(self.rng.randint(-2, 2), dtype), dtype)

    def make_constant(self):
        shape = [self.rng.randint(1, 3) for _ in range(self.rng.randint(0, 2))]
        return self.program.array(shape, self.rng.choice(FLOATS + INTS + ("bool",)), relax.const)

    def make_shape(self):
        if self.rng.random() < 0.5:
            return relax.ShapeExpr([self.dim() for _ in range(self.rng.randint(0, 3))])
        x = self.tensor()
        return None if x is None else op.shape_of(x)

    def make_from_shape(self):
        shapes = self.values(relax.ShapeStructInfo)
        return op.shape_to_tensor(self.rng.choice(shapes)) if shapes else None

    def make_prim(self):
        return relax.PrimValue(self.dim())

    def make_tuple(self):
        return relax.Tuple(self.rng.choices(self.pool, k=self.rng.randint(1, 3)))

    def make_item(self):
        tuples = [v for v in self.values(relax.TupleStructInfo) if len(v.struct_info.fields)]
        if not tuples:
            return None
        chosen = self.rng.choice(tuples)
        return chosen[self.rng.randrange(len(chosen.struct_info.fields))]

    # ---- casts ----------------------------------------------------------------------------------
    def fresh(self, count):
        return [self.program.variable() for _ in range(count)]

    def cast(self, value, info):
        self.pool.append(self.bb.match_cast(value, info))

    def make_match_cast(self):
        unknown = self.tensors(known=False)
        x = self.rng.choice(unknown) if unknown else self.tensor()
        if x is None:
            return None
        info, dims = x.struct_info, self.fresh(x.struct_info.ndim)
        if not unknown and self.rng.random() < 0.3:  # says less than is known
            self.cast(x, relax.TensorStructInfo(dtype=info.dtype, ndim=info.ndim))
            return None
        self.cast(x, relax.TensorStructInfo(dims, info.dtype))
        if not self.in_dataflow and self.depth == 0:
            self.dims += dims[:1]
        return None

    def make_cast_shape(self):
        shapes = self.values(relax.ShapeStructInfo)
        if not shapes:
            return None
        shape = self.rng.choice(shapes)
        if shape.struct_info.ndim >= 0:
            self.cast(shape, relax.ShapeStructInfo(self.fresh(shape.struct_info.ndim)))
        return None

    def make_unique(self):
        x = self.tensor(INTS, rank=1)
        return None if x is None else op.unique(x, sorted=True)

    def make_object(self):
        x = self.tensor()
        if x is None:
            return None
        call = op.call_pure_packed(
            kernels.PREFIX + "choose",
            relax.StringImm(self.rng.choice(["a", "bc"])),
            relax.DataTypeImm(self.rng.choice(FLOATS)),
            x,
            self.like(x),
            sinfo_args=relax.ObjectStructInfo(),
        )
        self.cast(self.bb.emit(call), x.struct_info)
        return None

    # ---- calls ----------------------------------------------------------------------------------
    def make_helper(self):
        if not self.program.helpers:
            return None
        return self.call(self.rng.choice(self.program.helpers))

    def call(self, callee):
        """A call of a function whose tensors all have the same shape."""
        params = callee.struct_info.params
        x = self.tensor((str(params[0].dtype),), params[0].ndim)
        if x is None:
            return None
        args = []
        for param in params:
            if isinstance(param, relax.TensorStructInfo):
                args.append(self.like(x))
            elif isinstance(param, relax.TupleStructInfo):
                args.append(relax.Tuple([self.like(x), self.like(x)]))
            else:
                args.append(relax.PrimValue(self.dim()))
        return relax.Call(callee, args)

    def make_local(self):
        if self.depth > 1:
            return None
        x = self.tensor(FLOATS)
        if x is None:
            return None
        p = relax.Var("p", x.struct_info)
        func = self.nested([p], self.rng.randint(1, 3), lambda inner: op.add(p, inner.like(p)))
        local = self.bb.emit(func)
        return relax.Call(local, [self.rng.choice([x, self.like(x)])])

    def make_if(self):
        if self.depth > 1:
            return None
        conditions = self.tensors(("bool",), rank=0)
        conditions += [
            v for v in self.values(relax.PrimStructInfo) if str(v.struct_info.dtype) == "bool"
        ]
        x = self.tensor()
        if not conditions or x is None:
            return None
        other = self.rng.random() < 0.2 and x.struct_info.ndim == 1

        def branch(different):
            def finish(inner):
                value = inner.like(x)
                return op.concat([value, value], axis=0) if different else value

            return self.nested([], self.rng.randint(0, 3), finish).body

        return relax.If(self.rng.choice(conditions), branch(False), branch(other))

    def make_recursion(self):
        callee = self.program.recursive
        x = self.tensor(("float32",), rank=1)
        if callee is None or x is None:
            return None
        return relax.Call(callee, [relax.const(self.rng.randint(0, 3), "int32"), x])

    def make_call_tir(self):
        x = self.tensor(FLOATS + INTS)
        if x is None:
            return None
        info, dtype = x.struct_info, str(x.struct_info.dtype)
        kind = self.rng.choice([kernels.combine, kernels.both, kernels.shifted])
        callee = self.program.kernel(kind, info.ndim, dtype)
        if kind is kernels.combine:
            return self.bounded(op.call_tir(callee, (x, self.like(x)), info), x)
        if kind is kernels.both:
            return op.call_tir(callee, (x, self.like(x)), [info, info])
        shift = self.dim()
        return self.bounded(op.call_tir(callee, (x,), info, tir_vars=relax.ShapeExpr([shift])), x)

    def make_inplace(self):
        x = self.tensor(("float32",), rank=1)
        if x is None:
            return None
        callee = self.program.kernel(kernels.doubled)
        fresh = self.bb.emit(op.sin(x))  # nobody else may use what is overwritten
        return op.tanh(op.call_tir_inplace(callee, (fresh,), [0], x.struct_info))

    def make_dps(self):
        x = self.tensor()
        if x is None:
            return None
        return op.call_dps_packed(kernels.PREFIX + "reverse", (x,), x.struct_info)

    def make_view(self):
        x = self.tensor(("int32",))  # bits of others as floats could be NaN
        if x is None:
            return None
        return op.memory.view(x, x.struct_info.shape, "uint32", 0)

    def make_assert(self):
        x = self.tensor()
        if self.pure or x is None:
            return None
        self.bb.emit(op.assert_op(relax.const(True), [x], format="never {}"))
        return None


ACTIONS = {
    "unary": 3, "binary": 4, "with_scalar": 1, "compare": 1, "logic": 1, "where": 1, "cast": 1,
    "reduce": 2, "integers": 1, "norm": 1, "matmul": 1, "reshape": 2, "move": 3, "join": 1,
    "split": 1, "take": 1, "broadcast": 1, "create": 1, "constant": 1, "shape": 1, "from_shape": 1,
    "prim": 0.5, "tuple": 1.5, "item": 2, "match_cast": 1.5, "cast_shape": 0.5, "unique": 0.5,
    "object": 0.5, "helper": 2, "local": 1, "if": 2, "recursion": 0.5, "call_tir": 2,
    "inplace": 0.5, "dps": 0.5, "view": 0.5, "assert": 3,
}  # fmt: skip
NOT_IN_DATAFLOW = {"local", "if", "assert"}


class _Generator:
    def __init__(self, seed):
        self.rng, self.numbers = random.Random(seed), np.random.default_rng(seed)
        self.bb = relax.BlockBuilder()
        self.helpers, self.recursive, self.kernels, self.count = [], None, {}, 0

    # ---- what bodies ask for --------------------------------------------------------------------
    def variable(self):
        self.count += 1
        return tir.Var(f"s{self.count}", "int64")

    def kernel(self, make, *options):
        key = (make, *options)
        if key not in self.kernels:
            func = make(*options) if options else make
            name = func.attrs.get("name", None) if not options else make.__name__
            self.kernels[key] = self.bb.add_func(func, str(name or "doubled"))
        return self.kernels[key]

    def array(self, shape, dtype, convert=lambda array: array):
        if dtype == "bool":
            values = self.numbers.integers(0, 2, shape)
        elif dtype in INTS:
            values = self.numbers.integers(-5, 6, shape)
        else:
            values = self.numbers.uniform(-1, 1, shape)
        return convert(np.asarray(values).astype(dtype))

    # ---- functions ------------------------------------------------------------------------------
    def helper(self):
        rank, dtype = self.rng.randint(0, 2), self.rng.choice(("float32", "float32", "int32"))
        dims = [self.variable() for _ in range(rank)]
        tensor = relax.TensorStructInfo(dims, dtype)
        infos, extra = [tensor], list(dims)
        if self.rng.random() < 0.5:
            infos.append(tensor)
        if self.rng.random() < 0.3:
            infos.append(relax.TupleStructInfo([tensor, tensor]))
        if self.rng.random() < 0.3:
            extra.append(self.variable())
            infos.append(relax.PrimStructInfo(value=extra[-1]))
        params = [relax.Var(f"a{i}", info) for i, info in enumerate(infos)]
        with self.bb.function("helper", params, private=True):
            body = Body(self, self.bb, params, extra)
            body.run(self.rng.randint(1, 5))
            self.helpers.append(self.bb.emit_func_output(body.results(self.rng.randint(1, 2))))

    def recursion(self):
        """again(i, x) = x where i <= 0, else again(i - 1, sin(x))"""
        x = relax.Var("x", relax.TensorStructInfo([self.variable()], "float32"))
        i = relax.Var("i", relax.TensorStructInfo([], "int32"))
        empty = relax.Function.create_empty([i, x], x.struct_info)
        self.recursive = var = self.bb.add_func(empty, "again")
        one, zero = relax.const(1, "int32"), relax.const(0, "int32")
        call = relax.Call(var, [op.subtract(i, one), op.sin(x)])
        builder = relax.BlockBuilder()
        with builder.function("again", [i, x], private=True):
            condition = builder.emit(op.less_equal(i, zero))
            builder.emit_func_output(builder.emit(relax.If(condition, x, call)))
        self.bb.update_func(var, builder.get()["again"])

    def main(self):
        sizes = {tir.Var(name, "int64"): self.rng.randint(1, 4) for name in ("n", "m")}
        dims = [*sizes, 1, 3]
        infos = [
            relax.TensorStructInfo(list(sizes), "float32"),
            relax.TensorStructInfo([self.rng.choice(dims)], "float32"),
        ]
        for _ in range(self.rng.randint(1, 3)):
            shape = [self.rng.choice(dims) for _ in range(self.rng.randint(0, 2))]
            infos.append(relax.TensorStructInfo(shape, self.rng.choice(FLOATS + INTS + ("bool",))))
        others = [
            relax.TensorStructInfo([], "bool"),
            relax.PrimStructInfo("bool"),
            relax.PrimStructInfo("int64"),
            relax.ShapeStructInfo([list(sizes)[0], 2]),
            relax.ShapeStructInfo(ndim=2),
            relax.TensorStructInfo(dtype="float32", ndim=1),
            relax.TensorStructInfo(dtype="int32"),
            relax.TupleStructInfo([infos[1], infos[-1]]),
        ]
        infos += self.rng.sample(others, self.rng.randint(1, 4))
        params = [relax.Var(f"x{i}", info) for i, info in enumerate(infos)]
        pure = self.rng.random() < 0.85
        with self.bb.function("main", params, pure=pure):
            body = Body(self, self.bb, params, list(sizes), pure=pure)
            body.run(self.rng.randint(3, 14))
            self.bb.emit_func_output(body.results(self.rng.randint(1, 4)))
        return [self.argument(info, sizes) for info in infos]

    def argument(self, info, sizes):
        if isinstance(info, relax.TupleStructInfo):
            return tuple(self.argument(field, sizes) for field in info.fields)
        if isinstance(info, relax.ShapeStructInfo):
            if info.values is None:
                return Shape([2] * info.ndim)
            return Shape(scalar_value(v, sizes) for v in info.values)
        if isinstance(info, relax.PrimStructInfo):
            return self.rng.random() < 0.5 if str(info.dtype) == "bool" else self.rng.randint(0, 4)
        if info.shape is None:
            return self.array([2] * max(info.ndim, 1), str(info.dtype))
        return self.array([scalar_value(d, sizes) for d in info.shape.values], str(info.dtype))


def generate(seed):
    """The program of a seed: always the same."""
    made = _Generator(seed)
    if made.rng.random() < 0.3:
        made.recursion()
    for _ in range(made.rng.randint(0, 2)):
        made.helper()
    args = made.main()
    return Program(seed, made.bb.finalize(), args)
