# SPDX-License-Identifier: Apache-2.0
"""torch.compile with our backend: inference, training, symbolic sizes, what PyTorch runs itself."""

import copy
import importlib.metadata
import os
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from tvm.relax.frontend.torch import relax_dynamo  # noqa: E402

from .models import MLP, Bert, ResNet18  # noqa: E402
from .run import assert_same  # noqa: E402


@pytest.fixture(autouse=True)
def fresh():
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def backend():
    return relax_dynamo()


def test_inference():
    model, x = MLP().eval(), torch.randn(4, 16)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is left to PyTorch
        assert_same(torch.compile(model, backend=backend())(x), model(x))


@pytest.mark.parametrize(
    "options", [{"num_layers": 2, "batch_first": True}, {"bidirectional": True}, {"bias": False}]
)
def test_lstm(options):
    model, x = nn.LSTM(5, 6, **options).eval(), torch.randn(3, 4, 5)
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True), warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*PyTorch runs")
        compiled = torch.compile(model, backend=backend(), fullgraph=True)
        assert_same(compiled(x), model(x))


def test_lstm_with_symbolic_sizes():
    model = nn.LSTM(5, 6, bidirectional=True).eval()
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
        compiled = torch.compile(model, backend=backend(), dynamic=True, fullgraph=True)
        for length, batch in ((3, 4), (3, 5), (6, 5)):
            x = torch.randn(length, batch, 5)
            assert_same(compiled(x), model(x))


def test_sizes_that_pytorch_knows_to_be_equal():
    def function(x):
        halves = F.max_pool2d(x, 2)
        upper = F.interpolate(halves, scale_factor=2.0)
        return torch.cat([x, upper], 1), torch.stack([x, upper], -1)

    compiled = torch.compile(function, backend=backend(), dynamic=True, fullgraph=True)
    for n in (6, 8):
        x = torch.randn(2, 3, n, n)
        assert_same(compiled(x), function(x))


def test_parts_of_symbolic_sizes():
    def function(x, y):
        first, second = torch.split(torch.cat([x, y]) * 2, x.shape[0])
        return first + second

    compiled = torch.compile(function, backend=backend(), dynamic=True, fullgraph=True)
    for n in (3, 5):
        x, y = torch.randn(n, 4), torch.randn(n, 4)
        assert_same(compiled(x, y), function(x, y))


def test_symbolic_sizes_compile_once():
    model, compiled = MLP().eval(), []

    def counting(graph_module, inputs):
        compiled.append(graph_module)
        return backend()(graph_module, inputs)

    function = torch.compile(model, backend=counting, dynamic=True)
    with torch.no_grad():
        for n in (3, 5, 9):
            x = torch.randn(n, 16)
            assert_same(function(x), model(x))
    assert len(compiled) == 1


def gradients(model, x, y, compiled):
    function = torch.compile(model, backend=backend()) if compiled else model
    loss = F.cross_entropy(function(x), y)
    loss.backward()
    return [loss] + [p.grad for p in model.parameters()]


@pytest.mark.parametrize("make, shape", [(MLP, (8, 16)), (lambda: ResNet18(4, 10), (2, 3, 32, 32))])
def test_a_training_step_has_the_loss_and_gradients_of_pytorch(make, shape):
    model = make().train()
    other = copy.deepcopy(model)
    x, y = torch.randn(shape), torch.randint(0, 10, (shape[0],))
    assert_same(gradients(model, x, y, True), gradients(other, x, y, False), 1e-3)
    for ours, theirs in zip(model.buffers(), other.buffers(), strict=True):
        assert_same(ours, theirs)


def test_a_training_step_of_bert_has_the_loss_and_gradients_of_pytorch():
    model = Bert().train()
    other = copy.deepcopy(model)
    tokens, mask = torch.randint(0, 60, (2, 6)), torch.ones(2, 6)
    mask[1, 4:] = 0

    def step(network, parameters):
        states, pooled = network(tokens, mask)
        loss = states.square().mean() + pooled.sum()
        loss.backward()
        return [loss] + [p.grad for p in parameters]

    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*PyTorch runs")
        ours = step(torch.compile(model, backend=backend()), model.parameters())
    assert_same(ours, step(other, other.parameters()), 1e-3)


