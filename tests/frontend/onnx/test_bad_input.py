# SPDX-License-Identifier: Apache-2.0
"""Models that contradict themselves or ask for too much: an error of the fitting type that says
where."""

import os
import time

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx, inspect

from .models import INT64, linear, model, node, value
from .test_reader import external


def small(nodes, weights=None, opset=21, **kwargs):
    """A model of x (n, 4) and y."""
    return model(nodes, [value("x", ("n", 4))], [value("y", None)], weights, opset, **kwargs)


# ---- files ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [0, 1, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("field", [7, 8])
def test_wrong_wire_types(field, kind):
    """Messages of the model as every other type there is, and as ones that there are not."""
    with pytest.raises(ValueError, match="ModelProto"):
        from_onnx(linear().SerializeToString() + bytes([field << 3 | kind]) + b"\x01" * 8)


def test_external_data_in_a_device(tmp_path):
    if not os.access(tmp_path, os.W_OK):
        pytest.skip("no folder")
    os.mkfifo(tmp_path / "pipe.bin")
    with pytest.raises(ValueError, match="no file 'pipe.bin'"):
        from_onnx(external(tmp_path, "pipe.bin"))
    os.symlink("/dev/zero", tmp_path / "zeros.bin")
    with pytest.raises(ValueError, match="zeros.bin"):
        from_onnx(external(tmp_path, "zeros.bin"))


# ---- names ---------------------------------------------------------------------------------------
def test_cycles():
    nodes = [node("Add", "x b", "a"), node("Neg", "a", "b"), node("Neg", "b", "y")]
    with pytest.raises(ValueError, match=r"node of 'a' \(Add\): .*'b'"):
        from_onnx(small(nodes))


def test_undefined_names():
    with pytest.raises(ValueError, match=r"node of 'y' \(Add\): .*'nobody'"):
        from_onnx(small([node("Add", "x nobody", "y")]))
    with pytest.raises(ValueError, match="expected a value for the output 'y', got none"):
        from_onnx(small([node("Neg", "x", "z")]))


def test_names_given_twice():
    with pytest.raises(ValueError, match="a new name of its output, got 'y' again"):
        from_onnx(small([node("Neg", "x", "y"), node("Abs", "x", "y")]))
    with pytest.raises(ValueError, match="inputs of different names, got 'x' twice"):
        from_onnx(model([node("Neg", "x", "y")], [value("x", (2,))] * 2, [value("y", None)]))
    weights = small([node("Add", "x w", "y")], {"w": np.ones(4, "float32")})
    weights.graph.initializer.append(weights.graph.initializer[0])
    with pytest.raises(ValueError, match="weights of different names, got 'w' twice"):
        from_onnx(weights)


def test_errors_name_the_file(tmp_path):
    for content, message in ((b"root:x:0:0", "ModelProto"), (b"", "a graph, got none")):
        path = tmp_path / "text.onnx"
        path.write_bytes(content)
        for read in (from_onnx, inspect):
            with pytest.raises(ValueError, match=f"(?s){message}.*in {path}: is it a whole"):
                read(path)
    with pytest.raises(FileNotFoundError, match=r"^no such file: nowhere.onnx$"):
        from_onnx("nowhere.onnx")


# ---- what the caller says of inputs --------------------------------------------------------------
@pytest.mark.parametrize(
    ("shapes", "error", "message"),
    [
        ({"x": 4}, TypeError, "shape of 'x': expected a list of dimensions, got 4"),
        ({"x": "2,4"}, TypeError, "shape of 'x': expected a list of dimensions, got '2,4'"),
        ({"x": [1.5, 4]}, TypeError, "shape of 'x': expected numbers, .*, got float"),
        ({"x": [-1, 4]}, ValueError, "input 'x': expected dimensions of at least 0, got -1"),
        ([("x", [2, 4])], TypeError, "expected shape_dict as a dict of names and shapes, got"),
    ],
)
def test_wrong_shape_dict(shapes, error, message):
    with pytest.raises(error, match=message):
        from_onnx(small([node("Neg", "x", "y")]), shape_dict=shapes)


