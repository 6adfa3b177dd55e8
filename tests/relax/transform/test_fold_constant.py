# SPDX-License-Identifier: Apache-2.0
"""FoldConstant: what constants alone determine is computed when a program is compiled."""

import numpy as np
import pytest
import tvm
from tvm import ir, relax
from tvm.relax import transform
from tvm.script import relax as R
from tvm.script import tir as T

RNG = np.random.default_rng(0)


def program(body, *params, lowered=True):
    bb = relax.BlockBuilder()
    with bb.function("main", list(params)):
        with bb.dataflow():
            result = bb.emit_output(body(bb, *params))
        bb.emit_func_output(result)
    return transform.LegalizeOps()(bb.get()) if lowered else bb.get()


def var(name, *shape):
    return relax.Var(name, R.Tensor(shape, "float32"))


def calls(mod):
    return [b.value for block in mod["main"].body.blocks for b in block.bindings]


@pytest.mark.parametrize("lowered", [True, False])
def test_fold_constant(lowered):
    w = RNG.random((4, 8), "float32")

    def body(bb, x):
        return relax.op.matmul(x, bb.emit(relax.op.permute_dims(relax.const(w))))

    def expected(bb, x):
        return relax.op.matmul(x, relax.const(np.ascontiguousarray(w.T)))

    after = transform.FoldConstant()(program(body, var("x", 3, 8), lowered=lowered))
    want = program(expected, var("x", 3, 8), lowered=lowered)
    ir.assert_structural_equal(transform.DeadCodeElimination()(after), want)
    assert relax.analysis.well_formed(after)


@pytest.mark.parametrize("lowered", [True, False])
def test_fold_constant_chain_becomes_the_result(lowered):
    a, b = RNG.random((8,), "float32"), RNG.random((4, 8), "float32")

    def body(bb, x):
        total = relax.op.exp(relax.op.add(relax.const(a), relax.const(b)))
        return relax.op.nn.softmax(relax.op.reshape(total, (8, 4)))

    after = transform.FoldConstant()(program(body, var("x", 1), lowered=lowered))
    result = after["main"].body.body
    assert isinstance(result, relax.Constant) and not calls(after)
    e = np.exp(a + b).reshape(8, 4)
    want = np.exp(e - e.max(-1, keepdims=True))
    np.testing.assert_allclose(result.data.numpy(), want / want.sum(-1, keepdims=True), rtol=1e-5)


def test_fold_constant_is_what_running_gives():
    """Bit for bit."""
    a = RNG.standard_normal((33, 70)).astype("float32")
    mod = program(lambda bb, x: relax.op.tanh(relax.op.sum(relax.const(a), 1)), var("x", 1))
    folded = transform.FoldConstant()(mod)["main"].body.body.data.numpy()
    total, out = (tvm.runtime.empty((33,), "float32") for _ in range(2))
    for name, source, target in (("sum", tvm.runtime.tensor(a), total), ("tir_tanh", total, out)):
        tvm.compile(mod[name].with_attr("global_symbol", "main"), "llvm")(source, target)
    np.testing.assert_array_equal(folded, out.numpy())


def test_fold_constant_leaves_what_inputs_determine():
    mod = program(lambda bb, x: relax.op.add(relax.op.exp(x), relax.const(1.0)), var("x", 4))
    assert transform.FoldConstant()(mod).same_as(mod)


def test_fold_constant_can_leave_operators():
    def body(bb, x):
        return relax.op.add(x, relax.op.exp(relax.const(np.ones(4, "float32"))))

    mod = program(body, var("x", 4), lowered=False)
    with tvm.transform.PassContext(config={"relax.transform.apply_legalize_ops": False}):
        assert transform.FoldConstant()(mod).same_as(mod)
    assert len(calls(transform.FoldConstant()(mod))) == 1


def test_fold_constant_leaves_what_is_too_large():
    def bomb(bb, x):
        return relax.op.add(x, relax.op.full((1 << 20, 1 << 20), relax.const(1.0), "float32"))

    mod = program(bomb, var("x", 1, 1))
    assert transform.FoldConstant()(mod).same_as(mod)

    def doubling(bb, x):
        c = relax.const(np.ones(1 << 10, "float32"))
        for _ in range(40):
            c = bb.emit(relax.op.concat([c, c]))
        return relax.op.sum(c)

    with tvm.transform.PassContext(config={"relax.FoldConstant.max_bytes": 1 << 20}):
        after = transform.FoldConstant()(program(doubling, var("x", 1)))
    assert 25 < len(calls(after)) < 41
    sizes = []
    relax.analysis.post_order_visit(
        after["main"],
        lambda e: sizes.append(e.data.numpy().nbytes) if isinstance(e, relax.Constant) else None,
    )
    assert max(sizes) <= 1 << 20


