# SPDX-License-Identifier: Apache-2.0
"""Short forms for the graphs in tests of passes over bindings."""

from tvm import ir, relax
from tvm.relax import TensorStructInfo as T

F32 = T([2, 3], "float32")


def _op(name, pure=True):
    if name not in ir.Op.list_op_names():
        ir.register_op_attr(name, "FInferStructInfo", lambda call, _: call.args[0].struct_info)
        ir.register_op_attr(name, "FPurity", pure)
    return ir.Op.get(name)


F, G, EFFECT = _op("test.pass.f"), _op("test.pass.g"), _op("test.pass.effect", False)


def f(*args):
    return relax.Call(F, list(args))


def g(*args):
    return relax.Call(G, list(args))


def build(body, pure=True, params=None):
    """A module whose function main is what `body(builder, x)` emits."""
    bb = relax.BlockBuilder()
    params = params or [relax.Var("x", F32)]
    with bb.function("main", params, pure=pure):
        bb.emit_func_output(body(bb, *params))
    return bb.get()


def same(after, expected):
    ir.assert_structural_equal(after["main"], expected["main"])
    assert relax.analysis.well_formed(after)


def flow(emit):
    """A body with one dataflow block."""

    def body(bb, *params):
        with bb.dataflow():
            result = emit(bb, *params)
        return result

    return body
