# SPDX-License-Identifier: Apache-2.0
"""Tensors that use storages one after the other."""

import pytest
from tvm import relax
from tvm.relax.transform import StaticPlanBlockMemory

from .passes import check, module


def _alloc(name, shape="8", dtype="float32", scope="global"):
    return (
        f'{name} = R.builtin.alloc_tensor(R.shape([{shape}]), R.dtype("{dtype}"), R.prim_value(0), '
        f'R.str("{scope}"))'
    )


def _storage(name, size, dtype="float32", scope="global"):
    return (
        f'{name} = R.memory.alloc_storage(R.shape([{size}]), R.prim_value(0), R.str("{scope}"), '
        f'R.dtype("{dtype}"))'
    )


def _tensor(name, storage, shape="8", dtype="float32"):
    return (
        f"{name} = R.memory.alloc_tensor({storage}, R.prim_value(0), R.shape([{shape}]), "
        f'R.dtype("{dtype}"), R.prim_value(0))'
    )


def _use(*tensors):
    """A call that reads and writes tensors given to it."""
    return f'_ = R.call_packed("f", {", ".join(tensors)}, sinfo_args=[R.Tuple])'


def program(*lines, params='x: R.Tensor((8,), "float32")', result="x", attrs="{}"):
    body = "\n".join("    " + line for line in lines)
    return f"""
@R.function(pure=False)
def main({params}):
    R.func_attr({attrs})
{body}
    return {result}
"""


def test_storage_serves_again():
    """a and b are needed at the same time, c takes the place of a, d that of b; e is returned."""
    before = program(
        _alloc("a"),
        _use("x", "a"),
        _alloc("b"),
        _use("a", "b"),
        _alloc("c"),
        _use("b", "c"),
        _alloc("d"),
        _use("c", "d"),
        _alloc("e"),
        _use("d", "e"),
        result="e",
    )
    after = program(
        _storage("s", 32),
        _tensor("a", "s"),
        _use("x", "a"),
        _storage("t", 32),
        _tensor("b", "t"),
        _use("a", "b"),
        _tensor("c", "s"),
        _use("b", "c"),
        _tensor("d", "t"),
        _use("c", "d"),
        _alloc("e"),
        _use("d", "e"),
        result="e",
    )
    result = check(StaticPlanBlockMemory(), before, after)
    assert StaticPlanBlockMemory()(result).same_as(result)


def test_sizes():
    """The nearest larger storage, else the nearest smaller one, which grows; a factor of 16 is too
    much; the type does not matter, bytes do; empty tensors take none."""
    before = program(
        _alloc("a", "10"),  # 40 bytes
        _alloc("b", "100"),  # 400 bytes
        _use("a", "b"),
        _alloc("c", "50", "int16"),  # 100 bytes: into b's 400
        _use("c"),
        _alloc("d", "25"),  # 100 bytes: a's 40 grow
        _use("c", "d"),
        _alloc("e", "10000", "int8"),  # too large for all
        _alloc("z", "0"),
        _use("e", "z"),
    )
    after = program(
        _storage("s", 100),
        _tensor("a", "s", "10"),
        _storage("t", 400),
        _tensor("b", "t", "100"),
        _use("a", "b"),
        _tensor("c", "t", "50", "int16"),
        _use("c"),
        _tensor("d", "s", "25"),
        _use("c", "d"),
        _storage("u", 10000, "int8"),
        _tensor("e", "u", "10000", "int8"),
        _alloc("z", "0"),
        _use("e", "z"),
    )
    check(StaticPlanBlockMemory(), before, after)


def test_scopes_of_memory_are_apart():
    before = program(
        _alloc("a", scope="shared"), _use("a"), _alloc("b"), _use("b"), _alloc("c", scope="shared"),
        _use("c"),
    )  # fmt: skip
    after = program(
        _storage("s", 32, scope="shared"), _tensor("a", "s"), _use("a"), _storage("t", 32),
        _tensor("b", "t"), _use("b"), _tensor("c", "s"), _use("c"),
    )  # fmt: skip
    check(StaticPlanBlockMemory(), before, after)


@pytest.mark.parametrize(
    "alias",
    [
        ["v = R.reshape(a, R.shape([4, 2]))"],
        ['v = R.memory.view(a, R.shape([2, 4]), R.dtype("int32"))'],
        ["v = a"],
        ["t = (x, (a, x))", "u = t[1]", "v = u[0]"],
        ["w = R.match_cast(a, R.Tensor((8,), 'float32'))", "v = (w,)"],
        ['v = R.call_packed("same", a, sinfo_args=[R.Tensor((8,), "float32")])'],
    ],
    ids=["reshape", "view", "name", "tuple", "cast", "packed"],
)
def test_aliases_keep_the_storage(alias):
    """While v is used, its memory is not free."""
    lines = lambda a, c, *between: [*a, _use("x", "a"), *alias, *between, *c, _use("c", "v")]
    before = program(*lines([_alloc("a")], [_alloc("c")]))
    after = program(
        *lines(
            [_storage("s", 32), _tensor("a", "s")],
            [_storage("t", 32), _tensor("c", "t")],
        )
    )
    check(StaticPlanBlockMemory(), before, after)


@pytest.mark.parametrize(
    "line, result",
    [
        ("y = (x, a)", "y"),
        ("y = R.reshape(a, R.shape([2, 4]))", "y"),
        ('y = R.call_packed("keep", a, sinfo_args=[R.Object])', "x"),
        ("y = a", "y"),
        ('y = R.call_packed("same", a, sinfo_args=[R.Tensor((8,), "float32")])', "y"),
    ],
)
def test_what_leaves_the_function_is_not_planned(line, result):
    mod = module(program(_alloc("a"), _use("a"), line, result=result))
    assert StaticPlanBlockMemory()(mod).same_as(mod)


