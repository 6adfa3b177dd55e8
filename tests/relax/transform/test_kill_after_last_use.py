# SPDX-License-Identifier: Apache-2.0
"""Where values end."""

from tvm.relax.transform import KillAfterLastUse

from .passes import check

ALLOC = '{} = R.memory.alloc_tensor({}, R.prim_value(0), R.shape([8]), R.dtype("float32"))'
STORAGE = '{} = R.memory.alloc_storage(R.shape([32]), R.prim_value(0), R.str("g"), R.dtype("int8"))'


def test_tensors_then_their_storage():
    text = f"""
    @R.function(pure=False)
    def main(x: R.Tensor((8,), "float32")):
        {STORAGE.format("s")}
        {ALLOC.format("a", "s")}
        _ = R.call_packed("f", x, a, sinfo_args=[R.Tuple])
        {{0}}
        {ALLOC.format("b", "s")}
        _1 = R.call_packed("f", x, b, sinfo_args=[R.Tuple])
        {{1}}
        {STORAGE.format("t")}
        {ALLOC.format("c", "t")}
        return c
    """
    after = text.format(
        "_2 = R.memory.kill_tensor(a)",
        "_3 = R.memory.kill_tensor(b)\n        _4 = R.memory.kill_storage(s)",
    )
    result = check(KillAfterLastUse(), text.format("", ""), after)
    assert KillAfterLastUse()(result).same_as(result)


def test_names_views_and_tuples():
    """A value ends behind the last use of whatever shares its memory; names, arguments, shapes and
    what is returned do not end."""
    text = f"""
    @R.function(pure=False)
    def main(x: R.Tensor((8,), "float32"), p: R.Tuple(R.Tensor((8,), "float32"), R.Object)):
        {STORAGE.format("s")}
        {ALLOC.format("a", "s")}
        b = a
        c = R.reshape(b, R.shape([2, 4]))
        d = (c, x)
        e = d[0]
        y = x
        i = p[0]
        q = R.shape_of(i)
        {{0}}
        _ = R.call_packed("f", e, y, q, sinfo_args=[R.Tuple])
        {{1}}
        o = R.call_packed("g", y, sinfo_args=[R.Object])
        {{2}}
        return (y, q)
    """
    after = text.format(
        "_1 = R.vm.kill_object(i)",
        "\n        ".join(
            f"_{2 + n} = {call}"
            for n, call in enumerate(
                (
                    "R.vm.kill_object(e)",
                    "R.vm.kill_object(c)",
                    "R.memory.kill_tensor(a)",
                    "R.memory.kill_storage(s)",
                )
            )
        ),
        "_7 = R.vm.kill_object(o)",
    ).replace("e = d[0]", "e = d[0]\n        _6 = R.vm.kill_object(d)")
    check(KillAfterLastUse(), text.format("", "", ""), after)


def test_branches():
    """What a branch uses from around it ends behind the branch; what it gives stays."""
    text = f"""
    @R.function(pure=False)
    def main(x: R.Tensor((8,), "float32"), k: R.Prim("bool")):
        {STORAGE.format("s")}
        {ALLOC.format("a", "s")}
        if k:
            {STORAGE.format("t")}
            {ALLOC.format("b", "t")}
            _ = R.call_packed("f", a, b, sinfo_args=[R.Tuple])
            {{0}}
            {STORAGE.format("u")}
            {ALLOC.format("c", "u")}
            r = c
        else:
            r = x
        {{1}}
        _1 = R.call_packed("f", r, sinfo_args=[R.Tuple])
        {{2}}
        return x
    """
    after = text.format(
        "_2 = R.memory.kill_tensor(b)\n            _3 = R.memory.kill_storage(t)",
        "_4 = R.memory.kill_tensor(a)\n        _5 = R.memory.kill_storage(s)",
        "_6 = R.vm.kill_object(r)",
    )
    check(KillAfterLastUse(), text.format("", "", ""), after)
