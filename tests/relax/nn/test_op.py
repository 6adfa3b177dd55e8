# SPDX-License-Identifier: Apache-2.0
"""Every operator of nn computes what PyTorch computes."""

import numpy as np
import pytest
import tvm
from tvm import relax, te, tir
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op
from tvm.script import tir as T

torch = pytest.importorskip("torch")
F = torch.nn.functional
S = nn.spec.Tensor


def _scaled(x):
    return te.compute(x.shape, lambda *i: x(*i) * 3, "scaled")


@T.prim_func(private=True)
def _shift(a: T.handle, b: T.handle, k: T.int64):
    m = T.int64()
    A = T.match_buffer(a, (m, 6), "float32")
    B = T.match_buffer(b, (m, 6), "float32")
    for i, j in T.grid(m, 6):
        with T.block("shift"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.Cast("float32", k)


@T.prim_func(private=True)
def _negate(a: T.handle):
    m = T.int64()
    A = T.match_buffer(a, (m, 6), "float32")
    for i, j in T.grid(m, 6):
        with T.block("negate"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = -A[vi, vj]


X = (4, 6)
IMAGE = (2, 4, 8, 8)
QKV = (2, 5, 3, 8)
# name: (shapes or arrays, of nn, of PyTorch)
CASES = {
    "unsqueeze": ([X], lambda x: op.unsqueeze(x, 1), lambda x: x.unsqueeze(1)),
    "squeeze": ([(4, 1)], lambda x: op.squeeze(x), lambda x: x.squeeze(-1)),
    "concat": ([X, X], lambda x, y: op.concat([x, y], 1), lambda x, y: torch.cat([x, y], 1)),
    "add": ([X, X], lambda x, y: 1 + (x + y), lambda x, y: 1 + x + y),
    "subtract": ([X, X], lambda x, y: 1 - (x - y), lambda x, y: 1 - (x - y)),
    "multiply": ([X, X], lambda x, y: x * y * 2, lambda x, y: x * y * 2),
    "divide": ([X, X], lambda x, y: x / y, lambda x, y: x / y),
    "chunk": ([X], lambda x: op.chunk(x, 3, 1), lambda x: x.chunk(3, 1)),
    "split": ([X], lambda x: op.split(x, [2, 3], 1), lambda x: x.split([2, 1, 3], 1)),
    "sum": ([X], lambda x: op.sum(x, 1, True), lambda x: x.sum(1, True)),
    "max": ([X], lambda x: op.max(x, [0, 1]), lambda x: x.amax((0, 1))),
    "min": ([X], lambda x: op.min(x, -1), lambda x: x.amin(-1)),
    "matmul": ([X, (6, 3)], lambda x, y: op.matmul(x, y), torch.matmul),
    "conv1d": (
        [(2, 4, 9), (6, 2, 3), (6,)],
        lambda x, w, b: op.conv1d(x, w, b, 2, 1, 1, 2),
        lambda x, w, b: F.conv1d(x, w, b, 2, 1, 1, 2),
    ),
    "conv2d": (
        [IMAGE, (6, 4, 3, 2), (6,)],
        lambda x, w, b: op.conv2d(x, w, b, padding="same"),
        lambda x, w, b: F.conv2d(x, w, b, padding="same"),
    ),
    "conv3d": (
        [(1, 2, 5, 5, 5), (3, 2, 3, 3, 3)],
        lambda x, w: op.conv3d(x, w, padding=1, stride=2),
        lambda x, w: F.conv3d(x, w, padding=1, stride=2),
    ),
    "conv1d_transpose": (
        [(2, 4, 9), (4, 3, 3), (3,)],
        lambda x, w, b: op.conv1d_transpose(x, w, b, 2, 1, 1),
        lambda x, w, b: F.conv_transpose1d(x, w, b, 2, 1, 1),
    ),
    "maximum": ([X, X], op.maximum, torch.maximum),
    "minimum": ([X, X], lambda x, y: x.minimum(y), torch.minimum),
    "broadcast_to": ([(4, 1)], lambda x: x.broadcast_to(4, 6), lambda x: x.expand(4, 6)),
    "permute_dims": ([(2, 3, 4)], lambda x: x.permute_dims(), lambda x: x.permute(2, 1, 0)),
    "permute": ([(2, 3, 4)], lambda x: x.permute(1, 2, 0), lambda x: x.permute(1, 2, 0)),
    "reshape": ([X], lambda x: x.reshape(3, -1), lambda x: x.reshape(3, -1)),
    "repeat": ([X], lambda x: x.repeat(2, 1), lambda x: x.repeat_interleave(2, 1)),
    "take": (
        [X, np.array([2, 0], "int64")],
        lambda x, i: op.take(x, i, 0),
        lambda x, i: x.index_select(0, i),
    ),
    "astype": ([X], lambda x: (x * 3).astype("int32"), lambda x: (x * 3).to(torch.int32)),
    "relu": ([X], op.relu, F.relu),
    "relu6": ([X], lambda x: op.relu6(x * 9), lambda x: F.relu6(x * 9)),
    "silu": ([X], op.silu, F.silu),
    "gelu": ([X], lambda x: op.gelu(x), F.gelu),
    "gelu_tanh": ([X], lambda x: op.gelu(x, "tanh"), lambda x: F.gelu(x, approximate="tanh")),
    "sigmoid": ([X], op.sigmoid, torch.sigmoid),
    "softmax": ([X], lambda x: op.softmax(x, 0), lambda x: x.softmax(0)),
    "softplus": ([X], lambda x: op.softplus(x, 2.0), lambda x: F.softplus(x, 2.0)),
    "prelu": ([IMAGE, (4,)], op.prelu, F.prelu),
    "tanh": ([X], op.tanh, torch.tanh),
    "exp": ([X], op.exp, torch.exp),
    "log": ([X], lambda x: op.log(op.square(x)), lambda x: x.square().log()),
    "floor": ([X], lambda x: op.floor(x * 5), lambda x: (x * 5).floor()),
    "negative": ([X], lambda x: -x, lambda x: -x),
    "square": ([X], op.square, torch.square),
    "sqrt": ([X], lambda x: op.sqrt(op.exp(x)), lambda x: x.exp().sqrt()),
    "arange": (
        [X],
        lambda x: [op.arange(5), op.arange(1, 9, 2, "int64")],
        lambda x: [torch.arange(5.0), torch.arange(1, 9, 2)],
    ),
    "layer_norm": (
        [X, (6,), (6,)],
        lambda x, w, b: [op.layer_norm(x, 6, w, b), op.layer_norm(x, [6])],
        lambda x, w, b: [F.layer_norm(x, (6,), w, b), F.layer_norm(x, (6,))],
    ),
    "rms_norm": (
        [X, (6,)],
        lambda x, w: op.rms_norm(x, w, -1, 1e-6),
        lambda x, w: F.rms_norm(x, (6,), w, 1e-6),
    ),
    "group_norm": (
        [IMAGE, (4,), (4,)],
        lambda x, w, b: op.group_norm(x, 2, w, b),
        lambda x, w, b: F.group_norm(x, 2, w, b),
    ),
    "triu": ([X], lambda x: op.triu(x, 1), lambda x: x.triu(1)),
    "full": (
        [X],
        lambda x: [op.full((2, 3), 7), op.zeros((2,)), op.ones((3,), "int32")],
        lambda x: [torch.full((2, 3), 7.0), torch.zeros(2), torch.ones(3, dtype=torch.int32)],
    ),
    "empty": ([X], lambda x: op.empty((2, 3)) * 0.0, None),
    "pad": (
        [X],
        lambda x: op.pad(x, [1, 0, 2, 3], value=5.0),
        lambda x: F.pad(x, (2, 3, 1, 0), value=5.0),
    ),
    "scaled_dot_product_attention": (
        [QKV, QKV, QKV],
        lambda q, k, v: op.scaled_dot_product_attention(q, k, v, is_causal=True),
        lambda q, k, v: F.scaled_dot_product_attention(
            *(t.transpose(1, 2) for t in (q, k, v)), is_causal=True
        ).transpose(1, 2),
    ),
    "interpolate": (
        [IMAGE],
        lambda x: [
            op.interpolate(x, scale_factor=2),
            op.interpolate(x, size=(5, 11), mode="bilinear"),
            op.interpolate(x, size=12, mode="bilinear", align_corners=True),
        ],
        lambda x: [
            F.interpolate(x, scale_factor=2),
            F.interpolate(x, size=(5, 11), mode="bilinear"),
            F.interpolate(x, size=12, mode="bilinear", align_corners=True),
        ],
    ),
    "tensor_expr_op": ([X], lambda x: op.tensor_expr_op(_scaled, "scaled", [x]), lambda x: x * 3),
    "tensor_ir_op": (
        [X],
        lambda x: op.tensor_ir_op(
            _shift, "shift", [x, tir.IntImm("int64", 5)], nn.Tensor.placeholder(x.shape, x.dtype)
        ),
        lambda x: x + 5,
    ),
    "tensor_ir_inplace_op": (
        [X],
        lambda x: op.tensor_ir_inplace_op(
            _negate, "negate", x + 1, 0, nn.Tensor.placeholder(x.shape, x.dtype)
        ),
        lambda x: -(x + 1),
    ),
    "extern": (
        [X],
        lambda x: op.extern("test.nn.double", [x, 1], nn.Tensor.placeholder(x.shape, x.dtype)),
        lambda x: 2 * x + 1,
    ),
    "compare": (
        [X, X],
        lambda x, y: [x < y, x <= y, x > y, x >= y, op.equal(x, x), op.not_equal(x, y)],
        lambda x, y: [x < y, x <= y, x > y, x >= y, x == x, x != y],
    ),
    "where": ([X, X], lambda x, y: op.where(x < y, x, y), lambda x, y: torch.where(x < y, x, y)),
    "cumsum": ([X], lambda x: op.cumsum(x, 1), lambda x: x.cumsum(1)),
    "cumsum_exclusive": (
        [X], lambda x: op.cumsum(x, 1, exclusive=True), lambda x: x.cumsum(1) - x
    ),
    "sort": ([X], lambda x: op.sort(x, 1, True), lambda x: x.sort(1, True)[0]),
    "argsort": ([X], lambda x: op.argsort(x, 0), lambda x: x.argsort(0).to(torch.int32)),
    "topk": (
        [X],
        lambda x: op.topk(x, 2),
        lambda x: [x.topk(2).values, x.topk(2).indices.to(torch.int32)],
    ),
}  # fmt: skip
# These names of the list are checked beside others.
TOGETHER = {
    "compare": "less less_equal greater greater_equal equal not_equal",
    "full": "zeros ones",
}
# These need a world of their own, and have their own tests.
ELSEWHERE = (
    "ccl_allreduce ccl_allgather ccl_broadcast_from_worker0 debug_func print_ "
    "multinomial_from_uniform sample_top_p_top_k_from_sorted_prob renormalize_top_p_top_k_prob "
    "get_timestep_embedding"
)
PUBLIC = """unsqueeze concat add subtract multiply divide chunk sum max min matmul conv1d conv2d
conv3d conv1d_transpose maximum minimum broadcast_to permute_dims reshape repeat squeeze take astype
relu relu6 silu gelu sigmoid softmax softplus prelu tanh exp log floor arange permute negative
layer_norm rms_norm group_norm triu full zeros ones empty split pad square sqrt
get_timestep_embedding scaled_dot_product_attention interpolate ccl_allreduce ccl_allgather
ccl_broadcast_from_worker0 tensor_expr_op tensor_ir_op tensor_ir_inplace_op extern debug_func print_
less less_equal greater greater_equal equal not_equal where cumsum sort argsort topk
multinomial_from_uniform sample_top_p_top_k_from_sorted_prob
renormalize_top_p_top_k_prob""".split()


def test_every_operator_has_a_case():
    known = {*CASES, *" ".join(TOGETHER.values()).split(), *ELSEWHERE.split()}
    assert [name for name in PUBLIC if name not in known] == []
    assert [name for name in PUBLIC if not hasattr(nn, name)] == []


@tvm.register_global_func("test.nn.double", override=True)
def _double(x, k, out):
    out.copyfrom(2 * x.numpy() + k)


def _inputs(shapes):
    generator = torch.Generator().manual_seed(0)
    return [
        torch.from_numpy(s) if isinstance(s, np.ndarray) else torch.randn(s, generator=generator)
        for s in shapes
    ]


@pytest.fixture(scope="module")
def compiled():
    """All operators as the methods of one model: one compilation."""
    spec, methods = {}, {}
    for name, (shapes, build, _) in CASES.items():
        args = [f"x{i}" for i in range(len(shapes))]
        infos = [str(x.dtype).removeprefix("torch.") for x in _inputs(shapes)]
        methods[name] = eval(
            f"lambda self, {', '.join(args)}: build({', '.join(args)})", {"build": build}
        )
        dims = [list(s.shape if isinstance(s, np.ndarray) else s) for s in shapes]
        spec[name] = {a: S(d, i) for a, d, i in zip(args, dims, infos, strict=True)}
    model = type("Operators", (nn.Module,), methods)()
    return model.jit(spec)


@pytest.mark.parametrize("name", CASES)
def test_as_torch(compiled, name):
    shapes, _, expect = CASES[name]
    inputs = _inputs(shapes)
    found = compiled[name](*inputs)
    if expect is None:
        assert found.shape == (2, 3)
        return
    expected = expect(*inputs)
    many = isinstance(found, list)
    for a, b in zip(found if many else [found], expected if many else [expected], strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def test_timesteps():
    class Steps(nn.Module):
        def forward(self, x):
            return op.get_timestep_embedding(x, 8, flip_sin_to_cos=True, downscale_freq_shift=0)

    x = torch.tensor([0.0, 3.0, 500.0])
    found = Steps().jit({"forward": {"x": S((3,), "float32")}})["forward"](x)
    angles = x[:, None] * torch.exp(-np.log(10000) * torch.arange(4) / 4)[None]
    expected = torch.cat([angles.cos(), angles.sin()], -1)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_collectives_are_calls():
    class Workers(nn.Module):
        def forward(self, x):
            x = op.ccl_broadcast_from_worker0(op.ccl_allreduce(x, "max", False))
            return op.ccl_allgather(x, 2)

    mod, _ = Workers().export_tvm({"forward": {"x": S((4, 2), "float32")}})
    values = [b.value for b in mod["forward"].body.blocks[0].bindings[:3]]
    names = ["relax.ccl.allreduce", "relax.ccl.broadcast_from_worker0", "relax.ccl.allgather"]
    assert [v.op.name for v in values] == names
    assert str(values[0].attrs.op_type) == "max" and not values[0].attrs.in_group
    assert [int(d) for d in values[2].struct_info.shape] == [8, 2]


class _Sampling(nn.Module):
    def draw(self, prob, uniform, rows):
        return op.multinomial_from_uniform(prob, uniform, rows)

    def draw_own(self, prob, uniform):
        return op.multinomial_from_uniform(prob, uniform)

    def top(self, prob, index, top_p, top_k, uniform, rows):
        return op.sample_top_p_top_k_from_sorted_prob(prob, index, top_p, top_k, uniform, rows)

    def renormalize(self, prob, ordered, top_p, top_k):
        return op.renormalize_top_p_top_k_prob(prob, ordered, top_p, top_k)


def test_sampling():
    rng = np.random.default_rng(3)
    batch, vocabulary, draws = 3, 7, 40
    prob = rng.dirichlet(np.ones(vocabulary), batch).astype("float32")
    index = np.argsort(-prob, 1).astype("int64")
    ordered = np.take_along_axis(prob, index, 1)
    top_p = np.array([[0.5], [0.9], [1.0]], "float32")
    top_k = np.array([[7], [3], [1]], "int64")
    uniform = rng.random((draws, 1)).astype("float32")
    rows = rng.integers(0, batch, (draws, 1))
    f, i = "float32", "int64"
    spec = {
        "draw": {
            "prob": S(("b", vocabulary), f), "uniform": S(("n", 1), f), "rows": S(("n", 1), i),
        },
        "draw_own": {"prob": S(("b", vocabulary), f), "uniform": S(("b", 1), f)},
        "top": {
            "prob": S(("b", vocabulary), f), "index": S(("b", vocabulary), i),
            "top_p": S(("b", 1), f), "top_k": S(("b", 1), i),
            "uniform": S(("n", 1), f), "rows": S(("n", 1), i),
        },
        "renormalize": {
            "prob": S(("b", vocabulary), f), "ordered": S(("b", vocabulary), f),
            "top_p": S(("b", 1), f), "top_k": S(("b", 1), i),
        },
    }  # fmt: skip
    model = _Sampling().jit(spec)

    def call(name, *args):
        return model[name](*map(torch.from_numpy, args)).numpy()

    sums = prob.cumsum(1)
    expected = [[int((sums[r, :-1] <= u).sum())] for (u,), (r,) in zip(uniform, rows, strict=True)]
    np.testing.assert_array_equal(call("draw", prob, uniform, rows), expected)
    own = call("draw_own", prob, uniform[:batch])
    np.testing.assert_array_equal(own[:, 0], (sums[:, :-1] <= uniform[:batch]).sum(1))

    kept = []
    for r in range(batch):
        reach = int(np.searchsorted(ordered[r].cumsum(), top_p[r, 0])) + 1
        kept.append(min(reach, int(top_k[r, 0]), vocabulary))
    expected = []
    for (u,), (r,) in zip(uniform, rows, strict=True):
        part = ordered[r, : kept[r]].cumsum()
        expected.append([index[r, min(int((part <= u * part[-1]).sum()), kept[r] - 1)]])
    np.testing.assert_array_equal(
        call("top", ordered, index, top_p, top_k, uniform, rows), expected
    )
    found = call("renormalize", prob, ordered, top_p, top_k)
    for r in range(batch):
        chosen = np.where(prob[r] >= ordered[r, kept[r] - 1], prob[r], 0)
        np.testing.assert_allclose(found[r], chosen / chosen.sum(), rtol=1e-5)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda x: op.gelu(x, "fast"), ValueError, "expected approximate"),
        (lambda x: op.interpolate(x), ValueError, "either a size or a scale_factor"),
        (lambda x: op.conv2d(x, x, padding="half"), ValueError, "'same' or 'valid'"),
        (lambda x: x + "1", TypeError, "expected a tensor or a number"),
        (lambda x: op.add(x, 1), TypeError, "expected a tensor, got int"),
        (lambda x: op.print_(x), RuntimeError, "debug=True"),
        (lambda x: op.tensor_ir_op(_negate, "f", ["a"], x), TypeError, "expected tensors, shapes"),
    ],
)
def test_errors(call, error, text):
    bb = relax.BlockBuilder()
    x = nn.Tensor.placeholder(IMAGE, "float32", "x")
    with pytest.raises(error, match=text), bb.function("main", [x._expr]), bb.dataflow():
        call(x)


def test_operators_need_a_function():
    x = nn.Tensor.placeholder((2,), "float32")
    with pytest.raises(RuntimeError, match="while a model is exported"):
        op.relu(x)
