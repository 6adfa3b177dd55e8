# SPDX-License-Identifier: Apache-2.0
"""Strings, sequences, optionals and random numbers, against ONNX Runtime, NumPy and Python."""

import re
import time
import warnings

import numpy as np
import onnx
import onnxruntime
import pytest
import tvm
from onnx import TensorProto, helper
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

from .models import FLOAT, INT64, model, node, value

STRING = TensorProto.STRING


def compiled(m):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return relax.VirtualMachine(tvm.compile(from_onnx(m), target="llvm"), tvm.cpu())["main"]


def results(m, *args):
    got = compiled(m)(*(tvm.runtime.tensor(a) if isinstance(a, np.ndarray) else a for a in args))
    return [got] if hasattr(got, "numpy") else list(got)


def agrees_with_ort(m, *args):
    session = onnxruntime.InferenceSession(m.SerializeToString())
    expected = session.run(None, {i.name: a for i, a in zip(m.graph.input, args, strict=True)})
    for a, b in zip(results(m, *args), expected, strict=True):
        assert a.numpy().shape == b.shape
        np.testing.assert_array_equal(a.numpy(), b)


WORDS = np.array([["über", "Zebra", ""], ["a b", "x" * 40, "Äpfel"]], dtype=object)


def test_strings_move_like_numbers():
    nodes = [
        node("Transpose", "x", "t", perm=[1, 0]),
        node("Reshape", "t shape", "r"),
        node("Gather", "r places", "g"),
        node("Concat", "g extra", "c", axis=0),
        node("Equal", "g extra", "e"),
        node("Shape", "c", "s"),
        node("Where", "e g extra", "w"),
    ]
    extra = np.array(["extra", "Zebra", "ß"], dtype=object)
    weights = {"shape": np.array([6]), "places": np.array([5, 2, -6])}
    m = model(
        nodes, [value("x", ("n", 3), STRING), value("extra", (3,), STRING)],
        [value("c", ("k",), STRING), value("e", (3,), TensorProto.BOOL), value("s", (1,), INT64),
         value("w", (3,), STRING)], weights,
    )  # fmt: skip
    agrees_with_ort(m, WORDS, extra)


def test_constants_and_casts_of_strings():
    text = helper.make_tensor("t", STRING, [2], [b"1.5", b"-2e3"])
    nodes = [
        node("Constant", "", "c", value=text),
        node("Cast", "c", "f", to=FLOAT),
        node("Cast", "x", "w", to=STRING),
        node("Concat", "w c", "y", axis=0),
    ]
    m = model(nodes, [value("x", (2,), INT64)], [value("f", (2,)), value("y", (4,), STRING)])
    agrees_with_ort(m, np.array([7, -12]))


@pytest.mark.parametrize("delimiter", ["", "-", "--"])
@pytest.mark.parametrize("splits", [None, 1])
def test_split_like_python(delimiter, splits):
    texts = np.array(["a-b--c", " a  b c ", "", "---"], dtype=object)
    options = {"delimiter": delimiter} | ({} if splits is None else {"maxsplit": splits})
    m = model(
        [node("StringSplit", "x", "y z", **options)], [value("x", (4,), STRING)],
        [value("y", (4, "k"), STRING), value("z", (4,), INT64)], opset=20,
    )  # fmt: skip
    pieces, counts = (r.numpy() for r in results(m, texts))
    for text, row, count in zip(texts, pieces, counts, strict=True):
        expected = text.split(delimiter or None, -1 if splits is None else splits)
        assert list(row[:count]) == expected and not any(row[count:])


PATTERNS = [
    r"a*b+c?", r"(ab|cd)*", r"[^a-c]{2,3}", r"\d+\.\d{2}", r"(?i)hello\b.*", r"^\w+@\w+\.com$",
    r"[[:alpha:]_]+", r"(?s).*", r"a.c", r"(?:x|y)(?P<n>z)", r"", r"ä+", r"\x41\Q.*\E", r"a{0}b",
]  # fmt: skip
TEXTS = [
    "", "b", "aabbc", "abcd", "abcdab", "xy", "dddd", "3.14", "Hello, World", "me@here.com", "a_b",
    "a\nc", "abc", "yz", "ää", "A.*", "12", "hello",
]  # fmt: skip


def test_regular_expressions_match_like_python():
    match = tvm.get_global_func("vm.builtin.strings.full_match")
    for pattern in PATTERNS:
        python = pattern.replace("[[:alpha:]_]", "[A-Za-z_]").replace(r"\Q.*\E", r"\.\*")
        got = match(TEXTS, np.arange(len(TEXTS)), pattern).numpy()
        expected = [re.fullmatch(python, text) is not None for text in TEXTS]
        assert list(got) == expected, pattern


