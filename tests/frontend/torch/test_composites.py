# SPDX-License-Identifier: Apache-2.0
"""Operators that are made of others, as programs have them when nothing decomposes them."""

import warnings

import pytest

pytest.importorskip("torch")
import torch
from torch import nn
from torch.nn import functional as F
from tvm.relax.frontend.torch import (
    from_archive,
    from_exported_program,
    relax_dynamo,
    supported_operators,
)
from tvm.relax.frontend.torch.program import target_name

from .run import assert_same, compiled

ARGS = (
    torch.randn(4, 6),
    torch.randn(4, 6),
    torch.rand(4, 6) * 0.8 + 0.1,
    torch.randint(0, 3, (4, 6)),
    torch.randn(2, 3, 3) @ torch.randn(2, 3, 3) + 4 * torch.eye(3),
)
# x, y: of real numbers, p: in (0, 1), i: of integers, m: square matrices
GROUPS = {
    "names": [
        lambda x, y, p, i, m: torch.multiply(x, y) + torch.divide(x, p) + torch.true_divide(x, 2),
        lambda x, y, p, i, m: torch.divide(x, p, rounding_mode="floor"),
        lambda x, y, p, i, m: torch.subtract(x, y, alpha=2),
        lambda x, y, p, i, m: [torch.greater(x, y), torch.greater_equal(x, 0.0), torch.less(x, y)],
        lambda x, y, p, i, m: [torch.less_equal(i, 1), torch.not_equal(i, 1)],
        lambda x, y, p, i, m: torch.arccos(p) + torch.arcsin(p) + torch.arctan(x),
        lambda x, y, p, i, m: torch.arccosh(p + 1) + torch.arcsinh(x) + torch.arctanh(p),
        lambda x, y, p, i, m: [torch.arctan2(x, y), torch.special.expit(x)],
        lambda x, y, p, i, m: [torch.special.softmax(x, 1), torch.special.log_softmax(x, 0)],
        lambda x, y, p, i, m: torch.cdist(x, y),
        lambda x, y, p, i, m: F.pdist(x),
        lambda x, y, p, i, m: F.embedding_bag(i, x, mode="mean"),
    ],
    "elements": [
        lambda x, y, p, i, m: [torch.addcmul(x, y, p, value=0.5), torch.addcdiv(x, y, p)],
        lambda x, y, p, i, m: [torch.lerp(x, y, 0.3), torch.lerp(x, y, p)],
        lambda x, y, p, i, m: [torch.logit(p), torch.logit(x, 0.1)],
        lambda x, y, p, i, m: torch.xlogy(i, p),
        lambda x, y, p, i, m: [torch.isposinf(x / i), torch.isneginf(x / i)],
        lambda x, y, p, i, m: [torch.isclose(x / i, y / i), torch.isclose(x, x + 1e-9, 0.1)],
        lambda x, y, p, i, m: torch.isclose(x / (i - i), x / (i - i), equal_nan=True),
        lambda x, y, p, i, m: [torch.isin(i, i[0, :2]), torch.isin(i, i[0, :2], invert=True)],
        lambda x, y, p, i, m: [torch.deg2rad(x), torch.rad2deg(x), torch.sinc(i * x)],
        lambda x, y, p, i, m: [torch.logaddexp2(x, y), F.glu(x), F.rrelu(x)],
        lambda x, y, p, i, m: [torch.nan_to_num(x / (i - 1)), torch.nan_to_num(x / i, 1, 2, 3)],
        lambda x, y, p, i, m: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -10, 10),
        lambda x, y, p, i, m: torch.fake_quantize_per_channel_affine(
            x, p[0], torch.arange(6, dtype=torch.int32), 1, -10, 10
        ),
    ],
    "reductions": [
        lambda x, y, p, i, m: [torch.logsumexp(x * 99, 1), torch.logsumexp(x, (0, 1), True)],
        lambda x, y, p, i, m: torch.logsumexp(torch.log(i * 0.0), 1),
        lambda x, y, p, i, m: [torch.std(x), torch.var(x, False), *torch.std_mean(x)],
        lambda x, y, p, i, m: [*torch.var_mean(x, 1), *torch.std_mean(x, 1, keepdim=True)],
        lambda x, y, p, i, m: [torch.nansum(x * i / i), torch.nanmean(x * i / i, 1)],
        lambda x, y, p, i, m: [torch.count_nonzero(i), torch.count_nonzero(i, 0)],
        lambda x, y, p, i, m: [*torch.aminmax(x), *torch.aminmax(x, dim=1)],
        lambda x, y, p, i, m: [torch.trace(x), F.pairwise_distance(x, y)],
        lambda x, y, p, i, m: [F.cosine_similarity(x, y), F.cosine_similarity(x, y, 0)],
    ],
    "places": [
        lambda x, y, p, i, m: [m.mT, torch.fliplr(x), torch.flipud(x)],
        lambda x, y, p, i, m: [torch.hann_window(7), torch.hann_window(6, periodic=False)],
        lambda x, y, p, i, m: [torch.hstack([x, y]), torch.hstack([x[0], y[0]])],
        lambda x, y, p, i, m: [torch.vstack([x, y]), torch.vstack([x[0], y[0]])],
        lambda x, y, p, i, m: [torch.dstack([x, y]), torch.column_stack([x[:, 0], y])],
        lambda x, y, p, i, m: [*torch.broadcast_tensors(x[:, :1], y[0], m[0, 0, 0])],
    ],
    "products": [
        lambda x, y, p, i, m: torch.vdot(x[0], y[0]),
        lambda x, y, p, i, m: [torch.linalg.vecdot(x, y), torch.linalg.cross(x[:, :3], y[:, :3])],
        lambda x, y, p, i, m: [torch.linalg.inv(m), torch.linalg.det(m), torch.inverse(m)],
        lambda x, y, p, i, m: torch.linalg.solve(m, m.transpose(1, 2)),
        lambda x, y, p, i, m: torch.linalg.cholesky(m @ m.transpose(1, 2)),
        lambda x, y, p, i, m: torch.tensordot(x, y, ([1], [1])),
        lambda x, y, p, i, m: torch.tensordot(m, m, ([0, 2], [0, 1])),
        lambda x, y, p, i, m: torch._weight_norm(x, p[:, :1], 0),
        lambda x, y, p, i, m: torch._weight_norm(x, p[:1], 1),
        lambda x, y, p, i, m: torch.lstm_cell(x, (x, y), *weights(4), *biases(4)),
        lambda x, y, p, i, m: torch.gru_cell(x, y, *weights(3), *biases(3)),
        lambda x, y, p, i, m: [
            torch.rnn_tanh_cell(x, y, *weights(1)),
            torch.rnn_relu_cell(x, y, *weights(1)),
        ],
    ],
    "losses": [
        lambda x, y, p, i, m: [F.mse_loss(x, y, reduction=r) for r in ("none", "mean", "sum")],
        lambda x, y, p, i, m: [F.l1_loss(x, y), F.smooth_l1_loss(x, y, beta=0.5)],
        lambda x, y, p, i, m: [F.huber_loss(x, y, delta=0.7), F.soft_margin_loss(x, i - 1.0)],
        lambda x, y, p, i, m: [F.kl_div(x, p), F.kl_div(x, y, log_target=True, reduction="sum")],
        lambda x, y, p, i, m: [
            F.binary_cross_entropy(p, p.flip(0)),
            F.binary_cross_entropy(p, p, p),
        ],
        lambda x, y, p, i, m: F.binary_cross_entropy_with_logits(x, p, y, pos_weight=p[0]),
        lambda x, y, p, i, m: F.margin_ranking_loss(x, y, i - 1.0, 0.3),
        lambda x, y, p, i, m: F.hinge_embedding_loss(x, (i - 1.0).sign(), 0.5),
        lambda x, y, p, i, m: [F.poisson_nll_loss(x, p), F.poisson_nll_loss(p, 5 * p, False, True)],
        lambda x, y, p, i, m: F.triplet_margin_loss(x, y, p, swap=True),
    ],
}


