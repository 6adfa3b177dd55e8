# SPDX-License-Identifier: Apache-2.0
"""Copies that a pipeline marks become asynchronous ones of PTX; waits are followed by barriers."""

import numpy as np
import pytest
import tvm
from tvm.script import tir as T
from tvm.tir import interpret
from tvm.tir import transform as tt

from tests.backend.cuda.kernels import lowered, run


def copies(copy):
    """The statements that the pass makes of one store in async_scope."""
    mod = tt.InjectPTXAsyncCopy()(tvm.IRModule({"main": copy}))
    return mod.script()


def test_vectors_ask_whether_memory_is_aligned():
    @T.prim_func
    def before(A: T.Buffer((256,), "float16")):
        t = T.launch_thread("threadIdx.x", 32)
        S = T.decl_buffer((256,), "float16", scope="shared")
        with T.attr(0, "async_scope", 1):
            S[t * 8 : t * 8 + 8] = A[t * 8 : t * 8 + 8]

    text = copies(before)
    assert 'T.ptx_cp_async("float16", S.data, t * 8, A.data, t * 8, 16)' in text
    assert "T.bitwise_and(T.reinterpret(" in text, "and another way where it is not"
    assert text.count("S[t * 8:t * 8 + 8] = A[t * 8:t * 8 + 8]") == 1


@pytest.mark.parametrize(
    "store",
    [
        "S[t] = A[t]",  # two bytes
        "S[t * 2 + 1 : t * 2 + 3] = A[t * 2 + 1 : t * 2 + 3]",  # begins anywhere
        "S[t * 2 : t * 2 + 2] = A[t * 2 : t * 2 + 2] + T.Broadcast(T.float16(1), 2)",
        "S[t * 2 : t * 2 + 2] = T.if_then_else("
        "t < 3, A[t * 2 : t * 2 + 2], T.Broadcast(T.float16(1), 2))",
        "A[t * 2 : t * 2 + 2] = S[t * 2 : t * 2 + 2]",
    ],
)
def test_other_stores_stay(store):
    before = tvm.script.from_source(
        f"""
@T.prim_func
def before(A: T.Buffer((256,), "float16")):
    t = T.launch_thread("threadIdx.x", 32)
    S = T.decl_buffer((256,), "float16", scope="shared")
    with T.attr(0, "async_scope", 1):
        {store}
"""
    )
    assert "ptx_cp_async" not in copies(before)


def pipelined(n, stages):
    """B = A + 1 by tiles of 32 that go through shared memory, `stages` of them at once."""

    @T.prim_func
    def func(A: T.Buffer((n, 32), "float32"), B: T.Buffer((n, 32), "float32")):
        for t in T.thread_binding(32, "threadIdx.x"):
            for i in T.serial(
                n,
                annotations={
                    "software_pipeline_stage": [0, stages],
                    "software_pipeline_order": [0, 1],
                    "software_pipeline_async_stages": [0],
                },
            ):
                with T.block(""):
                    T.reads(A[i, 0:32])
                    T.writes(B[i, 0:32])
                    S = T.alloc_buffer((32,), scope="shared")
                    with T.block(""):
                        T.reads(A[i, t])
                        T.writes(S[t])
                        S[t] = A[i, t]
                    with T.block(""):
                        T.reads(S[31 - t])
                        T.writes(B[i, t])
                        B[i, t] = S[31 - t] + T.float32(1)

    return func


@pytest.mark.parametrize("n, stages", [(8, 1), (8, 3), (2, 3)])
def test_pipelines_run_with_copies_that_are_late(n, stages):
    mod = lowered(pipelined(n, stages), config={"tir.use_async_copy": True})
    text = mod.script()
    assert "T.ptx_cp_async(" in text and "T.ptx_commit_group()" in text
    a = np.random.default_rng(0).normal(size=(n, 32)).astype("float32")
    for seed in range(6):
        got = run(mod, a, np.full_like(a, np.nan), threads="random", seed=seed)
        np.testing.assert_array_equal(got, a[:, ::-1] + np.float32(1))


def without(mod, name):
    """The program without the calls of an operator."""

    def drop(node):
        is_it = isinstance(node, tvm.tir.Evaluate) and isinstance(node.value, tvm.tir.Call)
        return tvm.tir.Evaluate(0) if is_it and node.value.op.name == "tir." + name else None

    func = mod["main"]
    return func.with_body(tvm.tir.stmt_functor.ir_transform(func.body, None, drop))


@pytest.mark.parametrize("name", ["ptx_wait_group", "tvm_storage_sync"])
def test_what_is_missing_is_seen(name):
    mod = lowered(pipelined(8, 2), config={"tir.use_async_copy": True})
    a = np.random.default_rng(0).normal(size=(8, 32)).astype("float32")

    def is_right(seed):
        b = np.full_like(a, np.nan)
        interpret(without(mod, name), threads="random", seed=seed)(a.copy(), b)
        return np.array_equal(b, a[:, ::-1] + np.float32(1))

    assert not all(is_right(seed) for seed in range(6))


def test_the_barrier_follows_the_wait():
    text = lowered(pipelined(8, 1), config={"tir.use_async_copy": True}).script()
    lines = [line.strip() for line in text.splitlines()]
    waits = [i for i, line in enumerate(lines) if line.startswith("T.ptx_wait_group")]
    assert waits and all(lines[i + 1] == 'T.tvm_storage_sync("shared")' for i in waits)


def test_without_the_option_or_the_instruction_copies_are_plain():
    for arch, config in (("sm_80", {}), ("sm_75", {"tir.use_async_copy": True})):
        mod = lowered(pipelined(8, 1), arch, config)
        assert "ptx_" not in mod.script()
        a = np.arange(256, dtype="float32").reshape(8, 32)
        np.testing.assert_array_equal(run(mod, a, np.zeros_like(a)), a[:, ::-1] + 1)


def test_a_wait_has_a_count():
    @T.prim_func
    def before(A: T.Buffer((32,), "float32")):
        t = T.launch_thread("threadIdx.x", 32)
        with T.attr(0, "async_wait_queue_scope", 0):
            A[t] = T.float32(1)

    with pytest.raises(ValueError, match="InjectPTXAsyncCopy: expected async_wait_inflight_count"):
        copies(before)


def test_what_comes_after_an_asynchronous_copy_is_none():
    @T.prim_func
    def before(A: T.Buffer((64,), "float32")):
        t = T.launch_thread("threadIdx.x", 32)
        S = T.decl_buffer((64,), "float32", scope="shared")
        with T.attr(0, "async_scope", 1):
            S[t] = A[t]
        S[t + 32] = A[t + 32]

    text = copies(before)
    assert text.count("T.ptx_cp_async") == 1 and "S[t + 32] = A[t + 32]" in text