def test_branches():
    """A branch has storages of its own; what it gives keeps its memory, and what it uses from
    around it is used where the branch is."""
    text = """
    @R.function(pure=False)
    def main(x: R.Tensor((8,), "float32"), p: R.Prim("bool")):
        {a}
        _ = R.call_packed("f", x, a, sinfo_args=[R.Tuple])
        if p:
            {b}
            _1 = R.call_packed("f", a, b, sinfo_args=[R.Tuple])
            {c}
            _2 = R.call_packed("f", b, c, sinfo_args=[R.Tuple])
            r = c
        else:
            r = a
        {d}
        _3 = R.call_packed("f", d, r, sinfo_args=[R.Tuple])
        {e}
        _4 = R.call_packed("f", e, e, sinfo_args=[R.Tuple])
        return x
    """

    def fill(**kwargs):
        return text.format(**{k: ("\n" + " " * 8).join(v) for k, v in kwargs.items()})

    inner = [_storage("t", 32), " " * 4 + _tensor("b", "t")]
    before = fill(
        a=[_alloc("a")], b=[_alloc("b")], c=[_alloc("c")], d=[_alloc("d")], e=[_alloc("e")]
    )
    after = fill(
        a=[_storage("s", 32), _tensor("a", "s")],
        b=inner,
        c=[_alloc("c")],
        d=[_storage("u", 32), _tensor("d", "u")],
        e=[_tensor("e", "s")],
    )
    check(StaticPlanBlockMemory(), before, after)


PARAMS = 'x: R.Tensor(("n", "m"), "float32")'


def test_symbolic_sizes_that_are_equal():
    before = program(
        "n = T.int64()", _alloc("a", "n, 4"), _use("a"), _alloc("b", "2, n, 2"), _use("b"),
        _alloc("c", "n"), _use("c"), params=PARAMS,
    )  # fmt: skip
    after = program(
        "n = T.int64()", _storage("s", "n * 16"), _tensor("a", "s", "n, 4"), _use("a"),
        _tensor("b", "s", "2, n, 2"), _use("b"), _storage("t", "n * 4"), _tensor("c", "t", "n"),
        _use("c"), params=PARAMS,
    )  # fmt: skip
    check(StaticPlanBlockMemory(), before, after)


def test_bounds():
    """With bounds the largest size is allocated, and symbolic tensors share with static ones."""
    lines = ["n = T.int64()", "m = T.int64()"]
    attrs = '{"tir_var_upper_bound": {"n": 10, "m": 4}, "tir_var_lower_bound": {"m": 2}}'
    before = program(
        *lines, _alloc("a", "n, 4"), _use("a"), _alloc("b", "20"), _use("b"),
        _alloc("c", "n - m"), _use("c"), params=PARAMS, attrs=attrs,
    )  # fmt: skip
    after = program(
        *lines, _storage("s", "160"), _tensor("a", "s", "n, 4"), _use("a"), _tensor("b", "s", "20"),
        _use("b"), _tensor("c", "s", "n - m"), _use("c"), params=PARAMS, attrs=attrs,
    )  # fmt: skip
    check(StaticPlanBlockMemory(), before, after)


@pytest.mark.parametrize(
    "attrs, message",
    [
        ('{"tir_var_upper_bound": {"k": 4}}', "variables of the function's parameters, got 'k'"),
        ('{"tir_var_upper_bound": {"n": -4}}', "'n' to be an integer that is not negative, got -4"),
        (
            '{"tir_var_upper_bound": {"n": 4}, "tir_var_lower_bound": {"n": 5}}',
            "tir_var_lower_bound of 'n' to be at most its upper bound 4, got 5",
        ),
    ],
)  # fmt: skip
def test_bad_bounds(attrs, message):
    with pytest.raises(ValueError, match=f"StaticPlanBlockMemory: expected .*{message}"):
        StaticPlanBlockMemory()(module(program(_alloc("a"), params=PARAMS, attrs=attrs)))


def test_estimate():
    mod = module(
        program(_alloc("a", "1024, 1024"), _use("a"), _alloc("b", "1024, 1024"), _use("b"))
    )
    estimate = relax.analysis.estimate_memory_usage
    planned = estimate(StaticPlanBlockMemory()(mod))
    assert "Without memory planning, there are 2 " in planned and "0.007812 GB" in planned
    assert "With memory planning, there are 1 " in planned and "0.003906 GB" in planned
    assert "to 50.0%" in planned and "Function main" in planned
    assert "to 100.0%" in estimate(mod["main"])
    dynamic = program("n = T.int64()", _alloc("a", "n"), params=PARAMS)
    assert "There are 1 dynamic-size" in estimate(module(dynamic))


def test_what_a_function_may_store():
    """`keep` gives nothing back and fills nothing: it may have kept a, whose memory stays its own."""
    keep = '_ = R.call_packed("keep", a, sinfo_args=[R.Tuple])'
    before = program(_alloc("a"), _use("x", "a"), keep, _alloc("b"), _use("x", "b"))
    after = program(
        _alloc("a"), _use("x", "a"), keep, _storage("s", 32), _tensor("b", "s"), _use("x", "b")
    )
    check(StaticPlanBlockMemory(), before, after)