@pytest.mark.parametrize(
    "pattern", ["(", ")", "a**", "[b-a]", "[a", r"\1", r"\pL", "a{2,1}", "(a{1000}){1000}",
                "(" * 300 + ")" * 300, "((((){1000}){1000}){1000}){1000}", "a{1001}", "(?x)a"],
)  # fmt: skip
def test_regular_expressions_that_are_refused(pattern):
    with pytest.raises(ValueError, match="regular expression"):
        tvm.get_global_func("vm.builtin.strings.full_match")(["a"], np.array([0]), pattern)


def test_hostile_regular_expressions_take_linear_time():
    match = tvm.get_global_func("vm.builtin.strings.full_match")
    begin = time.time()
    assert not match(["a" * 5000 + "b"], np.array([0]), "(a*)*(a|aa)+").numpy()[0]
    assert time.time() - begin < 10


def test_a_label_that_is_no_key_gets_the_default():
    m = model(
        [helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml",
                          keys_int64s=[3, 1], values_strings=["three", "one"],
                          default_string="?")],
        [value("x", (3,), INT64)], [value("y", (3,), STRING)],
        opsets=[helper.make_opsetid("ai.onnx.ml", 4)],
    )  # fmt: skip
    agrees_with_ort(m, np.array([1, 2, 3]))


def sequence(name, dtype=FLOAT, shape=("n",)):
    element = helper.make_tensor_type_proto(dtype, shape)
    return helper.make_value_info(name, helper.make_sequence_type_proto(element))


def test_sequences_of_any_length():
    """One compilation takes and gives sequences of any length."""
    nodes = [
        node("SequenceInsert", "s x", "longer"),
        node("SequenceAt", "longer at", "one"),
        node("SequenceErase", "longer at", "rest"),
        node("SequenceLength", "rest", "count"),
        node("ConcatFromSequence", "longer", "all", axis=0),
    ]
    m = model(
        nodes, [sequence("s"), value("x", (2,)), value("at", (), INT64)],
        [value("one", ("k",)), sequence("rest"), value("count", (), INT64), value("all", ("m",))],
    )  # fmt: skip
    main = compiled(m)
    for count in (0, 1, 3):
        items = [np.full(i + 1, i, "float32") for i in range(count)]
        x = np.array([8, 9], "float32")
        given = [tvm.runtime.tensor(i) for i in items]
        one, rest, length, everything = main(given, x, np.array(-1))
        np.testing.assert_array_equal(one.numpy(), x)
        assert len(rest) == length.numpy() == count
        np.testing.assert_array_equal(everything.numpy(), np.concatenate([*items, x]))
    with pytest.raises(IndexError, match="a position in a sequence of 1, got 4"):
        main([], x, np.array(4))


def test_elements_of_a_sequence_of_another_shape_are_an_error():
    m = model([node("SequenceAt", "s at", "y")], [sequence("s"), value("at", (), INT64)],
              [value("y", ("k",))])  # fmt: skip
    with pytest.raises(Exception, match="ndim 1 but get ndim 2"):
        compiled(m)([tvm.runtime.tensor(np.ones((2, 2), "float32"))], np.array(0))


@pytest.mark.parametrize("sizes", [(3, 3), (3, 1), (1, 4), (1, 1)])
def test_dimensions_that_only_running_compares(sizes):
    m = model([node("Add", "x y", "z")], [value("x", ("n", 2)), value("y", ("m", 2))],
              [value("z", ("k", 2))])  # fmt: skip
    main = compiled(m)
    x, y = (np.random.default_rng(k).random((k, 2), "float32") for k in sizes)
    np.testing.assert_array_equal(main(x, y).numpy(), x + y)
    with pytest.raises(Exception, match="expected"):
        main(np.ones((2, 2), "float32"), np.ones((3, 2), "float32"))


def test_declared_dimensions_of_values_inside_count():
    """A slice of min(n, 8) rows that the model declares to have n rows."""
    nodes = [
        node("Shape", "x", "n", end=1),
        node("Slice", "table zero n", "rows"),
        node("Add", "rows x", "s"),
        node("Reshape", "s shape", "r"),
        node("MatMul", "r s", "y"),
    ]
    weights = {"table": np.arange(16, dtype="float32").reshape(8, 2), "zero": np.array([0]),
               "shape": np.array([2, -1])}  # fmt: skip
    x = np.ones((5, 2), "float32")
    for declared in ([], [value("rows", ("n", 2))]):
        m = model(nodes, [value("x", ("n", 2))], [value("y", (2, 2))], weights)
        m.graph.value_info.extend(declared)
        s = weights["table"][:5] + x
        main = compiled(m)
        np.testing.assert_allclose(main(x).numpy(), s.reshape(2, -1) @ s, rtol=1e-6)
        with pytest.raises(Exception, match="expected"):
            main(np.ones((9, 2), "float32"))


