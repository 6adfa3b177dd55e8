# SPDX-License-Identifier: Apache-2.0
"""Random graphs rewritten by random rules that keep the meaning give the results of before.

    python -m tests.fuzz.rules --programs 5000 [--seed 0] [--seconds 300]

A failure names its seed and its rules.
"""

import argparse
import functools
import operator
import random
import time

import numpy as np
from tvm import relax
from tvm.relax import op
from tvm.relax.dpl import PatternMatchingRewriter, is_op, wildcard
from tvm.script import relax as R

EVALUATE = {
    "relax.add": np.add,
    "relax.subtract": np.subtract,
    "relax.multiply": np.multiply,
    "relax.negative": np.negative,
}


def number(value):
    return relax.const(value, "int64")


def _same_shape(a):
    return lambda e, m: m[a] if m[a].struct_info == e.struct_info else None


def _rules():
    a, b, c = wildcard(), wildcard(), wildcard()
    negative = is_op("relax.negative")
    return {
        "a - b": (a - b, lambda e, m: m[a] + (-m[b])),
        "-(-a)": (negative(negative(a)), lambda e, m: m[a]),
        "a + a": (a + a, lambda e, m: m[a] * number(2)),
        "a * (b + c)": (a * (b + c), lambda e, m: m[a] * m[b] + m[a] * m[c]),
        "a + (-a)": (a + negative(a), lambda e, m: op.multiply(m[a], number(0))),
        "(a + b) - b": ((a + b) - b, _same_shape(a)),
        "-(a * b)": (negative(a * b), lambda e, m: (-m[a]) * m[b]),
        "a * -b": (a * negative(b), lambda e, m: op.subtract(m[a] * number(0), m[a] * m[b])),
    }


def rewriter_of(random_, names):
    """Some of the rules, each of which may decline now and then, one after another."""
    rules = _rules()

    def one(name):
        pattern, replace = rules[name]
        return PatternMatchingRewriter.from_pattern(
            pattern, lambda e, m: replace(e, m) if random_.random() < 0.8 else None
        )

    return functools.reduce(operator.or_, map(one, names))


# These undo each other's work without end.
ENDLESS = {"a - b", "-(a * b)", "a * -b"}


def graph(random_):
    shapes = [(3,), (2, 3), (2, 1)]
    params = [
        relax.Var(f"x{i}", R.Tensor(random_.choice(shapes), "int64"))
        for i in range(random_.randint(1, 3))
    ]
    bb = relax.BlockBuilder()
    with bb.function("main", params):
        with bb.dataflow():
            values = list(params)
            for _ in range(random_.randint(1, 14)):
                x, y = random_.choice(values), random_.choice(values)
                make = random_.choice([op.add, op.subtract, op.multiply, op.negative])
                values.append(bb.emit(make(x) if make is op.negative else make(x, y)))
            out = bb.emit_output(op.add(values[-1], random_.choice(values)))
        bb.emit_func_output(out)
    return bb.get()["main"]


def run(func, arrays):
    known = dict(zip(func.params, arrays, strict=True))

    def value(e):
        if isinstance(e, relax.Constant):
            return e.data.numpy()
        if isinstance(e, relax.Var):
            return known[e]
        with np.errstate(over="ignore"):
            return EVALUATE[e.op.name](*map(value, e.args))

    for block in func.body.blocks:
        for binding in block.bindings:
            known[binding.var] = value(binding.value)
    return value(func.body.body)


def check(seed):
    random_ = random.Random(seed)
    func = graph(random_)
    names = random_.sample(list(_rules()), random_.randint(1, 3))
    if set(names) == ENDLESS:
        return None
    after = rewriter_of(random_, names)(func)
    rng = np.random.default_rng(seed)
    arrays = [
        rng.integers(-9, 9, [int(d) for d in p.struct_info.shape.values]) for p in func.params
    ]
    assert relax.analysis.well_formed(after), f"seed {seed}, rules {names}"
    np.testing.assert_array_equal(
        run(after, arrays), run(func, arrays), err_msg=f"seed {seed}, rules {names}"
    )
    return not after.same_as(func)


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.rules", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--programs", type=int, help="how many; else as many as the time allows")
    parser.add_argument("--seed", type=int, default=0, help="of the first graph")
    options = parser.parse_args()
    start, seed, changed = time.time(), options.seed, 0
    while (
        time.time() - start < options.seconds
        if options.programs is None
        else seed < options.seed + options.programs
    ):
        changed += bool(check(seed))
        seed += 1
    print(f"{seed - options.seed} graphs, {changed} of them rewritten, no failure")


if __name__ == "__main__":
    main()
