# SPDX-License-Identifier: Apache-2.0
"""What is printed parses back to a structurally equal program: every node, operator and type."""

import pytest
import tvm
import tvm_ffi
from tvm import tir
from tvm.ir import Op, PointerType, PrimType, Range
from tvm.script import from_source
from tvm.script import tir as T
from tvm.script.ir_builder.tir.types import NAMES
from tvm.tir import IterVar, Var

TRUE = tir.const(True, "bool")


def same(func, **options):
    """Prints and parses; both programs are equal, and print alike."""
    text = func.script(show_meta=True, **options)
    again = from_source(text, check_well_formed=False)
    tvm.ir.assert_structural_equal(again, func, map_free_vars=True)
    assert again.script(show_meta=True, **options) == text
    return text


def function(body, params=(), buffers=None, **attrs):
    return tir.PrimFunc(list(params), body, None, buffers, {"global_symbol": "main", **attrs})


def evaluate(value, params=()):
    return function(tir.Evaluate(value), params)


I, J, N = Var("i", "int32"), Var("j", "int32"), tir.SizeVar("n", "int32")
X, Y = Var("x", "float32"), Var("y", "float32")
C, D = Var("c", "bool"), Var("d", "bool")
L = Var("l", "int64")
P = Var("p", PointerType(PrimType("float32"), "global"))
A = tir.decl_buffer((16, 16), "float32", "A")
V = tir.decl_buffer((16,), "float32x4", "V")
CASES = {
    "ir.IntImm": tir.const(3, "int64"),
    "ir.FloatImm": tir.const(0.1, "float32"),
    "tir.Var": I,
    "tir.SizeVar": N + 1,
    "tir.StringImm": tir.StringImm('a "quoted"\n\\text'),
    "tir.Cast": tir.Cast("float32", I),
    "tir.Add": I + J,
    "tir.Sub": I - (J - I),
    "tir.Mul": (I + 1) * 2,
    "tir.Div": tir.truncdiv(I, J),
    "tir.Mod": tir.truncmod(I, J),
    "tir.FloorDiv": I // J,
    "tir.FloorMod": I % (J + 1),
    "tir.Min": tir.Min(I, J),
    "tir.Max": tir.Max(X, Y),
    "tir.EQ": tir.EQ(I, J),
    "tir.NE": tir.NE(I, J),
    "tir.LT": I < J,
    "tir.LE": I <= J,
    "tir.GT": I > 2,
    "tir.GE": 2 >= I,
    "tir.And": tir.And(tir.And(C, D), tir.And(D, C)),
    "tir.Or": tir.Or(C, tir.And(D, tir.Or(C, D))),
    "tir.Not": tir.Not(tir.And(C, I < J)),
    "tir.Select": tir.Select(C, I, J),
    "tir.BufferLoad": A[I, J],
    "tir.Ramp": tir.Ramp(I, 2, 4),
    "tir.Broadcast": tir.Broadcast(X, 4),
    "tir.Shuffle": tir.Shuffle([tir.Broadcast(X, 2), tir.Broadcast(Y, 2)], [0, 3]),
    "tir.Call": tir.exp(X),
    "tir.Let": tir.Let(J, I + 1, J * J),
    "tir.Reduce": tir.Reduce(
        tir.CommReducer([X], [Y], [X + Y], [tir.const(0, "float32")]),
        [A[0, J]],
        [IterVar((0, 16), J, IterVar.CommReduce)],
        TRUE,
        0,
    ),
}
# Operations that fold when written as operators, and other corners.
CORNERS = [
    tir.Add(tir.const(1, "int32"), tir.const(2, "int32")),
    tir.Add(I, tir.const(0, "int32")),
    tir.Mul(X, tir.const(1, "float32")),
    tir.Min(I, I),
    tir.Not(TRUE),
    tir.And(TRUE, C),
    tir.Div(X, Y),
    tir.Div(I, tir.const(1, "int32")),
    tir.LT(tir.LT(I, J), tir.LT(J, I)) if False else tir.EQ(I < J, J < I),
    tir.Cast("int32", tir.const(1, "int32")),
    tir.Call("float64", "tir.exp", [X]),
    tir.Call("int32", "tir.if_then_else", [TRUE, I, J]),
    tir.Call("float32", "tir.floor", [tir.const(1.5, "float32")]),
    tir.Call("float32", "tir.exp", [X], annotations={"k": 1}),
    tir.const(-1, "int32") - I,
    I - tir.const(-1, "int32"),
    tir.const(2**64 - 1 - 2**64, "uint64"),
    tir.const(-0.0, "float32"),
    tir.const(float("inf"), "float32"),
    tir.const(float("-inf"), "float16"),
    tir.const(float("nan"), "float64"),
    tir.const(1e30, "float64"),
    tir.const(2.0**63, "float64"),
    tir.const(5e-324, "float64"),
    tir.Ramp(L, tir.const(1, "int64"), 4),
    tir.Broadcast(tir.const(1, "int32"), T.vscale() * 4),
    tir.EQ(P, P),
]