def weights(gates):
    numbers = torch.linspace(-1, 1, 36 * gates).reshape(6 * gates, 6)
    return numbers, numbers.flip(0)


def biases(gates):
    return torch.linspace(0, 1, 6 * gates), torch.linspace(1, 0, 6 * gates)


class Several(nn.Module):
    def __init__(self, functions):
        super().__init__()
        self.functions = functions

    def forward(self, *args):
        return [function(*args) for function in self.functions]


def exported(group):
    program = torch.export.export(Several(GROUPS[group]), ARGS)
    nodes = [node for node in program.graph.nodes if node.op == "call_function"]
    missing = {target_name(node.target) for node in nodes} - set(supported_operators())
    assert not missing, missing
    return program


@pytest.mark.parametrize("group", GROUPS)
def test_results_are_those_of_pytorch(group):
    main = compiled(from_exported_program(exported(group), run_ep_decomposition=False))
    assert_same(main(*ARGS), Several(GROUPS[group])(*ARGS))


def test_archives_have_them(tmp_path):
    torch.export.save(exported("elements"), tmp_path / "m.pt2")
    main = compiled(from_archive(str(tmp_path / "m.pt2")))
    assert_same(main(*ARGS), Several(GROUPS["elements"])(*ARGS))


class Scaled(nn.Module):
    """With a rotation that is computed as transformers do it."""

    def forward(self, x):
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            angles = x.float() * 2
        with torch.no_grad():
            return torch.where(x > 0, angles.cos(), -torch.inf)


def test_what_surrounds_operators(tmp_path):
    program = torch.export.export(Scaled(), ARGS[:1])
    torch.export.save(program, tmp_path / "m.pt2")
    for mod in (
        from_exported_program(program, run_ep_decomposition=False),
        from_archive(str(tmp_path / "m.pt2")),
    ):
        assert_same(compiled(mod)(ARGS[0]), [Scaled()(ARGS[0])])


