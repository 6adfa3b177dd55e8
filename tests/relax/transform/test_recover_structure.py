# SPDX-License-Identifier: Apache-2.0
"""What exporters spell out becomes the operators it means, with the same results."""

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import op, transform
from tvm.script import relax as R

from tests.relax.legalize.evaluate import evaluate


def const(value):
    return relax.const(value, "float32")


def build(make, *shapes):
    """A module whose main is what `make` emits of parameters of these shapes."""
    params = [relax.Var(f"x{i}", R.Tensor(shape, "float32")) for i, shape in enumerate(shapes)]
    bb = relax.BlockBuilder()
    with bb.function("main", params):
        with bb.dataflow():
            out = bb.emit_output(bb.normalize(make(*params)))
        bb.emit_func_output(out)
    return bb.get()


def operators(mod):
    return [
        b.value.op.name.removeprefix("relax.")
        for block in mod["main"].body.blocks
        for b in block.bindings
        if isinstance(b.value, relax.Call)
    ]


def run(mod, seed=0, last=None):
    """The results of random arguments; `last` in the place of the last one."""
    rng = np.random.default_rng(seed)
    shapes = [[int(d) for d in p.struct_info.shape.values] for p in mod["main"].params]
    arrays = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    if last is not None:
        arrays[-1] = last
    return evaluate(transform.LegalizeOps()(mod), arrays)


def check(make, expected, *shapes):
    """The operators that are left, the results as before, and nothing more to do."""
    before = build(make, *shapes)
    after = transform.RecoverStructure()(before)
    assert operators(after) == expected
    assert relax.analysis.well_formed(after)
    np.testing.assert_allclose(run(after), run(before), rtol=1e-4, atol=1e-5)
    assert transform.RecoverStructure()(after).same_as(after)


# ---- activations ---------------------------------------------------------------------------------
ROOT = 0.7071067811865476
GELUS = {
    "x * 0.5 * (1 + erf)": lambda x: x * const(0.5) * (const(1.0) + op.erf(x * const(ROOT))),
    "0.5 * (x * (1 + erf))": lambda x: (
        const(0.5) * (x * (op.erf(x / const(1.4142135)) + const(1.0)))
    ),
    "x * (0.5 * (1 + erf))": lambda x: x * (const(0.5) * (const(1.0) + op.erf(x / const(1.41421)))),
    "x * (1 + erf) / 2": lambda x: x * (const(1.0) + op.erf(const(ROOT) * x)) / const(2.0),
}


@pytest.mark.parametrize("make", GELUS.values(), ids=GELUS)
def test_gelu(make):
    check(make, ["nn.gelu"], (4, 8))


TANHS = {
    "power": lambda x: const(0.7978845608) * (x + const(0.044715) * op.power(x, const(3.0))),
    "x * x * x": lambda x: (x + x * x * x * const(0.044715)) * const(0.79788456),
    "square": lambda x: const(0.79788456) * (const(0.044715) * (op.square(x) * x) + x),
    "factored": lambda x: const(0.79788456) * x * (const(1.0) + const(0.044715) * x * x),
}


@pytest.mark.parametrize("argument", TANHS.values(), ids=TANHS)
def test_gelu_tanh(argument):
    def make(x):
        return const(0.5) * x * (const(1.0) + op.tanh(argument(x)))

    check(make, ["nn.gelu_tanh"], (4, 8))


def test_softplus_keeps_what_rounding_to_1_loses():
    check(lambda x: op.log(op.exp(x) + const(1.0)), ["nn.softplus"], (4, 8))
    check(lambda x: op.log(const(1.0) + op.exp(x)), ["nn.softplus"], (4, 8))
    check(lambda x: op.log(op.exp(x) + const(1.001)), ["exp", "add", "log"], (4, 8))
    far = build(lambda x: op.log(op.exp(x - const(30.0)) + const(1.0)), (4, 8))
    values = run(transform.RecoverStructure()(far))
    x = np.random.default_rng(0).standard_normal((4, 8)).astype("float32")
    np.testing.assert_allclose(values, np.exp(x - np.float32(30)), rtol=1e-5)


