# SPDX-License-Identifier: Apache-2.0
"""Exported modules: whole programs, modes of parameters and effects, subroutines, external code."""

import numpy as np
import pytest
import tvm
from tvm import relax, tir
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import op
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

torch = pytest.importorskip("torch")
S = nn.spec.Tensor


def _equal(mod, expected):
    tvm.ir.assert_structural_equal(mod, expected, map_free_vars=True)


class Linear(nn.Module):
    def __init__(self):
        self.weight, self.bias = nn.Parameter((4, 8), "float32"), nn.Parameter((4,), "float32")

    def forward(self, x):
        return op.matmul(x, op.permute_dims(self.weight)) + self.bias


def test_plain():
    @I.ir_module
    class Expected:
        @R.function
        def forward(
            x: R.Tensor(("n", 8), "float32"),
            weight: R.Tensor((4, 8), "float32"),
            bias: R.Tensor((4,), "float32"),
        ):
            R.func_attr({"num_input": 1})
            n = T.int64()  # noqa: F841
            with R.dataflow():
                lv = R.permute_dims(weight)
                lv1 = R.matmul(x, lv)
                lv2 = R.add(lv1, bias)
                gv = lv2
                R.output(gv)
            return gv

    mod, params = Linear().export_tvm({"forward": {"x": S(("n", 8), "float32")}})
    _equal(mod, Expected)
    assert [name for name, _ in params] == ["weight", "bias"]
    assert [p.name_hint for p in mod["forward"].params] == ["x", "weight", "bias"]


def test_packed_parameters_and_none():
    spec = {"x": S((2, 8), "float32"), "$": {"param_mode": "packed", "effect_mode": "none"}}
    mod, params = Linear().export_tvm({"forward": spec})
    x, packed = mod["forward"].params
    assert packed.name_hint == "packed_params"
    assert [list(map(int, f.shape)) for f in packed.struct_info.fields] == [[4, 8], [4]]
    vm = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    x, w, b = (np.random.rand(*s).astype("float32") for s in ((2, 8), (4, 8), (4,)))
    found = vm["forward"](x, [tvm.runtime.tensor(w), tvm.runtime.tensor(b)])
    np.testing.assert_allclose(found.numpy(), x @ w.T + b, rtol=1e-5)

    class NoParameters(nn.Module):
        def __init__(self):
            self.unused = nn.Parameter((1,))

        def forward(self, x):
            return x + 1

    spec["$"] = {"param_mode": "none", "effect_mode": "none"}
    mod, _ = NoParameters().export_tvm({"forward": spec})
    assert len(mod["forward"].params) == 1


def test_all_kinds_of_arguments():
    class Model(nn.Module):
        def run(self, x, pair, n, thing):
            assert (
                isinstance(n, tir.Var) and isinstance(pair, tuple) and isinstance(thing, nn.Object)
            )
            return (op.reshape(x + pair[0], [n, 2]), [pair[1][0]])

    tensor = S(("m", 2), "float32")
    spec = {
        "x": tensor, "pair": (tensor, [S((3,), "int64")]),
        "n": int, "thing": nn.spec.Object(nn.Object),
    }  # fmt: skip
    mod, _ = Model().export_tvm({"run": spec})
    infos = [p.struct_info for p in mod["run"].params]
    assert isinstance(infos[1], relax.TupleStructInfo) and isinstance(
        infos[2], relax.ShapeStructInfo
    )
    assert isinstance(infos[3], relax.ObjectStructInfo)
    assert infos[0].shape[0].same_as(infos[1].fields[0].shape[0])  # one name, one variable
    assert int(mod["run"].attrs["num_input"]) == 4
    vm = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    x, ids = np.ones((3, 2), "float32"), np.arange(3)
    args = [tvm.runtime.tensor(x), [tvm.runtime.tensor(ids)]]
    first, (second,) = vm["run"](x, args, tvm.runtime.ShapeTuple([3]), None)
    np.testing.assert_array_equal(first.numpy(), x + x)
    np.testing.assert_array_equal(second.numpy(), ids)


