# SPDX-License-Identifier: Apache-2.0
"""Functions become a packed entry that checks, and a plain inner function."""

import numpy as np
import pytest
import tvm
from tvm import tir
from tvm.script import tir as T
from tvm.testing.features import host_target
from tvm.tir import transform as tt

from tests.tir.transform.build_ir import buffer, func, loop, seq, store


def _packed(function, name="main"):
    return tt.MakePackedAPI()(tvm.IRModule({name: function.with_attr("global_symbol", name)}))


def _messages(function):
    """The texts of the errors that the entry may raise."""
    return _raised(_packed(function)["main"])


def _calls(function):
    calls = []
    tir.stmt_functor.post_order_visit(
        function.body, lambda node: calls.append(node) if isinstance(node, tir.Call) else None
    )
    return calls


def _raised(function):
    return [
        (str(call.args[0].value), str(call.args[1].value))
        for call in _calls(function)
        if getattr(call.op, "name", "") == "tir.tvm_raise_error"
    ]


def _function_calls(function):
    return [call for call in _calls(function) if isinstance(call.op, tvm.ir.GlobalVar)]


def test_inner_function_has_plain_parameters():
    n, x = tir.Var("n", "int32"), tir.Var("x", "float32")
    A = buffer((n, 4))
    mod = _packed(func([A, x], loop(n, lambda i: store(A, [i, 0], x)), **{"tir.noalias": True}))
    inner = mod["main_compute_"]
    assert [str(p.dtype) for p in inner.params] == ["handle", "float32", "int32"]
    assert list(inner.attrs["tir.param_alignment"]) == [4, 0, 0]
    assert bool(inner.attrs["tir.noalias"]) and bool(inner.attrs["tir.private"])
    assert "global_symbol" not in inner.attrs
    assert len(inner.buffer_map) == 0 and inner.ret_type.dtype == "int32"
    assert tir.analysis.verify_well_formed(mod)


def test_entry_is_packed():
    mod = _packed(func([buffer((4,))], tir.Evaluate(0)))
    entry = mod["main"]
    assert [str(p.dtype) for p in entry.params] == ["handle", "handle", "int32", "handle"]
    assert int(entry.attrs["calling_conv"]) == 1 and entry.attrs["global_symbol"] == "main"


def test_every_check_has_its_message():
    n = tir.Var("n", "int32")
    A, B = buffer((n, 4), name="A"), buffer((n,), "int8", name="B")
    messages = _messages(func([A, B, tir.Var("x", "int32")], tir.Evaluate(0)))
    for text in (
        ("TypeError", "main: expected 3 arguments, got %d"),
        ("ValueError", "main: expected argument x to fit int32, got %lld"),
        ("ValueError", "main: expected argument A to be a tensor, got a null pointer"),
        ("ValueError", "main: expected argument A with 2 dimensions, got %d"),
        ("ValueError", "main: expected argument A on device type 1, got %d"),
        ("ValueError", "main: expected A.shape[0] to fit int32, got %lld"),
        ("ValueError", "main: expected A.shape[1] to be %lld, got %lld"),
        ("ValueError", "main: expected A.strides[0] of a compact tensor to be %lld, got %lld"),
        ("ValueError", "main: expected argument A with data, got a null data pointer"),
        ("ValueError", "main: expected B.shape[0] to be %lld, got %lld"),
    ):
        assert text in messages
    assert any("A aligned to 4 bytes" in text for _, text in messages)
    assert not any("B aligned" in text for _, text in messages), "a byte is always aligned"