def test_silu_and_sigmoid():
    check(lambda x: x * op.sigmoid(x), ["nn.silu"], (4, 8))
    check(lambda x: op.sigmoid(x) * x, ["nn.silu"], (4, 8))
    check(lambda x: x / (const(1.0) + op.exp(-x)), ["nn.silu"], (4, 8))
    check(lambda x: const(1.0) / (op.exp(-x) + const(1.0)), ["sigmoid"], (4, 8))
    check(lambda x: x * (const(1.0) / (const(1.0) + op.exp(-x))), ["nn.silu"], (4, 8))


def test_operand_that_is_a_product():
    """What the activation is applied to is not taken apart."""

    def gelu(x, y):
        z = x * y * const(3.0)
        return z * const(0.5) * (const(1.0) + op.erf(z * const(ROOT)))

    def silu(x, y):
        z = x / y
        return z * op.sigmoid(z)

    def rms(x, y):
        z = x * y
        return z * op.rsqrt(mean(op.square(z)) + const(1e-6))

    check(gelu, ["multiply", "multiply", "nn.gelu"], (4, 8), (4, 8))
    check(silu, ["divide", "nn.silu"], (4, 8), (4, 8))
    check(rms, ["multiply", "ones", "nn.rms_norm"], (4, 8), (4, 8))


def test_activations_that_are_none():
    for make, expected in (
        (lambda x, y: x * op.sigmoid(y), ["sigmoid", "multiply"]),
        (
            lambda x, y: x * (const(1.0) + op.erf(x * const(ROOT))),
            ["multiply", "erf", "add", "multiply"],
        ),
        (
            lambda x, y: x * const(0.5) * (const(1.0) + op.erf(y * const(ROOT))),
            ["multiply", "multiply", "erf", "add", "multiply"],
        ),
    ):
        mod = build(make, (4, 8), (4, 8))
        assert sorted(operators(transform.RecoverStructure()(mod))) == sorted(expected)


def test_softmax():
    def make(x):
        e = op.exp(x - op.max(x, axis=-1, keepdims=True))
        return e / op.sum(e, axis=-1, keepdims=True)

    def shared(x):
        bb_e = op.exp(op.subtract(x, op.max(x, axis=-1, keepdims=True)))
        return op.divide(bb_e, op.sum(bb_e, axis=-1, keepdims=True))

    check(make, ["nn.softmax"], (4, 8))
    check(shared, ["nn.softmax"], (4, 8))


# ---- norms ---------------------------------------------------------------------------------------
def mean(x):
    return op.mean(x, axis=-1, keepdims=True)


def layer_norm(x, g, b, square=op.square, divide=None):
    d = x - mean(x)
    v = mean(square(d)) + const(1e-5)
    n = divide(d, v) if divide else d / op.sqrt(v)
    return n * g + b


LAYER_NORMS = {
    "d / sqrt(mean(d²))": layer_norm,
    "d * d": lambda x, g, b: layer_norm(x, g, b, lambda d: d * d),
    "power": lambda x, g, b: layer_norm(x, g, b, lambda d: op.power(d, const(2.0))),
    "rsqrt": lambda x, g, b: layer_norm(x, g, b, divide=lambda d, v: d * op.rsqrt(v)),
    "power -0.5": lambda x, g, b: layer_norm(
        x, g, b, divide=lambda d, v: op.power(v, const(-0.5)) * d
    ),
    "variance": lambda x, g, b: (
        (x - mean(x)) / op.sqrt(op.variance(x, axis=-1, keepdims=True) + const(1e-5)) * g + b
    ),
    "scale times rsqrt": lambda x, g, b: (
        b + (x - mean(x)) * (op.rsqrt(mean(op.square(x - mean(x))) + const(1e-5)) * g)
    ),
}


@pytest.mark.parametrize("make", LAYER_NORMS.values(), ids=LAYER_NORMS)
def test_layer_norm(make):
    check(make, ["nn.layer_norm"], (2, 4, 8), (8,), (8,))


def test_layer_norm_without_parameters():
    def make(x):
        d = x - mean(x)
        return d / op.sqrt(mean(op.square(d)) + const(1e-5))

    check(make, ["ones", "zeros", "nn.layer_norm"], (2, 4, 8))


def test_layer_norm_of_other_axes_stays():
    def make(x):
        d = x - op.mean(x, axis=1, keepdims=True)
        return d / op.sqrt(op.mean(op.square(d), axis=1, keepdims=True) + const(1e-5))

    mod = build(make, (2, 4, 8))
    assert "nn.layer_norm" not in operators(transform.RecoverStructure()(mod))


