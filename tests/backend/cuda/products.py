# SPDX-License-Identifier: Apache-2.0
"""Products of matrices for tests of matrix units."""

import tvm
from tvm import te


def product(m, n, k, dtype, out="float32", trans_a=False, trans_b=False, batch=None, last=None):
    """[batch,] m x k times k x n, with a last step: "bias" adds one per column and drops what is
    negative."""
    lead = () if batch is None else (batch,)
    A = te.placeholder(lead + ((k, m) if trans_a else (m, k)), dtype, name="A")
    B = te.placeholder(lead + ((n, k) if trans_b else (k, n)), dtype, name="B")
    r = te.reduce_axis((0, k), name="r")
    wide = "int32" if "int" in dtype else "float32"

    def element(*at):
        p, (i, j) = at[:-2], at[-2:]
        a = A(*p, r, i) if trans_a else A(*p, i, r)
        b = B(*p, j, r) if trans_b else B(*p, r, j)
        return te.sum(a.astype(wide) * b.astype(wide), axis=r)

    args = [A, B]
    C = te.compute(lead + (m, n), element, name="C")
    if last == "bias":
        D = te.placeholder((n,), dtype, name="D")
        args.append(D)
        zero = tvm.tir.const(0, wide)
        C = te.compute(
            lead + (m, n),
            lambda *at: te.max(C(*at) + D(at[-1]).astype(wide), zero).astype(out),
            name="E",
        )
    elif out != wide:
        C = te.compute(lead + (m, n), lambda *at: C(*at).astype(out), name="E")
    return te.create_prim_func([*args, C])
