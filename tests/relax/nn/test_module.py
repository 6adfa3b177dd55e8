# SPDX-License-Identifier: Apache-2.0
"""Modules: layers against PyTorch's, state dicts, dtypes, mutators, errors."""

import numpy as np
import pytest
import tvm
from tvm.relax.frontend import nn

torch = pytest.importorskip("torch")
S = nn.spec.Tensor


def _both(ours, theirs, *inputs, rtol=1e-4):
    """Runs our layer with PyTorch's weights."""
    ours.load_state_dict(theirs.state_dict())
    args = {f"x{i}": x for i, x in enumerate(inputs)}
    spec = nn.spec.MethodSpec.from_torch(list(inputs), ours.forward)
    found = ours.jit(nn.spec.ModuleSpec(ours, ["forward"], [spec]))["forward"](*args.values())
    torch.testing.assert_close(found, theirs(*inputs), rtol=rtol, atol=rtol)


T = torch.nn
LAYERS = {
    "linear": (nn.Linear(6, 3), T.Linear(6, 3), (4, 6)),
    "linear_no_bias": (nn.Linear(6, 3, bias=False), T.Linear(6, 3, bias=False), (4, 6)),
    "conv1d": (nn.Conv1D(4, 6, 3, 2, 1), T.Conv1d(4, 6, 3, 2, 1), (2, 4, 9)),
    "conv2d": (
        nn.Conv2D(4, 6, (3, 1), 2, 1, groups=2), T.Conv2d(4, 6, (3, 1), 2, 1, groups=2),
        (2, 4, 9, 9),
    ),
    "conv3d": (nn.Conv3D(2, 3, 3, bias=False), T.Conv3d(2, 3, 3, bias=False), (1, 2, 5, 5, 5)),
    "conv_transpose1d": (
        nn.ConvTranspose1D(4, 6, 3, 2, 1, 1), T.ConvTranspose1d(4, 6, 3, 2, 1, 1), (2, 4, 9)
    ),
    "layer_norm": (nn.LayerNorm(6), T.LayerNorm(6), (4, 6)),
    "rms_norm": (nn.RMSNorm(6, -1, 1e-5, bias=False), T.RMSNorm(6, 1e-5), (4, 6)),
    "group_norm": (nn.GroupNorm(2, 4), T.GroupNorm(2, 4), (2, 4, 5, 5)),
    "list": (
        nn.ModuleList([nn.Linear(6, 8), nn.ReLU(), nn.SiLU(), nn.GELU(), nn.Identity(),
                       nn.Linear(8, 2)]),
        T.Sequential(T.Linear(6, 8), T.ReLU(), T.SiLU(), T.GELU(), T.Identity(), T.Linear(8, 2)),
        (4, 6),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_layer_as_torch(name):
    ours, theirs, shape = LAYERS[name]
    _both(ours, theirs, torch.randn(shape, generator=torch.Generator().manual_seed(1)))


@pytest.mark.parametrize("shape", [(5,), (2, 3)])
def test_embedding(shape):
    _both(nn.Embedding(10, 4), T.Embedding(10, 4), torch.randint(0, 10, shape))


def test_attention_over_an_encoder():
    class Theirs(T.Module):
        def __init__(self):
            super().__init__()
            self.to_q, self.to_k, self.to_v = T.Linear(8, 12), T.Linear(6, 12), T.Linear(6, 12)
            self.to_out = T.ModuleList([T.Linear(12, 8)])

        def forward(self, x, y):
            def heads(t):
                return t.reshape(*t.shape[:2], 3, 4).transpose(1, 2)

            q, k, v = heads(self.to_q(x)), heads(self.to_k(y)), heads(self.to_v(y))
            out = T.functional.scaled_dot_product_attention(q, k, v)
            return self.to_out[0](out.transpose(1, 2).reshape(*x.shape[:2], 12))

    _both(
        nn.Attention(8, 6, heads=3, dim_head=4, bias=True), Theirs(),
        torch.randn(2, 5, 8), torch.randn(2, 7, 6),
    )  # fmt: skip


def test_timestep_embedding():
    class Theirs(T.Module):
        def __init__(self):
            super().__init__()
            self.linear_1, self.linear_2 = T.Linear(4, 8), T.Linear(8, 3)
            self.cond_proj = T.Linear(5, 4, bias=False)

        def forward(self, x, condition):
            x = self.linear_1(x + self.cond_proj(condition))
            return self.linear_2(T.functional.silu(x))

    ours = nn.TimestepEmbedding(4, 8, out_dim=3, cond_proj_dim=5)
    _both(ours, Theirs(), torch.randn(2, 4), torch.randn(2, 5))
    with pytest.raises(ValueError, match="silu, gelu or relu, got 'swish'"):
        nn.TimestepEmbedding(4, 8, "swish")


class Model(nn.Module):
    def __init__(self):
        self.first = nn.Linear(3, 4)
        self.blocks = nn.ModuleList([nn.Linear(4, 4, bias=False) for _ in range(2)])
        self.named = nn.ModuleDict({"a": nn.LayerNorm(4), "b": nn.RMSNorm(4, -1)})

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.named["a"](x)


NAMES = (
    "first.weight first.bias blocks.0.weight blocks.1.weight named.a.weight named.a.bias "
    "named.b.weight named.b.bias"
).split()


def test_names_are_paths():
    model = Model()
    assert [name for name, _ in model.named_parameters()] == NAMES
    assert [name for name, _ in model.named_parameters("m")] == [f"m.{n}" for n in NAMES]
    assert list(model.state_dict()) == NAMES
    assert len(list(model.parameters())) == len(NAMES)
    assert list(model.named.keys()) == ["a", "b"] and "a" in model.named and len(model.named) == 2


def test_load_state_dict_is_strict_and_whole():
    model = Model()
    state = {n: np.ones(p.shape, "float32") for n, p in model.named_parameters()}
    assert model.load_state_dict(state) == ([], [])
    before = model.first.bias.data.numpy().copy()
    missing = {n: v for n, v in state.items() if n != "first.bias"}
    with pytest.raises(KeyError, match=r"missing \['first.bias'\], unexpected \['other'\]"):
        model.load_state_dict({**missing, "other": state["first.bias"]})
    assert model.load_state_dict({**missing, "other": 1}, strict=False) == (
        ["first.bias"], ["other"],
    )  # fmt: skip
    wrong = {n: v + 1 for n, v in state.items()} | {"named.b.bias": np.ones(5, "float32")}
    with pytest.raises(
        ValueError, match=r"expected \[4\] of float32 for 'named.b.bias', got \[5\]"
    ):
        model.load_state_dict(wrong)
    wrong["named.b.bias"] = np.ones(4, "float64")
    with pytest.raises(ValueError, match="of float64"):
        model.load_state_dict(wrong)
    wrong["named.b.bias"] = "text"
    with pytest.raises(
        TypeError, match="expected a tensor or an array for 'named.b.bias', got str"
    ):
        model.load_state_dict(wrong)
    np.testing.assert_array_equal(model.first.bias.data.numpy(), before)
    other = Model()
    other.load_state_dict(model.state_dict())  # parameters of another module
    np.testing.assert_array_equal(other.first.bias.data.numpy(), before)
    theirs = torch.nn.Linear(3, 4)
    theirs.load_state_dict(
        {n: torch.from_dlpack(p.data) for n, p in model.first.state_dict().items()}
    )
    np.testing.assert_array_equal(theirs.bias.detach().numpy(), before)


def test_to_changes_data_as_well():
    model = Model()
    model.first.bias.data = np.arange(4, dtype="float32")
    model.to("float16")
    assert {p.dtype for p in model.parameters()} == {"float16"}
    assert model.first.bias.data.dtype == "float16"
    np.testing.assert_array_equal(model.first.bias.data.numpy(), np.arange(4, dtype="float16"))
    mixed = nn.Linear(3, 4, out_dtype="float32")
    mixed.to("float16")
    assert mixed.weight.dtype == "float16" and mixed.bias.dtype == "float32"


def test_default_dtype():
    nn.set_default_dtype("float64")
    try:
        assert nn.Linear(2, 2).weight.dtype == "float64"
    finally:
        nn.set_default_dtype("float32")
    assert nn.get_default_dtype() == "float32"


def test_mutator_replaces_layers_parameters_and_effects():
    class Change(nn.Mutator):
        seen = []

        def visit_module(self, name, node):
            if isinstance(node, nn.LayerNorm):
                return nn.Identity()
            return super().visit_module(name, node)

        def visit_param(self, name, node):
            self.seen.append(name)
            return nn.Parameter(node.shape, "float16")

        def visit_effect(self, name, node):
            return nn.KVCache(1, [1])

    model = Model()
    model.cache = nn.KVCache(8, [2])
    model = Change().visit("", model)
    assert Change.seen == [n for n in NAMES if not n.startswith("named.a")]
    assert isinstance(model.named["a"], nn.Identity) and model.cache.init_seq_len == 1
    assert model.blocks[1].weight.dtype == "float16"
    with pytest.raises(TypeError, match="expected a module for 'x', got int"):
        Change().visit("x", 1)


def test_mutator_goes_on_by_visit():
    """As quantisation does: what is not replaced is visited inside, by `visit`."""

    class Quantize(nn.Mutator):
        def visit_module(self, name, node):
            if isinstance(node, nn.Linear):
                return nn.Linear(node.in_features, node.out_features, bias=False, dtype="int8")
            return self.visit(name, node)

    model = Quantize().visit("", Model())
    assert {n: p.dtype for n, p in model.named_parameters() if "named" not in n} == {
        "first.weight": "int8", "blocks.0.weight": "int8", "blocks.1.weight": "int8"
    }  # fmt: skip
    linear = nn.Linear(2, 3)
    assert Quantize().visit("", linear) is linear  # what is visited is what is inside


def test_jit_says_what_is_missing():
    model = nn.Linear(3, 4)
    with pytest.raises(ValueError, match=r"got none for \['weight', 'bias'\]"):
        model.jit({"forward": {"x": S((1, 3), "float32")}})
    model.load_state_dict(torch.nn.Linear(3, 4).state_dict())
    with pytest.raises(ValueError, match="expected out_format 'torch'"):
        model.jit({"forward": {"x": S((1, 3), "float32")}}, out_format="jax")
    compiled = model.jit({"forward": {"x": S((1, 3), "float32")}})
    with pytest.raises(ValueError, match=r"expected a method of \['forward'\]"):
        compiled["backward"]
    with pytest.raises(TypeError, match=r"expected the arguments \['x'\], got 0"):
        compiled["forward"]()
    with pytest.raises(TypeError, match="expected a torch.Tensor for 'x', got ndarray"):
        compiled["forward"](np.ones((1, 3), "float32"))


def test_forward_is_needed():
    with pytest.raises(NotImplementedError, match="expected a method forward"):
        nn.Module()()


def test_tensor_of_unknown_shape():
    var = tvm.relax.Var("x", tvm.relax.TensorStructInfo(dtype="float32", ndim=2))
    with pytest.raises(TypeError, match="expected a tensor of known shape"):
        nn.Tensor(_expr=var)
