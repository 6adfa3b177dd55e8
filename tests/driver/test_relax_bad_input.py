# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a module, its inputs or the machine is said; the machine works afterwards."""

import inspect
import time

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax.op import add, exp, matmul
from tvm.script import ir as I
from tvm.script import relax as R

X = np.arange(12, dtype="float32").reshape(3, 4)


def var(name, *shape, dtype="float32"):
    return relax.Var(name, R.Tensor(shape, dtype))


def module(body, *params, **options):
    """main(params): what `body(bb, *params)` gives."""
    bb = relax.BlockBuilder()
    with bb.function("main", list(params), **options):
        bb.emit_func_output(bb.emit(body(bb, *params)))
    return bb.get()


def machine(mod, **options):
    return relax.VirtualMachine(relax.build(mod, "llvm", **options), tvm.cpu())


def test_the_signature_of_compile():
    parameters = inspect.signature(tvm.compile).parameters
    assert list(parameters)[:4] == ["mod", "target", "relax_pipeline", "tir_pipeline"]
    defaults = [parameters[name].default for name in ("target", "relax_pipeline", "tir_pipeline")]
    assert defaults == [None, "default", "default"]
    assert all(p.kind is p.KEYWORD_ONLY for p in list(parameters.values())[2:])


# ---- modules -------------------------------------------------------------------------------------
def test_ill_formed_module():
    x, y = var("x", 4), var("y", 4)
    body = relax.SeqExpr([], relax.Tuple([x, y]))  # nobody defines y
    func = relax.Function([x], body, relax.TupleStructInfo([x.struct_info] * 2))
    mod = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    with pytest.raises(ValueError, match="expected a variable that is defined before, got y"):
        tvm.compile(mod, "llvm")


def test_undefined_function():
    call = relax.Call(relax.GlobalVar("nowhere"), [var("x", 4)])
    func = relax.Function([call.args[0]], relax.SeqExpr([], call), relax.ObjectStructInfo())
    mod = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    with pytest.raises((ValueError, tvm.TVMError), match="nowhere"):
        tvm.compile(mod, "llvm")


