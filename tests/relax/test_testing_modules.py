# SPDX-License-Identifier: Apache-2.0
"""Modules for tests, instruments, and helpers of backends."""

import numpy as np
import pytest
import torch
import tvm
from tvm import relax
from tvm.relax import testing
from tvm.relax.backend.patterns import make_stacked_attention_pattern
from tvm.relax.backend.utils import BackendDispatcher
from tvm.relax.ir.instrument import WellFormedInstrument
from tvm.relax.testing import lib_comparator, vm
from tvm.relax.transform.legalize_ops.common import register_legalize
from tvm.script import relax as R


def run(mod, *arrays):
    machine = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    return vm.check_saved_func(machine, "main", *map(tvm.runtime.tensor, arrays)).numpy()


def test_products():
    rng = np.random.default_rng(0)
    x, y, bias = (rng.standard_normal(s).astype("float32") for s in ((4, 8), (8, 8), (8,)))
    mod = testing.get_relax_matmul_module(
        x.shape, y.shape, "float32", None, True, bias.shape, R.nn.relu, R.multiply, R.exp
    )
    want = np.exp(np.maximum(x @ y.T + bias, 0) * x)
    np.testing.assert_allclose(run(mod, x, y, bias), want, rtol=1e-4)
    plain = testing.get_relax_matmul_module((2, 3), (3, 4), "float16", out_dtype="float32")
    assert plain["main"].ret_struct_info == relax.TensorStructInfo((2, 4), "float32")


def attention(q, k, v, bias=None):
    q, k, v = (torch.from_numpy(x).transpose(1, 2) for x in (q, k, v))
    bias = None if bias is None else torch.from_numpy(bias)
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, bias)
    return out.transpose(1, 2).numpy()


def test_attention():
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, s, 4, 8)).astype("float32") for s in (5, 6, 6))
    bias = rng.standard_normal((2, 4, 5, 6)).astype("float32")
    mod = testing.get_relax_attention_module(
        q.shape, k.shape, v.shape, dtype="float32", bias_shape=bias.shape
    )
    np.testing.assert_allclose(run(mod, q, k, v, bias), attention(q, k, v, bias), 1e-4, 1e-5)


@pytest.mark.parametrize("op", ["split", "strided_slice"])
@pytest.mark.parametrize("layout", ["BS3NH", "SBN3H"])
def test_stacked_attention(op, layout):
    b, s, n, h = 2, 5, 4, 8
    by_heads = layout == "BS3NH"
    rng = np.random.default_rng(0)
    shape = (b, s, 3 * n * h) if by_heads else (s, b, 3 * n * h)
    qkv = rng.standard_normal(shape).astype("float32")
    mod = testing.get_relax_stacked_attention_module(qkv, b, s, n, h, h, op, layout=layout)
    pattern, _ = make_stacked_attention_pattern(op, layout=layout)
    values = relax.analysis.get_var2val(mod["main"])
    assert pattern.match(mod["main"].body.body, values)
    if by_heads:
        q, k, v = (part.reshape(b, s, n, h) for part in np.split(qkv, 3, 2))
        want = attention(q, k, v)
    else:
        parts = np.split(qkv.reshape(s, b, n, 3 * h), 3, 3)
        want = attention(*(np.ascontiguousarray(p.transpose(1, 0, 2, 3)) for p in parts))
        want = want.transpose(1, 0, 2, 3).reshape(s, b, n * h)
    np.testing.assert_allclose(run(mod, qkv), want, 1e-4, 1e-5)
    with pytest.raises(NotImplementedError, match="BS3NH or SBN3H"):
        testing.get_relax_stacked_attention_module(qkv, b, s, n, h, h, op, layout="NSH")


def test_passes_that_break_a_program():
    @tvm.transform.module_pass(opt_level=0, name="Break")
    def broken(mod, ctx):
        main = mod["main"]
        body = relax.SeqExpr([], relax.Var("nobody", relax.TensorStructInfo((2, 4), "float32")))
        return tvm.IRModule({"main": relax.Function(main.params, body, main.ret_struct_info)})

    mod = testing.get_relax_matmul_module((2, 3), (3, 4), "float32")
    with tvm.transform.PassContext(instruments=[WellFormedInstrument()]):
        relax.transform.LegalizeOps()(mod)
        with pytest.raises(RuntimeError, match="After Break: expected a well-formed program"):
            broken(mod)


def test_calls_compared_with_a_reference(capsys):
    mod = testing.get_relax_matmul_module((2, 3), (3, 4), "float32", activation=R.nn.relu)
    executable = tvm.compile(mod, "llvm")
    machine = relax.VirtualMachine(executable, tvm.cpu())
    compare = lib_comparator.LibCompareVMInstrument(executable.mod, tvm.cpu())
    machine.set_instrument(compare)
    arrays = np.ones((2, 3), "float32"), np.ones((3, 4), "float32")
    machine["main"](*map(tvm.runtime.tensor, arrays))
    assert compare.counter >= 1 and "agrees" in capsys.readouterr().out
    with pytest.raises(AssertionError, match="wrong"):
        one, two = (tvm.runtime.tensor(np.full(2, v, "float32")) for v in (1, 2))
        compare.compare("wrong", [one], [two], [0])


def test_lowering_of_ones_own():
    relax.op.define("test.doubled", "x: Tensor", lambda call, _: call.args[0].struct_info)

    @register_legalize("test.doubled")
    def legalize(bb, call):
        return relax.op.add(call.args[0], call.args[0])

    x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(relax.op.test.doubled(x)))
    np.testing.assert_array_equal(run(bb.get(), np.ones(3, "float32")), np.full(3, 2, "float32"))


def test_dispatcher():
    assert BackendDispatcher.is_gpu_target(tvm.target.Target("cuda"))
    assert not BackendDispatcher.is_gpu_target(tvm.target.Target("llvm"))
    x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    shape, dtype = BackendDispatcher.get_shape_dtype(x)
    assert [int(d) for d in shape] == [3] and dtype == "float32"
    with pytest.raises(ValueError, match="whose shape is known"):
        BackendDispatcher.get_shape_dtype(relax.Var("y", relax.ObjectStructInfo()))
