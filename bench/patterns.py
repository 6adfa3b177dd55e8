# SPDX-License-Identifier: Apache-2.0
"""Patterns over a graph, in the spelling that we share with Apache TVM."""

from model_ops import tensor_info  # this file runs in workers
from programs import Timed

_UNARY = ("exp", "sin", "cos", "tanh", "sigmoid", "sqrt", "abs", "floor", "ceil", "round")


def graph(bindings):
    """One dataflow block of that many bindings: sums, and ten unary operators by turns."""
    from tvm import relax

    bb = relax.BlockBuilder()
    x = relax.Var("x", tensor_info((16, 16), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            value = x
            for i in range(bindings):
                name = _UNARY[i // 2 % len(_UNARY)]
                value = bb.emit(relax.op.add(value, x) if i % 2 else getattr(relax.op, name)(value))
            out = bb.emit_output(value)
        bb.emit_func_output(out)
    return bb.get()


def patterns(count):
    """Chains of three operators: of half of them there are matches."""
    from tvm.relax.dpl import is_op, wildcard

    result = []
    for i in range(count):
        first, second = _UNARY[i % 10], _UNARY[(i + 1 + i // 10) % 10]
        chain = is_op("relax." + second)(
            is_op("relax.add")(is_op("relax." + first)(wildcard()), wildcard())
        )
        result.append((f"bench.{i}", chain))
    return result


def seconds(action, bindings, count, number=1):
    """How long it takes to "match" `count` patterns everywhere, to "fuse" what matches them, or to
    "rewrite" every sum."""
    from tvm import relax
    from tvm.relax.dpl import is_op, rewrite_call, wildcard

    mod = graph(bindings)
    if action == "fuse":
        run = relax.transform.FuseOpsByPattern(patterns(count))
        return Timed(lambda: run(mod)).time(number) / number
    main = mod["main"]
    if action == "match":
        values = relax.analysis.get_var2val(main)
        every = [binding.var for binding in main.body.blocks[0].bindings]
        chains = [chain for _, chain in patterns(count)]
        every_match = lambda: [chain.match(v, values) for chain in chains for v in every]
        return Timed(every_match).time(number) / number
    a, b = wildcard(), wildcard()
    total = is_op("relax.add")(a, b)
    rewriter = lambda _, found: relax.op.subtract(found[a], found[b])
    return Timed(lambda: rewrite_call(total, rewriter, main)).time(number) / number