def test_symbolic_parameters_are_each_methods_own():
    class Model(nn.Module):
        def __init__(self):
            self.named = nn.Embedding("vocabulary", 4)
            self.variable = nn.Linear(4, tir.Var("width", "int64"), bias=False)

        def first(self, ids):
            return self.variable(self.named(ids))

        def second(self, ids):
            return self.named(ids)

    ids = {"ids": S(("n",), "int64")}
    mod, _ = Model().export_tvm({"first": ids, "second": ids})
    assert relax.analysis.well_formed(mod)
    vm = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    table, weight = np.random.rand(9, 4).astype("float32"), np.random.rand(5, 4).astype("float32")
    found = vm["first"](np.array([1, 8]), table, weight)
    np.testing.assert_allclose(found.numpy(), table[[1, 8]] @ weight.T, rtol=1e-5)


def test_tied_parameters_are_one():
    class Model(nn.Module):
        def __init__(self):
            self.embed = nn.Embedding(9, 4)
            self.head = nn.Linear(4, 9, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, ids):
            return self.head(self.embed(ids))

    _, params = Model().export_tvm({"forward": {"ids": S((2,), "int64")}})
    assert [name for name, _ in params] == ["embed.weight"]


class Cached(nn.Module):
    def __init__(self):
        self.cache = nn.KVCache(2, [4])

    def forward(self, x, total):
        self.cache.append(op.reshape(x, [x.shape[0], 4]))
        return op.sum(self.cache.view(total), axis=0)


@pytest.mark.parametrize("mode", ["plain", "packed"])
def test_effects(mode):
    spec = {"x": S(("n", 4), "float32"), "total": int, "$": {"effect_mode": mode}}
    compiled = Cached().jit({"forward": spec})
    total = torch.zeros(4)
    for i in range(1, 5):
        x = torch.full((1, 4), float(i))
        total += x[0]
        torch.testing.assert_close(compiled["forward"](x, i), total)


def test_effects_return_behind_the_results():
    mod, _ = Cached().export_tvm({"forward": {"x": S((1, 4), "float32"), "total": int}})
    assert int(mod["forward"].attrs["num_input"]) == 3
    result = mod["forward"].ret_struct_info
    assert isinstance(result.fields[1].fields[0], relax.ObjectStructInfo)
    assert len(mod["_initialize_effect"].params) == 0


def test_debugging(capfd):
    calls = []

    @tvm.register_global_func("test.nn.debug", override=True)
    def debug(line, value, number):
        calls.append((line.rpartition(":")[0], value.numpy().tolist(), number))

    class Model(nn.Module):
        def forward(self, x):
            op.debug_func("test.nn.debug", x, 3)
            y = x + 1
            op.print_(y)
            return y

    compiled = Model().jit({"forward": {"x": S((2,), "float32")}}, debug=True)
    assert compiled["forward"](torch.tensor([1.0, 2.0])).tolist() == [2.0, 3.0]
    assert calls == [(__file__, [1.0, 2.0], 3)]
    out = capfd.readouterr().out
    assert f"{__file__}:" in out and "shape = (2,)" in out


def test_subroutines():
    class Block(nn.Module):
        define_subroutine = True

        def __init__(self, scale):
            self.linear, self.scale = nn.Linear(4, 4, bias=False), scale

        def forward(self, x, shift=None):
            x = self.linear(x) * self.scale
            return (x, x if shift is None else x + shift)

    class Model(nn.Module):
        def __init__(self):
            self.blocks = nn.ModuleList([Block(2.0), Block(2.0), Block(3.0)])

        def forward(self, x):
            for block in self.blocks:
                x, _ = block(x)
            return x

    model, spec = Model(), {"forward": {"x": S(("n", 4), "float32")}}
    mod, params = model.export_tvm(spec)
    assert relax.analysis.well_formed(mod)
    names = sorted(v.name_hint for v in mod.get_global_vars())
    assert names == ["block", "block1", "forward"]  # two of the three are equal
    assert len(params) == 3
    for _, param in params:
        param.data = np.random.rand(4, 4).astype("float32")
    x = np.random.rand(3, 4).astype("float32")
    expected = x
    for (_, param), scale in zip(params, (2, 2, 3), strict=True):
        expected = expected @ param.data.numpy().T * scale
    found = model.jit(spec)["forward"](torch.from_numpy(x))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4)


