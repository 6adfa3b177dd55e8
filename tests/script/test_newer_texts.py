# SPDX-License-Identifier: Apache-2.0
"""Programs as versions since 0.27 print and write them."""

from typing import TypeVar

import numpy as np
import pytest
import tvm
from tvm import relax, te, tir
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

HEAD = """
from typing import TypeVar
from tvm.script import ir as I
from tvm.script import tirx as T
from tvm.tirx.layout import Axis
from tvm.script import relax as R

n = TypeVar("n")
"""
MODULE = (
    HEAD
    + """
@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def twice(x: T.Buffer((n, T.int64(8)), "float32"), y: T.Buffer((n, T.int64(8)), "float32")):
        T.func_attr({"tirx.noalias": True})
        for i0, i1 in T.grid(n, T.int64(8)):
            with T.sblock("twice"):
                v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
                y[v_i0, v_i1] = x[v_i0, v_i1] + x[v_i0, v_i1]

    @R.function
    def main(x: R.Tensor((n, 8), dtype="float32")) -> R.Tensor((n, 8), dtype="float32"):
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.twice, (x,), out_ty=R.Tensor((n, 8), dtype="float32"))
            gv = R.call_pure_packed(
                "vm.builtin.copy", lv, ty_args=R.Tensor((n, 8), dtype="float32")
            )
            R.output(gv)
        return gv
"""
)


def test_variables_of_python_are_symbolic():
    module = tvm.script.from_source(MODULE)
    assert module["twice"].attrs["tir.noalias"]
    x = np.arange(24, dtype="float32").reshape(3, 8)
    vm = relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())
    np.testing.assert_array_equal(vm["main"](tvm.runtime.tensor(x)).numpy(), x + x)


m = TypeVar("m")


@T.prim_func
def rows(A: T.Buffer(("n", m), "int32"), B: T.Buffer(("n", m), "int32")):
    n = T.int32()
    for i, j in T.grid(n, m):
        B[i, j] = A[i, j] + 1


@I.ir_module
class Written:
    @T.prim_func(private=True)
    def copy(x: T.Buffer((m,), "float32"), y: T.Buffer((m,), "float32")):
        for i in range(m):
            y[i] = x[i]

    @R.function
    def main(x: R.Tensor((m,), "float32")):
        with R.dataflow():
            y = R.call_tir(Written.copy, (x,), out_ty=R.Tensor((m,), "float32"))
            z = R.reshape(y, R.shape([m, 1]))
            R.output(z)
        return z


def test_texts_in_shapes_name_what_the_body_declares():
    sizes, others = (rows.buffer_map[param].shape for param in rows.params)
    assert [str(s.dtype) for s in sizes] == ["int32", "int64"]
    assert sizes[0].same_as(others[0]) and sizes[1].same_as(others[1])
    a, b = np.arange(6, dtype="int32").reshape(2, 3), tvm.runtime.empty((2, 3), "int32")
    tvm.compile(rows, "llvm")(tvm.runtime.tensor(a), b)
    np.testing.assert_array_equal(b.numpy(), a + 1)


def test_each_function_has_a_variable_of_its_own():
    assert tir.analysis.verify_well_formed(Written)
    assert str(Written["main"].ret_ty).endswith('R.Tensor((m, 1), dtype="float32")')


def test_lets_say_so():
    @T.prim_func
    def func(A: T.Buffer((4,), "int32"), n: T.int32):
        x: T.let[T.int32] = n + 1
        A[0] = x * x

    a = tvm.runtime.tensor(np.zeros(4, "int32"))
    tvm.compile(func, "llvm")(a, 3)
    assert a.numpy()[0] == 16


def test_any_value():
    @R.function
    def func(x: R.Tuple(R.Tensor((2,), "int64"), R.Any)):
        return x[1]

    assert func.ret_ty == relax.AnyType() == relax.ObjectStructInfo()


