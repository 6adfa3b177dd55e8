# SPDX-License-Identifier: Apache-2.0
"""Programs and arguments that are unusual or wrong: an error that names the cause, or PyTorch's
result."""

import pytest
import tvm

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.export import Dim, export  # noqa: E402
from tvm.relax.frontend.torch import from_exported_program, relax_dynamo  # noqa: E402

from .run import assert_same, check, compiled  # noqa: E402


def test_results_in_containers_come_in_order():
    class Model(nn.Module):
        def forward(self, x):
            return {"a": x + 1, "b": (x * 2, [x.sum(), {"c": x.mean()}])}

    check(Model(), (torch.randn(3),))


def test_arguments_in_containers_come_in_order():
    class Model(nn.Module):
        def forward(self, pair, named):
            return pair[0] - pair[1], named["x"] * named["y"]

    model, values = Model(), [torch.randn(3) for _ in range(4)]
    args = ((values[0], values[1]), {"x": values[2], "y": values[3]})
    main = compiled(from_exported_program(export(model, args)))
    assert_same(main(*values), model(*args))


def test_shared_aliased_and_strided_parameters():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Parameter(torch.randn(4, 3).T)
            self.b = self.a
            self.register_buffer("part", torch.randn(12)[::3])
            self.register_buffer("row", self.a.detach()[0])

        def forward(self, x):
            return x @ self.a @ self.b.T + self.part.sum() + self.row.sum()

    check(Model(), (torch.randn(2, 3),))


def test_a_parameter_without_elements_is_named():
    model = nn.Linear(3, 2).to("meta")
    program = export(model, (torch.randn(2, 3, device="meta"),))
    with pytest.raises(ValueError, match="parameter 'weight': expected a tensor with elements"):
        from_exported_program(program)


def test_sizes_that_depend_on_data():
    class Model(nn.Module):
        def forward(self, x):
            return x[x > 0] * 2.0, torch.nonzero(x)

    others = [(torch.tensor([-1.0, 0.0, -3.0]),)]
    check(Model(), (torch.tensor([1.0, -1.0, 3.0]),), others=others)


def test_a_range_that_is_contradicted_names_dimension_values_and_inputs():
    class Model(nn.Module):
        def forward(self, x, y):
            return x + y

    batch = Dim("batch", min=2, max=8)
    args = (torch.randn(3, 4), torch.randn(3, 4))
    program = export(Model(), args, dynamic_shapes={"x": {0: batch}, "y": {0: batch}})
    main = compiled(from_exported_program(program))
    with pytest.raises(RuntimeError) as error:
        main(torch.randn(3, 4), torch.randn(5, 4))
    text = str(error.value)
    assert "argument 'y'" in text and "shape[0] of argument 'x'" in text
    assert "expected 3" in text and "got 5" in text
    for n in (9, 100):
        with pytest.raises(ValueError) as error:
            main(torch.randn(n, 4), torch.randn(n, 4))
        text = str(error.value)
        assert "main: shape[0] of argument 'x'" in text
        assert f"expected a size from 0 to 8 as the program declares, got {n}" in text
    program = export(Model(), args, dynamic_shapes=({0: Dim("wide", min=3)},) * 2)
    with pytest.raises(ValueError, match="expected a size of at least 3 .* got 2"):
        compiled(from_exported_program(program))(torch.randn(2, 4), torch.randn(2, 4))


def test_an_error_of_a_node_names_it_its_inputs_the_line_and_what_to_do():
    class Model(nn.Module):
        def forward(self, x):
            return nn.functional.pdist(x * 2.0)

    rows = Dim("rows", min=3, max=8)
    program = export(Model(), (torch.randn(4, 5),), dynamic_shapes=({0: rows},))
    with pytest.raises(NotImplementedError, match="expected a constant number of rows") as error:
        from_exported_program(program)
    text = str(error.value)
    assert "aten._pdist_forward.default (node _pdist_forward) of R.Tensor((s" in text
    assert ', 5), dtype="float32")' in text and "return nn.functional.pdist(x * 2.0)" in text
    assert "custom_convert_map" in text


def test_arguments_of_another_type_or_rank_are_refused():
    main = compiled(from_exported_program(export(nn.ReLU(), (torch.randn(3),))))
    for wrong in (torch.randn(3, 1), torch.ones(3, dtype=torch.int64), torch.randn(4)):
        with pytest.raises((RuntimeError, TypeError, ValueError), match="argument"):
            main(wrong)


def test_an_object_of_another_library_is_refused():
    program = export(nn.ReLU(), (torch.randn(3),))
    (spec,) = program.graph_signature.input_specs
    spec.kind = torch.export.graph_signature.InputKind.CUSTOM_OBJ
    with pytest.raises(ValueError, match="Unsupported input kind CUSTOM_OBJ"):
        from_exported_program(program, run_ep_decomposition=False)


def test_the_target_of_a_change_through_overlapping_views_is_not_lost():
    class Model(nn.Module):
        def forward(self, x):
            y = x.clone()
            y.diagonal().add_(1.0)
            a, b = y.split(1)
            a.mul_(b)
            return y

    for decomposed in (True, False):
        check(Model(), (torch.randn(2, 2),), run_ep_decomposition=decomposed)


def test_places_in_memory_of_a_tensor_that_is_not_row_major():
    def function(x):
        return x.t().as_strided((2, 2), (1, 2)) + 1.0

    class Model(nn.Module):
        def forward(self, x):
            return function(x)

    x = torch.randn(3, 2)
    with pytest.raises(NotImplementedError, match=r"as_strided.*expected a tensor in row-major"):
        from_exported_program(export(Model(), (x,)))
    with torch.no_grad(), pytest.warns(UserWarning, match="PyTorch runs aten.as_strided"):
        assert_same(torch.compile(function, backend=relax_dynamo())(x), function(x))


def test_places_in_memory_in_front_of_an_input():
    class Model(nn.Module):
        def forward(self, x):
            return x.as_strided((2, 2), (1, 2), 0) + 1.0

    with pytest.raises(NotImplementedError, match="as_strided.*strides .1,. from 5 on"):
        from_exported_program(export(Model(), (torch.randn(20)[5:15],)))


def test_a_function_of_another_kind_is_refused():
    with pytest.raises(TypeError, match="expected a function, got 3"):
        program = export(nn.ReLU(), (torch.randn(3),))
        from_exported_program(program, custom_convert_map={"relu.default": 3})
    assert tvm.relax.analysis.well_formed(from_exported_program(program))