def test_subroutine_with_debugging_and_numbers(capfd):
    class Rows(nn.Module):
        define_subroutine = True

        def forward(self, x, n):
            op.print_(x)
            return op.reshape(x, [n, 2])

    class Model(nn.Module):
        def __init__(self):
            self.rows = Rows()

        def forward(self, x, n):
            return self.rows(x, n)

    compiled = Model().jit({"forward": {"x": S((4,), "float32"), "n": int}}, debug=True)
    assert compiled["forward"](torch.arange(4.0), 2).tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert "shape = (4,)" in capfd.readouterr().out


SOURCE = """
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>
namespace ffi = tvm::ffi;
void ScaleAdd(ffi::TensorView x, double k, ffi::TensorView y) {
  for (int64_t i = 0; i < x.numel(); ++i)
    static_cast<float*>(y.data_ptr())[i] = static_cast<float*>(x.data_ptr())[i] * k + 1;
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(scale_add, ScaleAdd);
"""


def _source_module(source=SOURCE):
    infer = lambda x, k: nn.Tensor.placeholder(x.shape, x.dtype)
    return nn.SourceModule({"scale_add": infer}, source, "cpp")


class Extern(nn.Module):
    def __init__(self, module):
        self.module = module

    def forward(self, x):
        return self.module["scale_add"](x, 2.5) + 1


SPEC = {"forward": {"x": S(("n",), "float32")}}


def test_source_module(tmp_path):
    model = Extern(_source_module())
    mod, _, externs = model.export_tvm(SPEC, allow_extern=True)
    assert externs == [model.module]
    mod = relax.transform.AttachExternModules(externs)(mod)
    tvm.compile(mod, "llvm").export_library(tmp_path / "model.so")
    vm = relax.VirtualMachine(tvm.runtime.load_module(tmp_path / "model.so"), tvm.cpu())
    x = np.arange(5, dtype="float32")
    np.testing.assert_allclose(vm["forward"](x).numpy(), x * 2.5 + 2)


def test_object_module(tmp_path):
    source = _source_module()
    source.compile(tmp_path / "main.o")
    module = nn.ObjectModule(source._symbols, tmp_path / "main.o")
    mod, _, externs = Extern(module).export_tvm(SPEC, allow_extern=True)
    mod = relax.transform.AttachExternModules(externs)(mod)
    tvm.compile(mod, "llvm").export_library(tmp_path / "model.so")
    vm = relax.VirtualMachine(tvm.runtime.load_module(tmp_path / "model.so"), tvm.cpu())
    assert vm["forward"](np.zeros(3, "float32")).numpy().tolist() == [2.0, 2.0, 2.0]


def test_errors_of_external_code(tmp_path):
    with pytest.raises(ValueError, match="expected allow_extern=True"):
        Extern(_source_module()).export_tvm(SPEC)
    with pytest.raises(RuntimeError, match="this_is_no_type"):  # the compiler's own text
        _source_module("this_is_no_type x;\n").load()
    with pytest.raises(ValueError, match="expected format cpp or cu, got 'rs'"):
        nn.SourceModule({}, "x\n", "rs")
    with pytest.raises(ValueError, match="expected an object file"):
        nn.ObjectModule({}, tmp_path / "none.o")
    with pytest.raises(KeyError, match="got 'other'"):
        _source_module()["other"]
    with pytest.raises(RuntimeError, match="got no exporter"):
        _source_module()["scale_add"](1.0, 2)


@pytest.mark.parametrize(
    "spec, error, text",
    [
        ({"backward": {}}, ValueError, "expected methods of Linear, got 'backward'"),
        ({"forward": {}}, ValueError, r"expected the arguments \['x'\] of 'forward', got \[\]"),
        ({"forward": {"x": int, "y": int}}, ValueError, "expected the arguments"),
        ({"forward": {"x": 3}}, TypeError, "for 'x', got 3"),
        ({"forward": {"x": int, "$": {"param_mode": "all"}}}, ValueError, "plain, packed, none"),
    ],
)
def test_errors_of_specifications(spec, error, text):
    with pytest.raises(error, match=text):
        Linear().export_tvm(spec)


def test_a_method_that_returns_nothing():
    class Model(nn.Module):
        def forward(self, x):
            pass

    with pytest.raises(TypeError, match="expected a method to return tensors.*NoneType"):
        Model().export_tvm({"forward": {"x": S((1,), "float32")}})
    # Nothing stays open.
    assert relax.BlockBuilder.current() is None
