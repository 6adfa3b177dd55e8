# SPDX-License-Identifier: Apache-2.0
"""Relax programs: what is printed parses back to an equal program, for every kind of node."""

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax, tir
from tvm.ir import VDevice
from tvm.relax import distributed as dist
from tvm.script import from_source
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

N, M = tir.Var("n", "int64"), tir.Var("m", "int64")
F32 = relax.TensorStructInfo((N, 4), "float32")
OBJECT = relax.ObjectStructInfo()


def same(program, **options):
    """Prints and parses; both programs are equal, and print alike."""
    text = program.script(show_meta=True, **options)
    again = from_source(text, check_well_formed=False)
    tvm.ir.assert_structural_equal(again, program)
    assert again.script(show_meta=True, **options) == text
    return text


def function(params, value):
    """A function that returns one value."""
    bb = relax.BlockBuilder()
    with bb.function("main", params):
        out = bb.emit(value)
        bb.emit_func_output(out)
    return bb.get()["main"]


def packed(*args, info=F32):
    return relax.Call(relax.ExternFunc("f"), list(args), None, [info])


# ---- struct info --------------------------------------------------------------------------------
S = relax.Var("s", relax.ShapeStructInfo([N, M]))
DEFINES = relax.TensorStructInfo((N, M), "float32")
INFOS = {
    "relax.ObjectStructInfo": [OBJECT],
    "relax.PrimStructInfo": [
        relax.PrimStructInfo("int64"),
        relax.PrimStructInfo(value=N),
        relax.PrimStructInfo(value=N * 2 + 1),
        relax.PrimStructInfo(value=3),
        relax.PrimStructInfo(value=tir.const(2, "int32")),
        relax.PrimStructInfo(value=tir.const(1.5, "float32")),
    ],
    "relax.ShapeStructInfo": [
        relax.ShapeStructInfo(),
        relax.ShapeStructInfo(ndim=2),
        relax.ShapeStructInfo([]),
        relax.ShapeStructInfo([1, N, tir.max(N, M) // 2]),
    ],
    "relax.TensorStructInfo": [
        relax.TensorStructInfo(None, None),
        relax.TensorStructInfo(None, "float16"),
        relax.TensorStructInfo(None, "int8", ndim=3),
        relax.TensorStructInfo(None, None, ndim=0),
        relax.TensorStructInfo((), "bool"),
        relax.TensorStructInfo((N, M + 1, tir.const(7, "int64")), "float8_e4m3fn"),
        relax.TensorStructInfo((tir.if_then_else(N < 4, N, tir.const(4, "int64")),), "float32"),
        relax.TensorStructInfo((N,), "float32", VDevice("llvm", 0, "global")),
    ],
    "relax.TupleStructInfo": [
        relax.TupleStructInfo([]),
        relax.TupleStructInfo([OBJECT]),
        relax.TupleStructInfo([F32, relax.TupleStructInfo([OBJECT, F32])]),
    ],
    "relax.FuncStructInfo": [
        relax.FuncStructInfo([], OBJECT),
        relax.FuncStructInfo([F32, OBJECT], F32, False),
        relax.FuncStructInfo.opaque_func(ret=OBJECT),
        relax.FuncStructInfo.opaque_func(ret=F32, purity=True),
        relax.FuncStructInfo.opaque_func(
            ret=OBJECT, derive_func="tvm.relax.struct_info.infer_by_sinfo_args"
        ),
    ],
    "relax.DTensorStructInfo": [
        relax.DTensorStructInfo(
            F32, dist.DeviceMesh((2, 2), [0, 1, 2, 3]), dist.Placement.from_text("S[0], R")
        )
    ],
}


@pytest.mark.parametrize("key", INFOS)
def test_struct_info(key):
    for info in INFOS[key]:
        assert info.__tvm_ffi_type_info__.type_key == key
        params = [relax.Var("d", DEFINES), relax.Var("x", info)]
        func = relax.Function(params, relax.SeqExpr([], params[0]), DEFINES)
        same(func.with_attr("global_symbol", "main"))


def test_every_kind_of_struct_info_has_cases():
    keys = map(str, tvm_ffi.registry.get_registered_type_keys())
    kinds = {k for k in keys if k.startswith("relax.") and k.endswith("StructInfo")}
    assert kinds == set(INFOS)


def test_texts_of_struct_info():
    n = tir.Var("n", "int64")
    texts = {
        "R.Object": OBJECT,
        'R.Prim("int64")': relax.PrimStructInfo("int64"),
        "R.Shape(ndim=2)": relax.ShapeStructInfo(ndim=2),
        'R.Tensor((1, 2), dtype="float32")': relax.TensorStructInfo((1, 2), "float32"),
        'R.Tensor(dtype="float32", ndim=2)': relax.TensorStructInfo(None, "float32", ndim=2),
        "R.Tuple": relax.TupleStructInfo([]),
        "R.Callable": relax.FuncStructInfo.opaque_func(),
        "R.Callable((R.Object,), R.Object, True)": relax.FuncStructInfo([OBJECT], OBJECT),
        "n = T.int64()\nR.Prim(value=n)": relax.PrimStructInfo(value=n),
        "n = T.int64()\nR.Shape([1, n])": relax.ShapeStructInfo([1, n]),
    }
    for text, info in texts.items():
        assert str(info) == text


# ---- expressions --------------------------------------------------------------------------------
X = relax.Var("x", F32)
PAIR = relax.Var("pair", relax.TupleStructInfo([F32, OBJECT]))
VALUES = {
    "relax.expr.Var": [X],
    "relax.expr.Call": [
        packed(X),
        packed(X, relax.Tuple([X, X]), relax.StringImm("a"), info=relax.TupleStructInfo([F32])),
        relax.Call(relax.ExternFunc("f"), [], tvm.ir.DictAttrs({"k": 1}), [F32]),
        packed(),
    ],
    "relax.expr.Tuple": [
        relax.Tuple([]),
        relax.Tuple([X]),
        relax.Tuple([X, relax.Tuple([PAIR, X])]),
    ],
    "relax.expr.TupleGetItem": [relax.TupleGetItem(PAIR, 1)],
    "relax.expr.ShapeExpr": [relax.ShapeExpr([]), relax.ShapeExpr([N, 4, N * N])],
    "relax.expr.PrimValue": [
        relax.PrimValue(3),
        relax.PrimValue(N + 1),
        relax.PrimValue(1.5),
        relax.PrimValue(True),
        relax.PrimValue(tir.const(3, "int32")),
        relax.PrimValue(N < 4),
    ],
    "relax.expr.StringImm": [relax.StringImm('a "text"\n')],
    "relax.expr.DataTypeImm": [relax.DataTypeImm("float16"), relax.DataTypeImm("int8")],
    "relax.expr.Constant": [
        relax.const(1.5),
        relax.const(3, "int8"),
        relax.const(-0.0, "float64"),
        relax.const(float("nan"), "float32"),
        relax.const(True),
        relax.const(2**63 - 1, "int64"),
        relax.const(1.5, "float16"),
        relax.const(np.arange(6, dtype="float32").reshape(2, 3)),
    ],
    "relax.expr.ExternFunc": [
        relax.ExternFunc("f"),
        relax.ExternFunc("g", relax.FuncStructInfo([F32], F32)),
    ],
}
# Printed whole, in the functions below.
STATEMENTS = {
    "relax.expr.DataflowVar",
    "relax.expr.VarBinding",
    "relax.expr.MatchCast",
    "relax.expr.BindingBlock",
    "relax.expr.DataflowBlock",
    "relax.expr.SeqExpr",
    "relax.expr.If",
    "relax.expr.Function",
}


@pytest.mark.parametrize("key", VALUES)
def test_expressions(key):
    for value in VALUES[key]:
        assert value.__tvm_ffi_type_info__.type_key == key
        same(function([X, PAIR], value))
        assert str(value)  # alone, too


def test_every_kind_of_node_has_cases():
    keys = {str(k) for k in tvm_ffi.registry.get_registered_type_keys()}
    kinds = {k for k in keys if k.startswith("relax.expr.")}
    abstract = {"relax.expr.Binding"}
    assert kinds - abstract == set(VALUES) | STATEMENTS


# ---- functions ----------------------------------------------------------------------------------
@R.function
def choose(x: R.Tensor(("n", 4), "float32"), c: R.Tensor((), "bool")) -> R.Tensor(
    ("n", 4), "float32"
):
    n = T.int64()
    if c:
        a: R.Tensor((n, 4), "float32") = R.call_pure_packed(
            "f", x, sinfo_args=R.Tensor((n, 4), "float32")
        )
        y: R.Tensor((n, 4), "float32") = a
    else:
        y: R.Tensor((n, 4), "float32") = x
    return y


@R.function
def local(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
    @R.function
    def again(a: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        b: R.Tensor((2,), "float32") = again(a)
        return b

    y = again(x)
    return y


@R.function(pure=False)
def cast(x: R.Tensor, s: R.Shape(ndim=2)) -> R.Object:
    n, m = T.int64(), T.int64()
    y = R.match_cast(x, R.Tensor((n, 4), "float32"))
    _ = R.match_cast(s, R.Shape([n, m]))
    R.call_packed("show", y, sinfo_args=R.Tuple())
    with R.dataflow():
        lv: R.Tensor((n, m)) = R.call_pure_packed("f", y, sinfo_args=R.Tensor((n, m)))
        lv1 = (lv, lv)
        gv = lv1[0]
        gv1 = lv1
        R.output(gv, gv1)
    z = (gv, gv1, m)
    return z


@R.function(private=True)
def hidden(n: R.Prim(value="n"), x: R.Tensor(("n + 1",), "float32")):
    R.func_attr({"Primitive": True, "k": [1, "a"]})
    return x


FUNCTIONS = (choose, local, cast, hidden)


@pytest.mark.parametrize("func", FUNCTIONS)
@pytest.mark.parametrize("options", [{}, {"show_all_struct_info": False}])
def test_functions(func, options):
    same(func, **options)


def test_a_module():
    @I.ir_module
    class Module:
        I.module_attrs({"a": 1})
        I.module_global_infos(
            {"vdevice": [I.vdevice("llvm"), I.vdevice({"kind": "llvm", "mcpu": "x86-64"})]}
        )
        ext = R.ExternFunc("ext")

        @R.function
        def main(x: R.Tensor((4,), "float32", "llvm:1"), f: R.Callable) -> R.Tensor(
            (4,), "float32"
        ):
            cls = Module
            y: R.Tensor((4,), "float32") = cls.helper(x)
            return y

        @R.function(private=True)
        def helper(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return x

        @T.prim_func
        def kernel(A: T.Buffer((4,), "float32")):
            A[0] = T.float32(0)

    text = same(Module)
    places = [
        text.index(f"{name}")
        for name in ("def kernel", "ext = R.ExternFunc", "def helper", "def main")
    ]
    assert places == sorted(places)
    assert 'vdevice="llvm:1:global"' in text and "cls = Module" in text
    assert "Module.helper(x)" in Module.script(module_alias="")


def test_many_bindings_are_linear():
    def chain(count):
        bb = relax.BlockBuilder()
        with bb.function("main", [X]):
            y = X
            for _ in range(count):
                y = bb.emit(packed(y))
            bb.emit_func_output(y)
        return bb.get()["main"]

    assert len(chain(10_000).script()) < 12 * len(chain(1_000).script())
    same(chain(300))


def test_deep_nesting_prints():
    value = X
    for _ in range(10_000):
        value = relax.Tuple([value])
    assert str(value).count("(") >= 10_000