RMS_NORMS = {
    "x * rsqrt * w": lambda x, w: x * op.rsqrt(mean(op.square(x)) + const(1e-6)) * w,
    "w * (x / sqrt)": lambda x, w: w * (x / op.sqrt(mean(op.power(x, const(2.0))) + const(1e-6))),
    "w * (x * rsqrt)": lambda x, w: w * (x * op.rsqrt(const(1e-6) + mean(x * x))),
}


@pytest.mark.parametrize("make", RMS_NORMS.values(), ids=RMS_NORMS)
def test_rms_norm(make):
    check(make, ["nn.rms_norm"], (2, 4, 8), (8,))


def test_rms_norm_in_half_precision():
    x, w = relax.Var("x", R.Tensor((4, 8), "float16")), relax.Var("w", R.Tensor((8,), "float16"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x, w]):
        with bb.dataflow():
            wide = op.astype(x, "float32")
            n = wide * op.rsqrt(mean(op.power(wide, const(2.0))) + const(1e-6))
            out = bb.emit_output(bb.normalize(w * op.astype(n, "float16")))
        bb.emit_func_output(out)
    after = transform.RecoverStructure()(bb.get())
    assert operators(after) == ["nn.rms_norm"]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype("float16") for s in ((4, 8), (8,))]
    wide = arrays[0].astype("float32")
    expected = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6) * arrays[1]
    result = evaluate(transform.LegalizeOps()(after), arrays)
    np.testing.assert_allclose(result, expected, rtol=2e-3, atol=2e-3)


def test_group_norm():
    def core(x):
        flat = op.reshape(x, (2, 3, -1))
        d = flat - mean(flat)
        return op.reshape(d / op.sqrt(mean(op.square(d)) + const(1e-5)), (2, 6, 4, 5))

    def make(x, g, b):
        return core(x) * g + b

    check(make, ["reshape", "reshape", "nn.group_norm"], (2, 6, 4, 5), (6, 1, 1), (1, 6, 1, 1))
    check(core, ["ones", "zeros", "nn.group_norm"], (2, 6, 4, 5))

    def by_instance(x, g, b):
        flat = op.reshape(x, (2, 3, -1))
        ones, zeros = relax.const(np.ones(3, "float32")), relax.const(np.zeros(3, "float32"))
        n = op.nn.instance_norm(flat, ones, zeros, channel_axis=1, axes=[2], epsilon=1e-5)
        return op.reshape(n, (2, 6, 4, 5)) * g + b

    expected = ["reshape", "reshape", "nn.group_norm"]
    check(by_instance, expected, (2, 6, 4, 5), (6, 1, 1), (6, 1, 1))


# ---- products ------------------------------------------------------------------------------------
def test_linear_between_reshapes():
    def make(x, w, b):
        flat = op.matmul(op.reshape(x, (8, 6)), w)
        return op.reshape(flat + b, (2, 4, 5))

    check(make, ["matmul", "add"], (2, 4, 6), (6, 5), (5,))
    check(
        lambda x, w: op.reshape(op.matmul(op.reshape(x, (8, 6)), w), (2, 4, 5)),
        ["matmul"], (2, 4, 6), (6, 5),
    )  # fmt: skip


def test_products_stay_where_that_is_asked_for():
    def make(x, w):
        return op.nn.relu(op.reshape(op.matmul(op.reshape(x, (8, 6)), w), (2, 4, 5)))

    mod = build(make, (2, 4, 6), (6, 5))
    assert transform.RecoverStructure(products=False)(mod).same_as(mod)


def test_linear_between_reshapes_to_other_axes():
    def make(x, w):
        return op.reshape(op.matmul(op.reshape(x, (8, 6)), w), (4, 2, 5))

    check(make, ["reshape", "matmul"], (2, 4, 6), (6, 5))
    check(make, ["reshape", "matmul"], (2, 4, 2, 3), (6, 5))


def test_reshapes_that_move_columns_stay():
    def make(x, w):
        return op.reshape(op.matmul(op.reshape(x, (8, 6)), w), (2, 5, 4))

    check(make, ["reshape", "matmul", "reshape"], (2, 4, 6), (6, 5))