def test_fold_constant_leaves_what_takes_too_long():
    def body(bb, x):
        c = relax.const(np.ones((256, 256), "float32"))
        return relax.op.add(x, relax.op.matmul(c, c))

    mod = program(body, var("x", 256, 256))
    with tvm.transform.PassContext(config={"relax.FoldConstant.max_seconds": 1e-3}):
        assert transform.FoldConstant()(mod).same_as(mod)
    assert len(calls(transform.FoldConstant()(mod))) == 1


def test_fold_constant_tells_of_errors_that_are_not_the_programs(caplog):
    """What fails is left to whoever runs the program; the reason is not lost."""

    @tvm.script.ir_module
    class Module:
        @T.prim_func(private=True)
        def fails(A: T.Buffer((2,), "float32"), B: T.Buffer((2,), "float32")):
            assert A[0] < T.float32(0), "ValueError: expected a negative number"
            B[0] = A[0]
            B[1] = A[1]

        @R.function
        def main(x: R.Tensor((2,), "float32")):
            cls = Module
            with R.dataflow():
                c = R.call_tir(cls.fails, (R.const([1.0, 2.0]),), R.Tensor((2,), "float32"))
                y = R.add(x, c)
                R.output(y)
            return y

    with caplog.at_level("WARNING", "tvm.relax"):
        after = transform.FoldConstant()(Module)
    assert len(calls(after)) == 2
    assert "FoldConstant: a call of fails stays" in caplog.text
    assert "ValueError: expected a negative number" in caplog.text


def test_fold_constant_leaves_what_fails(caplog):
    """The error belongs to whoever runs the program."""

    def body(bb, x):
        table = relax.const(np.ones((4,), "float32"))
        taken = relax.op.take(table, relax.const(np.array([9], "int64")), 0)
        return relax.op.add(x, taken)

    after = transform.FoldConstant()(program(body, var("x", 1)))
    assert len(calls(after)) == 2 and not caplog.text


def test_fold_constant_in_branches_and_of_several_functions():
    c = np.float32([1, 2])
    bb = relax.BlockBuilder()
    for name in ("f", "g"):
        x = var("x", 2)
        with bb.function(name, [x]):
            bb.emit_func_output(bb.emit(relax.op.add(x, bb.emit(relax.op.exp(relax.const(c))))))
    after = transform.FoldConstant()(transform.LegalizeOps()(bb.get()))
    for name in ("f", "g"):
        (binding,) = after[name].body.blocks[0].bindings
        np.testing.assert_allclose(binding.value.args[1][1].data.numpy(), np.exp(c), rtol=1e-6)


@pytest.mark.parametrize("lowered", [True, False])
def test_fold_constant_reshapes_without_a_copy(lowered):
    weight = relax.const(RNG.random((4, 8), "float32"))

    def body(bb, x):
        return relax.op.matmul(x, relax.op.reshape(weight, (8, 4)))

    after = transform.FoldConstant()(program(body, var("x", 3, 8), lowered=lowered))
    (call,) = calls(after)
    folded = (call.args[1] if lowered else call.args)[1].data
    np.testing.assert_array_equal(folded.numpy(), weight.data.numpy().reshape(8, 4))
    addresses = {np.from_dlpack(t).__array_interface__["data"][0] for t in (folded, weight.data)}
    assert len(addresses) == 1