def test_a_hundred_steps_follow_the_loss():
    model = MLP((4, 16, 1))
    other = copy.deepcopy(model)
    losses = []
    for network in (torch.compile(model, backend=backend()), other):
        torch.manual_seed(1)
        optimizer = torch.optim.SGD(network.parameters(), lr=0.05)
        curve = []
        for _ in range(100):
            x = torch.randn(16, 4)
            loss = F.mse_loss(network(x), x.sum(1, keepdim=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            curve.append(loss.item())
        losses.append(curve)
    assert losses[0][-1] < 0.5 * losses[0][0]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3, abs=1e-5)


def test_a_compiled_step_of_an_optimizer():
    model = MLP((4, 16, 1))
    other, x = copy.deepcopy(model), torch.randn(8, 4)
    for network, is_compiled in ((model, True), (other, False)):
        optimizer = torch.optim.AdamW(network.parameters(), lr=0.01)
        step = torch.compile(optimizer.step, backend=backend()) if is_compiled else optimizer.step
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*PyTorch runs")
            for _ in range(2):
                optimizer.zero_grad()
                network(x).square().mean().backward()
                step()
    assert_same(list(model.parameters()), list(other.parameters()), 1e-3)


def test_what_has_no_converter_runs_in_pytorch_with_one_warning():
    @torch.library.custom_op("tvm_test::reversed", mutates_args=())
    def reverse(x: torch.Tensor) -> torch.Tensor:
        return x.flip(0)

    reverse.register_fake(torch.empty_like)

    class Model(nn.Module):
        def forward(self, x):
            return reverse(x + 1.0) * 2.0

    model, x = Model(), torch.randn(3, 3)
    with torch.no_grad(), pytest.warns(UserWarning, match="PyTorch runs tvm_test.reversed") as seen:
        assert_same(torch.compile(model, backend=backend())(x), model(x))
    assert sum("PyTorch runs" in str(w.message) for w in seen) == 1


def test_control_flow_beside_what_has_no_converter():
    """A body of control flow stays with its node, wherever that runs."""

    @torch.library.custom_op("tvm_test::doubled", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2.0

    double.register_fake(torch.empty_like)

    def function(x):
        y = torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (x,))
        return torch.cond(y.sum() > 0, lambda a: a + 1.0, lambda a: a - 1.0, (double(y),))

    x = torch.randn(4)
    with torch.no_grad(), pytest.warns(UserWarning, match="PyTorch runs tvm_test.doubled"):
        compiled = torch.compile(function, backend=backend(), fullgraph=True)
        for sign in (1.0, -1.0):
            assert_same(compiled(x * sign), function(x * sign))


def test_an_operator_with_functions_and_no_converter_runs_in_pytorch():
    from torch.nn.attention.flex_attention import flex_attention

    def causal(score, batch, head, query, key):
        return torch.where(query >= key, score, -float("inf"))

    def function(q, k, v):
        return flex_attention(q.sin(), k, v, score_mod=causal) * 2.0

    q, k, v = (torch.randn(1, 2, 8, 4) for _ in range(3))
    with torch.no_grad(), pytest.warns(UserWarning, match="PyTorch runs .*flex_attention"):
        assert_same(torch.compile(function, backend=backend())(q, k, v), function(q, k, v))


def test_what_has_a_converter_for_real_tensors_alone_runs_in_pytorch():
    def function(x):
        return torch.linalg.cholesky(x @ x.mH + 3 * torch.eye(3)).abs() + 1.0

    x = torch.randn(3, 3, dtype=torch.complex64)
    with torch.no_grad(), pytest.warns(UserWarning, match="PyTorch runs .* of complex tensors"):
        ours = torch.compile(function, backend=backend())(x)
    torch.testing.assert_close(ours, function(x))


@pytest.mark.parametrize(
    "make, shape",
    [
        (lambda: nn.LayerNorm(6), (4, 6)),
        (lambda: nn.GroupNorm(2, 6), (4, 6, 5)),
        (lambda: nn.BatchNorm1d(6), (4, 6, 5)),
    ],
)
def test_training_under_autocast_with_parameters_that_are_wider(make, shape):
    model = nn.Sequential(make(), nn.Flatten(), nn.LazyLinear(3))
    x = torch.randn(shape)
    model(x)
    other = copy.deepcopy(model)
    results = []
    for network, call in ((model, torch.compile(model, backend=backend())), (other, other)):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = call(x.bfloat16())
        y.float().square().mean().backward()
        results.append([y, *(p.grad for p in network.parameters()), *network.buffers()])
    assert_same(*results, tolerance=5e-2)
    if isinstance(model[0], nn.BatchNorm1d):  # kept in float32
        assert_same(list(model.buffers()), list(other.buffers()), tolerance=1e-3)


def test_sums_of_many_small_floats():
    x = torch.rand(4, 3000).bfloat16()

    def function(x):
        labels = torch.arange(4)
        return x.sum(1), x.cumsum(1), x.logsumexp(1), F.cross_entropy(x, labels), x.log_softmax(1)

    ours = torch.compile(function, backend=backend())(x)
    assert_same(ours, function(x), 2e-2)


def test_dropout_is_random_in_training_and_follows_the_seed():
    model = torch.compile(nn.Dropout(0.5).train(), backend=backend())
    x = torch.ones(1000, requires_grad=True)
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is left to PyTorch
        for seed in (1, 1, 2):
            torch.manual_seed(seed)
            results.append(model(x))
    y = results[-1]
    assert 300 < int((y == 0).sum()) < 700
    assert torch.equal(results[0], results[1]) and not torch.equal(results[0], y)
    y.sum().backward()
    assert_same(x.grad, y)  # the same mask


def test_an_unknown_option_is_refused():
    from tvm.relax.frontend.torch.dynamo import tvm_relax

    with pytest.raises(ValueError, match=r"expected the option 'pipeline', got \['speed'\]"):
        tvm_relax(None, [], options={"speed": 1})


def test_changes_of_inputs_and_buffers_are_kept():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(3))

        def forward(self, x):
            before = self.count.clone()
            self.count.add_(x)
            x[1:].mul_(2.0)
            return before, self.count + x, x[1:]

    ours, theirs = Counter(), Counter()
    function = torch.compile(ours, backend=backend())
    with torch.no_grad():
        for step in range(3):
            a, b = torch.arange(3.0) + step, torch.arange(3.0) + step
            assert_same(function(a), theirs(b))
            assert_same([a, ours.count], [b, theirs.count])