@pytest.mark.parametrize("key", CASES)
def test_round_trip_expression(key):
    value = CASES[key]
    assert key in ("tir.SizeVar", "tir.GE") or value.__tvm_ffi_type_info__.type_key == key
    same(evaluate(value, [I, X, Y, C, D, N]))


@pytest.mark.parametrize("index", range(len(CORNERS)))
def test_round_trip_corner(index):
    same(evaluate(CORNERS[index], [I, J, X, Y, C, L, P]))


def _stmts():
    store = tir.BufferStore(A, A[I, J] + X, [I, J])
    nothing = tir.Evaluate(0)
    data = Var("buf", PointerType(PrimType("float32"), "global"))
    view = tir.Buffer(data, "float32", [16], [], 0, "view")
    thread = IterVar((0, 8), Var("tx", "int32"), IterVar.ThreadIndex, "threadIdx.x")
    block = tir.Block(
        [IterVar((0, 16), Var("vi", "int32"), IterVar.DataPar)], [], [], "B", nothing,
        annotations={"note": [1, "two", 3.0]},
    )  # fmt: skip
    tensor = tvm.runtime.tensor(__import__("numpy").arange(4, dtype="float32"))
    return {
        "tir.LetStmt": tir.LetStmt(Y, X + X, tir.Evaluate(Y)),
        "tir.AssertStmt": tir.AssertStmt(I < 3, tir.StringImm("small"), nothing),
        "tir.For": tir.For(J, 0, 16, 0, store),
        "tir.While": tir.While(I < 3, nothing),
        "tir.BufferStore": store,
        "tir.BufferRealize": tir.BufferRealize(
            tir.decl_buffer((16,), "int8", "R"), [Range(0, 16)], TRUE, nothing
        ),
        "tir.Allocate": tir.Allocate(data, "float32", [16], TRUE, tir.Evaluate(data)),
        "tir.AllocateConst": tir.AllocateConst(data, "float32", [4], tensor, tir.Evaluate(data)),
        "tir.DeclBuffer": tir.Allocate(
            data, "float32", [16], TRUE, tir.DeclBuffer(view, tir.BufferStore(view, X, [I]))
        ),
        "tir.AttrStmt": tir.AttrStmt(thread, "thread_extent", 8, tir.Evaluate(thread.var)),
        "tir.SeqStmt": tir.SeqStmt([store, nothing, nothing]),
        "tir.IfThenElse": tir.IfThenElse(I < 3, store, tir.IfThenElse(C, nothing, store)),
        "tir.Evaluate": nothing,
        "tir.Block": block,
        "tir.BlockRealize": tir.BlockRealize([I], I < 3, block),
    }


STMTS = _stmts()
PARAMS = [I, J, X, Y, C, N]


@pytest.mark.parametrize("key", STMTS)
@pytest.mark.parametrize("place", ["last", "middle"])
def test_round_trip_statement(key, place):
    stmt = STMTS[key]
    assert key in ("tir.DeclBuffer",) or stmt.__tvm_ffi_type_info__.type_key == key
    if place == "middle":
        rest = [tir.Evaluate(1)]
        stmt = tir.SeqStmt([*(stmt.seq if isinstance(stmt, tir.SeqStmt) else [stmt]), *rest])
    same(function(stmt, PARAMS[:1]))


