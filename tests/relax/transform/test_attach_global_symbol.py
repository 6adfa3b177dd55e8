# SPDX-License-Identifier: Apache-2.0
"""The names that the library has."""

from tvm import ir
from tvm.relax.transform import AttachGlobalSymbol

from .passes import module

TEXT = """
@T.prim_func(private=True)
def kernel(A: T.Buffer((T.int64(2),))):
    T.evaluate(0)

@R.function(private=True)
def helper(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
    return x

@R.function(pure=False)
def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
    cls = Module
    _ = cls.kernel(x)
    y = cls.helper(x)
    return y
"""


def _symbols(mod):
    return {v.name_hint: f.attrs["global_symbol"] for v, f in mod.functions_items()}


def test_names():
    after = AttachGlobalSymbol()(module(TEXT))
    assert _symbols(after) == {name: name for name in ("kernel", "helper", "main")}
    assert AttachGlobalSymbol()(after).same_as(after)


def test_prefix_of_the_library():
    after = AttachGlobalSymbol()(module(TEXT).with_attr("system_lib_prefix", "net_"))
    names = {"net_kernel", "helper", "main"}
    assert _symbols(after) == {name: name for name in names}
    call = after["main"].body.blocks[0].bindings[0].value
    assert call.op.same_as(after.get_global_var("net_kernel"))
    ir.assert_structural_equal(AttachGlobalSymbol()(after), after)