def test_functions_that_only_call_each_other():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            y: R.Tensor((4,), "float32") = Mod.other(x)
            return y

        @R.function
        def other(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            y: R.Tensor((4,), "float32") = Mod.main(x)
            return y

    vm = machine(Mod)
    for _ in range(2):
        with pytest.raises(RecursionError, match="functions call each other too deeply"):
            vm["main"](X[0])


def test_unknown_packed_function():
    def body(bb, x):
        return relax.Call(relax.ExternFunc("no.such"), [x], sinfo_args=[x.struct_info])

    with pytest.raises(ValueError, match="no.such"):
        machine(module(body, var("x", 4), pure=False))


def test_unknown_operator():
    with pytest.raises((AttributeError, ValueError, tvm.TVMError), match="relax.no_such"):
        relax.Call(tvm.ir.Op.get("relax.no_such"), [])


def test_operator_that_cannot_be_lowered():
    x = relax.Var("x", R.Tensor(dtype="float32"))  # nothing is known of its shape
    with pytest.raises(ValueError, match=r"(?s)expected operators to be lowered.*R\.add\(x, x\)"):
        tvm.compile(module(lambda bb, x: add(x, x), x), "llvm")


# ---- size ----------------------------------------------------------------------------------------
def test_folding_bomb():
    """What a few constants determine but nobody could keep is computed when it runs, if ever."""

    def body(bb, x):
        large = bb.emit(relax.op.broadcast_to(relax.const(1.0), (1 << 20, 1 << 14)))
        return add(x, bb.emit(relax.op.sum(exp(large))))

    begin = time.process_time()
    executable = tvm.compile(module(body, var("x", 1)), "llvm")
    assert time.process_time() - begin < 30
    assert "main" in executable.as_text()


def test_chain_of_10_000_operators():
    def body(bb, x):
        for i in range(9999):
            x = bb.emit(add(x, relax.const(1.0)) if i % 2 else relax.op.negative(x))
        return relax.op.negative(x)

    config = {"relax.FuseOps.max_depth": 1}
    with tvm.transform.PassContext(config=config):
        vm = machine(module(body, var("x", 4)))
    want = X[0]
    for i in range(9999):
        want = want + 1 if i % 2 else -want
    np.testing.assert_array_equal(vm["main"](X[0]).numpy(), -want)


# ---- inputs --------------------------------------------------------------------------------------
@pytest.fixture
def product():
    n = tvm.tir.Var("n", "int64")
    vm = machine(module(lambda bb, x, w: matmul(x, w), var("x", n, 4), var("w", 4, n)))
    yield vm
    np.testing.assert_allclose(vm["main"](X, X.T.copy()).numpy(), X @ X.T)  # whatever came before


def test_missing_and_extra_inputs(product):
    for args in ((X,), (X, X, X)):
        with pytest.raises(
            TypeError, match=rf"main: expected 2 arguments \(x, w\), got {len(args)}"
        ):
            product["main"](*args)


def test_misnamed_inputs(product):
    with pytest.raises((TypeError, ValueError), match="weight"):
        product.set_input("main", x=X, weight=X.T.copy())
    with pytest.raises(ValueError, match="expected one parameter .*, got 'weight', which is none"):
        relax.build(module(lambda bb, x: exp(x), var("x", 4)), "llvm", params={"weight": X})


@pytest.mark.parametrize(
    "args, message",
    [
        ((X, X), r"argument 'w' of .*shape\[0\]: expected 4, got 3"),
        ((X, np.ones((4, 5), "float32")), r"'w' .*shape\[1\].* 3, which is n .* 'x'\), got 5"),
        ((X[0], X), "argument 'x' of .* with ndim 2 but get ndim 1"),
        ((X.astype("int32"), X), "argument 'x' .* dtype float32 .*int32"),
        ((None, X), "argument 'x'"),
    ],
)
def test_wrong_inputs(product, args, message):
    with pytest.raises((RuntimeError, ValueError, TypeError), match=message):
        product["main"](*args)


def test_wrong_device(product):
    vm = relax.VirtualMachine(relax.build(Double, "llvm"), tvm.cuda(99))
    with pytest.raises(RuntimeError, match="cuda: expected a device below .*, got 99"):
        vm["main"](X[0])


@I.ir_module
class Double:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        y = R.add(x, x)
        return y


# ---- in the middle of a call ---------------------------------------------------------------------
@pytest.mark.parametrize("exec_mode", ["bytecode", "compiled"])
def test_out_of_memory(exec_mode):
    """A temporary of the call does not fit; what was allocated before it is given back."""
    m, n = tvm.tir.Var("m", "int64"), tvm.tir.Var("n", "int64")

    def body(bb, x, rows):
        small = bb.emit(exp(x))
        large = bb.emit(relax.op.broadcast_to(small, (m, n)))
        return relax.op.sum(relax.op.nn.softmax(large, 0), 0)

    rows = relax.Var("rows", relax.ShapeStructInfo([m]))
    vm = machine(module(body, var("x", n), rows), exec_mode=exec_mode)
    stats = tvm.get_global_func("runtime.AllocatorStats")
    before = stats(tvm.cpu(), 2)["used"]
    with pytest.raises(MemoryError, match=r"(?s)cannot allocate .* bytes.*main"):
        vm["main"](X[0], tvm.runtime.ShapeTuple([1 << 40]))
    assert stats(tvm.cpu(), 2)["used"] == before
    got = vm["main"](X[0], tvm.runtime.ShapeTuple([3])).numpy()
    np.testing.assert_allclose(got, np.ones(4), rtol=1e-6)


def test_exception_in_a_call_back():
    calls = []

    @tvm.register_global_func("test.bad_input.fail", override=True)
    def fail(x):
        calls.append(x)
        if len(calls) == 1:
            raise ZeroDivisionError("not now")
        return x

    def body(bb, x):
        y = bb.emit(exp(x))
        called = relax.Call(
            relax.ExternFunc("test.bad_input.fail"), [y], sinfo_args=[x.struct_info]
        )
        return add(bb.emit(called), y)

    vm = machine(module(body, var("x", 4), pure=False))
    with pytest.raises(ZeroDivisionError, match=r"(?s)not now.*main"):
        vm["main"](X[0])
    np.testing.assert_allclose(vm["main"](X[0]).numpy(), 2 * np.exp(X[0]), rtol=1e-6)