def test_every_node_kind_is_covered(capsys):
    """A new node needs a case here; all operators and types are taken from their registries."""
    keys = [str(k) for k in tvm_ffi.registry.get_registered_type_keys()]
    abstract = {"tir.Stmt", "tir.DataProducer", "tir.ProducerLoad"}
    nodes = []
    for key in keys:
        if not key.startswith("tir.") or key in abstract:
            continue
        cls = tvm_ffi.core._lookup_or_register_type_info_from_type_key(key).type_cls
        if cls is not None and issubclass(cls, (tir.Stmt, tir.PrimExpr)) and key.count(".") == 1:
            nodes.append(key)
    missing = [key for key in nodes if key not in CASES and key not in STMTS]
    assert not missing
    assert len(CASES) + len(STMTS) >= 45
    with capsys.disabled():
        counts = len(nodes), len(OPS), len(NAMES)
        print("\nround trip: {} kinds of nodes, {} operators, {} types".format(*counts))


OPS = sorted(str(n) for n in Op.list_op_names() if str(n).startswith("tir."))


def test_round_trip_every_operator():
    """Each operator with 0 to 8 arguments and several result types."""
    assert len(OPS) > 130
    arguments = [I, X, A[I, 0], tir.StringImm("s"), P, C, J, Y]
    for name in OPS:
        calls = [
            tir.Evaluate(tir.Call(dtype, name, arguments[:count]))
            for count in range(9)
            for dtype in ("int32", "float32", "bool", "handle", "void")
        ]
        same(function(tir.SeqStmt(calls), [I, J, X, Y, C, P]))


def test_operators_print_by_name():
    """The forms people write."""
    calls = {
        "T.exp(x)": tir.exp(X),
        "T.if_then_else(c, x, y)": tir.if_then_else(C, X, Y),
        'T.call_extern("int32", "f", i, x)': tir.call_extern("int32", "f", I, X),
        'T.tvm_call_packed("f", i)': tir.call_packed("f", I),
        'T.reinterpret("int32", x)': tir.reinterpret("int32", X),
        "T.fabs(x)": tir.abs(X),
        "T.shift_left(i, j)": I << J,
        "T.address_of(A[i, j])": tir.address_of(A[I, J]),
        'T.tvm_struct_get(p, 0, 1, "handle")': tir.tvm_struct_get(P, 0, 1, "handle"),
        "T.min(i, j)": tir.Min(I, J),
        "T.truncdiv(i, j)": tir.truncdiv(I, J),
        "x / y": X / Y,
        'T.tvm_storage_sync("shared")': tir.tvm_storage_sync("shared"),
    }
    for text, call in calls.items():
        assert str(call) == text


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("void", "handle", "boolean")])
def test_round_trip_type(name):
    dtype = tvm_ffi.dtype(name)
    element = name.split("x")[0] if dtype.lanes > 1 else name
    x, value = Var("x", name), tir.const(1, element)
    buffer = tir.decl_buffer((4,), name, "B")
    data = Var("p", PointerType(PrimType(name), "shared"))
    value = value if dtype.lanes == 1 else tir.Broadcast(value, dtype.lanes)
    handle = Var("b", "handle")
    func = tir.PrimFunc(
        [x, handle, data],
        tir.SeqStmt(
            [
                tir.BufferStore(buffer, value, [0]),
                tir.Evaluate(tir.Cast(name, x)),
                tir.Evaluate(data),
            ]
        ),
        PrimType(element),
        {handle: buffer},
    )
    same(func)


@pytest.mark.parametrize("kind", range(5))
@pytest.mark.parametrize("begin", [0, 1, N])
@pytest.mark.parametrize("extent", [8, N])
def test_round_trip_loop(kind, begin, extent):
    thread = (
        IterVar(None, Var("t", "int32"), IterVar.ThreadIndex, "blockIdx.x") if kind == 4 else None
    )
    for annotations in ({}, {"unroll": 1, "x": [1, {"y": "z"}]}):
        for step in (None, 2):
            loop = tir.For(I, begin, extent, kind, tir.Evaluate(I), thread, annotations, step)
            same(function(loop, [N]))


