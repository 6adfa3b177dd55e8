# SPDX-License-Identifier: Apache-2.0
"""Long chains and modules of many functions: each pass of the lowering is linear.

python -m bench.passes: all passes, larger programs
"""

import time

import pytest
import tvm
from tvm import relax, tir
from tvm.relax import transform
from tvm.relax.dpl import is_op, wildcard

from bench import passes

LOWERING = (
    "DispatchSampling",
    "DispatchSortScan",
    "StableNormalization",
    "LambdaLift",
    "LegalizeOps",
    "RewriteDataflowReshape",
    "ToNonDataflow",
    "RemovePurityChecking",
    "CallTIRRewrite",
    "StaticPlanBlockMemory",
    "PackStorages",
    "LowerAllocTensor",
    "KillAfterLastUse",
    "LowerRuntimeBuiltin",
    "ComputePrimValue",
    "VMShapeLower",
    "AttachGlobalSymbol",
)


def chain(n):
    """One function of n operators."""
    x = relax.Var("x", relax.TensorStructInfo([8], "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            y = x
            for _ in range(n):
                y = bb.emit(relax.op.exp(y))
            y = bb.emit_output(y)
        bb.emit_func_output(y)
    return bb.get()


def many(n):
    """n functions with symbolic shapes."""
    bb = relax.BlockBuilder()
    for i in range(n):
        m = tir.Var("m", "int64")
        x = relax.Var("x", relax.TensorStructInfo([m, 8], "float32"))
        with bb.function(f"f{i}", [x]):
            with bb.dataflow():
                y = bb.emit(relax.op.reshape(bb.emit(relax.op.exp(x)), [m * 8]))
                y = bb.emit_output(relax.op.exp(y))
            bb.emit_func_output(y)
    return bb.get()


def nested(n):
    """Branches inside of branches."""
    tensor = relax.TensorStructInfo([8], "float32")
    x, c = relax.Var("x", tensor), relax.Var("c", relax.PrimStructInfo("bool"))
    bb = relax.BlockBuilder()
    body = x
    for _ in range(n):
        body = relax.If(c, relax.op.exp(x), body)
    with bb.function("main", [x, c]):
        bb.emit_func_output(bb.emit(body))
    return bb.get()


def _times(mod):
    times = {}
    for name in LOWERING:
        run = getattr(transform, name)()
        begin = time.process_time()
        mod = run(mod)
        times[name] = time.process_time() - begin
    return times, mod


@pytest.mark.parametrize(
    "make, small, large", [(chain, 1000, 4000), (many, 200, 800), (nested, 150, 600)]
)
def test_linear(make, small, large):
    """4 times as much takes less than 10 times as long; a quadratic pass would take 16 times."""
    first, _ = _times(make(small))
    second, mod = _times(make(large))
    slow = {n: (first[n], t) for n, t in second.items() if t > 10 * first[n] and t > 0.3}
    assert not slow
    assert relax.analysis.well_formed(mod)


@pytest.mark.parametrize("make, small, large", [(chain, 4000, 16000), (many, 1000, 4000)])
def test_the_language_is_linear(make, small, large):
    """Building, normal form, checks and comparison, as above."""

    def times(n):
        measured = {}

        def run(name, action):
            begin = time.process_time()
            result = action()
            measured[name] = time.process_time() - begin
            return result

        mod, other = run("build", lambda: make(n)), make(n)
        run("normalise", lambda: transform.Normalize()(mod))
        assert run("well_formed", lambda: relax.analysis.well_formed(mod))
        assert run("compare", lambda: tvm.ir.structural_equal(mod, other))
        run("print", mod.script)
        pattern = is_op("relax.exp")(wildcard())
        fused = run("fuse", lambda: transform.FuseOpsByPattern([("test.exp", pattern)])(mod))
        assert len(fused.functions) > len(mod.functions)
        return measured

    first, second = times(small), times(large)
    slow = {n: (first[n], t) for n, t in second.items() if t > 10 * first[n] and t > 0.3}
    assert not slow


@pytest.mark.parametrize("name", ["EliminateCommonSubexpr", "InlinePrivateFunctions"])
def test_calls_of_kernels(name):
    """What is called and with what tells calls apart, and functions are looked up once."""

    def seconds(n):
        with tvm.target.Target(passes.TARGET):
            mod = passes.kernels(passes.chain(n) if name[0] == "E" else passes.functions(n))
            mod = mod if name[0] == "E" else passes.fused(mod)
        begin = time.process_time()
        getattr(transform, name)()(mod)
        return time.process_time() - begin

    first, second = seconds(500), seconds(2000)
    assert second < 0.3 or second < 10 * first


@pytest.mark.parametrize("name", ["AdjustMatmulOrder", "DeadCodeElimination", "LazyGetInput"])
def test_branches_are_looked_at_once(name):
    """Not once for each branch around them."""

    def seconds(n):
        mod = nested(n)
        begin = time.process_time()
        getattr(transform, name)()(mod)
        return time.process_time() - begin

    first, second = seconds(300), seconds(2400)
    assert second < 0.3 or second < 24 * first


def test_deep_nesting():
    """Branches inside of branches, and tuples inside of tuples."""
    tensor = relax.TensorStructInfo([8], "float32")
    x, c = relax.Var("x", tensor), relax.Var("c", relax.PrimStructInfo("bool"))
    bb = relax.BlockBuilder()
    body = x
    for _ in range(200):
        body = relax.If(c, relax.op.exp(x), body)
    nested = x
    for _ in range(2000):
        nested = relax.Tuple([nested])
    with bb.function("main", [x, c]):
        bb.emit_func_output(relax.Tuple([bb.emit(body), bb.emit(nested)]))
    _, mod = _times(bb.get())
    assert relax.analysis.well_formed(mod)


def test_many_results_are_given_away_in_linear_time():
    def seconds(n):
        bb = relax.BlockBuilder()
        x = relax.Var("x", relax.TensorStructInfo([8], "float32"))
        with bb.function("main", [x]):
            with bb.dataflow():
                results = [bb.emit_output(relax.op.exp(x)) for _ in range(n)]
            bb.emit_func_output(relax.Tuple(results))
        mod = bb.get()
        begin = time.process_time()
        after = transform.LazySetOutput()(mod)
        assert len(after["main"].body.blocks[-1].bindings) == n
        return time.process_time() - begin

    first = seconds(1000)
    second = seconds(4000)
    assert second < 10 * first or second < 0.3