def test_results_have_the_strides_of_pytorch():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, x):
            y = self.conv(x)
            return y.relu(), y.mean((2, 3)).t() + 1.0

    model, other = Model().to(memory_format=torch.channels_last), Model()
    other.load_state_dict(model.state_dict())
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    function = torch.compile(model, backend=backend())
    for training in (False, True):
        with torch.set_grad_enabled(training):
            ours, theirs = function(x), model(x)
        assert_same(ours, theirs)
        assert [t.stride() for t in ours] == [t.stride() for t in theirs]
    sum(t.square().sum() for t in ours).backward()
    sum(t.square().sum() for t in other(x)).backward()
    gradients = [[p.grad for p in m.parameters()] for m in (model, other)]
    assert_same(*gradients, tolerance=1e-3)


def in_formats(x):
    last, rows = torch.channels_last, torch.contiguous_format
    return [
        x.to(memory_format=last), x.to(torch.float64, memory_format=last),
        x.contiguous(memory_format=last), x.contiguous(), x.clone(memory_format=last),
        x.clone(memory_format=rows), x.clone(), torch.zeros_like(x, memory_format=last),
        torch.ones_like(x, memory_format=rows), torch.full_like(x, 2.0), x + 1.0, x.half(),
        torch.empty_like(x, memory_format=last).fill_(1.0), x.flip(1), torch.cat([x, x], 1),
        torch.empty(x.shape, memory_format=last).fill_(3.0), x.permute(0, 2, 3, 1).contiguous(),
    ]  # fmt: skip


