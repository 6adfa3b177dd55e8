# SPDX-License-Identifier: Apache-2.0
"""Gradients of functions: the program that is made, checkpoints, errors."""

import numpy as np
import pytest
import torch
import tvm
from tvm import ir, relax, te
from tvm.relax import op, transform
from tvm.relax.testing.evaluate import Evaluator
from tvm.script import ir as I
from tvm.script import relax as R


def test_the_smallest_program():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((3, 3), "float32"), y: R.Tensor((3, 3), "float32")):
            with R.dataflow():
                lv = R.multiply(x, y)
                gv = R.sum(lv)
                R.output(gv)
            return gv

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((3, 3), "float32"), y: R.Tensor((3, 3), "float32")):
            with R.dataflow():
                lv = R.multiply(x, y)
                gv = R.sum(lv)
                R.output(gv)
            return gv

        @R.function
        def main_adjoint(x: R.Tensor((3, 3), "float32"), y: R.Tensor((3, 3), "float32")):
            with R.dataflow():
                lv = R.multiply(x, y)
                gv = R.sum(lv)
                gv_adjoint = R.ones(R.shape([]), dtype="float32")
                lv_adjoint = R.broadcast_to(gv_adjoint, R.shape([3, 3]))
                x_adjoint = R.multiply(lv_adjoint, y)
                y_adjoint = R.multiply(lv_adjoint, x)
                x_adjoint_out = x_adjoint
                y_adjoint_out = y_adjoint
                R.output(gv, x_adjoint_out, y_adjoint_out)
            return (gv, (x_adjoint_out, y_adjoint_out))

    after = transform.Gradient("main")(Before)
    ir.assert_structural_equal(after, Expected)
    assert relax.analysis.well_formed(after)
    only = transform.Gradient("main", require_grads=Before["main"].params[1])(Before)
    assert len(only["main_adjoint"].ret_struct_info.fields[1].fields) == 1


def _module(make, shapes):
    """A module whose main gives `make(builder, *params)`."""
    bb = relax.BlockBuilder()
    params = [
        relax.Var(f"x{i}", relax.TensorStructInfo(shape, "float64"))
        for i, shape in enumerate(shapes)
    ]
    with bb.function("main", params):
        with bb.dataflow():
            result = bb.emit_output(make(bb, *params))
        bb.emit_func_output(result)
    return bb.finalize()


def _check(make, torch_make, shapes):
    """The gradients are those of PyTorch."""
    rng = np.random.default_rng(0)
    data = [rng.uniform(-1, 1, shape) for shape in shapes]
    tensors = [torch.tensor(d, requires_grad=True) for d in data]
    torch_make(*tensors).backward()
    mod = transform.Gradient("main")(_module(make, shapes))
    assert relax.analysis.well_formed(mod)
    _, gradients = Evaluator(transform.LegalizeOps()(mod)).run("main_adjoint", data)
    for found, tensor in zip(gradients, tensors, strict=True):
        np.testing.assert_allclose(found, tensor.grad.numpy(), rtol=1e-9, atol=1e-12)
    return mod


def test_values_used_twice_and_tuples():
    def make(bb, x, y):
        a = bb.emit(op.tanh(x))
        t = bb.emit(relax.Tuple([a, relax.Tuple([y, a])]))
        u = bb.emit(t[1])
        b = bb.emit(op.add(bb.emit(t[0]), bb.emit(u[0])))
        c = bb.emit(op.multiply(b, bb.emit(u[1])))
        parts = bb.emit(op.split(c, 2, axis=0))
        joined = op.concat([bb.emit(parts[0]), x], axis=0)
        return op.sum(op.multiply(joined, joined))

    def expected(x, y):
        a = torch.tanh(x)
        c = (a + y) * a
        joined = torch.cat([torch.split(c, 2)[0], x])
        return (joined * joined).sum()

    _check(make, expected, [(4, 3), (4, 3)])


def test_a_perceptron():
    def make(bb, x, w, b, v):
        h = op.nn.relu(op.add(op.matmul(x, w), b))
        return op.mean(op.nn.log_softmax(op.matmul(h, v)))

    def expected(x, w, b, v):
        return torch.log_softmax(torch.relu(x @ w + b) @ v, -1).mean()

    _check(make, expected, [(5, 4), (4, 6), (6,), (6, 3)])


