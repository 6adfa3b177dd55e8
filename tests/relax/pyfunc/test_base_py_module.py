# SPDX-License-Identifier: Apache-2.0
"""Modules with Python functions: called, printed, parsed, and graphs as Python functions."""

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import BasePyModule
from tvm.relax.frontend import nn
from tvm.relax.relax_to_pyfunc_converter import RelaxToPyFuncConverter
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

torch = pytest.importorskip("torch")


@I.ir_module
class Mixed(BasePyModule):
    @T.prim_func
    def double(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n):
            with T.block("double"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] * 2.0

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        y = R.add(x, R.const(1.0, "float32"))
        z = R.call_py_func("halve", (y,), out_sinfo=R.Tensor((n,), "float32"))
        return z

    @I.pyfunc
    def halve(x):
        return x / 2

    @I.pyfunc
    def all_of_it(self, x: torch.Tensor) -> torch.Tensor:
        n = x.shape[0]
        y = self.call_tir(self.double, [x], out_sinfo=R.Tensor((n,), "float32"))
        y = self.call_dps_packed("test.pyfunc.add", [y, 3.0], R.Tensor((n,), "float32"))
        return self.halve(self.main(y))


@tvm.register_global_func("test.pyfunc.add", override=True)
def _add(x, k, out):
    out.copyfrom(x.numpy() + k)


@pytest.fixture(scope="module")
def mixed():
    return Mixed(tvm.cpu())


X = torch.tensor([1.0, 2.0, 5.0])


def test_functions_of_all_kinds(mixed):
    assert mixed.list_functions() == {
        "tir": ["double"], "relax": ["main"], "python": ["halve", "all_of_it"]
    }  # fmt: skip
    torch.testing.assert_close(mixed.main(X), (X + 1) / 2)
    torch.testing.assert_close(mixed.halve(X), X / 2)
    torch.testing.assert_close(mixed.all_of_it(X), (2 * X + 3 + 1) / 2 / 2)
    torch.testing.assert_close(mixed.call_py_func("halve", [X]), X / 2)
    out = torch.empty(3)
    mixed.double(X, out)
    torch.testing.assert_close(out, 2 * X)


def test_symbolic_outputs(mixed):
    n = tvm.tir.Var("n", "int64")
    info = relax.TensorStructInfo((n,), "float32")
    torch.testing.assert_close(mixed.call_tir("double", X, info), 2 * X)
    unknown = relax.TensorStructInfo((tvm.tir.Var("m", "int64"),), "float32")
    with pytest.raises(ValueError, match="Cannot infer concrete output shape"):
        mixed.call_tir("double", X, unknown)


def test_errors(mixed):
    with pytest.raises(ValueError, match="Python function 'other' not found"):
        mixed.call_py_func("other", [X])
    with pytest.raises(ValueError, match="expected a PrimFunc of the module, got 'other'"):
        mixed.call_tir("other", [X], R.Tensor((3,), "float32"))
    with pytest.raises(ValueError, match="function 'test.no.such' not found"):
        mixed.call_dps_packed("test.no.such", [X], R.Tensor((3,), "float32"))
    with pytest.raises(TypeError, match="expected a function, got int"):
        mixed.add_python_function("number", 3)
    with pytest.raises(TypeError, match="expected an IRModule, got int"):
        BasePyModule(1, tvm.cpu())


def test_callbacks_that_fail(mixed):
    other = Mixed(tvm.cpu())

    def fail(x):
        raise KeyError("from inside")

    other.add_python_function("halve", fail)
    with pytest.raises(KeyError, match="from inside"):
        other.main(X)
    other.add_python_function("halve", lambda x: "text")
    with pytest.raises(TypeError, match="expected 'halve' to return tensors, got str"):
        other.main(X)
    torch.testing.assert_close(mixed.main(X), (X + 1) / 2)  # its function of that name
    other.add_python_function("halve", lambda x: x)
    torch.testing.assert_close(other.main(X), X + 1)