@pytest.mark.parametrize("dynamic", [False, True])
def test_memory_formats(dynamic):
    image = torch.randn(2, 3, 4, 5)
    last = image.to(memory_format=torch.channels_last)
    # The stride of a dimension of 1 is that of PyTorch too, where the sizes are known.
    grey = torch.randn(2, 1, 4, 5).to(memory_format=torch.channels_last)
    for x in (image, last, image[:, :, ::2], image[:, :1].expand(2, 3, 4, 5)):
        assert_formats(x, dynamic)
    assert_formats(grey, False)


def assert_formats(x, dynamic):
    torch._dynamo.reset()
    ours = torch.compile(in_formats, backend=backend(), dynamic=dynamic, fullgraph=True)(x)
    theirs = in_formats(x)
    assert_same(ours, theirs)
    assert [t.stride() for t in ours] == [t.stride() for t in theirs]
    pointers = {t.data_ptr() for t in theirs[4:]}
    assert len({t.data_ptr() for t in ours[4:]}) == len(pointers)


def test_strides_as_numbers():
    def function(x):
        return x * x.stride(1) + x.stride(2)

    image = torch.randn(2, 3, 4, 5)
    for x in (image[:, :, ::2], image.to(memory_format=torch.channels_last)):
        torch._dynamo.reset()
        compiled = torch.compile(function, backend=backend(), dynamic=True, fullgraph=True)
        assert_same(compiled(x), function(x))


def test_results_that_share_memory_do():
    def function(x):
        y = x.t() * 2.0
        return y[0], y, y[1:], x + 1.0

    x = torch.randn(3, 4)
    for dynamic in (False, True):
        torch._dynamo.reset()
        ours = torch.compile(function, backend=backend(), dynamic=dynamic)(x)
        assert_same(ours, function(x))
        assert [t.stride() for t in ours] == [t.stride() for t in function(x)]
        ours[1].zero_()
        assert not ours[0].any() and not ours[2].any() and ours[3].any()


