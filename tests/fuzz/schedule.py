# SPDX-License-Identifier: Apache-2.0
"""Random primitives on random programs: python -m tests.fuzz.schedule --seconds 300

Every sequence must keep what the program computes (interpreted, now and then compiled), the
consistency of the state, and replay from trace, JSON and Python. A failure prints its seed and the
shortest sequence found that still fails; at the end is printed how often each primitive was
accepted and refused.
"""

import argparse
import collections
import random
import sys
import time

import numpy as np
import tvm
from tvm import te, tir
from tvm.tir.schedule.testing import verify_trace_roundtrip


# ---- programs -----------------------------------------------------------------------------------
def _sizes(rng, count):
    return [rng.choice([1, 2, 3, 4, 5, 6, 8, 12]) for _ in range(count)]


def elementwise(rng):
    n, m = _sizes(rng, 2)
    a = te.placeholder((n, m), name="A")
    b = te.compute((n, m), lambda i, j: a[i, j] * 2.0, name="B")
    c = te.compute((n, m), lambda i, j: te.max(b[i, j], 0.0) + a[i, j], name="C")
    d = te.compute((m, n), lambda i, j: c[j, i] + 1.0, name="D")
    return te.create_prim_func([a, d])


def matmul(rng):
    n, m, l = _sizes(rng, 3)
    a, b = te.placeholder((n, l), name="A"), te.placeholder((l, m), name="B")
    k = te.reduce_axis((0, l), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((n, m), lambda i, j: te.max(c[i, j], 0.0), name="D")
    return te.create_prim_func([a, b, d])


def softmax(rng):
    n, m = _sizes(rng, 2)
    a = te.placeholder((n, m), name="A")
    k, l = te.reduce_axis((0, m), name="k"), te.reduce_axis((0, m), name="l")
    top = te.compute((n,), lambda i: te.max(a[i, k], axis=k), name="B")
    e = te.compute((n, m), lambda i, j: te.exp(a[i, j] - top[i]), name="C")
    total = te.compute((n,), lambda i: te.sum(e[i, l], axis=l), name="D")
    out = te.compute((n, m), lambda i, j: e[i, j] / total[i], name="E")
    return te.create_prim_func([a, out])


def stencil(rng):
    n = rng.choice([4, 6, 9])
    a = te.placeholder((n,), name="A")
    b = te.compute(
        (n + 2,), lambda i: tir.if_then_else(tir.all(i > 0, i <= n), a[i - 1], 0.0), name="B"
    )
    k = te.reduce_axis((0, 3), name="k")
    c = te.compute((n,), lambda i: te.sum(b[i + k], axis=k), name="C")
    return te.create_prim_func([a, c])


def dynamic(rng):
    n, m = te.size_var("n"), _sizes(rng, 1)[0]
    a = te.placeholder((n, m), name="A")
    b = te.compute((n, m), lambda i, j: a[i, j] + 1.0, name="B")
    k = te.reduce_axis((0, m), name="k")
    c = te.compute((n,), lambda i: te.sum(b[i, k], axis=k), name="C")
    return te.create_prim_func([a, c])


PROGRAMS = [elementwise, matmul, softmax, stencil, dynamic]


def arguments(func, rng):
    """Random arrays for a function; what is symbolic becomes a small number."""
    sizes, numbers = {}, np.random.default_rng(rng.randrange(1 << 30))
    made = []
    for param in func.params:
        shape = []
        for dim in func.buffer_map[param].shape:
            if isinstance(dim, tir.Var):
                shape.append(sizes.setdefault(dim, rng.choice([1, 3, 7])))
            else:
                shape.append(int(dim))
        made.append(numbers.uniform(-1, 1, shape).astype("float32"))
    return made


# ---- primitives ---------------------------------------------------------------------------------
class Steps:
    """One random call of each primitive: the name of a block or loop is a position, so that a call
    can be repeated on another schedule."""

    def __init__(self, rng):
        self.rng = rng

    def blocks(self, sch):
        found, todo = [], [sch.get_block("root")]
        while todo:
            children = sch.get_child_blocks(todo.pop(0))
            found.extend(children)
            todo.extend(children)
        return found

    def block(self, sch, at):
        blocks = self.blocks(sch)
        return blocks[at % len(blocks)] if blocks else sch.get_block("root")

    def loop(self, sch, at, position):
        loops = sch.get_loops(self.block(sch, at))
        return loops[position % len(loops)] if loops else tir.schedule.LoopRV()

    def draw(self):
        """(name, function of a schedule)"""
        rng = self.rng
        at, position, other = (rng.randrange(64) for _ in range(3))
        first, second = rng.randrange(1, 6), rng.randrange(1, 6)
        count, key = rng.randrange(2, 4), rng.randrange(100)
        order = rng.sample(range(8), 8)

        def loops(sch):
            return sch.get_loops(self.block(sch, at))

        def nest(sch):
            all_loops = loops(sch)
            start = position % max(len(all_loops), 1)
            return all_loops[start : start + count]

        def shuffled(sch):
            chosen = nest(sch)
            return [chosen[i] for i in order if i < len(chosen)]

        def block(sch):
            return self.block(sch, at)

        def loop(sch):
            return self.loop(sch, at, position)

        def tile(sch):
            sampled = sch.sample_perfect_tile(loop(sch), 2, 8)
            sch.split(loop(sch), sampled)

        def turn(sch, b):
            (written,) = sch.get(b).writes
            inputs = sch.mod["main"].buffer_map.values()
            if any(written.buffer.same_as(x) for x in inputs):
                raise tir.ScheduleError("the caller knows the layout of a parameter")
            sch.transform_layout(b, ("write", 0), lambda *i: [*i[1:], i[0]])

        calls = {
            "split": lambda s: s.split(loop(s), rng_choice),
            "fuse": lambda s: s.fuse(*nest(s), preserve_unit_iters=key % 2 == 0),
            "reorder": lambda s: s.reorder(*shuffled(s)),
            "parallel": lambda s: s.parallel(loop(s)),
            "vectorize": lambda s: s.vectorize(loop(s)),
            "unroll": lambda s: s.unroll(loop(s)),
            "bind": lambda s: s.bind(loop(s), ["threadIdx.x", "blockIdx.x", "vthread"][key % 3]),
            "add_unit_loop": lambda s: s.add_unit_loop(block(s) if key % 2 else loop(s)),
            "merge": lambda s: s.merge(loop(s), self.loop(s, other, position)),
            "loop_partition": lambda s: s.loop_partition(loop(s), [first]),
            "annotate": lambda s: s.annotate(block(s) if key % 2 else loop(s), f"k{key}", key),
            "sample_perfect_tile": tile,
            "sample_categorical": lambda s: s.annotate(
                block(s), "v", s.sample_categorical([1, 2, 3], [0.2, 0.3, 0.5])
            ),
            "sample_compute_location": lambda s: s.compute_at(
                b := block(s), s.sample_compute_location(b)
            ),
            "storage_align": lambda s: s.storage_align(block(s), 0, -1, 8, first),
            "set_scope": lambda s: s.set_scope(block(s), 0, ["shared", "local"][key % 2]),
            "compute_inline": lambda s: s.compute_inline(block(s)),
            "reverse_compute_inline": lambda s: s.reverse_compute_inline(block(s)),
            "compute_at": lambda s: s.compute_at(block(s), self.loop(s, other, position)),
            "reverse_compute_at": lambda s: s.reverse_compute_at(
                block(s), self.loop(s, other, position)
            ),
            "cache_read": lambda s: s.cache_read(block(s), 0, "global"),
            "cache_write": lambda s: s.cache_write(block(s), 0, "global"),
            "decompose_reduction": lambda s: s.decompose_reduction(block(s), loop(s)),
            "rfactor": lambda s: s.rfactor(loop(s), 0),
            "blockize": lambda s: s.blockize(loop(s)),
            "transform_layout": lambda s: turn(s, block(s)),
            "reindex": lambda s: s.reindex(block(s), ("write", 0)),
        }
        rng_choice = rng.choice([[None, first], [first, None], [first, None, second]])
        name = rng.choice(list(calls))
        return name, calls[name]


def run(func, steps):
    """Applies the steps that are accepted; returns (schedule, names accepted, names refused)."""
    sch = tir.Schedule(func, debug_mask="all", seed=1, error_render_level="fast")
    accepted, refused = [], []
    for name, step in steps:
        if not hasattr(sch, name):
            continue
        before = sch.mod
        trial = sch.copy()
        trial.seed(len(accepted))
        try:
            step(trial)
        except tir.ScheduleError:
            refused.append(name)
            tvm.ir.assert_structural_equal(before, sch.mod)
            continue
        sch = trial
        accepted.append(name)
    return sch, accepted, refused


def complaint(func, steps, seed, compiled=False):
    """What is wrong with the sequence, or None; and what was accepted and refused."""
    accepted, refused = [], []
    try:
        sch, accepted, refused = run(func, steps)
        after = sch.mod["main"]
        tir.analysis.verify_well_formed(after)
        verify_trace_roundtrip(sch, func)
        expected = arguments(func, random.Random(seed))
        tir.interpret(func)(*expected)
        results = {}
        got = arguments(func, random.Random(seed))
        tir.interpret(after)(*got)
        results["interpreted"] = got
        if compiled and "bind" not in accepted and "set_scope" not in accepted:
            got = arguments(func, random.Random(seed))
            tvm.compile(sch, target="llvm")(*got)
            results["compiled"] = got
        for how, arrays in results.items():
            for a, b in zip(expected, arrays, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=how)
    except Exception as error:  # whatever it is, it is a failure
        return f"{type(error).__name__}: {error}", accepted, refused
    return None, accepted, refused


def reduced(func, steps, seed, compiled):
    """The steps without those that the failure does not need."""
    i = len(steps) - 1
    while i >= 0:
        fewer = steps[:i] + steps[i + 1 :]
        if complaint(func, fewer, seed, compiled)[0] is not None:
            steps = fewer
        i -= 1
    return steps


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.schedule", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--length", type=int, default=8, help="primitives tried per program")
    parser.add_argument("--compile-every", type=int, default=10, help="compile one of so many")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at a failure")
    options = parser.parse_args(arguments)
    start, seed, failures = time.time(), options.seed, 0
    accepted, refused = collections.Counter(), collections.Counter()
    while time.time() - start < options.seconds:
        rng = random.Random(seed)
        func = rng.choice(PROGRAMS)(rng)
        source = Steps(rng)
        steps = [source.draw() for _ in range(options.length)]
        compiled = options.compile_every > 0 and seed % options.compile_every == 0
        said, yes, no = complaint(func, steps, seed, compiled)
        accepted.update(yes)
        refused.update(no)
        if said is not None:
            failures += 1
            steps = reduced(func, steps, seed, compiled)
            print(
                f"seed {seed}: {[name for name, _ in steps]}\n{said}\n{func.script()}", flush=True
            )
            try:
                print("\n".join(run(func, steps)[0].trace.as_python()), flush=True)
            except Exception as error:
                print(f"while applying: {error}", flush=True)
            if not options.keep_going:
                break
        seed += 1
    print(f"{seed - options.seed} programs in {time.time() - start:.0f} s, {failures} failures")
    for name in sorted({*accepted, *refused}):
        print(f"  {name:26} accepted {accepted[name]:6} refused {refused[name]:6}")
    return failures


if __name__ == "__main__":
    sys.exit(bool(main()))
