# SPDX-License-Identifier: Apache-2.0
"""A code generator of one's own for products with a bias: what it takes, and how it builds it.

    python examples/backend/dense.py model.so

compiles a small network with it, runs it, and exports a library that needs neither this file nor
the compiler.
"""

import sys

import numpy as np
import tvm
import tvm_ffi
from tvm import relax, te, tir
from tvm.relax import transform
from tvm.relax.backend.pattern_registry import get_patterns_with_prefix, register_patterns
from tvm.relax.backend.patterns import make_matmul_pattern
from tvm.relax.backend.utils import has_leaking_intermediate_variables


# ---- what it takes over --------------------------------------------------------------------------
def is_ours(context):
    """Matrices of float32 whose sizes are known, and whose product nobody else reads."""
    lhs, rhs, bias = (context.annotated_expr[name].struct_info for name in ("lhs", "rhs", "bias"))
    static = all(
        info.shape is not None and all(isinstance(dim, tir.IntImm) for dim in info.shape.values)
        for info in (lhs, rhs, bias)
    )
    ranks = (lhs.ndim, rhs.ndim, bias.ndim)
    alone = not has_leaking_intermediate_variables(context)
    return static and alone and ranks == (2, 2, 1) and lhs.dtype == "float32"


register_patterns([("dense.matmul_bias", *make_matmul_pattern(with_bias=True), is_ours)])


# ---- how it builds it ----------------------------------------------------------------------------
def kernel(n, k, m):
    """out = x · w + b, by our own schedule."""
    x, w, b = (te.placeholder(s, name=p) for p, s in (("x", (n, k)), ("w", (k, m)), ("b", (m,))))
    r = te.reduce_axis((0, k), name="r")
    product = te.compute((n, m), lambda i, j: te.sum(x[i, r] * w[r, j], axis=r), name="product")
    out = te.compute((n, m), lambda i, j: product[i, j] + b[j], name="out")
    sch = tir.Schedule(te.create_prim_func([x, w, b, out]))
    i, j, r = sch.get_loops(sch.get_block("product"))
    sch.reorder(i, r, j)
    sch.parallel(i)
    return sch.mod["main"]


@tvm_ffi.register_global_func("relax.ext.dense", override=True)
def build(functions, options, constant_names):
    """One module with a kernel under the name of each function: it is called with the arguments and
    the tensor to write to."""
    kernels = {}
    for func in functions:
        x, w = (param.struct_info.shape.values for param in func.params[:2])
        name = str(func.attrs["global_symbol"])
        prim_func = kernel(int(x[0]), int(x[1]), int(w[1]))
        kernels[name] = prim_func.with_attr("global_symbol", name)
    return [tvm.tir.build(tvm.IRModule(kernels), target=options.get("target", "llvm"))]


def partition(mod):
    """The module with all products with a bias built by us."""
    patterns = get_patterns_with_prefix("dense")
    cut = transform.FuseOpsByPattern(patterns, bind_constants=False, annotate_codegen=True)
    return transform.RunCodegen()(cut(mod))


# ---- a network that uses it ----------------------------------------------------------------------
def network(rng):
    """relu(x · w₁ + b₁) · w₂ + b₂ with random weights, and the weights."""
    weights = [rng.standard_normal(s).astype("float32") for s in ((64, 32), (32,), (32, 10), (10,))]
    w1, b1, w2, b2 = map(relax.const, weights)
    x = relax.Var("x", relax.TensorStructInfo((2, 64), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            hidden = bb.emit(relax.op.nn.relu(relax.op.matmul(x, w1) + b1))
            out = bb.emit_output(relax.op.matmul(hidden, w2) + b2)
        bb.emit_func_output(out)
    return bb.get(), weights


def main(path):
    rng = np.random.default_rng(0)
    mod, (w1, b1, w2, b2) = network(rng)
    mod = partition(mod)
    compiled = tvm.compile(mod, target="llvm")
    compiled.export_library(path)
    vm = relax.VirtualMachine(tvm.runtime.load_module(path), tvm.cpu())
    x = rng.standard_normal((2, 64)).astype("float32")
    result = vm["main"](tvm.runtime.tensor(x)).numpy()
    np.testing.assert_allclose(result, np.maximum(x @ w1 + b1, 0) @ w2 + b2, rtol=1e-4, atol=1e-4)
    print("two products built by 'dense', results as NumPy's")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "model.so")