def test_transposition_of_joined_axes():
    """As torch.onnx spells that of keys."""

    def make(x, shape=(2, 3, 5, 4)):
        return op.reshape(op.permute_dims(op.reshape(x, (6, 4, 5)), [0, 2, 1]), shape)

    check(make, ["permute_dims"], (2, 3, 4, 5))
    check(lambda x: make(x, (3, 2, 5, 4)), ["reshape", "permute_dims"], (2, 3, 4, 5))
    check(make, ["reshape", "permute_dims"], (2, 3, 2, 2, 5))
    check(make, ["reshape", "permute_dims"], (2, 3, 5, 4))
    # The last axes are others behind it.
    stays = ["reshape", "permute_dims", "reshape"]
    check(lambda x: make(x, (2, 3, 4, 5)), stays, (2, 3, 4, 5))


@pytest.mark.parametrize(
    "subscripts, shapes, left",
    [
        ("bhqd,bhkd->bhqk", ((2, 3, 4, 5), (2, 3, 6, 5)), ["permute_dims", "matmul"]),
        ("ab,bc->ac", ((2, 3), (3, 4)), ["matmul"]),
        ("ab, bc -> ca", ((2, 3), (3, 4)), ["matmul", "permute_dims"]),
        ("abcd,cde->abe", ((2, 3, 4, 5), (4, 5, 6)), ["reshape", "reshape", "matmul"]),
        ("bd,bhd->hb", ((2, 4), (2, 3, 4)),
         ["reshape", "permute_dims", "matmul", "reshape", "permute_dims"]),
        ("ab,bc->a", ((2, 3), (3, 4)), ["einsum"]),  # c is summed in one operand alone
        ("ab,ab->ab", ((2, 3), (2, 3)), ["einsum"]),
        ("ab,ab->a", ((2, 3), (2, 3)), ["einsum"]),
        ("aa,ab->b", ((3, 3), (3, 4)), ["einsum"]),
        ("ab,bc->ac", ((2, 1), (3, 4)), ["einsum"]),  # spread over b
        ("...b,bc->...c", ((2, 3), (3, 4)), ["einsum"]),
    ],
)  # fmt: skip
def test_products_written_as_einsum(subscripts, shapes, left):
    check(lambda x, y: op.einsum((x, y), subscripts), left, *shapes)


def test_the_guard_of_few_queries_is_in_the_kernel_of_their_softmax():
    """Rows that are hidden give 0; NaN and infinities among the scores what they gave."""

    def make(v, s):
        return op.matmul(nothing_is_all_hidden(s), v)

    mod = build(make, (2, 5, 4), (2, 6, 5))
    after = transform.RecoverStructure(products=False)(mod)
    assert "max" not in operators(after) and "isnan" in operators(after)
    assert transform.RecoverStructure(products=False)(after).same_as(after)
    hidden = np.random.default_rng(0).standard_normal((2, 6, 5)).astype("float32")
    hidden[0, 1] = hidden[0, 2, :3] = hidden[1, 1, 1:] = hidden[1, 2, 0] = -np.inf
    hidden[1, 1, 0] = hidden[1, 3, 2] = np.nan
    hidden[1, 2, 3] = np.inf
    got, expected = run(after, last=hidden), run(mod, last=hidden)
    assert (expected[0, 1] == 0).all() and np.isnan(expected[1, 1:4]).all()
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_transpositions_are_merged():
    def make(x):
        return op.permute_dims(op.permute_dims(x, [1, 2, 0]), [1, 2, 0])

    check(make, ["permute_dims"], (2, 3, 4))


# ---- attention -----------------------------------------------------------------------------------
B, S, K, N, H = 2, 5, 5, 4, 8


def heads(x, length, count=N):
    return op.permute_dims(op.reshape(x, (B, length, count, H)), [0, 2, 1, 3])


def merged(x):
    return op.reshape(op.permute_dims(x, [0, 2, 1, 3]), (B, S, N * H))


def scores(q, k, scale=H**-0.5):
    return op.matmul(heads(q, S), op.permute_dims(heads(k, K), [0, 1, 3, 2])) * const(scale)


QKV = ((B, S, N * H),) + ((B, K, N * H),) * 2
PLAIN = ["reshape", "reshape", "reshape", "nn.attention", "reshape"]


def attend(s, v):
    return merged(op.matmul(op.nn.softmax(s, axis=-1), heads(v, K)))


