# SPDX-License-Identifier: Apache-2.0
"""InjectRollingBuffer: the same results from a window of the buffer, and what does not roll."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import transform as tt


def floats(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def rolled(func):
    mod = tt.InjectRollingBuffer()(tvm.IRModule({"main": func}))
    tir.analysis.verify_well_formed(mod)
    return mod["main"]


def allocated(func):
    """The shapes of the allocations."""
    shapes = []

    def see(node):
        if isinstance(node, tir.Allocate):
            shapes.append([int(e) for e in node.extents])

    tir.stmt_functor.post_order_visit(func.body, see)
    return shapes[::-1]


def count_stores(func, buffer, *arrays):
    """How often the interpreter stores to the buffer: a counter beside each of its stores."""
    counter = tir.decl_buffer((1,), "int32", "counter")

    def count(node):
        if node.buffer.name != buffer:
            return None
        return tir.SeqStmt([node, tir.BufferStore(counter, counter[0] + 1, [0])])

    body = tir.stmt_functor.ir_transform(func.body, None, count, ["tir.BufferStore"])
    handle = tir.Var("counter", "handle")
    counted = tir.PrimFunc(
        [*func.params, handle], body, buffer_map={**func.buffer_map, handle: counter}
    )
    total = np.zeros(1, "int32")
    tir.interpret(counted)(*[a.copy() for a in arrays], total)
    return int(total[0])


def check(func, *inputs, output):
    """The function after the pass, which gives the same results."""
    after = rolled(func)
    for program in (func, after):
        result = np.zeros(output, "float32")
        tir.interpret(program)(*inputs, result)
        if program is func:
            expected = result
    np.testing.assert_array_equal(result, expected)
    compiled = np.zeros(output, "float32")
    lib = tvm.compile(after.with_attr("global_symbol", "main"))
    arrays = [tvm.runtime.tensor(a) for a in (*inputs, compiled)]
    lib(*arrays)
    np.testing.assert_allclose(arrays[-1].numpy(), expected, rtol=1e-6)
    return after


@pytest.mark.parametrize("step, size", [(1, 3), (2, 3), (2, 5), (3, 4)])
def test_steps(step, size):
    rows = step * 7 + size

    @T.prim_func
    def before(A: T.Buffer((rows, 6), "float32"), C: T.Buffer((8, 6), "float32")):
        B_data = T.allocate([rows, 6], "float32", "global")
        B = T.decl_buffer((rows, 6), data=B_data)
        for i in range(8):
            with T.attr(B, "rolling_buffer_scope", True):
                for j, k in T.grid(size, 6):
                    B[i * step + j, k] = A[i * step + j, k] * T.float32(2)
            for j, k in T.grid(size, 6):
                C[i, k] = C[i, k] + B[i * step + j, k]

    A = floats(rows, 6)
    after = check(before, A, output=(8, 6))
    assert allocated(after) == [[size, 6]]
    # The first iteration fills the window, the others add `step` rows each.
    assert count_stores(after, "B", A, np.zeros((8, 6), "float32")) == (size + 7 * step) * 6


def test_loops_around_start_anew():
    """Each row of tiles begins with a whole window; columns move with another loop inside."""

    @T.prim_func
    def before(A: T.Buffer((3, 12, 12), "float32"), C: T.Buffer((3, 10, 10), "float32")):
        B_data = T.allocate([3, 12, 12], "float32", "global")
        B = T.decl_buffer((3, 12, 12), data=B_data)
        for n in range(3):
            for i, j in T.grid(10, 10):
                with T.attr(B_data, "rolling_buffer_scope", 1):
                    for y, x in T.grid(3, 3):
                        if i + y < 11:
                            B[n, i + y, j + x] = A[n, i + y, j + x] + T.Cast("float32", i + y)
                C[n, i, j] = B[n, i, j] * B[n, i + 1, j + 1]

    after = check(before, floats(3, 12, 12), output=(3, 10, 10))
    assert allocated(after) == [[3, 3, 12]]


def test_chain():
    """A window that is computed from another one."""

    @T.prim_func
    def before(A: T.Buffer((14,), "float32"), D: T.Buffer((10,), "float32")):
        B_data = T.allocate([14], "float32", "global")
        B = T.decl_buffer((14,), data=B_data)
        C_data = T.allocate([12], "float32", "global")
        C = T.decl_buffer((12,), data=C_data)
        for i in range(10):
            with T.attr(B_data, "rolling_buffer_scope", 1):
                for j in range(5):
                    B[i + j] = A[i + j] * T.float32(3)
            with T.attr(C_data, "rolling_buffer_scope", 1):
                for j in range(3):
                    C[i + j] = B[i + j] + B[i + j + 2]
            D[i] = C[i] - C[i + 2]

    after = check(before, floats(14), output=(10,))
    assert allocated(after) == [[5], [3]]


def test_without_marks_nothing_changes():
    @T.prim_func
    def before(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = A[i] + T.float32(1)

    mod = tvm.IRModule({"main": before})
    assert tt.InjectRollingBuffer()(mod)["main"].same_as(mod["main"])


BEGIN = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    B_data = T.allocate([16], "float32", "global")
    B = T.decl_buffer((16,), data=B_data)
"""
FILL = """
        with T.attr(B_data, "rolling_buffer_scope", 1):
            for j in range(3):
                B[i + j] = A[i + j]"""
