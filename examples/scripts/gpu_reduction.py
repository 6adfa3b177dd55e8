# SPDX-License-Identifier: Apache-2.0
"""A reduction scheduled for a GPU by dlight's rules; no GPU is needed to look at it."""

import tvm
from tvm import dlight, te


def main():
    n = te.var("n")
    A = te.placeholder((n, 1024), name="A")
    k = te.reduce_axis((0, 1024), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    mod = tvm.IRModule({"main": te.create_prim_func([A, B])})
    with tvm.target.Target("nvidia/geforce-rtx-3090"):
        mod = dlight.ApplyDefaultSchedule(
            dlight.gpu.Reduction(), dlight.gpu.GeneralReduction(), dlight.gpu.Fallback()
        )(mod)
    text = mod.script()
    assert "blockIdx.x" in text and "threadIdx.x" in text, text
    assert mod["main"].attrs["tir.is_scheduled"]
    return text


if __name__ == "__main__":
    print(main())