def test_attention():
    check(lambda q, k, v: attend(scores(q, k), v), PLAIN, *QKV)


def test_attention_scaled_by_vectors_of_one_element():
    root = relax.const(np.full(1, H**-0.25, "float32"))

    def make(q, k, v):
        turned = op.permute_dims(heads(k, K), [0, 1, 3, 2])
        return attend(op.matmul(heads(q, S) * root, turned * root), v)

    check(make, PLAIN, *QKV)


def test_a_vector_that_adds_an_axis_stays():
    one = relax.const(np.ones(1, "float32"))

    def make(x):
        return (x * one) * op.sigmoid(x)

    mod = build(make, ())
    assert transform.RecoverStructure()(mod).same_as(mod)


def nothing_is_not_a_number(scores):
    """As torch.onnx writes it."""
    weights = op.nn.softmax(scores, axis=-1)
    return op.where(op.isnan(weights), const(0), weights)


def nothing_is_not_a_number_by_a_vector(scores):
    """As its older exporter does."""
    weights = op.nn.softmax(scores, axis=-1)
    return op.where(op.isnan(weights), relax.const(np.zeros(1, "float32")), weights)


def nothing_is_all_hidden(scores):
    """As PyTorch's decompositions do."""
    seen = op.astype(op.logical_not(op.equal(scores, const(-np.inf))), "int8")
    some = op.astype(op.max(seen, -1, keepdims=True), "bool")
    weights = op.nn.softmax(scores, axis=-1)
    return op.where(op.logical_not(some), op.full_like(weights, const(0)), weights)


@pytest.mark.parametrize(
    "guarded",
    [nothing_is_not_a_number, nothing_is_not_a_number_by_a_vector, nothing_is_all_hidden],
)
@pytest.mark.parametrize("masked", ["none", "causal", "row", "argument"])
def test_attention_with_zeros_for_queries_that_see_nothing(guarded, masked):
    mask = np.where(np.arange(K) > np.arange(S)[:, None], -np.inf, 0).astype("float32")
    if masked == "row":
        mask[2] = -np.inf

    def make(q, k, v, hidden):
        s = scores(q, k)
        if masked == "argument":
            s = s + op.where(op.greater(hidden, const(0)), const(-np.inf), const(0))
        elif masked != "none":
            s = s + relax.const(mask)
        return merged(op.matmul(guarded(s), heads(v, K)))

    mod = build(make, *QKV, (B, 1, S, K))
    after = transform.RecoverStructure()(mod)
    assert "nn.attention" in " ".join(operators(after)) and "nn.softmax" not in operators(after)
    hidden = np.random.default_rng(0).standard_normal((B, 1, S, K)).astype("float32")
    hidden[1, 0, 3] = 1
    np.testing.assert_allclose(run(after, last=hidden), run(mod, last=hidden), rtol=1e-4, atol=1e-5)


def test_a_guard_of_another_softmax_stays():
    def make(q, k, v):
        s = scores(q, k)
        seen = op.astype(op.logical_not(op.equal(s + const(1), const(-np.inf))), "int8")
        some = op.astype(op.max(seen, -1, keepdims=True), "bool")
        weights = op.nn.softmax(s, axis=-1)
        weights = op.where(op.logical_not(some), op.full_like(weights, const(0)), weights)
        return merged(op.matmul(weights, heads(v, K)))

    assert "nn.attention" not in operators(transform.RecoverStructure()(build(make, *QKV)))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("types", [[], ["float16", "bfloat16"]])
def test_attention_of_small_floats_alone(dtype, types):
    builder = relax.BlockBuilder()
    q, k, v = (
        relax.Var(name, relax.TensorStructInfo((B, length, N, H), dtype))
        for name, length in (("q", S), ("k", K), ("v", K))
    )
    with builder.function("main", [q, k, v]):
        with builder.dataflow():
            turned = [op.permute_dims(x, (0, 2, 1, 3)) for x in (q, v)]
            product = op.matmul(turned[0], op.permute_dims(k, (0, 2, 3, 1)))
            weights = op.nn.softmax(op.multiply(product, relax.const(0.25, dtype)))
            out = builder.emit_output(builder.normalize(op.matmul(weights, turned[1])))
        builder.emit_func_output(out)
    after = operators(transform.RecoverStructure(False, types)(builder.get()))
    assert ("nn.attention" in after) == (dtype in types)