USE = """
        C[i] = B[i] + B[i + 2]"""
LOOP = "    for i in range(10):"
REFUSED = {
    "read before": (LOOP + "\n        C[i] = B[i]" + FILL, "read only after it is written"),
    "never read": (LOOP + FILL, "to be read after it is written"),
    "never written": (
        LOOP + '\n        with T.attr(B_data, "rolling_buffer_scope", 1):\n'
        "            for j in range(3):\n                T.evaluate(j)" + USE,
        "written by the statement marked",
    ),
    "parallel": ("    for i in T.parallel(10):" + FILL + USE, "in serial loops, got loop i"),
    "no overlap": (LOOP + FILL.replace("i + j", "i * 3 + j") + USE, "overlaps with the next"),
    "no loop": ("    for i in range(1):\n        T.evaluate(0)\n" + FILL.replace("i +", "0 +")
                .replace("\n    ", "\n") + "\n    C[0] = B[0]", "overlaps with the next"),
    "outside of the window": (
        LOOP + FILL + "\n        C[i] = B[i + 3]",
        "read where the same iteration of loop i writes it",
    ),
    "depends on the iteration": (
        LOOP + FILL.replace("= A[i + j]", "= A[j]") + USE,
        "depend on nothing but the element",
    ),
    "depends on what the loop writes": (
        LOOP + FILL.replace("= A[i + j]", "= C[i + j]") + USE,
        "loop i does not change, got a read of C",
    ),
    "condition": (
        LOOP + "\n        if A[i] > T.float32(0):" + FILL.replace("\n", "\n    ") + USE,
        "every iteration, not under a condition",
    ),
    "continue": (
        LOOP + "\n        if A[i] > T.float32(0):\n            continue" + FILL + USE,
        "not in a loop with break or continue",
    ),
    "two stores": (
        LOOP + FILL + "\n                B[i + j] = T.float32(0)" + USE,
        "by one store of single elements",
    ),
    "store elsewhere": (
        LOOP + FILL + "\n        B[i] = T.float32(0)" + USE,
        "by one store of single elements",
    ),
    "else": (
        LOOP + FILL.replace("B[i + j] =", "if j > 0:\n                    B[i + j] =")
        + "\n                else:\n                    T.evaluate(0)" + USE,
        "one store, got one that has an else",
    ),
    "pointer": (
        LOOP + FILL + "\n        T.evaluate(T.call_extern('int32', 'f', B_data))" + USE,
        "used by loads and stores only",
    ),
    "side effect": (
        LOOP + FILL.replace("= A[i + j]", "= T.call_extern('float32', 'f', i + j)") + USE,
        "without side effects",
    ),
    "two declarations": (
        "    B2 = T.decl_buffer((4, 4), data=B_data)\n" + LOOP + FILL + USE,
        "declared once",
    ),
}  # fmt: skip


@pytest.mark.parametrize("text, message", REFUSED.values(), ids=REFUSED)
def test_refuses(text, message):
    func = tvm.script.from_source(BEGIN + text, check_well_formed=False)
    with pytest.raises(
        ValueError, match="InjectRollingBuffer: expected buffer B_data .*" + message
    ):
        rolled(func)


def test_refuses_other_shape():
    text = BEGIN.replace("decl_buffer((16,)", "decl_buffer((4, 4)")
    use = FILL.replace("B[i + j]", "B[0, i + j]") + "\n        C[i] = B[0, i]"
    with pytest.raises(ValueError, match="declared with the shape it is allocated with"):
        rolled(tvm.script.from_source(text + LOOP + use))


def test_refuses_a_mark_of_something_else():
    body = tir.AttrStmt(tir.StringImm("B"), "rolling_buffer_scope", 1, tir.Evaluate(0))
    with pytest.raises(TypeError, match="expected a buffer or its data pointer"):
        rolled(tir.PrimFunc([], body))


def test_refuses_a_parameter():
    @T.prim_func
    def before(B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
        for i in range(10):
            with T.attr(B.data, "rolling_buffer_scope", 1):
                for j in range(3):
                    B[i + j] = T.float32(1)
            C[i] = B[i]

    with pytest.raises(ValueError, match="B expected|buffer B .*allocated and declared"):
        rolled(before)