def test_loop_collects_values_whose_shape_only_running_tells():
    body = helper.make_graph(
        [
            node("Identity", "go", "again"),
            node("Add", "c c", "next"),
            node("Identity", "c", "scan"),
        ],
        "body", [value("i", (), INT64), value("go", (), TensorProto.BOOL), value("c", ("n",))],
        [value("again", (), TensorProto.BOOL), value("next", ("n",)), value("scan", ("n",))],
    )  # fmt: skip
    loop = helper.make_node("Loop", ["count", "", "x"], ["y", "all"], body=body)
    m = model([loop], [value("count", (), INT64), value("x", ("n",))],
              [value("y", ("n",)), value("all", ("k", "n"))])  # fmt: skip
    main = compiled(m)
    x = np.array([1, 3, 5], "float32")
    y, everything = main(np.array(4), x)
    np.testing.assert_array_equal(y.numpy(), 16 * x)
    np.testing.assert_array_equal(everything.numpy(), [x, 2 * x, 4 * x, 8 * x])


def test_loop_fills_a_sequence_that_does_not_say_its_elements():
    """Exporters declare no more than the type of the numbers."""
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))
    carried, longer = (onnx.ValueInfoProto(name=n, type=kind) for n in ("s", "t"))
    body = helper.make_graph(
        [node("Identity", "go", "again"), node("SequenceInsert", "s x", "t")],
        "body", [value("i", (), INT64), value("go", (), TensorProto.BOOL), carried],
        [value("again", (), TensorProto.BOOL), longer],
    )  # fmt: skip
    nodes = [
        node("SequenceEmpty", "", "none"),
        helper.make_node("Loop", ["count", "", "none"], ["all"], body=body),
        node("ConcatFromSequence", "all", "y", axis=0),
    ]
    inputs = [value("count", (), INT64), value("x", ("n", 2))]
    main = compiled(model(nodes, inputs, [value("y", ("k", 2))]))
    x = np.arange(6, dtype="float32").reshape(3, 2)
    np.testing.assert_array_equal(main(np.array(4), x).numpy(), np.concatenate([x] * 4))


def test_random_numbers_are_distributed_as_said():
    shape = [200, 100]
    nodes = [
        node("RandomUniform", "", "u", shape=shape, low=-2.0, high=4.0),
        node("RandomUniform", "", "v", shape=shape, low=-2.0, high=4.0),
        node("RandomNormal", "", "n", shape=shape, mean=3.0, scale=2.0),
        node("RandomNormalLike", "x", "s", seed=5.0),
        node("Bernoulli", "x", "b"),
        node("Multinomial", "logits", "m", sample_size=4000),
    ]
    outputs = [value(name, None) for name in "uvnsb"] + [value("m", None, TensorProto.INT32)]
    m = model(nodes, [value("x", shape), value("logits", (2, 3))], outputs)
    main = compiled(m)
    x = np.full(shape, 0.25, "float32")
    logits = np.log(np.array([[1, 1, 2], [8, 1, 1]], "float32"))
    u, v, n, s, b, m = (r.numpy() for r in main(x, logits))
    assert -2 <= u.min() < -1.99 and 3.99 < u.max() < 4 and abs(u.mean() - 1) < 0.05
    assert (u != v).mean() > 0.99
    assert abs(n.mean() - 3) < 0.1 and abs(n.std() - 2) < 0.1 and abs(s.std() - 1) < 0.05
    assert abs(b.mean() - 0.25) < 0.02 and set(np.unique(b)) == {0, 1}
    shares = np.stack([np.bincount(row, minlength=3) / row.size for row in m])
    np.testing.assert_allclose(shares, [[0.25, 0.25, 0.5], [0.8, 0.1, 0.1]], atol=0.05)
    again = [r.numpy() for r in main(x, logits)]
    np.testing.assert_array_equal(again[3], s)  # of a seed
    assert (again[0] != u).mean() > 0.99


def test_numbers_where_strings_are_expected():
    m = model([node("StringConcat", "x x", "y")], [value("x", (2,))], [value("y", (2,), STRING)],
              opset=20)  # fmt: skip
    with pytest.raises(tvm.error.OpError, match="strings as input 0, got numbers"):
        from_onnx(m)
    m = model([node("Relu", "x", "y")], [value("x", (2,), STRING)], [value("y", (2,))])
    with pytest.raises(tvm.error.OpError, match="a tensor of numbers as input 0, got strings"):
        from_onnx(m)


@pytest.mark.parametrize(
    "name, args",
    [
        ("insert", ([], np.zeros(2), "here")),
        ("insert", ([np.zeros(2)], np.zeros(2), 0)),
        ("concat", ([None], 0, False)),
        ("concat", (["text"], 0, False)),
    ],
)
def test_what_is_no_tensor_is_refused(name, args):
    function = tvm.get_global_func("vm.builtin.sequence." + name)
    with pytest.raises(TypeError, match="sequence: expected a tensor, got"):
        function(*args)


def test_an_empty_optional_is_an_element():
    made = tvm.get_global_func("vm.builtin.sequence.insert")([], None, None)
    assert list(made) == [None]