@pytest.mark.parametrize("requires_grad", [False, True])
def test_views_of_an_input_at_a_symbolic_place(requires_grad):
    def function(x, y):
        half = x.shape[0] // 2
        return x[half:, 1:], y.t()[: half - 1], x.transpose(0, 1), x * 2.0

    compiled = torch.compile(function, backend=backend(), dynamic=True, fullgraph=True)
    for n in (6, 8):
        x, y = torch.randn(n, 3, requires_grad=requires_grad), torch.randn(2 * n, 4)[::2, 1:]
        x = x.clone()  # not a leaf: its views may be changed
        ours, theirs = compiled(x, y), function(x, y)
        assert_same(ours, theirs)
        for a, b in zip(ours[:3], theirs, strict=False):
            assert a.data_ptr() == b.data_ptr() and a.stride() == b.stride()
    only_views = torch.compile(lambda x: x[x.shape[0] // 2 :], backend=backend(), dynamic=True)
    assert_same(only_views(x), x[4:])


def test_places_that_depend_on_data():
    def function(x, indices, start):
        return *torch.tensor_split(x, indices), torch.narrow(x, 0, start, 2)

    x, indices = torch.randn(5, 4), torch.tensor([1, 3])
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        compiled = torch.compile(function, backend=backend(), fullgraph=True)
        for start in (0, 2, -3, -2):
            args = (x, indices, torch.tensor(start))
            assert_same(compiled(*args), function(*args))


def test_numbers_that_follow_from_symbolic_sizes():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
    other = copy.deepcopy(model)
    function = torch.compile(model, backend=backend(), dynamic=True)
    for n in (2, 3):
        x = torch.randn(n, 3, 5 + n, 7)
        for network, call in ((model, function), (other, other)):
            network.zero_grad()
            call(x).square().mean().backward()  # its gradient divides by numbers of elements
        gradients = [[p.grad for p in list(m.parameters())[2:]] for m in (model, other)]
        assert_same(*gradients, tolerance=1e-3)
        assert_same(list(model.buffers()), list(other.buffers()))


def test_inputs_of_any_strides_and_complex_ones():
    def function(x, z):
        return x @ x.mT, torch.fft.ifft(z * 2.0).conj(), z.imag.neg()

    x = torch.randn(5, 3).T
    z = torch.randn(4, 2, dtype=torch.complex64).T.conj()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*PyTorch runs")
        ours = torch.compile(function, backend=backend())(x, z)
    for a, b in zip(ours, function(x, z), strict=True):
        torch.testing.assert_close(a, b)


def test_compiled_graphs_are_read_from_the_disk(tmp_path):
    """A second process runs no pass on them: their kernels would be kept again."""
    program = """
import torch
from tvm.relax.frontend.torch import relax_dynamo
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 7), torch.nn.ReLU()).eval()
with torch.no_grad():
    x = torch.randn(4, 16)
    torch.testing.assert_close(torch.compile(model, backend=relax_dynamo())(x), model(x))
"""
    env = os.environ | {"TVM_CACHE_DIR": str(tmp_path), "TVM_CACHE_LIMIT_MB": "100"}
    for _ in range(2):
        subprocess.run([sys.executable, "-c", program], env=env, check=True)
        kept = sorted(tmp_path.iterdir())
        graphs = [path for path in kept if b"__tvm_kept_kernels" in path.read_bytes()]
        for path in set(kept) - set(graphs):
            path.unlink()
    assert graphs and kept == graphs


def test_the_backend_as_newer_versions_of_pytorch_call_it():
    """From 2.14 on backend="tvm" is this, with concrete inputs and an option."""
    from torch._dynamo.backends.common import fake_tensor_unsupported

    @fake_tensor_unsupported
    def tvm_backend(graph_module, inputs, *, options=None):
        return relax_dynamo(pipeline=(options or {}).get("pipeline"))(graph_module, inputs)

    is_new = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 14)
    model, x = MLP().eval(), torch.randn(4, 16)
    for options in (None, {"pipeline": "zero"}):
        torch._dynamo.reset()
        compiled = torch.compile(
            model, backend="tvm" if is_new else tvm_backend, options=options, fullgraph=True
        )
        with torch.no_grad():
            assert_same(compiled(x), model(x))
        loss = compiled(x).square().mean()
        loss.backward()
        assert_same(loss, model(x).square().mean())


def test_the_entry_point_is_the_backend():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    group = "torch_dynamo_backends"
    ((name, value),) = project["project"]["entry-points"][group].items()
    loaded = importlib.metadata.EntryPoint(name, value, group).load()
    assert name == "tvm_relax"
    model, x = MLP().eval(), torch.randn(4, 16)
    with torch.no_grad():
        assert_same(torch.compile(model, backend=loaded)(x), model(x))


def test_a_graph_without_inputs():
    """What comes of constants alone is a tensor of PyTorch as well."""

    def function(x):
        mask = torch.full((3, 3), -torch.inf).triu(1)
        torch._dynamo.graph_break()
        return x + mask.to(x.dtype), mask

    compiled = torch.compile(function, backend=relax_dynamo())
    x = torch.randn(3, 3)
    for ours, theirs in zip(compiled(x), function(x), strict=True):
        assert isinstance(ours, torch.Tensor)
        torch.testing.assert_close(ours, theirs)