def test_round_trip_buffers():
    """Every field of a buffer."""
    n, s = Var("n", "int32"), Var("s", "int32")
    offset = Var("offset", "int32")
    handles = [Var(f"h{i}", "handle") for i in range(5)]
    buffers = [
        tir.decl_buffer((n, n + 1), "float16", "A", strides=[s, 1]),
        tir.decl_buffer((n,), "float32", "B", elem_offset=offset, offset_factor=4),
        tir.decl_buffer(
            (4, 4), "int8", "C", scope="shared", data_alignment=128, axis_separators=[1]
        ),
        tir.decl_buffer((tir.const(4, "int64"),), "float32", "D", buffer_type="auto_broadcast"),
        tir.decl_buffer((), "float32", "E"),
    ]
    stores = [tir.BufferStore(b, tir.const(1, b.dtype), [0] * len(b.shape)) for b in buffers]
    text = same(function(tir.SeqStmt(stores), handles, dict(zip(handles, buffers, strict=True))))
    assert 'E: T.Buffer((), "float32")' in text and "E[()] = T.float32(1.0)" in text


def test_round_trip_undeclared_buffer():
    """A buffer that no statement declares is declared where its pointer is known."""
    data = Var("buf", PointerType(PrimType("float32"), "global"))
    view = tir.Buffer(data, "float32", [N], [], 0, "view")
    body = tir.Allocate(data, "float32", [16], TRUE, tir.BufferStore(view, X, [0]))
    text = same(function(body, [N, X]))
    assert 'view = T.Buffer((n,), "float32", data=buf)' in text


def test_round_trip_attributes():
    """Values of attributes keep their kinds."""
    attrs = {
        "none": None, "yes": True, "int": 1, "float": 1.5, "text": "a\"b", "list": [1, [2, "x"]],
        "map": {"k": {"v": 1}}, "imm": tir.const(1, "int32"), "bool_imm": TRUE,
        "string_imm": tir.StringImm("s"), "type": PrimType("int32"),
        "dtype": tvm_ffi.dtype("float32"), "range": Range(1, 5), "op": Op.get("tir.exp"),
        "expr": tir.const(2, "int64"), "inf": float("inf"),
        "pointer": PointerType(PrimType("float32"), "shared"),
    }  # fmt: skip
    same(function(tir.Evaluate(0), **attrs))


def test_round_trip_module():
    callee = tir.PrimFunc([I], tir.Evaluate(tir.ret(I + 1)), PrimType("int32"), None, {})
    var, other = tvm.ir.GlobalVar("callee"), tvm.ir.GlobalVar("main")
    call = tir.Call("int32", var, [J])
    odd = tir.Call("float32", var, [J])
    body = tir.SeqStmt([tir.Evaluate(call), tir.Evaluate(odd)])
    main = tir.PrimFunc([J], body, None, None, {"global_symbol": "other_name"})
    module = tvm.IRModule({var: callee, other: main}, {"key": [1, 2]})
    text = same(module)
    assert "cls.callee(j)" in text and "private=True" in text
    same(tvm.IRModule({}))


def test_metadata_holds_what_has_no_syntax():
    config = tvm.transform.PassContext(opt_level=3)
    func = function(tir.Evaluate(0), weird=config)
    assert "# Metadata omitted" in func.script()
    assert 'metadata["transform.PassContext"][0]' in func.script()
    same(func)


def test_names_stay_and_are_unique():
    a, b = Var("x", "int32"), Var("x", "int32")
    body = tir.Evaluate(a + b)
    text = same(function(body, [a, b]))
    assert "def main(x: T.int32, x_1: T.int32):" in text and "x + x_1" in text
    odd = Var("1 weird-näme", "int32")
    same(function(tir.Evaluate(odd), [odd]))
    keyword = Var("for", "int32")
    same(function(tir.Evaluate(keyword), [keyword]))
