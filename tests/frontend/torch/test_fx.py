# SPDX-License-Identifier: Apache-2.0
"""from_fx: functions, methods and modules of traced graphs."""

import pytest
import tvm
from tvm import relax
from tvm.script import relax as R

torch = pytest.importorskip("torch")
from torch import fx, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from tvm.relax.frontend.torch import dynamo_capture_subgraphs, from_fx  # noqa: E402

from .run import assert_same, compiled  # noqa: E402


def traced(model, *shapes, **options):
    info = [(shape, "float32") for shape in shapes]
    mod = from_fx(fx.symbolic_trace(model), info, **options)
    assert relax.analysis.well_formed(mod)
    return mod


def operators(mod, name="main"):
    found = []
    for block in mod[name].body.blocks:
        for binding in block.bindings:
            op = getattr(binding.value, "op", None)
            if op is not None:
                found.append(op.name.removeprefix("relax."))
    return found


def test_linear_with_kept_parameters():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 8)

        def forward(self, x):
            return F.relu(self.linear(x))

    mod = traced(Model(), (2, 4), keep_params_as_input=True)

    @R.function
    def main(
        inp_0: R.Tensor((2, 4), dtype="float32"),
        bias: R.Tensor((8,), dtype="float32"),
        weight: R.Tensor((8, 4), dtype="float32"),
    ) -> R.Tensor((2, 8), dtype="float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            lv: R.Tensor((4, 8), dtype="float32") = R.permute_dims(weight, axes=None)
            lv1: R.Tensor((2, 8), dtype="float32") = R.matmul(inp_0, lv, out_dtype="float32")
            lv2: R.Tensor((2, 8), dtype="float32") = R.add(lv1, bias)
            lv3: R.Tensor((2, 8), dtype="float32") = R.nn.relu(lv2)
            gv: R.Tensor((2, 8), dtype="float32") = lv3
            R.output(gv)
        return gv

    func = mod["main"]
    assert [p.name_hint for p in func.params] == ["inp_0", "linear.bias", "linear.weight"]
    tvm.ir.assert_structural_equal(func.without_attr("params"), main)


def test_symbolic_sizes():
    class Model(nn.Module):
        def forward(self, x):
            return x.view(x.size(0), -1) + x.shape[1]

    n = tvm.tir.Var("n", "int64")
    mod = traced(Model(), (n, 2, 3))
    rows, columns = mod["main"].ret_struct_info.shape
    analyzer = tvm.arith.Analyzer()
    analyzer.bind(n, tvm.ir.Range(1, 1000))
    assert rows.same_as(n) and analyzer.can_prove_equal(columns, 6)


def test_results_keep_their_structure():
    class Bare(nn.Module):
        def forward(self, x):
            return x + 1.0

    class Pair(nn.Module):
        def forward(self, x):
            return x + 1.0, (x * 2.0, x)

    assert isinstance(traced(Bare(), (2,))["main"].ret_struct_info, relax.TensorStructInfo)
    info = traced(Pair(), (2,))["main"].ret_struct_info
    assert isinstance(info.fields[1], relax.TupleStructInfo)


def test_modules():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(3, 8, 3, padding=1),
                nn.BatchNorm2d(8),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Dropout(),
                nn.AdaptiveAvgPool2d(1),
                nn.Flatten(),
                nn.Linear(8, 4, bias=False),
                nn.GELU(approximate="tanh"),
                nn.Softmax(dim=-1),
            )

        def forward(self, x):
            return self.body(x)

    mod = traced(Model().eval(), (1, 3, 8, 8))
    assert operators(mod) == [
        "nn.conv2d",
        "reshape",
        "add",
        "nn.batch_norm",
        "nn.relu",
        "nn.max_pool2d",
        "nn.adaptive_avg_pool2d",
        "reshape",
        "permute_dims",
        "matmul",
        "nn.gelu_tanh",
        "nn.softmax",
    ]