@pytest.mark.parametrize("rounds", [True, False])
def test_attention_in_mixed_precision(rounds):
    """Products of small floats are sums in float32, which attention rounds: so must the graph."""
    builder = relax.BlockBuilder()
    q, k, v = (relax.Var(name, relax.TensorStructInfo((B, S, N, H), "bfloat16")) for name in "qkv")
    with builder.function("main", [q, k, v]):
        with builder.dataflow():
            turned = [op.permute_dims(x, (0, 2, 1, 3)) for x in (q, v)]
            product = op.matmul(turned[0], op.permute_dims(k, (0, 2, 3, 1)), out_dtype="float32")
            weights = op.astype(op.nn.softmax(product * const(0.25)), "bfloat16")
            out = op.matmul(weights, turned[1], out_dtype="float32")
            out = op.astype(out, "bfloat16") if rounds else out
            out = builder.emit_output(builder.normalize(out))
        builder.emit_func_output(out)
    for types in (["float32"], ["float16", "bfloat16"]):  # of processors and of matrix units
        after = transform.RecoverStructure(False, types)(builder.get())
        assert relax.analysis.well_formed(after)
        assert ("nn.attention" in operators(after)) == (rounds and "bfloat16" in types)


def test_attention_scaled_elsewhere():
    """Queries and keys scaled before their product; a scale of its own; none."""
    root = const(1 / np.sqrt(np.sqrt(H)))

    def make(q, k, v):
        turned = op.permute_dims(heads(k, K) * root, [0, 1, 3, 2])
        return attend(op.matmul(heads(q, S) * root, turned), v)

    check(make, PLAIN, *QKV)
    check(lambda q, k, v: attend(scores(q, k, 0.3), v), PLAIN, *QKV)

    def unscaled(q, k, v):
        return attend(op.matmul(heads(q, S), op.permute_dims(heads(k, K), [0, 1, 3, 2])), v)

    check(unscaled, PLAIN, *QKV)

    def divided(q, k, v):
        plain = op.matmul(heads(q, S), op.permute_dims(heads(k, K), [0, 1, 3, 2]))
        return attend(plain / const(np.sqrt(H)), v)

    check(divided, PLAIN, *QKV)


def test_attention_with_keys_transposed_at_once():
    def make(q, k, v):
        turned = op.permute_dims(op.reshape(k, (B, K, N, H)), [0, 2, 3, 1])
        return attend(op.matmul(heads(q, S), turned) * const(1 / np.sqrt(H)), v)

    check(make, PLAIN, *QKV)