def test_fold_constant_compiles_kernels_that_differ_in_extents_once():
    shapes = [(4, 4, 3), (8, 4, 3), (4, 6, 3), (5, 7, 3), (1, 7, 3), (300, 400, 3)]
    weights = [RNG.random(shape, "float32") for shape in shapes]
    compiled = []

    def body(bb, x):
        folded = []
        for w in weights:
            scale = relax.const(w[:, :1, :1])
            folded.append(relax.op.maximum(relax.const(w), scale))
        return relax.Tuple([bb.emit(e) for e in folded])

    @tvm.instrument.pass_instrument
    class Kernels:
        def run_before_pass(self, mod, info):
            if info.name == "tir.DefaultSchedule":
                compiled.append(len(mod.functions))

    mod = program(body, var("x", 1), lowered=False)
    with tvm.transform.PassContext(instruments=[Kernels()]):
        after = transform.FoldConstant()(mod)
    (result,) = [e for e in calls(after) if isinstance(e, relax.Tuple)]
    for w, field in zip(weights, result.fields, strict=True):
        np.testing.assert_array_equal(field.data.numpy(), np.maximum(w, w[:, :1, :1]))
    # One for any two extents, one for equal ones, one for a single row.
    assert compiled == [3]


# ---- kernels that need no compiler -----------------------------------------------------------------
def _folded(call, *arrays):
    """What a call of constants becomes, and the passes over kernels that ran for it."""
    lowered = []

    @ir.instrument.pass_instrument
    class Lowering:
        def run_before_pass(self, _mod, info):
            lowered.extend([info.name] if str(info.name).startswith("tir.") else [])

    mod = program(lambda bb, x: call(*map(relax.const, arrays)), var("x", 1), lowered=False)
    with tvm.transform.PassContext(instruments=[Lowering()]):
        result = transform.FoldConstant()(mod)["main"].body.body
    return result.data.numpy(), lowered


def _image(dtype="float32", shape=(5, 33, 18)):
    return (RNG.standard_normal(shape) * 50).astype(dtype)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "int64", "bool"])
def test_fold_constant_moves_without_a_compiler(dtype):
    a = _image(dtype)
    for call, want in (
        (lambda x: relax.op.permute_dims(x, [2, 0, 1]), a.transpose(2, 0, 1)),
        (lambda x: relax.op.permute_dims(x, [0, 2, 1]), a.transpose(0, 2, 1)),
        (lambda x: relax.op.broadcast_to(x, (2, 5, 33, 18)), np.broadcast_to(a, (2, *a.shape))),
    ):
        result, lowered = _folded(call, a)
        np.testing.assert_array_equal(result, want, strict=True)
        assert not lowered


def test_fold_constant_moves_slices_and_margins_without_a_compiler():
    a = _image()
    sliced, lowered = _folded(lambda x: relax.op.strided_slice(x, [1, 2], [3, 0], [30, 17]), a)
    np.testing.assert_array_equal(sliced, a[:, 3:30, :17])
    padded, more = _folded(lambda x: relax.op.nn.pad(x, [0, 0, 2, 1, 0, 3]), a)
    np.testing.assert_array_equal(padded, np.pad(a, [(0, 0), (2, 1), (0, 3)]))
    assert not lowered and not more


def test_fold_constant_of_large_weights_shares_the_work():
    a = _image(shape=(3, 1024, 700))
    result, lowered = _folded(lambda x: relax.op.permute_dims(x, [0, 2, 1]), a)
    np.testing.assert_array_equal(result, a.transpose(0, 2, 1))
    assert not lowered


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_fold_constant_of_one_operation_needs_no_compiler(name):
    a, b, row = _image(), _image(), _image(shape=(18,))
    b[0, 0, :3] = 0, np.inf, np.nan
    for x, y in ((a, b), (a, row), (row, a), (a[:, :1], b)):
        with np.errstate(all="ignore"):
            want = getattr(np, name)(x, y)
        result, lowered = _folded(getattr(relax.op, name), np.ascontiguousarray(x), y)
        np.testing.assert_array_equal(result, want, strict=True)
        assert not lowered
    result, lowered = _folded(lambda x: getattr(relax.op, name)(x, relax.const(0.3, "float32")), a)
    np.testing.assert_array_equal(result, getattr(np, name)(a, np.float32(0.3)), strict=True)
    assert not lowered


def test_fold_constant_of_a_square_root_needs_no_compiler():
    a = np.abs(_image())
    result, lowered = _folded(relax.op.sqrt, a)
    np.testing.assert_array_equal(result, np.sqrt(a), strict=True)
    assert not lowered


def test_fold_constant_compiles_what_is_more_than_one_operation():
    a = _image()
    result, lowered = _folded(relax.op.exp, a[:, :, :3] / 50)
    np.testing.assert_allclose(result, np.exp(a[:, :, :3] / 50), rtol=1e-6)
    assert lowered
