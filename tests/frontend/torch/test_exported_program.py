# SPDX-License-Identifier: Apache-2.0
"""from_exported_program: the form of the function, parameters, symbolic sizes, mutations."""

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.export import Dim, export  # noqa: E402
from tvm.relax.frontend.torch import from_archive, from_exported_program  # noqa: E402

from .run import assert_same, check, compiled  # noqa: E402


def imported(model, args, dynamic_shapes=None, **options):
    program = export(model.eval(), args, dynamic_shapes=dynamic_shapes)
    return from_exported_program(program, **options)


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 8)

    def forward(self, x):
        return torch.relu(self.linear(x))


def test_linear_form_with_kept_parameters():
    mod = imported(Linear(), (torch.randn(2, 4),), keep_params_as_input=True)

    @I.ir_module
    class Expected:
        @R.function
        def main(
            x: R.Tensor((2, 4), dtype="float32"),
            p_linear_weight: R.Tensor((8, 4), dtype="float32"),
            p_linear_bias: R.Tensor((8,), dtype="float32"),
        ) -> R.Tuple(R.Tensor((2, 8), dtype="float32")):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                lv: R.Tensor((4, 8), dtype="float32") = R.permute_dims(p_linear_weight, axes=[1, 0])
                lv1: R.Tensor((2, 8), dtype="float32") = R.matmul(x, lv, out_dtype="float32")
                lv2: R.Tensor((2, 8), dtype="float32") = R.add(p_linear_bias, lv1)
                lv3: R.Tensor((2, 8), dtype="float32") = R.nn.relu(lv2)
                gv: R.Tuple(R.Tensor((2, 8), dtype="float32")) = (lv3,)
                R.output(gv)
            return gv

    main = mod["main"]
    assert len(main.attrs["params"]) == 2
    tvm.ir.assert_structural_equal(main.without_attr("params"), Expected["main"])


def test_parameters_are_shared_with_the_model():
    model = Linear()
    mod = imported(model, (torch.randn(2, 4),), keep_params_as_input=True)
    weight = mod["main"].attrs["params"][0]
    assert weight.data_ptr() == model.linear.weight.data_ptr()
    np.testing.assert_array_equal(weight.numpy(), model.linear.weight.detach().numpy())


def test_parameters_become_constants():
    mod = imported(Linear(), (torch.randn(2, 4),))
    main = mod["main"]
    assert [p.name_hint for p in main.params] == ["x"]
    assert "num_input" not in main.attrs and "params" not in main.attrs


class TwoResults(nn.Module):
    def forward(self, x):
        return x + 1.0, x * 2.0


def test_results_are_bound_as_a_tuple_or_not():
    bound = imported(TwoResults(), (torch.randn(3),))["main"].body
    assert isinstance(bound.body, relax.Var)
    free = imported(TwoResults(), (torch.randn(3),), no_bind_return_tuple=True)["main"].body
    assert [f.name_hint for f in free.body.fields] == ["gv", "gv1"]


def test_one_result_can_be_unwrapped():
    mod = imported(Linear(), (torch.randn(2, 4),), unwrap_unit_return_tuple=True)
    assert isinstance(mod["main"].ret_struct_info, relax.TensorStructInfo)


def test_convolution_form():
    class Conv(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 6, 3, stride=2, padding=1)

        def forward(self, x):
            return self.conv(x)

    mod = imported(Conv(), (torch.randn(1, 3, 10, 10),), keep_params_as_input=True)

    @I.ir_module
    class Expected:
        @R.function
        def main(
            x: R.Tensor((1, 3, 10, 10), dtype="float32"),
            p_conv_weight: R.Tensor((6, 3, 3, 3), dtype="float32"),
            p_conv_bias: R.Tensor((6,), dtype="float32"),
        ) -> R.Tuple(R.Tensor((1, 6, 5, 5), dtype="float32")):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                lv = R.nn.conv2d(
                    x,
                    p_conv_weight,
                    strides=[2, 2],
                    padding=[1, 1, 1, 1],
                    data_layout="NCHW",
                    kernel_layout="OIHW",
                    out_dtype="float32",
                )
                lv1: R.Tensor((1, 6, 1, 1), dtype="float32") = R.reshape(p_conv_bias, (1, 6, 1, 1))
                lv2: R.Tensor((1, 6, 5, 5), dtype="float32") = R.add(lv, lv1)
                gv: R.Tuple(R.Tensor((1, 6, 5, 5), dtype="float32")) = (lv2,)
                R.output(gv)
            return gv

    tvm.ir.assert_structural_equal(mod["main"].without_attr("params"), Expected["main"])


