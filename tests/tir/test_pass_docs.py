# SPDX-License-Identifier: Apache-2.0
"""Every pass is documented, its examples hold, and the page made of them is current."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from tvm.tir import interpret

SCRIPT = Path(__file__).parents[2] / "scripts/pass_docs.py"
spec = importlib.util.spec_from_file_location("pass_docs", SCRIPT)
pass_docs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pass_docs)
EXAMPLES = pass_docs.examples()
# Their results are too long to show, or attributes of a module.
WITHOUT = {"CreatePrimFuncPass", "ExtractPrimFuncConstants", "MakePackedAPI"}


def test_every_pass_has_an_example():
    shown = {name for name, _ in EXAMPLES}
    assert {name for name, _ in pass_docs.documented()} - shown == WITHOUT


@pytest.mark.parametrize("example", [e for _, e in EXAMPLES], ids=[n for n, _ in EXAMPLES])
def test_example(example):
    example.check()


# Passes whose results are not programs for the interpreter, or of other parameters.
NOT_RUN = {
    "AnnotateDeviceRegions", "BF16ComputeLegalize", "BF16StorageLegalize", "CombineContextCall",
    "FP8ComputeLegalize", "FP8StorageLegalize", "Filter", "ForceNarrowIndexToInt32",
    "InlinePrivateFunctions", "InstrumentProfileIntrinsics", "LowerDeviceKernelLaunch",
    "LowerDeviceStorageAccessInfo", "LowerTVMBuiltin", "LowerWarpMemory", "MakeUnpackedAPI",
    "PointerValueTypeRewrite", "RemoveStoreUndef", "RemoveWeightLayoutRewriteBlock",
    "RewriteUnsafeSelect", "SplitHostDevice", "ThreadSync", "LowerThreadAllreduce",
    "UseAssumeToReduceBranches", "ReduceBranchingThroughOvercompute", "RemoveAssume",
    "LowerIntrin",
}  # fmt: skip


@pytest.mark.parametrize(
    "example",
    [e for n, e in EXAMPLES if n not in NOT_RUN],
    ids=[n for n, _ in EXAMPLES if n not in NOT_RUN],
)
def test_example_runs_alike(example):
    results = []
    for program in (example.program("before"), example.run()):
        rng, args = np.random.default_rng(0), []
        func = program["main"]
        for param in func.params:
            buffer = func.buffer_map.get(param, None)
            if buffer is None:
                args.append(3)
            else:
                shape = [int(n) for n in buffer.shape]
                # Integers may be indices of other buffers.
                floats = str(buffer.dtype).startswith("float")
                values = rng.normal(size=shape) * 9 if floats else rng.integers(0, 4, shape)
                args.append(values.astype(str(buffer.dtype)))
        interpret(program, "lockstep")(*args)
        results.append([a for a in args if isinstance(a, np.ndarray)])
    for before, after in zip(*results, strict=True):
        np.testing.assert_array_equal(before, after)


def test_page_is_current():
    assert pass_docs.PAGE.read_text() == pass_docs.page(), "run scripts/pass_docs.py"
