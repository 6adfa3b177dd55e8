# SPDX-License-Identifier: Apache-2.0
"""Arguments for calls that should fail: objects of every kind, wrong and right ones mixed."""

import copy

import numpy as np
import tvm
import tvm_ffi
from tvm import arith, relax, te, tir
from tvm import meta_schedule as ms
from tvm.script import tir as T


@T.prim_func
def program(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8, 8))
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(8, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                C[vi] = 0.0
            C[vi] = C[vi] + B[vi, vj]


def contains_itself():
    """A list and a map that contain themselves."""
    a, b = [], {}
    a.append(a)
    b["b"] = b
    return [a, b, [1, (a,)]]


def fails(*args):
    raise RuntimeError("a callback that fails")


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def huge_expression():
    """A few nodes, as a tree 2^15."""
    e = tir.Var("x", "int32") + 1
    for _ in range(14):
        e = tir.Add(e, e)
    return e


class Values:
    """What arguments are made of."""

    def __init__(self):
        self.plain = [
            None, True, False, 0, 1, -1, 7, 2**31, 2**32, 2**63 - 1, -(2**63), 2**64, 0.5,
            float("nan"), float("inf"), "", "x", "int32", "float99", "global", "threadIdx.x",
            "x" * 5000, "\0", b"bytes", [], (), {}, [None], [[]], [1, "a"], {"a": None}, {1: 2},
            [0] * 300, nested(50), lambda *args: None, fails, object(), int, np.float32(1),
            np.arange(3), np.zeros((2, 2)), slice(0, 3), "int32x4", "handle",
        ]  # fmt: skip
        self.plain += contains_itself()
        self.nodes = self._nodes()
        self.by_type = {}
        for node in self.nodes:
            info = getattr(type(node), "__tvm_ffi_type_info__", None)
            while info is not None:
                self.by_type.setdefault(str(info.type_key), []).append(node)
                info = info.parent_type_info

    def _nodes(self):
        sch = tir.Schedule(program)
        block, (loop, _) = sch.get_block("B"), sch.get_loops("C")
        mod, x, i = sch.mod, tir.Var("x", "int32"), tir.Var("i", "int64")
        placed = te.placeholder((4, 4), name="P")
        doubled = te.compute((4, 4), lambda a, b: placed[a, b] * 2, name="D")
        found = [
            sch, sch.trace, sch.state, block, loop, mod, program, x, i, x + 1, placed, doubled,
            doubled.op, placed.op, arith.Analyzer(), tvm.ir.Op.get("tir.exp"), tir.exp(x),
            tvm.target.Target("c"), tvm.transform.PassContext(), tir.transform.Simplify(),
            tvm.transform.Sequential([tir.transform.Simplify()]), tir.IntImm("int32", 3),
            tir.FloatImm("float32", 1.5), tir.StringImm("s"), tvm.ir.Range(0, 4),
            ms.database.MemoryDatabase(), tir.IndexMap.from_func(lambda a, b: (b, a)),
            mod.attrs,
            tvm.runtime.tensor(np.zeros((2, 2), "float32")), tvm.get_global_func("ir.save_json"),
            tir.Ramp(x, 1, 4), tir.Broadcast(x, 4), tir.Cast("float32", x), huge_expression(),
            tir.Select(x > 0, x, x), tir.Let(x, 1, x + 1), tir.Shuffle([x, x], [0, 1]),
            arith.ConstIntBound(0, 4), arith.ModularSet(2, 1), arith.IntervalSet(0, x),
            tvm.ir.PrimType("int32"), tvm.ir.PointerType(tvm.ir.PrimType("int32")),
            tvm.ir.GlobalVar("main"), ms.TuneContext(mod, target=tvm.target.Target("c")),
            tvm.runtime.convert([1, 2]), tvm.runtime.convert({"a": 1}),
        ]  # fmt: skip
        found += self._graph_nodes()
        tir.stmt_functor.post_order_visit(program.body, found.append)
        for value in list(found):  # whatever a copy is, it must be whole
            try:
                found.append(copy.deepcopy(value))
            except Exception:  # it says that it cannot be copied
                continue
        return [n for n in found if isinstance(n, tvm_ffi.core.CObject) or callable(n)]

    @staticmethod
    def _graph_nodes():
        of_two = relax.TensorStructInfo((2, 3), "float32")
        symbolic = relax.TensorStructInfo((tir.Var("n", "int64"), 3), "float32")
        a, b, s = relax.Var("a", of_two), relax.Var("b", symbolic), relax.Var("s")
        bb = relax.BlockBuilder()
        with bb.function("main", [a, b]):
            with bb.dataflow():
                out = bb.emit_output(relax.op.add(a, a))
            bb.emit_func_output(out)
        return [
            of_two, symbolic, relax.ShapeStructInfo((2, 3)), relax.ObjectStructInfo(),
            relax.PrimStructInfo("int64"), relax.TupleStructInfo([of_two, symbolic]), a, b, s,
            relax.const(np.zeros((2, 3), "float32")), relax.ShapeExpr([2, 3]), relax.Tuple([a, b]),
            relax.PrimValue(3), relax.StringImm("s"), relax.op.nn.relu(a), bb, bb.get(),
            bb.get()["main"], relax.DataTypeImm("float32"), relax.ExternFunc("f"),
        ]  # fmt: skip

    def fitting(self, rng, schema):
        """A value that the schema accepts, or any."""
        if schema.startswith("Optional["):
            return None if rng.random() < 0.3 else self.fitting(rng, schema[9:-1])
        if schema.startswith(("Array[", "List[")):
            inner = schema[schema.index("[") + 1 : -1]
            return [self.fitting(rng, inner) for _ in range(rng.choice([0, 1, 2, 3]))]
        if schema.startswith(("Map[", "Dict[")):
            return {rng.choice("ab"): self.any(rng)} if rng.random() < 0.5 else {}
        simple = {
            "int": [0, 1, -1, 2, 7, 2**40, -(2**63)], "bool": [True, False], "float": [0.5, -1.0],
            "str": ["B", "C", "global", "int32", "float32", "main", "x", ""],
            "DataType": ["int32", "float32", "float32x4", "handle"],
        }  # fmt: skip
        if schema in simple:
            return rng.choice(simple[schema])
        found = self.by_type.get(schema)
        return rng.choice(found) if found else self.any(rng)

    def any(self, rng):
        return rng.choice(self.nodes) if rng.random() < 0.5 else rng.choice(self.plain)

    def arguments(self, rng, schemas, seed):
        """Arguments for a function of these parameters: the first seeds are systematic."""
        count = len(schemas)
        if seed == 0:
            return [None] * count
        if seed == 1:
            return [self.any(rng) for _ in range(rng.choice([count - 1, count + 1, 0]))]
        args = [self.fitting(rng, s) for s in schemas]
        if seed % 2 == 0 and count:
            args[(seed // 2) % count] = None
        elif seed % 4 == 1 and count:
            args[rng.randrange(count)] = self.any(rng)
        elif seed % 8 == 3:
            args = [self.any(rng) for _ in schemas]
        return args

    def texts(self, rng, schemas, seed):
        """The same as text."""

        def text(value):
            try:
                said = repr(value)
            except Exception as error:
                said = f"{type(value).__name__} ({error})"
            return " ".join(said.split())[:60]

        return ", ".join(map(text, self.arguments(rng, schemas, seed)))
