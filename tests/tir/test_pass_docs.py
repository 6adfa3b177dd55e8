# SPDX-License-Identifier: Apache-2.0
"""Every pass is documented, its examples hold, and the page made of them is current."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm.runtime._tensor import _numpy_dtype
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


# Their programs call what the interpreter has not, or take other arguments afterwards: each has
# tests of its own.
NOT_RUN = {
    "CombineContextCall", "LowerDeviceKernelLaunch", "LowerDeviceStorageAccessInfo",
    "LowerTVMBuiltin", "RemoveWeightLayoutRewriteBlock",
}  # fmt: skip
ASSUMED_ZERO = {"RemoveAssume", "UseAssumeToReduceBranches"}  # what T.assume says of the inputs
ROUNDED = {"LowerIntrin", "LowerThreadAllreduce"}  # other operations, or in another order
RUN = [(name, example) for name, example in EXAMPLES if name not in NOT_RUN]


def form(func, param):
    """(shape, type) of what a parameter points to, None for a number. Pointers have no shape."""
    buffer = func.buffer_map.get(param, None)
    if buffer is not None:
        return [int(n) for n in buffer.shape], _numpy_dtype(str(buffer.dtype))
    if isinstance(param.type_annotation, tvm.ir.PointerType):
        return [-1], _numpy_dtype(str(param.type_annotation.element_type.dtype))
    return None


def memory(name, func):
    """What the program works on: an array for each parameter."""
    rng = np.random.default_rng(0)
    for shape, dtype in filter(None, (form(func, p) for p in func.params)):
        shape = [64] if shape == [-1] else shape
        # Integers may be indices of other buffers.
        drawn = rng.normal(size=shape) * 9 if "f" in dtype.name else rng.integers(0, 4, shape)
        yield (drawn * (name not in ASSUMED_ZERO)).astype(dtype)


@pytest.mark.parametrize("name, example", RUN, ids=[name for name, _ in RUN])
def test_example_runs_alike(name, example):
    programs = example.program("before"), example.run()
    arrays = list(memory(name, programs[0]["main"]))
    results = []
    for program in programs:
        func, own = program["main"], [array.copy() for array in arrays]
        left, args = iter(own), []
        for of in (form(func, param) for param in func.params):
            # The same bytes, whatever the pass makes of their type.
            args.append(3 if of is None else next(left).reshape(-1).view(of[1].base))
            if of is not None:
                args[-1] = args[-1].reshape([*of[0], *of[1].shape])
        interpret(program, "lockstep")(*args)
        results.append(own)
    for before, after in zip(*results, strict=True):
        defined = before == before  # T.undef stores NaN, which may become anything
        rtol = 1e-5 if name in ROUNDED else 0
        np.testing.assert_allclose(after[defined], before[defined], rtol=rtol)


def test_page_is_current():
    assert pass_docs.PAGE.read_text() == pass_docs.page(), "run scripts/pass_docs.py"