class Cast(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 3)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.linear(x)


def test_types_of_autocast(tmp_path):
    model = Cast()
    program = torch.export.export(model, ARGS[:1])
    mod = from_exported_program(program, run_ep_decomposition=False)
    with torch.no_grad():
        assert_same(compiled(mod)(ARGS[0]), [model(ARGS[0])], 2e-2)
    torch.export.save(program, tmp_path / "m.pt2")
    with pytest.raises(NotImplementedError, match="run_decompositions"):
        from_archive(str(tmp_path / "m.pt2"))


def test_what_has_no_converter_is_decomposed():
    """All else stays as it was exported."""

    class Model(nn.Module):
        def forward(self, x):
            return F.unfold(F.silu(x)[None, None], 2).sum(), torch.quantile(x, 0.3)

    program = torch.export.export(Model(), ARGS[:1])
    mod = from_exported_program(program, run_ep_decomposition=False)
    assert "R.nn.silu" in mod.script()
    assert_same(compiled(mod)(ARGS[0]), Model()(ARGS[0]))


@pytest.mark.parametrize("norm_first", [False, True])
def test_layer_of_a_transformer(norm_first):
    """In inference PyTorch computes it by one operator."""
    layer = nn.TransformerEncoderLayer(
        16, 4, 32, batch_first=True, norm_first=norm_first, activation="gelu"
    )
    layer = layer.eval()
    x, hidden = torch.randn(2, 9, 16), torch.zeros(2, 9, dtype=torch.bool)
    hidden[1, 5:] = True
    compiled_layer = torch.compile(layer, backend=relax_dynamo(), fullgraph=True)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*PyTorch runs")
        for options in ({}, {"src_key_padding_mask": hidden}):
            ours, theirs = compiled_layer(x, **options), layer(x, **options)
            if options:  # what hidden tokens give is nobody's
                ours, theirs = ours[:, :5], theirs[:, :5]
            assert_same(ours, theirs)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_lstm_with_projections(bidirectional):
    model = nn.LSTM(6, 8, 2, proj_size=3, bidirectional=bidirectional, batch_first=True)
    x = torch.randn(2, 5, 6)
    program = torch.export.export(model, (x,))
    main = compiled(from_exported_program(program, run_ep_decomposition=False))
    with torch.no_grad():
        assert_same(main(x), model(x))


def test_angles_of_complex_numbers():
    class Model(nn.Module):
        def forward(self, x):
            return torch.angle(torch.fft.rfft(x)[:, 1:3])  # without those that are real

    program = torch.export.export(Model(), ARGS[:1])
    assert_same(compiled(from_exported_program(program))(ARGS[0]), [Model()(ARGS[0])])


def test_functions_of_complex_numbers():
    functions = [
        torch.acos, torch.acosh, torch.asin, torch.asinh, torch.atan, torch.atanh, torch.cos,
        torch.cosh, torch.expm1, torch.isfinite, torch.isinf, torch.isnan, torch.log, torch.log10,
        torch.log1p, torch.log2, torch.logical_not, torch.ones_like, torch.reciprocal, torch.rsqrt,
        torch.sigmoid, F.silu, torch.sin, torch.sinh, torch.sqrt, torch.square, torch.tan,
        torch.tanh, torch.linalg.norm, lambda z: z**2, lambda z: z**0.5, lambda z: z == z.conj(),
        lambda z: z != z.T, lambda z: torch.addmm(z, z, z.T, beta=0.5), lambda z: z.cumsum(1),
        lambda z: torch.mv(z, z[0]), lambda z: torch.addcmul(z, z, z.T, value=0.5),
        lambda z: torch.narrow_copy(z, 1, 1, 2), lambda z: F.normalize(z),
    ]  # fmt: skip

    class Model(nn.Module):
        def forward(self, pairs):
            z = torch.view_as_complex(pairs)
            results = [f(z) for f in functions]
            return [torch.view_as_real(r) if r.is_complex() else r for r in results]

    pairs = torch.randn(3, 3, 2)
    pairs[0, 0, 1] = 0.0  # real, and a zero
    pairs[1, 1] = 0.0
    model, program = Model(), torch.export.export(Model(), (pairs,))
    for options in ({}, {"run_ep_decomposition": False}):
        ours = compiled(from_exported_program(program, **options))(pairs)
        for i, (a, b) in enumerate(zip(ours, model(pairs), strict=True)):
            a = torch.from_dlpack(a)
            assert a.dtype == b.dtype and a.shape == b.shape, i
            finite = torch.isfinite(b) if b.is_floating_point() else torch.ones_like(b).bool()
            torch.testing.assert_close(
                a[finite], b[finite], rtol=1e-4, atol=1e-4, msg=f"{i}: {a} {b}"
            )