def test_declared_alignment_is_checked():
    A = buffer((4,), data_alignment=32)
    main = tvm.compile(func([A], store(A, 0, 1.0)))
    memory = np.zeros(24, "float32")
    first = -(memory.ctypes.data // 4) % 8
    main(tvm.runtime.from_dlpack(memory[first : first + 4]))
    with pytest.raises(ValueError, match="main: expected the data of A aligned to 32 bytes"):
        main(tvm.runtime.from_dlpack(memory[first + 1 : first + 5]))


def test_an_odd_alignment_is_checked():
    A = buffer((4,), "int8", data_alignment=12)
    main = tvm.compile(func([A], store(A, 0, tir.const(1, "int8"))))
    memory = np.zeros(64, "int8")
    first = -memory.ctypes.data % 12
    main(tvm.runtime.from_dlpack(memory[first : first + 4]))
    with pytest.raises(ValueError, match="main: expected the data of A aligned to 12 bytes"):
        main(tvm.runtime.from_dlpack(memory[first + 4 : first + 8]))


def test_entries_share_the_checks_of_tensors():
    A, B = buffer((4, 2), name="A"), buffer((3, 5), "int32", name="B")
    functions = {"f": func([A], tir.Evaluate(0)), "g": func([B], tir.Evaluate(0))}
    mod = tvm.IRModule({n: f.with_attr("global_symbol", n) for n, f in functions.items()})
    mod = tt.MakePackedAPI()(mod)
    assert tir.analysis.verify_well_formed(mod)
    calls = {str(c.op.name_hint): c for n in "fg" for c in _function_calls(mod[n])}
    assert set(calls) == {"__tvm_unpack_tensor2", "f_compute_", "g_compute_"}
    assert "__tvm_unpack_tensor1" not in {v.name_hint for v in mod.get_global_vars()}
    assert [text for _, text in _raised(mod["f"])] == ["f: expected 1 argument, got %d"]


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_checks_of_a_tensor_name_function_and_parameter(target):
    A = buffer((4, 2), name="A%s")
    main = tvm.compile(func([A], store(A, [0, 0], 1.0)), target=target)
    for wrong, error, text in (
        (1, TypeError, "to be a tensor, got int"),
        (np.zeros((4, 2), "int32"), TypeError, "of type float32, got int32"),
        (np.zeros((4,), "float32"), ValueError, "with 2 dimensions, got 1"),
    ):
        value = wrong if isinstance(wrong, int) else tvm.runtime.tensor(wrong)
        with pytest.raises(error, match=f"main: expected argument A%s {text}"):
            main(value)
    with pytest.raises(ValueError, match=r"main: expected A%s.shape\[1\] to be 2, got 3"):
        main(tvm.runtime.tensor(np.zeros((4, 3), "float32")))
    sliced = tvm.runtime.from_dlpack(np.zeros((4, 4), "float32")[:, :2])
    with pytest.raises(ValueError, match=r"A%s.strides\[0\] of a compact tensor to be 2, got 4"):
        main(sliced)


def test_strides_and_offset_can_be_taken_from_the_tensor():
    s, o = tir.Var("s", "int32"), tir.Var("o", "int32")
    A = buffer((4, 4), strides=[s, 1], elem_offset=o)
    mod = _packed(func([A], tir.Evaluate(tir.call_extern("int32", "f", s, o))))
    assert [p.name for p in mod["main_compute_"].params] == ["A", "s", "o"]
    texts = [t for _, t in _messages(func([A], tir.Evaluate(0)))]
    assert "main: expected A.strides[1] to be %lld, got %lld" in texts
    assert not any("compact" in t for t in texts)


def test_a_size_that_nothing_determines_is_an_error():
    n = tir.Var("n", "int32")
    with pytest.raises(ValueError, match="expected the arguments of main to determine n"):
        _packed(func([buffer((n * 2,))], tir.Evaluate(0)))


def test_a_size_from_a_scalar_parameter():
    n = tir.Var("n", "int32")
    mod = _packed(func([buffer((n * 2,)), n], tir.Evaluate(0)))
    assert tir.analysis.verify_well_formed(mod)


def test_an_undefined_variable_is_an_error():
    A, y = buffer((4,)), tir.Var("y", "float32")
    with pytest.raises(ValueError, match="expected variable y of main to be defined"):
        _packed(func([A], store(A, 0, y)))


def test_returned_value_goes_to_the_result():
    x = tir.Var("x", "int32")
    function = tir.PrimFunc([x], tir.Evaluate(tir.ret(x + 1)), tvm.ir.PrimType("int32"))
    inner = _packed(function)["main_compute_"]
    assert [p.name for p in inner.params] == ["x", "result"]


def test_calls_hand_errors_on():
    A = buffer((4,))
    callee = tvm.ir.GlobalVar("helper")
    helper = func([A], store(A, 0, 1.0))
    B = buffer((4,), name="B")
    main = func([B], seq(tir.Evaluate(tir.Call("void", callee, [B.data])), store(B, 1, 2.0)))
    mod = tvm.IRModule({callee: helper, "main": main.with_attr("global_symbol", "main")})
    mod = tt.MakePackedAPI()(mod)
    first = mod["main_compute_"].body[0].body[0]
    assert isinstance(first, tir.IfThenElse) and first.condition.a.op.name_hint == "helper"
    assert first.condition.a.dtype == "int32"
    assert tir.analysis.verify_well_formed(mod)


@pytest.mark.parametrize("rows, fits", [(1, True), (2, False), (3, False)])
def test_strides_of_one_row_do_not_matter(rows, fits):
    """A part of the columns of a wider array."""

    @T.prim_func
    def main(A: T.Buffer((rows, 4), "float32"), B: T.Buffer((rows, 4), "float32")):
        for i, j in T.grid(rows, 4):
            B[i, j] = A[i, j]

    run = tvm.compile(main, target=host_target())
    wide, out = np.ones((rows, 6), "float32"), np.zeros((rows, 4), "float32")
    if fits:
        run(wide[:, :4], out)
        assert out.all()
    else:
        with pytest.raises(
            ValueError, match=r"expected A.strides\[0\] of a compact tensor to be 4"
        ):
            run(wide[:, :4], out)


def test_a_call_gives_the_scalars_that_sizes_are_made_of():
    n = tir.Var("n", "int32")
    helper = func([buffer((n * 2,)), n], tir.Evaluate(0))
    B, callee = buffer((4,), name="B"), tvm.ir.GlobalVar("helper")

    def module(*scalars):
        main = func([B], tir.Evaluate(tir.Call("void", callee, [B.data, *scalars])))
        return tvm.IRModule({callee: helper, "main": main.with_attr("global_symbol", "main")})

    tt.MakePackedAPI()(module(2))
    with pytest.raises(TypeError, match="expected a call of helper to give n"):
        tt.MakePackedAPI()(module())