def test_printing_and_parsing(mixed):
    text = mixed.script()
    assert "@I.pyfunc\n    def halve(x):\n        return x / 2" in text
    assert 'R.call_py_func(R.str("halve"), (y,), out_sinfo=R.Tensor((n,), dtype="float32"))' in text
    parsed = tvm.script.from_source(text, extra_vars={"torch": torch})
    assert list(parsed.pyfuncs) == ["halve", "all_of_it"]
    tvm.ir.assert_structural_equal(parsed, Mixed.ir_module)
    again = BasePyModule(parsed, tvm.cpu())
    torch.testing.assert_close(again.all_of_it(X), mixed.all_of_it(X))
    assert (
        again.script() == BasePyModule(tvm.script.from_source(again.script()), tvm.cpu()).script()
    )


def test_graphs_as_python_functions():
    class Model(nn.Module):
        def __init__(self):
            self.up, self.down = nn.Linear(6, 8), nn.Linear(8, 3)
            self.norm = nn.LayerNorm(8)

        def forward(self, x):
            x = self.norm(nn.op.gelu(self.up(x)))
            first, second = nn.op.split(x, 2, axis=-1)
            x = nn.op.concat([nn.op.silu(first), nn.op.cumsum(second, 1)], -1)
            return nn.op.softmax(self.down(x)), nn.op.topk(x, 2)[1]

    mod, params = Model().export_tvm({"forward": {"x": nn.spec.Tensor(("n", 6), "float32")}})
    forward = RelaxToPyFuncConverter(mod).convert("forward").pyfuncs["forward"]
    theirs = torch.nn.ModuleDict({
        "up": torch.nn.Linear(6, 8), "down": torch.nn.Linear(8, 3), "norm": torch.nn.LayerNorm(8),
    })  # fmt: skip
    state = theirs.state_dict()
    weights = [state[name] for name, _ in params]
    x = torch.randn(4, 6)
    found, indices = forward(x, *weights)
    with torch.no_grad():
        y = theirs["norm"](torch.nn.functional.gelu(theirs["up"](x)))
        first, second = y.chunk(2, -1)
        y = torch.cat([torch.nn.functional.silu(first), second.cumsum(1)], -1)
        torch.testing.assert_close(found, theirs["down"](y).softmax(-1))
        torch.testing.assert_close(indices, y.topk(2).indices.to(torch.int32))
    with pytest.raises(ValueError, match="Expected 7 arguments, got 1"):
        forward(x)
    with pytest.raises(RuntimeError):  # as PyTorch says it
        RelaxToPyFuncConverter(mod).convert(["forward"]).pyfuncs["forward"](x.int(), *weights)
    with pytest.raises(ValueError, match="expected a Relax function of the module, got 'other'"):
        RelaxToPyFuncConverter(mod).convert("other")


def test_a_transformer_with_weights_of_pytorch():
    from ..nn.twins import Bert, TorchBert

    torch.manual_seed(0)
    tokens = nn.spec.Tensor(("b", "s"), "int64")
    mod, params = Bert().export_tvm({"forward": {"ids": tokens, "types": tokens}})
    theirs = TorchBert().eval()
    state = theirs.state_dict()
    forward = RelaxToPyFuncConverter(mod).convert("forward").pyfuncs["forward"]
    for shape in ((1, 7), (3, 12)):
        ids, types = torch.randint(0, 500, shape), torch.randint(0, 2, shape)
        with torch.no_grad():
            found = forward(ids, types, *(state[name] for name, _ in params))
            for a, b in zip(found, theirs(ids, types), strict=True):
                assert (a - b).abs().max() <= 1e-4 * b.abs().max()


def test_kernels_in_converted_graphs():
    converted = RelaxToPyFuncConverter(Mixed.ir_module).convert("main")
    torch.testing.assert_close(converted.pyfuncs["main"](X), (X + 1) / 2)
    assert "main" not in converted and "double" in converted

    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit_te(tvm.topi.exp, x))
    run = RelaxToPyFuncConverter(bb.get()).convert("main").pyfuncs["main"]
    np.testing.assert_allclose(run(X), np.exp(X.numpy()), rtol=1e-6)
