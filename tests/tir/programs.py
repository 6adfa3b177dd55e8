# SPDX-License-Identifier: Apache-2.0
"""Programs for threads that several tests lower."""

import numpy as np
from tvm.script import tir as T

RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.normal(size=shape).astype("float32")


@T.prim_func
def transpose(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    S = T.alloc_buffer((8, 8), scope="shared")
    for b in T.thread_binding(2, "blockIdx.x"):
        for i in T.serial(4):
            for t in T.thread_binding(4, "threadIdx.x"):
                for j in T.vectorized(2):
                    with T.block("S"):
                        v0 = T.axis.spatial(8, b * 4 + i)
                        v1 = T.axis.spatial(8, t * 2 + j)
                        S[v0, v1] = A[v0, v1]
        for i in T.serial(8):
            for t in T.thread_binding(4, "threadIdx.x"):
                with T.block("B"):
                    v0 = T.axis.spatial(8, i)
                    v1 = T.axis.spatial(8, b * 4 + t)
                    B[v0, v1] = S[v1, v0]
