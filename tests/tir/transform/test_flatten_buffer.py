# SPDX-License-Identifier: Apache-2.0
"""One index per access."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import apply, buffer, check, func, loop, store


def _flat(buf, size):
    return tir.decl_buffer((size,), buf.dtype, name=buf.name, data=buf.data)


def test_rows_become_one_run():
    A, C = buffer((4, 8), name="A"), buffer((4, 8), name="C")
    before = func(
        [A, C], loop(4, lambda i: loop(8, lambda j: store(C, [i, j], A[i, j] + 1.0), "j"))
    )
    A1, C1 = _flat(A, 32), _flat(C, 32)
    body = loop(4, lambda i: loop(8, lambda j: store(C1, i * 8 + j, A1[i * 8 + j] + 1.0), "j"))
    check(tt.FlattenBuffer(), before, func([A, C], tir.DeclBuffer(A1, tir.DeclBuffer(C1, body))))


def test_one_dimension_stays():
    A = buffer((8,))
    before = func([A], loop(8, lambda i: store(A, i, 1.0)))
    check(tt.FlattenBuffer(), before, before)


def test_strides_and_offset_are_applied():
    A = buffer((4, 8), strides=[16, 1], elem_offset=3)
    before = func([A], loop(4, lambda i: store(A, [i, 2], 1.0)))
    result = apply(tt.FlattenBuffer(), before)
    inner = result.body.body
    i = inner.loop_var
    analyzer = tvm.arith.Analyzer()
    assert analyzer.can_prove_equal(inner.body.indices[0], i * 16 + 5)
    assert inner.body.buffer.elem_offset.value == 0


N, M = tir.Var("n", "int32"), tir.Var("m", "int32")


@pytest.mark.parametrize(
    "shape, dtype",
    [((70000, 70000), "int64"), ((N, M), "int64"), ((700, 700), "int32")],
    ids=["large", "dynamic", "small"],
)
def test_large_buffers_get_64_bit_indices(shape, dtype):
    """70000 * 70000 elements do not fit 32 bits, and neither may n * m."""
    A = buffer(shape)
    nest = loop(shape[0], lambda i: loop(shape[1], lambda j: store(A, [i, j], 1.0), "j"))
    result = apply(tt.FlattenBuffer(), func([A], nest)).body.body.body.body
    assert result.indices[0].dtype == dtype


def test_allocations_are_flat():
    A = buffer((4, 8))
    B = buffer((4, 8), name="B")
    body = loop(4, lambda i: loop(8, lambda j: store(B, [i, j], A[i, j]), "j"))
    before = func(
        [A], tir.Allocate(B.data, "float32", [4, 8], tir.const(True), tir.DeclBuffer(B, body))
    )
    A1, B1 = _flat(A, 32), _flat(B, 32)
    body = loop(4, lambda i: loop(8, lambda j: store(B1, i * 8 + j, A1[i * 8 + j]), "j"))
    allocate = tir.Allocate(B.data, "float32", [32], tir.const(True), tir.DeclBuffer(B1, body))
    check(tt.FlattenBuffer(), before, func([A], tir.DeclBuffer(A1, allocate)))


def test_flatten_buffer_in_predicates():
    """What a predicate reads is flattened, too."""

    @T.prim_func
    def before(A: T.Buffer((2, 4), "int32"), M: T.Buffer((2, 4), "bool")):
        A.vstore([1, T.Ramp(0, 1, 4)], T.Broadcast(7, 4), predicate=M[1, 0:4])

    flat = tvm.tir.transform.FlattenBuffer()(tvm.IRModule({"main": before}))["main"]
    loads = []
    tvm.tir.stmt_functor.post_order_visit(
        flat.body, lambda n: loads.append(n) if isinstance(n, tvm.tir.BufferLoad) else None
    )
    assert [len(load.indices) for load in loads] == [1]


def test_what_holds_in_a_branch_shapes_no_buffer():
    """The first access is where n == 0, or where 32 bits are enough: the others are not."""

    @T.prim_func
    def before(b: T.handle, n: T.int32):
        B = T.match_buffer(b, (3, n), "int8")
        if n == 0:
            B[0, 0] = T.int8(1)
        B[0, 0] = T.int8(2)

    (flat,) = apply(tt.FlattenBuffer(), before).body.buffer.shape
    analyzer = tvm.arith.Analyzer()
    assert analyzer.can_prove_equal(flat, T.Cast("int64", before.params[1]) * T.int64(3))

    @T.prim_func
    def large(b: T.handle, n: T.int32):
        B = T.match_buffer(b, (n, n), "int8")
        if n < 100:
            B[n - 1, 0] = T.int8(1)
        B[n - 1, 0] = T.int8(2)

    stores = apply(tt.FlattenBuffer(), large).body.body
    assert str(stores[1].indices[0].dtype) == "int64"


def test_a_view_of_a_part_holds_its_elements():
    """Indices count from where the pointer leads, so what is before the view belongs to it."""

    @T.prim_func
    def before(A: T.Buffer((8,), "int32"), B: T.Buffer((4,), "int32")):
        V = T.decl_buffer((2, 2), "int32", data=A.data, elem_offset=4)
        for i, j in T.grid(2, 2):
            B[i * 2 + j] = V[i, j]

    mod = tvm.tir.transform.FlattenBuffer()(tvm.IRModule({"main": before}))
    a, b = np.arange(8, dtype="int32"), np.zeros(4, "int32")
    tvm.tir.interpret(mod)(a, b)
    np.testing.assert_array_equal(b, a[4:])