def test_attention_form_without_decomposition():
    class Attention(nn.Module):
        def forward(self, q, k, v):
            return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    args = tuple(torch.randn(2, 4, 8, 16) for _ in range(3))
    mod = imported(Attention(), args, run_ep_decomposition=False)

    @I.ir_module
    class Expected:
        @R.function
        def main(
            q: R.Tensor((2, 4, 8, 16), dtype="float32"),
            k: R.Tensor((2, 4, 8, 16), dtype="float32"),
            v: R.Tensor((2, 4, 8, 16), dtype="float32"),
        ) -> R.Tuple(R.Tensor((2, 4, 8, 16), dtype="float32")):
            with R.dataflow():
                lv: R.Tensor((2, 8, 4, 16), dtype="float32") = R.permute_dims(q, axes=[0, 2, 1, 3])
                lv1: R.Tensor((2, 8, 4, 16), dtype="float32") = R.permute_dims(k, axes=[0, 2, 1, 3])
                lv2: R.Tensor((2, 8, 4, 16), dtype="float32") = R.permute_dims(v, axes=[0, 2, 1, 3])
                lv3: R.Tensor((2, 8, 4, 16), dtype="float32") = R.nn.attention(
                    lv, lv1, lv2, causal_mask="TopLeft"
                )
                lv4: R.Tensor((2, 4, 8, 16), dtype="float32") = R.permute_dims(
                    lv3, axes=[0, 2, 1, 3]
                )
                gv: R.Tuple(R.Tensor((2, 4, 8, 16), dtype="float32")) = (lv4,)
                R.output(gv)
            return gv

    tvm.ir.assert_structural_equal(mod, Expected)