@pytest.mark.parametrize(
    "function, shape, expected",
    [
        (lambda x: x[0], (3, 4), (4,)),
        (lambda x: x[-1], (3, 4), (4,)),
        (lambda x: x[:, None], (3, 4), (3, 1, 4)),
        (lambda x: x[..., 1:3], (3, 4), (3, 2)),
        (lambda x: x[1, :2], (3, 4), (2,)),
        (lambda x: x[::2], (5, 4), (3, 4)),
        (lambda x: torch.cat([x, x], dim=1), (3, 4), (3, 8)),
        (lambda x: x.permute(1, 0), (3, 4), (4, 3)),
        (lambda x: x.transpose(0, 1), (3, 4), (4, 3)),
        (lambda x: x.view(2, 6), (3, 4), (2, 6)),
        (lambda x: x.reshape([-1]), (3, 4), (12,)),
        (lambda x: x.mean(-1), (3, 4), (3,)),
        (lambda x: torch.sum(x, dim=0, keepdim=True), (3, 4), (1, 4)),
        (lambda x: x.expand(2, 3, 4), (3, 4), (2, 3, 4)),
        (lambda x: torch.einsum("ij,kj->ik", x, x), (3, 4), (3, 3)),
        (lambda x: F.interpolate(x, scale_factor=2), (1, 1, 3, 4), (1, 1, 6, 8)),
        (lambda x: x.to(torch.float32).float().squeeze(0), (1, 4), (4,)),
        (lambda x: torch.split(x, 2, dim=1)[1], (3, 4), (3, 2)),
        (lambda x: x.chunk(2, -1)[0] + 1, (3, 4), (3, 2)),
        (lambda x: F.layer_norm(x, (4,)), (3, 4), (3, 4)),
        (lambda x: x.masked_fill(x > 0, 1.0), (3, 4), (3, 4)),
    ],
)
def test_shapes_of_functions_and_methods(function, shape, expected):
    class Model(nn.Module):
        def forward(self, x):
            return function(x)

    info = traced(Model(), shape)["main"].ret_struct_info
    assert tuple(int(d) for d in info.shape) == expected


def test_a_change_in_place_is_seen_by_later_readers():
    class Model(nn.Module):
        def forward(self, x):
            y = x + 1.0
            y.fill_(3.0)
            return y * 2.0

    assert operators(traced(Model(), (2,))) == ["add", "full", "multiply"]


def test_errors():
    class Unknown(nn.Module):
        def forward(self, x):
            return torch.linalg.svd(x)[0]

    with pytest.raises(AssertionError, match="Unsupported function target linalg_svd"):
        traced(Unknown(), (2, 2))

    class Two(nn.Module):
        def forward(self, x, y):
            return x + y

    with pytest.raises(AssertionError, match="input_info for the placeholder 'y'"):
        traced(Two(), (2, 2))
    with pytest.raises(ValueError, match="expected 'NCHW' or 'NHWC', got 'WCHN'"):
        traced(Two(), (2, 2), (2, 2), default_image_layout="WCHN")
    with pytest.raises(TypeError, match="expected a torch.fx.GraphModule, got Two"):
        from_fx(Two(), [])


def test_capture_subgraphs():
    class Model(nn.Module):
        def forward(self, x):
            x = x / (torch.abs(x) + 1)
            if x.sum() < 0:
                x = x * -1
            return torch.relu(x)

    mod = dynamo_capture_subgraphs(Model(), torch.ones(4))
    assert sorted(v.name_hint for v in mod.get_global_vars()) == ["subgraph_0", "subgraph_1"]
    first = mod["subgraph_0"].ret_struct_info
    kinds = sorted(str(f.dtype) for f in first.fields)  # in an order of PyTorch's
    assert kinds == ["bool", "float32"]
    assert operators(mod, "subgraph_1")[-1] == "nn.relu"


def test_results_by_name_come_in_order():
    class Model(nn.Module):
        def forward(self, x):
            return {"a": x + 1, "b": [x * 2, {"c": x - 1}]}

    model, x = Model(), torch.randn(3)
    mod = from_fx(fx.symbolic_trace(model), [((3,), "float32")])
    assert_same(compiled(mod)(x), model(x))


@pytest.mark.parametrize("info", [[(2, 8)], ((2, 8), "float32"), None, [((2, 8),)]])
def test_what_is_no_list_of_shapes_and_types_is_refused(info):
    graph = fx.symbolic_trace(nn.Linear(8, 4))
    with pytest.raises(TypeError, match=r"from_fx: expected .*\(shape, dtype\)"):
        from_fx(graph, info)