@pytest.mark.parametrize("dtype", ["floot", 3, None, object])
def test_wrong_dtype_dict(dtype):
    with pytest.raises((TypeError, ValueError), match="from_onnx: type of 'x': "):
        from_onnx(small([node("Neg", "x", "y")]), dtype_dict={"x": dtype})


def test_dicts_of_names_that_are_no_inputs():
    proto = small([node("Neg", "x", "y")])
    for given in ({"shape_dict": {"X": [2, 4]}}, {"dtype_dict": {"X": "float16"}}):
        (parameter,) = given
        message = rf"{parameter}: expected names of inputs \('x'\), got 'X', did you mean 'x'"
        with pytest.warns(UserWarning, match=message):
            from_onnx(proto, **given)


def test_dicts_take_what_means_a_size_or_a_type():
    proto = small([node("Neg", "x", "y")])
    made = from_onnx(
        proto, shape_dict={"x": (np.int32(2), np.int64(4))}, dtype_dict={"x": np.float16}
    )
    info = made["main"].params[0].struct_info
    assert info.dtype == "float16" and list(info.shape) == [2, 4]


# ---- operators -----------------------------------------------------------------------------------
def test_unknown_operators_domains_and_opsets():
    made = [node("Rellu", "x", "h"), node("Fly", "h", "i", domain="my"), node("Rellu", "i", "y")]
    with pytest.raises(tvm.error.OpNotImplemented) as error:
        from_onnx(small(made))
    assert "Rellu (2 nodes, did you mean 'Relu'" in str(error.value)
    assert "my.Fly (1 node" in str(error.value)
    with pytest.warns(UserWarning, match="opset 999 is newer"):
        from_onnx(small([node("Neg", "x", "y")], opset=999))
    silent = small([node("Neg", "x", "y")])
    del silent.opset_import[:]
    with pytest.warns(UserWarning, match="no opset of ai.onnx: taken for 28, give `opset`"):
        from_onnx(silent)
    from_onnx(silent, opset=13)


def test_unsupported_operators_say_where(tmp_path):
    inner = helper.make_graph([node("Fly", "x", "t", domain="my")], "g", [], [value("t", None)])
    made = [
        helper.make_node("If", ["c"], ["h"], then_branch=inner, else_branch=inner),
        node("Fly", "h", "i", domain="my", name="second"),
        *(node("Swim", "i", f"s{k}", domain="your") for k in range(5)),
        node("ImageDecoder", "i", "y"),
    ]
    proto = small(made, {"c": np.array(True)}, opset=21)
    proto.opset_import.append(helper.make_opsetid("my", 3))
    path = tmp_path / "flying.onnx"
    onnx.save(proto, path)
    with pytest.raises(tvm.error.OpNotImplemented) as error:
        from_onnx(path)
    assert str(error.value).splitlines() == [
        "onnx: operators that are not supported:",
        "  ImageDecoder (1 node), opset 21: node of 'y'",
        "  my.Fly (3 nodes), opset 3: node of 't', of 't', 'second'",
        "  your.Swim (5 nodes), a domain without an opset: node of 's0', of 's1', of 's2', …",
        f"  in {path}",
    ]


def test_attributes_of_the_wrong_type():
    with pytest.raises(ValueError, match=r"\(Softmax\): .*axis"):
        from_onnx(small([node("Softmax", "x", "y", axis="last")]))
    with pytest.raises(ValueError, match=r"\(LeakyRelu\): .*alpha"):
        from_onnx(small([node("LeakyRelu", "x", "y", alpha=[1.0, 2.0])]))
    with pytest.raises(tvm.error.OpAttributeUnImplemented, match=r"\(Neg\): .*'colour'"):
        from_onnx(small([node("Neg", "x", "y", colour=3)]))


