# SPDX-License-Identifier: Apache-2.0
"""One allocation of all the shared memory of a kernel."""

import numpy as np
import pytest
from tvm import tir
from tvm.script import tir as T
from tvm.tir import interpret
from tvm.tir import transform as tt

from tests.tir.programs import floats
from tests.tir.transform.build_ir import apply


def allocations(func):
    found = []
    tir.stmt_functor.post_order_visit(
        func.body, lambda n: found.append(n) if isinstance(n, tir.Allocate) else None
    )
    return [(int(a.extents[0]), str(a.dtype)) for a in found]


def reversed_twice(barrier, scope="shared.dyn"):
    """Two buffers, the second of which is used after the last use of the first."""

    @T.prim_func(check_well_formed=False)
    def func(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        t = T.launch_thread("threadIdx.x", 8)
        S_data = T.allocate([8], "float32", scope)
        S = T.decl_buffer((8,), data=S_data, scope=scope)
        R_data = T.allocate([16], "int8", scope)
        R = T.decl_buffer((16,), "int8", data=R_data, scope=scope)
        S[t] = A[t]
        T.tvm_storage_sync("shared")
        B[t] = S[7 - t]
        if barrier:
            T.tvm_storage_sync("shared")
        R[t] = T.Cast("int8", B[t])
        T.tvm_storage_sync("shared")
        A[t] = T.Cast("float32", R[7 - t])

    return func


@pytest.mark.parametrize("barrier, size", [(True, 32), (False, 48)])
def test_memory_is_used_again_behind_a_barrier(barrier, size):
    before = reversed_twice(barrier)
    after = apply(tt.MergeSharedMemoryAllocations(), before)
    assert allocations(after) == [(size, "uint8")]
    results = []
    for func in (before, after):
        A = floats(8) * 0 + np.arange(8, dtype="float32")
        B = np.zeros_like(A)
        interpret(func, "lockstep")(A, B)
        results.append((A, B))
    np.testing.assert_array_equal(*(np.stack(r) for r in results))


def test_static_memory_on_demand():
    before = reversed_twice(True, "shared")
    assert len(allocations(apply(tt.MergeSharedMemoryAllocations(), before))) == 2
    after = apply(tt.MergeSharedMemoryAllocations(), before, **{"tir.merge_static_smem": True})
    assert allocations(after) == [(32, "uint8")]