def test_embedding_form():
    class Embedding(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(10, 4)

        def forward(self, i):
            return self.table(i)

    mod = imported(Embedding(), (torch.zeros(2, 3, dtype=torch.int64),), keep_params_as_input=True)

    @R.function
    def main(
        i: R.Tensor((2, 3), dtype="int64"), p_table_weight: R.Tensor((10, 4), dtype="float32")
    ) -> R.Tuple(R.Tensor((2, 3, 4), dtype="float32")):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            lv: R.Tensor((2, 3), dtype="int32") = R.astype(i, dtype="int32")
            lv1: R.Tensor((6,), dtype="int32") = R.reshape(lv, (6,))
            lv2: R.Tensor((6, 4), dtype="float32") = R.take(p_table_weight, lv1, axis=0)
            lv3: R.Tensor((2, 3, 4), dtype="float32") = R.reshape(lv2, (2, 3, 4))
            gv: R.Tuple(R.Tensor((2, 3, 4), dtype="float32")) = (lv3,)
            R.output(gv)
        return gv

    tvm.ir.assert_structural_equal(mod["main"].without_attr("params"), main)


def test_symbolic_batch_has_its_range():
    batch = Dim("batch", min=2, max=64)
    mod = imported(Linear(), (torch.randn(3, 4),), {"x": {0: batch}})
    main = mod["main"]
    (n,) = tvm.relax.analysis.defined_symbolic_vars(main)
    assert dict(main.attrs["tir_var_lower_bound"]) == {n.name: 2}
    assert dict(main.attrs["tir_var_upper_bound"]) == {n.name: 64}
    assert tvm.relax.analysis.well_formed(mod)
    (field,) = main.ret_struct_info.fields
    assert field.shape[0].same_as(n)


def test_derived_sizes_keep_their_relation():
    class Add(nn.Module):
        def forward(self, x, y):
            return x[:-1] + y

    n = Dim("n", min=3, max=100)
    args = (torch.randn(5), torch.randn(4))
    mod = imported(Add(), args, {"x": {0: n}, "y": {0: n - 1}})
    main = mod["main"]
    x, y = (p.struct_info.shape[0] for p in main.params)
    variables = tvm.relax.analysis.defined_symbolic_vars(main)
    assert len(variables) == 1
    analyzer = tvm.arith.Analyzer()
    assert analyzer.can_prove_equal(x - y, 1)
    assert analyzer.can_prove_equal(main.ret_struct_info.fields[0].shape[0], y)


def test_a_size_that_inputs_show_only_doubled():
    class Halves(nn.Module):
        def forward(self, x):
            return x.reshape(2, -1)[0]

    half = Dim("half", min=2, max=50)
    mod = imported(Halves(), (torch.randn(8),), {"x": {0: 2 * half}})
    assert tvm.relax.analysis.well_formed(mod)
    main = mod["main"]
    (whole,) = main.params[0].struct_info.shape
    result = main.ret_struct_info.fields[0].shape[0]
    assert isinstance(whole, tvm.tir.Var)
    tvm.ir.assert_structural_equal(
        tvm.arith.Analyzer().simplify(result), whole // 2, map_free_vars=True
    )


def test_symbols_as_values():
    class Scale(nn.Module):
        def forward(self, x):
            return x * x.shape[0]

    mod = imported(Scale(), (torch.randn(3, 4),), {"x": {0: Dim("n", min=2)}})
    assert tvm.relax.analysis.well_formed(mod)


class Accumulator(nn.Module):
    """Changes a buffer and an input, and returns what both were."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x):
        before = self.total.clone(), x.clone(), self.total.view(1, 3), x.view(3, 1)
        self.total.add_(x)
        x.mul_(2.0)
        return (*(t.clone() for t in before[2:]), before[0], before[1], self.total + x)


def accumulator(way, folder):
    program = export(Accumulator(), (torch.randn(3),))
    if way == "archive":
        torch.export.save(program, folder / "model.pt2")
        return from_archive(str(folder / "model.pt2"))
    return from_exported_program(program, run_ep_decomposition=way == "decomposed")


@pytest.mark.parametrize("way", ["decomposed", "whole", "archive"])
def test_buffers_are_kept_and_inputs_are_written_to(way, tmp_path):
    mod = accumulator(way, tmp_path)
    assert len(mod["main"].ret_struct_info.fields) == 5
    assert not mod["main"].is_pure and relax.analysis.well_formed(mod)
    program = tvm.compile(mod, target="llvm")
    for _ in range(2):  # machines keep their own state
        model, machine = Accumulator(), relax.VirtualMachine(program, tvm.cpu())
        results = []
        for step in range(3):
            x, y = torch.arange(3.0) + step, torch.arange(3.0) + step
            results.append((machine["main"](x), model(y)))
            assert_same(x, y)
        for ours, theirs in results:  # later calls leave the results of earlier ones alone
            assert_same(ours, theirs)
        assert_same(machine.get_state("b_total"), model.total)
        machine.set_state("b_total", torch.ones(3))
        assert_same(machine["main"](torch.ones(3))[2], torch.ones(3))


def test_mutations_are_functionalised_without_decomposition():
    class Mutation(nn.Module):
        def forward(self, x):
            y = x.clone()
            y[0] = 0.0
            return y

    mod = imported(Mutation(), (torch.randn(3, 2),), run_ep_decomposition=False)
    assert tvm.relax.analysis.well_formed(mod)


@pytest.mark.parametrize("decomposed", [True, False])
def test_running_statistics_change_in_training(decomposed, tmp_path):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.batch = nn.BatchNorm1d(3)
            self.instance = nn.InstanceNorm1d(3, affine=True, track_running_stats=True)

        def forward(self, x):
            return self.batch(x) + self.instance(2.0 * x)

    model, x = Model().train(), torch.randn(2, 3, 5) + 1.0
    program = torch.export.export(model, (x,))
    mod = from_exported_program(program, run_ep_decomposition=decomposed)
    if not decomposed:
        torch.export.save(program, tmp_path / "m.pt2")
        tvm.ir.assert_structural_equal(from_archive(str(tmp_path / "m.pt2")), mod)
    machine = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    for _ in range(3):  # ours first: the buffers as they were are shared
        assert_same(machine["main"](x), [model(x)])
        for name, value in model.named_buffers():
            if name != "instance.num_batches_tracked":  # that no program changes
                assert_same(machine.get_state(f"b_{name.replace('.', '_')}"), value)


def test_none_and_numbers_among_results():
    class Mixed(nn.Module):
        def forward(self, x):
            return x, None, 3

    main = imported(Mixed(), (torch.randn(2),))["main"]
    kinds = [type(f).__name__ for f in main.ret_struct_info.fields]
    assert kinds == ["TensorStructInfo", "ObjectStructInfo", "PrimStructInfo"]


def test_custom_conversion():
    class Model(nn.Module):
        def forward(self, x):
            return torch.nn.functional.rms_norm(x, (4,)) + 1.0

    def convert(node, importer):
        x = importer.env[node.args[0]]
        args = importer.retrieve_args(node)
        assert args[0].same_as(x)
        assert list(importer.shape_of(x)) == [2, 4]
        return importer.block_builder.emit(relax.op.negative(x))

    mod = imported(
        Model(),
        (torch.randn(2, 4),),
        run_ep_decomposition=False,
        custom_convert_map={"rms_norm.default": convert},
    )
    names = [b.value.op.name for b in mod["main"].body.blocks[0].bindings if hasattr(b.value, "op")]
    assert names == ["relax.negative", "relax.add"]


@torch.library.custom_op("tvm_test::first", mutates_args=())
def first(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@torch.library.custom_op("tvm_test::second", mutates_args=())
def second(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


first.register_fake(torch.empty_like)
second.register_fake(torch.empty_like)


def test_all_unsupported_operators_come_in_one_error():
    class Model(nn.Module):
        def forward(self, x):
            return second(first(x))

    with pytest.raises(AssertionError, match="Unsupported function types") as error:
        imported(Model(), (torch.randn(2),))
    text = str(error.value)
    assert "tvm_test.first.default" in text and "tvm_test.second.default" in text
    assert "return second(first(x))" in text  # the line of the program
    assert 'tvm_test.first.default: node first of R.Tensor((2,), dtype="float32")' in text
    assert "tvm_test.second.default: node second of float32[2]" in text


def test_something_else_is_refused():
    with pytest.raises(TypeError, match="expected a torch.export.ExportedProgram, got Linear"):
        from_exported_program(Linear())


def test_complex_tensors_are_pairs_at_the_border():
    class Model(nn.Module):
        def forward(self, x, z):
            return torch.fft.fft(x) * z + (1 - 2j), torch.zeros(4, dtype=torch.complex64) + z

    x, z = torch.randn(4), torch.randn(4, dtype=torch.complex64)
    ours = compiled(imported(Model(), (x, z)))(x, torch.view_as_real(z))
    assert_same(ours, [torch.view_as_real(y) for y in Model()(x, z)])


def test_a_size_within_its_range_is_checked_when_running():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.positions = nn.Parameter(torch.randn(16, 4))

        def forward(self, x):
            return x + self.positions[: x.shape[0]] + self.positions.repeat(x.shape[0], 1)[:1]

    model = Model().eval()
    length = Dim("length", min=2, max=16)
    check(model, (torch.randn(5, 4),), {"x": {0: length}}, [(torch.randn(16, 4),)])
    program = export(model, (torch.randn(5, 4),), dynamic_shapes={"x": {0: length}})
    with pytest.raises(Exception, match="17"):
        compiled(from_exported_program(program))(torch.randn(17, 4))


def test_sizes_by_way_of_real_numbers():
    class Model(nn.Module):
        def forward(self, x):
            y = nn.functional.interpolate(x, scale_factor=1.5, mode="bicubic")
            z = nn.functional.interpolate(x, scale_factor=2.0)
            return y, z, x * (x.shape[2] / 3)

    dims = {2: 2 * Dim("h", min=2, max=20), 3: 2 * Dim("w", min=2, max=20)}
    images = [torch.randn(2, 3, *size) for size in ((8, 12), (10, 6))]
    for decomposed in (True, False):
        check(
            Model(), (images[0],), dynamic_shapes=(dims,), others=[(images[1],)],
            run_ep_decomposition=decomposed,
        )  # fmt: skip


def test_products_of_bytes_and_other_integers():
    class Model(nn.Module):
        def forward(self, a, b, i, t):
            mean = nn.functional.avg_pool2d(i, 2, 1, 1, divisor_override=-3)
            return torch._int_mm(a, b), mean, t.cummin(1), torch.clamp(t, max=t.flip(1))

    a, b = (torch.randint(-128, 127, (32, 32), dtype=torch.int8) for _ in range(2))
    args = a, b, torch.randint(-9, 9, (1, 2, 5, 5)), torch.rand(3, 4) > 0.4
    check(Model(), args)