def test_dimensions_below_zero_or_too_large():
    def of(dims):
        return model([node("Neg", "x", "y")], [value("x", dims)], [value("y", None)])

    with pytest.raises(ValueError, match="input 'x': expected dimensions of at least 0, got -3"):
        from_onnx(of((2, -3)))
    built = tvm.compile(from_onnx(of((2**40, 2**40))), target="llvm")
    with pytest.raises(RuntimeError, match="expected 1099511627776, got 2"):
        relax.VirtualMachine(built, tvm.cpu())["main"](tvm.runtime.tensor(np.ones((2, 2), "f4")))


# ---- quotas --------------------------------------------------------------------------------------
@pytest.mark.parametrize("op", ["ConstantOfShape", "Expand", "Tile", "Range"])
def test_folding_bombs(op):
    """A few bytes that stand for terabytes: nothing is computed when the model is imported."""
    size, one = np.array([1 << 20, 1 << 20]), np.ones((1, 1), "float32")
    nodes, weights = {
        "ConstantOfShape": ([node(op, "size", "big")], {"size": size}),
        "Expand": ([node(op, "one size", "big")], {"one": one, "size": size}),
        "Tile": ([node(op, "one size", "big")], {"one": one, "size": size}),
        "Range": (
            [node(op, "from to by", "big")],
            {"from": np.array(0.0), "to": np.array(1e12), "by": np.array(1.0)},
        ),
    }[op]
    begin = time.monotonic()
    made = model(
        [*nodes, node("ReduceSum", "big", "y", keepdims=0)], [], [value("y", None)], weights
    )
    try:
        tvm.compile(from_onnx(made), target="llvm")
    except (MemoryError, ValueError, tvm.TVMError) as error:
        assert str(error)
    assert time.monotonic() - begin < 60


@pytest.mark.parametrize(
    ("pattern", "message"),
    [("(a+)+" * 20 + "$", None), ("(" * 100_000, "regular"), ("((a{999}){999}){999}", "regular")],
)
def test_hostile_regular_expressions(pattern, message):
    """They take linear time, or are refused."""
    words = helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)
    texts, flags = value("x", (1,), TensorProto.STRING), value("y", (1,), TensorProto.BOOL)
    vm = relax.VirtualMachine(
        tvm.compile(from_onnx(model([words], [texts], [flags])), target="llvm"), tvm.cpu()
    )
    begin, x = time.monotonic(), tvm.runtime.tensor(np.array(["a" * 5000 + "b"]))
    if message is None:
        assert not vm["main"](x).numpy()[0]
    else:
        with pytest.raises(ValueError, match=message):
            vm["main"](x)
    assert time.monotonic() - begin < 20


# ---- inputs of a call ----------------------------------------------------------------------------
def test_inputs_that_contradict_each_other():
    inputs = [value("a", ("n", 4)), value("b", ("n", 4)), value("i", (1,), INT64)]
    made = model([node("Add", "a b", "s"), node("Gather", "s i", "y")], inputs, [value("y", None)])
    run = relax.VirtualMachine(tvm.compile(from_onnx(made), target="llvm"), tvm.cpu())["main"]
    a, b, i = (
        tvm.runtime.tensor(x) for x in (np.ones((2, 4), "f4"), np.ones((3, 4), "f4"), np.array([0]))
    )
    contradiction = (
        r"'b' .*shape\[0\]: expected 2, which is n \(shape\[0\] of argument 'a'\), got 3"
    )
    with pytest.raises(RuntimeError, match=contradiction):
        run(a, b, i)
    with pytest.raises(RuntimeError, match=r"'a' .*shape\[1\]: expected 4, got 5"):
        run(tvm.runtime.tensor(np.ones((2, 5), "f4")), a, i)
    with pytest.raises(ValueError, match="'a' .*float32.*float64"):
        run(tvm.runtime.tensor(np.ones((2, 4), "f8")), a, i)
    with pytest.raises(IndexError):
        run(a, a, tvm.runtime.tensor(np.array([7])))


def test_onnx_checker_is_not_needed():
    """What its checker refuses is refused here, too, or has a meaning."""
    made = linear()
    made.graph.name = ""
    with pytest.raises(onnx.checker.ValidationError):
        onnx.checker.check_model(made)
    from_onnx(made)