@pytest.mark.parametrize("shape", [(B, 1, S, K), (1, 1, S, K), (B, 1, 1, K), (S, K), (B, N, S, K)])
def test_attention_with_a_mask(shape):
    def make(q, k, v, mask):
        return attend(scores(q, k) + mask, v)

    expected = list(PLAIN)
    expected[3] = "nn.attention_bias"
    if len(shape) < 4:
        expected.insert(3, "reshape")
    before = build(make, *QKV, shape)
    after = transform.RecoverStructure()(before)
    assert sorted(operators(after)) == sorted(expected)
    np.testing.assert_allclose(run(after), run(before), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("queries", [3, 40])
def test_attention_that_processors_have_a_kernel_for(queries):
    def make(q, k, v):
        q, v = (op.permute_dims(x, [0, 2, 1, 3]) for x in (q, v))
        p = op.matmul(q, op.permute_dims(k, [0, 2, 3, 1])) * const(0.25)
        return op.permute_dims(op.matmul(op.nn.softmax(p), v), [0, 2, 1, 3])

    mod = build(make, (2, queries, 3, 16), (2, 50, 3, 16), (2, 50, 3, 16))
    after = operators(transform.RecoverStructure(products=False, attention=["float32"])(mod))
    assert ("nn.attention" in after) == (queries == 40)
    assert "nn.attention" not in operators(transform.RecoverStructure(products=False)(mod))


LOW = np.where(np.tril(np.ones((S, K), bool)), 0, -np.inf).astype("float32")


def test_causal_attention():
    after = {}
    for low in (-np.inf, np.finfo("float32").min):
        bias = np.where(LOW == 0, 0, low).astype("float32")[None, None]

        def make(q, k, v, bias=bias):
            return attend(scores(q, k) + relax.const(bias), v)

        check(make, PLAIN, *QKV)
        after = transform.RecoverStructure()(build(make, *QKV))
        (call,) = (
            b.value
            for b in after["main"].body.blocks[0].bindings
            if getattr(b.value.op, "name", "") == "relax.nn.attention"
        )
        assert call.attrs.causal_mask == "TopLeft"


@pytest.mark.parametrize("keeps", [True, False])
def test_attention_with_a_condition(keeps):
    """where(condition, scores, -inf) and masked_fill; a triangle is causal."""
    triangle = np.tril(np.ones((S, K), bool))

    def choose(condition, s):
        low = const(-np.inf)
        return op.where(condition, s, low) if keeps else op.where(condition, low, s)

    def causal(q, k, v):
        return attend(choose(relax.const(triangle if keeps else ~triangle), scores(q, k)), v)

    check(causal, PLAIN, *QKV)
    some = np.ones((B, 1, 1, K), bool)
    some[0, 0, 0, 3:] = False

    def masked(q, k, v):
        return attend(choose(relax.const(some if keeps else ~some), scores(q, k)), v)

    before = build(masked, *QKV)
    after = transform.RecoverStructure()(before)
    assert "nn.attention_bias" in operators(after) and "nn.softmax" not in operators(after)
    np.testing.assert_allclose(run(after), run(before), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("by", ["repeat", "broadcast", "tile"])
def test_grouped_attention(by):
    """Two heads of keys and values for four of queries."""

    def spread(x):
        if by == "repeat":
            return op.repeat(x, 2, axis=1)
        wide = op.expand_dims(x, 2)
        tiled = by == "tile"
        wide = op.tile(wide, (1, 1, 2, 1, 1)) if tiled else op.broadcast_to(wide, (B, 2, 2, K, H))
        return op.reshape(wide, (B, N, K, H))

    def make(q, k, v):
        turned = op.permute_dims(spread(heads(k, K, 2)), [0, 1, 3, 2])
        s = op.matmul(heads(q, S), turned) * const(1 / np.sqrt(H))
        return merged(op.matmul(op.nn.softmax(s, axis=-1), spread(heads(v, K, 2))))

    check(make, PLAIN, QKV[0], (B, K, 2 * H), (B, K, 2 * H))


def test_attention_of_one_head():
    def make(q, k, v):
        s = op.matmul(q, op.permute_dims(k, [0, 2, 1])) / const(np.sqrt(H))
        return op.matmul(op.nn.softmax(s, axis=-1), v)

    before = build(make, (B, S, H), (B, K, H), (B, K, H))
    after = transform.RecoverStructure()(before)
    assert operators(after).count("nn.attention") == 1
    assert "matmul" not in operators(after)
    np.testing.assert_allclose(run(after), run(before), rtol=1e-4, atol=1e-5)


def test_products_that_are_no_attention():
    def other_axis(q, k, v):
        return merged(op.matmul(op.nn.softmax(scores(q, k), axis=1), heads(v, K)))

    mod = build(other_axis, *QKV)
    assert "nn.attention" not in operators(transform.RecoverStructure()(mod))


def test_dynamic_lengths():
    @R.function
    def main(x: R.Tensor(("b", "s", 8), "float32"), g: R.Tensor((8,), "float32")):
        with R.dataflow():
            m = R.mean(x, axis=[-1], keepdims=True)
            d = R.subtract(x, m)
            v = R.mean(R.multiply(d, d), axis=[-1], keepdims=True)
            y = R.multiply(R.divide(d, R.sqrt(R.add(v, R.const(1e-5, "float32")))), g)
            R.output(y)
        return y

    after = transform.RecoverStructure()(tvm.IRModule({"main": main}))
    assert operators(after) == ["zeros", "nn.layer_norm"]
    assert relax.analysis.well_formed(after)


def test_weights_that_are_nan_become_0_where_the_guard_says_so():
    """where(isnan(p), 0, p) is also about scores that are no numbers."""

    def make(q, k, v):
        q, k, v = (op.permute_dims(x, [0, 2, 1, 3]) for x in (q, k, v))
        scores = op.matmul(q, op.permute_dims(k, [0, 1, 3, 2])) * const(0.25)
        weights = op.nn.softmax(scores, axis=-1)
        weights = op.where(op.isnan(weights), const(0), weights)
        return op.permute_dims(op.matmul(weights, v), [0, 2, 1, 3])

    mod = build(make, *[(1, 16, 2, 16)] * 3)
    after = transform.RecoverStructure(False, ["float32"])(mod)
    assert operators(after) == ["nn.attention"]
    arrays = [np.random.default_rng(i).standard_normal((1, 16, 2, 16)) for i in range(3)]
    arrays = [a.astype("float32") for a in arrays]
    arrays[0][0, 3, 1, 2], arrays[0][0, 5, 0, 0] = np.nan, np.inf
    expected = evaluate(transform.LegalizeOps()(mod), arrays)
    assert not expected[0, 3, 1].any() and not expected[0, 5, 0].any()
    vm = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    got = vm["main"](*map(tvm.runtime.tensor, arrays)).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kv_heads", [N, 2])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_with_a_cache(kv_heads, masked):
    """Keys and values behind those of the past, which are results, too; heads that share them."""
    past, size, share = (B, kv_heads, 3, H), 3 + K, N // kv_heads

    def spread(x):
        if share == 1:
            return x
        wide = op.broadcast_to(op.expand_dims(x, 2), (B, kv_heads, share, size, H))
        return op.reshape(wide, (B, N, size, H))

    def make(q, k, v, old_k, old_v, *mask):
        k, v = (
            op.concat([old, heads(x, K, kv_heads)], axis=2) for old, x in ((old_k, k), (old_v, v))
        )
        s = op.matmul(heads(q, S), op.permute_dims(spread(k), [0, 1, 3, 2])) * const(H**-0.5)
        if mask:
            s = s + mask[0]
        y = merged(op.matmul(op.nn.softmax(s, axis=-1), spread(v)))
        counts = (B * S * N * H, *[B * kv_heads * size * H] * 2)
        parts = zip((y, k, v), counts, strict=True)
        return op.concat([op.reshape(part, (count,)) for part, count in parts], axis=0)

    shapes = [QKV[0], *[(B, K, kv_heads * H)] * 2, past, past]
    mod = build(make, *shapes, *([(B, 1, S, size)] if masked else []))
    after = transform.RecoverStructure()(mod)
    left = operators(after)
    assert left.count("nn.attention_bias" if masked else "nn.attention") == 1
    assert not {"matmul", "nn.softmax", "broadcast_to"} & set(left)
    np.testing.assert_allclose(run(after), run(mod), rtol=1e-4, atol=1e-5)


def test_attention_of_rotated_queries_and_keys():
    angles = np.arange(S)[:, None] / 10 ** np.arange(H // 2)
    cos, sin = (relax.const(np.tile(f(angles), 2).astype("float32")) for f in (np.cos, np.sin))

    def turned(x):
        first, second = (op.strided_slice(x, [3], [a], [b]) for a, b in ((0, H // 2), (H // 2, H)))
        return x * cos + op.concat([op.negative(second), first], axis=3) * sin

    def make(q, k, v):
        keys = op.permute_dims(turned(heads(k, K)), [0, 1, 3, 2])
        return attend(op.matmul(turned(heads(q, S)), keys) * const(H**-0.5), v)

    mod = build(make, *QKV)
    after = transform.RecoverStructure()(mod)
    assert operators(after).count("nn.attention") == 1 and "matmul" not in operators(after)
    np.testing.assert_allclose(run(after), run(mod), rtol=1e-4, atol=1e-5)


def test_attention_guarded_by_its_mask():
    """As the importer of ONNX spells Attention: queries whose whole mask is -inf give 0."""
    mask = np.where(np.arange(K) > np.arange(S)[:, None], -np.inf, 0).astype("float32")
    mask[2] = -np.inf

    def make(q, k, v, other=None):
        bias = relax.const(mask[None, None])
        hidden = op.equal(op.max(bias if other is None else other, -1, True), const(-np.inf))
        weights = op.where(hidden, const(0), op.nn.softmax(scores(q, k) + bias, axis=-1))
        return merged(op.matmul(weights, heads(v, K)))

    check(make, [*PLAIN[:3], "nn.attention_bias", PLAIN[4]], *QKV)
    mod = build(make, *QKV, (1, 1, S, K))  # guarded by something else
    assert "nn.attention_bias" not in operators(transform.RecoverStructure()(mod))
