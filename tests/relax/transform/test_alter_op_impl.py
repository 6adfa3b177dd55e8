# SPDX-License-Identifier: Apache-2.0
"""Kernels replaced by others that want other layouts, and layouts that undo each other."""

import numpy as np
import pytest
from tvm import ir, relax, tir
from tvm.relax import transform
from tvm.relax.testing.evaluate import Evaluator
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


def blocks_of_4(i):
    return i // 4, i % 4


def module(n):
    @I.ir_module
    class Module:
        @T.prim_func(private=True)
        def add(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32"), C: T.Buffer((n,))):
            T.func_attr({"operator_name": "relax.add"})
            for i in range(n):
                with T.block("add"):
                    vi = T.axis.spatial(n, i)
                    C[vi] = A[vi] + B[vi]

        @R.function
        def main(a: R.Tensor((n,), "float32"), b: R.Tensor((n,), "float32")):
            cls = Module
            with R.dataflow():
                c = R.call_tir(cls.add, (a, b), out_sinfo=R.Tensor((n,), "float32"))
                d = R.call_tir(cls.add, (c, b), out_sinfo=R.Tensor((n,), "float32"))
                R.output(d)
            return d

    return Module


@T.prim_func(private=True)
def add_in_blocks(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4)), C: T.Buffer((4, 4))):
    T.func_attr({"operator_name": "relax.add"})
    for i, j in T.grid(4, 4):
        with T.block("add"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + B[vi, vj]


def operators(mod):
    calls = [b.value for b in mod["main"].body.blocks[0].bindings]
    return [c.op.name.removeprefix("relax.") for c in calls if isinstance(c, relax.Call)]


ALTER = ({"relax.add": add_in_blocks}, {"relax.add": [blocks_of_4] * 3})


@pytest.mark.parametrize("n", [16, 14])
def test_replaced_kernels_compute_the_same(n):
    before = module(n)
    after = transform.AlterOpImpl(*ALTER)(before)
    assert relax.analysis.well_formed(after)
    moved = ["layout_transform", "layout_transform", "call_tir", "layout_transform"]
    cut = ["strided_slice"] if n == 14 else []
    assert operators(after) == (moved + cut) * 2
    called = {
        b.value.args[0].name_hint
        for b in after["main"].body.blocks[0].bindings
        if isinstance(b.value, relax.Call) and b.value.op.name == "relax.call_tir"
    }
    assert called == {"relax_add_replacement"}
    # A kernel that says which operator it is is not replaced by itself.
    ir.assert_structural_equal(transform.AlterOpImpl(*ALTER)(after), after)

    joined = transform.OptimizeLayoutTransform()(transform.EliminateCommonSubexpr()(after))
    assert relax.analysis.well_formed(joined)
    assert operators(joined) == ["layout_transform"] * 2 + ["call_tir"] * 2 + moved[3:] + cut
    args = [np.arange(n, dtype="float32"), np.linspace(0, 1, n, dtype="float32")]
    for mod in (after, joined):
        got = Evaluator(transform.LegalizeOps()(mod)).run("main", args)
        np.testing.assert_array_equal(got, args[0] + args[1] + args[1])


def test_some_tensors_stay():
    @T.prim_func(private=True)
    def add_rows(A: T.Buffer((4, 4), "float32"), B: T.Buffer((16,)), C: T.Buffer((16,))):
        for i in range(16):
            with T.block("add"):
                vi = T.axis.spatial(16, i)
                C[vi] = A[vi // 4, vi % 4] + B[vi]

    maps = {"relax.add": [tir.IndexMap.from_func(blocks_of_4), None, None]}
    after = transform.AlterOpImpl({"relax.add": add_rows}, maps)(module(16))
    assert operators(after) == ["layout_transform", "call_tir"] * 2
    args = [np.arange(16, dtype="float32"), np.ones(16, "float32")]
    got = Evaluator(transform.LegalizeOps()(after)).run("main", args)
    np.testing.assert_array_equal(got, args[0] + 2)


def test_bad_alterations():
    mod = module(16)
    with pytest.raises(
        ValueError, match="a transform for each of the 3 tensors of relax.add, got 1"
    ):
        transform.AlterOpImpl(ALTER[0], {"relax.add": [blocks_of_4]})(mod)
    with pytest.raises(ValueError, match="expected a kernel for relax.sub"):
        transform.AlterOpImpl(ALTER[0], {"relax.sub": [blocks_of_4]})(mod)
    with pytest.raises(ValueError, match="tensor 0 of relax.add to have the 2 dimensions"):
        transform.AlterOpImpl(ALTER[0], {"relax.add": [lambda i, j: (j, i)] * 3})(mod)


def layouts(*maps):
    bb = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((4, 6), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            value = x
            for index_map, pad in maps:
                value = bb.emit(relax.op.layout_transform(value, index_map, pad_value=pad))
            out = bb.emit_output(relax.op.nn.relu(value))
        bb.emit_func_output(out)
    return bb.finalize()


@pytest.mark.parametrize(
    "maps, left",
    [
        ([(lambda i, j: (j, i), None), (lambda j, i: (i, j), None)], 0),
        ([(lambda i, j: (j, i), None), (lambda j, i: (j // 2, i, j % 2), None)], 1),
        # Elements of padding have a value that is seen.
        ([(lambda i, j: (i, j // 4, j % 4), 1.0), (lambda i, j, k: (i, j * 4 + k), None)], 2),
    ],
)
def test_layouts_that_follow_each_other(maps, left):
    before = layouts(*maps)
    after = transform.OptimizeLayoutTransform()(before)
    assert relax.analysis.well_formed(after)
    assert operators(after).count("layout_transform") == left
    x = np.arange(24, dtype="float32").reshape(4, 6)
    want, got = (Evaluator(transform.LegalizeOps()(m)).run("main", [x]) for m in (before, after))
    np.testing.assert_array_equal(got, want)


# ---- layouts that follow from those of results -------------------------------------------------
@T.prim_func
def matmul_relu(A: T.Buffer((8, 16)), B: T.Buffer((16, 12)), C: T.Buffer((8, 12))):
    D = T.alloc_buffer((8, 12))
    for i, j, k in T.grid(8, 12, 16):
        with T.block("product"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                D[vi, vj] = T.float32(0)
            D[vi, vj] = D[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(8, 12):
        with T.block("relu"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.max(D[vi, vj], T.float32(0))


def suggest(func, *maps):
    found = relax.analysis.suggest_layout_transforms(func, list(maps))
    return {
        block.name_hint: {
            getattr(key, "name_hint", None) or key.name: m for key, m in of_block.items()
        }
        for block, of_block in found.items()
    }


def test_suggested_layouts():
    tile = tir.IndexMap.from_func(lambda i, j: (i, j // 4, j % 4))
    found = suggest(matmul_relu, tile)
    assert set(found) == {"product", "relu"}
    same = lambda a, f: a.is_equivalent_to(tir.IndexMap.from_func(f, index_dtype="int32"))
    assert same(found["relu"]["relu"], lambda i, j: (i, j // 4, j % 4))
    assert found["relu"]["D"].is_equivalent_to(tile) or same(
        found["relu"]["D"], lambda i, j: (i, j // 4, j % 4)
    )
    assert same(found["product"]["product"], lambda i, j, k: (i, j // 4, j % 4, k))
    assert same(found["product"]["A"], lambda i, k: (i, k))
    assert same(found["product"]["B"], lambda k, j: (j // 4, j % 4, k))


def test_suggested_layouts_make_a_kernel():
    """What is suggested, applied, is a kernel for AlterOpImpl that computes the same."""
    func = matmul_relu.with_attr("operator_name", "product")
    found = relax.analysis.suggest_layout_transforms(func, [lambda i, j: (i, j // 4, j % 4)])
    schedule = tir.Schedule(func)
    maps = {}
    for of_block in found.values():
        for key, index_map in of_block.items():
            if isinstance(key, tir.Buffer):
                maps[key.name] = index_map
    for name in "AD":
        assert name in maps
    for name, where in (("B", ("read", 1)), ("D", ("write", 0))):
        schedule.transform_layout("product", where, maps[name])
    schedule.transform_layout("relu", ("write", 0), maps["C"])
    kernel = schedule.mod["main"].without_attr("global_symbol")

    bb = relax.BlockBuilder()
    params = [relax.Var(n, R.Tensor(s, "float32")) for n, s in (("a", (8, 16)), ("b", (16, 12)))]
    gv = bb.add_func(func.without_attr("global_symbol"), "product")
    with bb.function("main", params):
        with bb.dataflow():
            out = bb.emit_output(relax.call_tir(gv, params, R.Tensor((8, 12), "float32")))
        bb.emit_func_output(out)
    mod = bb.finalize()
    after = transform.AlterOpImpl({"product": kernel}, {"product": [None, maps["B"], maps["C"]]})(
        mod
    )
    assert relax.analysis.well_formed(after)
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-1, 1, p.struct_info.shape).astype("float32") for p in params)
    got = Evaluator(transform.LegalizeOps()(after)).run("main", [a, b])
    np.testing.assert_allclose(got, np.maximum(a @ b, 0), rtol=1e-5, atol=1e-6)


def test_no_layout_where_readers_differ():
    @T.prim_func
    def twice(A: T.Buffer((8, 8)), C: T.Buffer((8, 8))):
        for i, j in T.grid(8, 8):
            with T.block("sum"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + A[vj, vi]

    found = suggest(twice, lambda i, j: (i, j // 4, j % 4))
    assert "A" not in found["sum"] and "C" in found["sum"]
    # 12 columns are no whole blocks of 8.
    assert suggest(matmul_relu, lambda i, j: (i, j // 8, j % 8)) == {}
    with pytest.raises(ValueError, match="a map for each of the 1 buffers that are written, got 0"):
        suggest(matmul_relu)
    with pytest.raises(ValueError, match="a map of 2 indices for 'C', got one of 1"):
        suggest(matmul_relu, lambda i: (i,))