def test_types_are_struct_info():
    n = tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorType([n, 4], "float32"))
    assert isinstance(x.ty, relax.TensorType) and x.ty == relax.TensorStructInfo([n, 4], "float32")
    assert x.name == "x" and n.ty == tvm.ir.PrimType("int64")
    pair = relax.Var("p", ty=relax.TupleType([x.ty, relax.ShapeType([n]), relax.AnyType()]))
    assert isinstance(pair.ty, relax.TupleType) and isinstance(pair.ty, relax.TupleStructInfo)
    assert relax.Var("k", tvm.ir.PrimType("int64")).ty == relax.PrimStructInfo("int64")
    assert isinstance(relax.FuncType([x.ty], x.ty, purity=True), relax.FuncStructInfo)
    assert str(relax.prim_value(1).value.dtype) == "int64"
    assert str(relax.prim_value(1, "int32").value.dtype) == "int32"
    # The static types of before keep their names.
    assert relax.TensorType(2, "float32").ndim == 2 and relax.ShapeType(2).ndim == 2
    assert relax.Var("s", relax.ShapeType(2)).ty == relax.ShapeStructInfo(ndim=2)


def test_keywords_by_either_name():
    x = relax.Var(name="x", ty=relax.TensorStructInfo([2], "float32"))
    call = relax.op.call_dps_packed("f", relax.Tuple([x]), out_ty=x.ty)
    tvm.ir.assert_structural_equal(
        call, relax.op.call_dps_packed("f", relax.Tuple([x]), out_sinfo=x.ty)
    )
    with pytest.raises(TypeError, match="expected one of out_sinfo and out_ty"):
        relax.op.call_dps_packed("f", relax.Tuple([x]), out_sinfo=x.ty, out_ty=x.ty)
    assert relax.analysis.well_formed(tvm.IRModule(), check_ty=False)
    with pytest.raises(TypeError, match="unexpected keyword argument 'out_type'"):
        relax.op.call_dps_packed("f", relax.Tuple([x]), out_type=x.ty)


def test_names_of_tirx():
    assert tvm.ir.Op.get("tirx.exp").same_as(tvm.ir.Op.get("tir.exp"))
    options = {"tirx.StmtSimplify": {"transitively_prove_inequalities": True}}
    with tvm.transform.PassContext(config=options, disabled_pass=["tirx.UnrollLoop"]) as context:
        assert list(context.config) == ["tir.Simplify"]
        assert list(context.disabled_pass) == ["tir.UnrollLoop"]
    with pytest.raises(ValueError, match="expected the name of an option, got 'tir.nothing'"):
        tvm.transform.PassContext(config={"tirx.nothing": 1})
    assert rows.with_attr("tirx.noalias", True).attrs["tir.noalias"]


def test_traces_of_newer_versions_replay():
    x = te.placeholder((16,), name="x")
    func = te.create_prim_func([x, te.compute((16,), lambda i: x[i] + 1, name="y")])
    trace = [
        [
            ["GetSBlock", [], ["y", "main"], ["b0"]],
            ["GetLoops", ["b0"], [], ["l1"]],
            ["SamplePerfectTile", ["l1"], [2, 16], ["v2", "v3"]],
            ["Split", ["l1", "v2", "v3"], [True, False], ["l4", "l5"]],
        ],
        [[2, [4, 4]]],
    ]
    sch = tir.Schedule(func)
    tir.schedule.Trace.apply_json_to_schedule(trace, sch)
    assert [int(sch.get(loop).extent) for loop in sch.get_loops("y")] == [4, 4]


def test_dependences_without_a_schedule():
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: x[i] + 1, name="y")
    func = te.create_prim_func([x, te.compute((4,), lambda i: y[i] * 2, name="z")])
    info = tir.BlockDependenceInfo(func)
    sch = tir.Schedule(func)
    root, first, last = (info.get_sref(sch.get(sch.get_block(n))) for n in ("root", "y", "z"))
    deps = info.get_block_scope(root).get_deps_by_src(first)
    assert [d.dst.same_as(last) for d in deps] == [True]