def test_what_is_not_used_has_a_zero_gradient():
    def make(bb, x, y):
        return op.sum(op.multiply(x, op.grad.no_grad(x)))

    mod = transform.Gradient("main")(_module(make, [(2,), (3,)]))
    data = [np.array([1.0, 2.0]), np.zeros(3)]
    _, (of_x, of_y) = Evaluator(mod).run("main_adjoint", data)
    np.testing.assert_array_equal(of_x, data[0])
    np.testing.assert_array_equal(of_y, np.zeros(3))


def test_checkpoints_compute_again():
    def make(bb, x):
        start = bb.emit(op.grad.start_checkpoint(x))
        a = bb.emit(op.sin(start), "a")
        b = bb.emit(op.exp(a), "b")
        c = bb.emit(op.multiply(b, a), "c")
        return op.sum(op.grad.end_checkpoint(c))

    def expected(x):
        a = torch.sin(x)
        return (torch.exp(a) * a).sum()

    mod = _check(make, expected, [(3,)])
    names = [b.var.name_hint for b in mod["main_adjoint"].body.blocks[0].bindings]
    assert names.count("a_cp") == 1 and names.count("b_cp") == 1 and "c_cp" not in names
    text = mod["main_adjoint"].script()
    assert "checkpoint" not in text


def test_symbolic_shapes():
    n = tvm.tir.Var("n", "int64")
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo([n, 3], "float32"))
    b = relax.Var("b", relax.TensorStructInfo([3], "float32"))
    with bb.function("main", [x, b]):
        with bb.dataflow():
            out = bb.emit_output(op.mean(op.nn.softmax(op.add(x, b))))
        bb.emit_func_output(out)
    mod = transform.Gradient("main")(bb.finalize())
    assert relax.analysis.well_formed(mod)
    data = [np.ones((4, 3), "float32"), np.arange(3, dtype="float32")]
    _, (of_x, of_b) = Evaluator(transform.LegalizeOps()(mod)).run("main_adjoint", data)
    assert of_x.shape == (4, 3) and of_b.shape == (3,)


def test_call_tir_with_a_registered_gradient():
    @relax.training.utils.register_te_gradient("tests.square_gradient")
    def _gradient(output_grad, x, scale):
        return te.compute(x.shape, lambda *i: output_grad(*i) * x(*i) * scale)

    def square(x):
        return te.compute(x.shape, lambda *i: x(*i) * x(*i), "square")

    def make(bb, x):
        y = bb.emit(
            bb.call_te_with_grad(
                square, x, te_grad_name="tests.square_gradient", te_grad_kwargs={"scale": 2.0}
            )
        )
        return op.sum(op.sin(y))

    _check(make, lambda x: torch.sin(x * x).sum(), [(5,)])


def test_gradients_from_python():
    relax.op.define("test_gradient.double", "x: Tensor", lambda call, _: call.args[0].struct_info)
    relax.op.register_gradient(
        "test_gradient.double", lambda var, call, grad, ctx: [op.add(grad, grad)]
    )
    make = relax.op.test_gradient.double

    def body(bb, x):
        return op.sum(make(x))

    mod = transform.Gradient("main")(_module(body, [(3,)]))
    assert "R.add" in mod["main_adjoint"].script()


def test_errors():
    def run(make, shapes=((3,),), **options):
        return transform.Gradient("main", **options)(_module(make, shapes))

    with pytest.raises(ValueError, match="expected the target to be a scalar"):
        run(lambda bb, x: op.sin(x))
    with pytest.raises(ValueError, match="expected operators with a gradient"):
        run(lambda bb, x: op.sum(bb.emit(op.nn.dropout(x))[0]))
    with pytest.raises(ValueError, match=r"expected target_index in \[0, 1\), got 1"):
        run(lambda bb, x: op.sum(x), target_index=1)
    with pytest.raises(ValueError, match="expected require_grads to be parameters"):
        run(lambda bb, x: op.sum(x), require_grads=relax.Var("z", R.Tensor((3,), "float64")))
    with pytest.raises(ValueError, match="got 'nobody'"):
        transform.Gradient("nobody")(_module(lambda bb, x: op.sum(x), [(3,)]))

    @I.ir_module
    class Integers:
        @R.function
        def main(x: R.Tensor((3,), "float32"), i: R.Tensor((3,), "int32")):
            with R.dataflow():
                y = R.sum(x)
                R.output(y)
            return y

        @R.function
        def plain(x: R.Tensor((3,), "float32")):
            y = R.sum(x)
            return y

    with pytest.raises(ValueError, match="floating-point numbers to differentiate by, got 'i'"):
        transform.Gradient("main")(Integers)
    with pytest.raises(ValueError, match="expected 'plain' to be one dataflow block"):
        transform.Gradient("plain")(Integers)
