# SPDX-License-Identifier: Apache-2.0
"""FuseTIR: functions of several kernels become one kernel."""

import numpy as np
import tvm
from tvm import ir, relax, te, tir
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

from ..legalize.evaluate import evaluate


def test_fuse_tir_whole_program():
    @I.ir_module
    class Before:
        @T.prim_func(private=True)
        def add(
            x: T.Buffer((T.int64(4), T.int64(8)), "float32"),
            b: T.Buffer((T.int64(8),), "float32"),
            y: T.Buffer((T.int64(4), T.int64(8)), "float32"),
        ):
            for i, j in T.grid(T.int64(4), T.int64(8)):
                with T.block("compute"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    y[vi, vj] = x[vi, vj] + b[vj]

        @T.prim_func(private=True)
        def exp(
            x: T.Buffer((T.int64(4), T.int64(8)), "float32"),
            y: T.Buffer((T.int64(4), T.int64(8)), "float32"),
        ):
            for i, j in T.grid(T.int64(4), T.int64(8)):
                with T.block("compute"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    y[vi, vj] = T.exp(x[vi, vj])

        @R.function(private=True)
        def fused_add_exp(x: R.Tensor((4, 8), "float32"), b: R.Tensor((8,), "float32")) -> R.Tensor(
            (4, 8), "float32"
        ):
            R.func_attr({"Primitive": True})
            cls = Before
            with R.dataflow():
                lv = R.call_tir(cls.add, (x, b), out_sinfo=R.Tensor((4, 8), "float32"))
                gv = R.call_tir(cls.exp, (lv,), out_sinfo=R.Tensor((4, 8), "float32"))
                R.output(gv)
            return gv

        @R.function
        def main(x: R.Tensor((4, 8), "float32"), b: R.Tensor((8,), "float32")) -> R.Tensor(
            (4, 8), "float32"
        ):
            cls = Before
            with R.dataflow():
                lv: R.Tensor((4, 8), "float32") = cls.fused_add_exp(x, b)
                gv = R.call_tir(cls.exp, (lv,), out_sinfo=R.Tensor((4, 8), "float32"))
                R.output(gv)
            return gv

    @I.ir_module
    class Expected:
        @T.prim_func(private=True)
        def exp(
            x: T.Buffer((T.int64(4), T.int64(8)), "float32"),
            y: T.Buffer((T.int64(4), T.int64(8)), "float32"),
        ):
            for i, j in T.grid(T.int64(4), T.int64(8)):
                with T.block("compute"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    y[vi, vj] = T.exp(x[vi, vj])

        @T.prim_func(private=True)
        def fused_add_exp(
            x: T.Buffer((T.int64(4), T.int64(8)), "float32"),
            b: T.Buffer((T.int64(8),), "float32"),
            y: T.Buffer((T.int64(4), T.int64(8)), "float32"),
        ):
            T.func_attr({"tir.noalias": True})
            lv = T.alloc_buffer((T.int64(4), T.int64(8)))
            for i, j in T.grid(T.int64(4), T.int64(8)):
                with T.block("compute"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    lv[vi, vj] = x[vi, vj] + b[vj]
            for i, j in T.grid(T.int64(4), T.int64(8)):
                with T.block("compute1"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    y[vi, vj] = T.exp(lv[vi, vj])

        @R.function
        def main(x: R.Tensor((4, 8), "float32"), b: R.Tensor((8,), "float32")) -> R.Tensor(
            (4, 8), "float32"
        ):
            cls = Expected
            with R.dataflow():
                lv = R.call_tir(cls.fused_add_exp, (x, b), out_sinfo=R.Tensor((4, 8), "float32"))
                gv = R.call_tir(cls.exp, (lv,), out_sinfo=R.Tensor((4, 8), "float32"))
                R.output(gv)
            return gv

    after = transform.FuseTIR()(Before)
    ir.assert_structural_equal(after, Expected)
    names = [
        realize.block.name_hint
        for realize in (loop.body.body for loop in after["fused_add_exp"].body.block.body.seq)
    ]
    assert names == ["compute", "compute1"]


def primitive(emit, *params):
    """main calls a function with the attribute Primitive that holds what `emit` emits."""
    bb = relax.BlockBuilder()
    with bb.function("group", list(params), attrs={"Primitive": True}, private=True):
        with bb.dataflow():
            results = emit(bb, *params)
            results = results if isinstance(results, list) else [results]
            outputs = [bb.emit_output(r) for r in results]
        bb.emit_func_output(relax.Tuple(outputs) if len(outputs) > 1 else outputs[0])
    mod = bb.get()
    copies = relax.utils.copy_with_new_vars(mod["group"]).params
    bb = relax.BlockBuilder(mod)
    with bb.function("main", copies):
        bb.emit_func_output(bb.emit(mod.get_global_var("group")(*copies)))
    return transform.LegalizeOps()(bb.get())


def run(mod, *arrays, sizes=()):
    after = transform.FuseTIR()(mod)
    assert relax.analysis.well_formed(after)
    assert isinstance(after["group"], tir.PrimFunc)
    return after, evaluate(after, arrays, sizes)


def var(name, *shape):
    return relax.Var(name, R.Tensor(shape, "float32"))


def test_fuse_tir_several_results():
    mod = primitive(
        lambda bb, x: [relax.op.exp(bb.emit(relax.op.sin(x))), relax.op.sum(x, 1)], var("x", 4, 8)
    )
    a = np.random.default_rng(0).random((4, 8), "float32")
    _, (e, s) = run(mod, a)
    np.testing.assert_allclose(e, np.exp(np.sin(a)), rtol=1e-5)
    np.testing.assert_allclose(s, a.sum(1), rtol=1e-5)


def test_fuse_tir_result_of_many_used_in_part():
    def emit(bb, x):
        parts = bb.emit(relax.op.split(x, 2, 1))
        return relax.op.exp(bb.emit(parts[1]))

    a = np.random.default_rng(0).random((4, 8), "float32")
    after, got = run(primitive(emit, var("x", 4, 8)), a)
    np.testing.assert_allclose(got, np.exp(a[:, 4:]), rtol=1e-5)
    assert len(after["group"].params) == 2


def test_fuse_tir_symbolic_shapes_of_different_kernels():
    n, m = te.var("n", "int64"), te.var("m", "int64")

    def emit(bb, x):
        return relax.op.exp(bb.emit(relax.op.reshape(bb.emit(relax.op.sin(x)), (n * m,))))

    a = np.random.default_rng(0).random((3, 5), "float32")
    after, got = run(primitive(emit, relax.Var("x", R.Tensor((n, m), "float32"))), a)
    np.testing.assert_allclose(got, np.exp(np.sin(a)).reshape(-1), rtol=1e-5)
    (buffer, _) = (after["group"].buffer_map[p] for p in after["group"].params)
    assert all(isinstance(d, tir.Var) for d in buffer.shape)


def test_fuse_tir_one_kernel_for_several_shapes():
    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def exp(x: T.handle, y: T.handle):
            n = T.int64()
            a = T.match_buffer(x, (n,), "float32")
            b = T.match_buffer(y, (n,), "float32")
            for i in range(n):
                with T.block("exp"):
                    v = T.axis.spatial(n, i)
                    b[v] = T.exp(a[v])

        @R.function(private=True)
        def group(x: R.Tensor((4,), "float32"), y: R.Tensor(("k",), "float32")):
            R.func_attr({"Primitive": True})
            k = T.int64()
            cls = Module
            with R.dataflow():
                a = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((4,), "float32"))
                b = R.call_tir(cls.exp, (y,), out_sinfo=R.Tensor((k,), "float32"))
                R.output(a, b)
            return (a, b)

        @R.function
        def main(x: R.Tensor((4,), "float32"), y: R.Tensor(("k",), "float32")):
            cls = Module
            r = cls.group(x, y)
            return r

    a, b = (np.random.default_rng(0).random(n, "float32") for n in (4, 7))
    after, (x, y) = run(Module, a, b)
    np.testing.assert_allclose(x, np.exp(a), rtol=1e-5)
    np.testing.assert_allclose(y, np.exp(b), rtol=1e-5)
    shapes = [after["group"].buffer_map[p].shape[0] for p in after["group"].params]
    assert shapes[0] == 4 and shapes[2] == 4 and shapes[1].same_as(shapes[3])
    assert len(after.functions) == 2  # the kernel that was put in is gone


def test_fuse_tir_keeps_calls_in_place():
    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def bump(x: T.Buffer((T.int64(4),), "float32")):
            for i in range(T.int64(4)):
                with T.block("bump"):
                    v = T.axis.spatial(T.int64(4), i)
                    x[v] = x[v] + T.float32(1)

        @T.prim_func(private=True)
        def exp(x: T.Buffer((T.int64(4),), "float32"), y: T.Buffer((T.int64(4),), "float32")):
            for i in range(T.int64(4)):
                with T.block("exp"):
                    v = T.axis.spatial(T.int64(4), i)
                    y[v] = T.exp(x[v])

        @R.function(private=True)
        def inside(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            R.func_attr({"Primitive": True})
            cls = Module
            with R.dataflow():
                a = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((4,), "float32"))
                b = R.call_tir_inplace(
                    cls.bump, (a,), inplace_indices=[0], out_sinfo=R.Tensor((4,), "float32")
                )
                R.output(b)
            return b

        @R.function(private=True)
        def outside(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            R.func_attr({"Primitive": True})
            cls = Module
            with R.dataflow():
                b = R.call_tir_inplace(
                    cls.bump, (x,), inplace_indices=[0], out_sinfo=R.Tensor((4,), "float32")
                )
                c = R.call_tir_inplace(
                    cls.bump, (b,), inplace_indices=[0], out_sinfo=R.Tensor((4,), "float32")
                )
                R.output(c)
            return c

        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            cls = Module
            with R.dataflow():
                a: R.Tensor((4,), "float32") = cls.inside(x)
                b: R.Tensor((4,), "float32") = cls.outside(a)
                R.output(b)
            return b

    after = transform.FuseTIR()(Module)
    assert relax.analysis.well_formed(after)
    first, second = (b.value for b in after["main"].body.blocks[0].bindings)
    assert first.op.name == "relax.call_tir"
    assert second.op.name == "relax.call_tir_inplace"
    assert list(second.attrs.inplace_indices) == [0]
    a = np.random.default_rng(0).random(4, "float32")
    out = tvm.runtime.empty((4,), "float32")
    tvm.compile(after["inside"].with_attr("global_symbol", "main"), "llvm")(
        tvm.runtime.tensor(a), out
    )
    np.testing.assert_allclose(out.numpy(), np.exp(a) + 1, rtol=1e-5)
    tvm.compile(after["outside"].with_attr("global_symbol", "main"), "llvm")(out)
    np.testing.assert_allclose(out.numpy(), np.exp(a) + 3, rtol=1e-5)


def test_fuse_tir_scalars_stay_parameters():
    s = relax.Var("s", R.Prim("float32"))

    def emit(bb, x, s):
        def scaled(a, v):
            return te.compute(a.shape, lambda i: a[i] * v)

        return bb.call_te(scaled, bb.emit(bb.call_te(scaled, x, s)), s)

    mod = primitive(emit, var("x", 4), s)
    after = transform.FuseTIR()(mod)
    assert [str(p.dtype) for p in after["group"].params] == ["handle", "float32", "handle"]
    out = tvm.runtime.empty((4,), "float32")
    a = np.random.default_rng(0).random(4, "float32")
    tvm.compile(after["group"].with_attr("global_symbol", "main"), "llvm")(
        tvm.runtime.tensor(a), 3.0, out
    )
    np.testing.assert_allclose(out.numpy(), a * 9, rtol=1e-6)


def test_fuse_tir_leaves_what_is_no_kernel():
    packed = primitive(
        lambda bb, x: relax.op.call_dps_packed("f", relax.op.exp(x), R.Tensor((4,), "float32")),
        var("x", 4),
    )
    assert transform.FuseTIR()(packed).same_as(packed)
    through = primitive(lambda bb, x: [x, relax.op.exp(x)], var("x", 4))
    assert transform.FuseTIR()(through).same_as(through)


def test_fuse_tir_leaves_the_module_before_as_it_was():
    x = relax.Var("x", R.Tensor((4, 4), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(relax.op.exp(bb.emit(relax.op.add(x, x))))
        bb.emit_func_output(out)
    before = bb.finalize()
    for step in ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps"):
        before = getattr(transform, step)()(before)
    transform.FuseTIR()(before)
    assert relax.analysis.well_formed(before)
    (group,) = (v for v in before.get_global_vars() if v.name_hint.startswith("fused"))
    tvm.ir.assert_structural_equal(group.struct_info, before[group].struct_info)
    assert transform.FuseTIR()(before)["main"].body is not None
