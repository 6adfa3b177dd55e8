# SPDX-License-Identifier: Apache-2.0
"""Functions are pure because they say so."""

from tvm.relax.transform import RemovePurityChecking

from .passes import check


def test_pure_calls_become_plain_ones():
    before = """
    @R.function
    def main(x: R.Tensor((2,), "float32"), f: R.Object) -> R.Object:
        a = R.call_pure_packed("pure", x, sinfo_args=[R.Tensor((2,), "float32")])
        b = R.call_inplace_packed("inplace", a, inplace_indices=[0], sinfo_args=[R.Tensor((2,), "float32")])
        c = R.invoke_pure_closure(f, (b,), sinfo_args=[R.Object()])
        return c

    @R.function(pure=False)
    def effect(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        a = R.call_pure_packed("pure", x, sinfo_args=[R.Tensor((2,), "float32")])
        return a
    """  # noqa: E501
    after = """
    @R.function
    def main(x: R.Tensor((2,), "float32"), f: R.Object) -> R.Object:
        R.func_attr({"relax.force_pure": True})
        a = R.call_packed("pure", x, sinfo_args=[R.Tensor((2,), "float32")])
        b = R.call_packed("inplace", a, sinfo_args=[R.Tensor((2,), "float32")])
        c = R.invoke_closure(f, (b,), sinfo_args=[R.Object()])
        return c

    @R.function(pure=False)
    def effect(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        a = R.call_packed("pure", x, sinfo_args=[R.Tensor((2,), "float32")])
        return a
    """
    result = check(RemovePurityChecking(), before, after)
    assert RemovePurityChecking()(result).same_as(result)


def test_local_functions():
    text = """
    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        {0}
        @R.function
        def inner(y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            {0}
            z = R.call{1}("f", y, sinfo_args=[R.Tensor((2,), "float32")])
            return z
        w = inner(x)
        return w
    """
    force = 'R.func_attr({"relax.force_pure": True})'
    check(RemovePurityChecking(), text.format("", "_pure_packed"), text.format(force, "_packed"))
