# SPDX-License-Identifier: Apache-2.0
"""What is checked of a random graph. A check returns None, or says what is wrong."""

import functools
import random

import numpy as np
import tvm
from tvm import relax
from tvm.relax.testing.evaluate import from_tvm, to_tvm
from tvm.script import from_source
from tvm.testing.features import host_target

from tests.relax.optional_passes import optional_passes

# Passes after which only the virtual machine can run a graph, or that a random graph is not for.
NOT_ALONE = {
    "SplitCallTIRByPattern": "wants patterns and a code generator",
    "AlterOpImpl": "wants kernels",
    "RemovePurityChecking": "the result may say less than it did of purity",
    "ConvertLayout": "wants layouts",
    "Gradient": "wants the name of a function",
    "LazyGetInput": "changes the parameters",
    "LazySetOutput": "changes the parameters",
    "FewShotTuning": "wants a target, and compiles each kernel",
    "MetaScheduleApplyDatabase": "wants a database",
    "UpdateVDevice": "wants a device",
    "CallTIRRewrite": "makes calls with effects, which want plain blocks",
    "LowerRuntimeBuiltin": "makes calls of the runtime",
    "VMBuiltinLower": "makes calls of the runtime",
    "VMShapeLower": "makes calls of the runtime",
    "ComputePrimValue": "makes functions that return scalars",
    "StaticPlanBlockMemory": "wants allocations",
    "KillAfterLastUse": "wants allocations",
    "LowerAllocTensor": "wants allocations",
    "RewriteCUDAGraph": "wants a GPU",
    "DecomposeOpsForTraining": "changes what normalisation computes",
}
WITH_ARGUMENTS = {
    "BindSymbolicVars": lambda: relax.transform.BindSymbolicVars({}),
    "UpdateParamStructInfo": lambda: relax.transform.UpdateParamStructInfo(lambda var: None),
    "TopologicalSort": lambda: relax.transform.TopologicalSort("breadth-first", "from-outputs"),
}
TOLERANCE = 1e-4
# float16 has 11 bits: one product of rounded operands is off by 1e-3, and what follows adds to it.
LOW_PRECISION_TOLERANCE = 1e-2


# ---- comparing ----------------------------------------------------------------------------------
def difference(expected, found, where="result", tolerance=TOLERANCE):
    """What is different, or None."""
    if isinstance(expected, tuple):
        if not isinstance(found, tuple) or len(found) != len(expected):
            return f"{where}: expected {len(expected)} items, got {found}"
        pairs = enumerate(zip(expected, found, strict=True))
        items = (difference(*p, f"{where}[{i}]", tolerance) for i, p in pairs)
        return next(filter(None, items), None)
    if not isinstance(expected, np.ndarray):
        return None if expected == found else f"{where}: expected {expected}, got {found}"
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return (
            f"{where}: expected {expected.dtype}{list(expected.shape)}, "
            f"got {found.dtype}{list(found.shape)}"
        )
    close = np.allclose(expected, found, tolerance, tolerance, equal_nan=True)
    exact = expected.dtype.kind in "fc" or np.array_equal(expected, found)
    return None if close and exact else f"{where}: expected {expected}, got {found}"


def compare(program, module, what, tolerance=TOLERANCE):
    """What is different when the program is run as `module`."""
    complaint = relax.analysis.well_formed(module)
    if not complaint:
        return f"after {what}: not well formed"
    try:
        wrong = difference(program.evaluate(), program.evaluate(module), "result", tolerance)
    except Exception as error:
        wrong = f"{type(error).__name__}: {error}"
    return None if wrong is None else f"after {what}: {wrong}"


# ---- checks -------------------------------------------------------------------------------------
def evaluated(program):
    """The program is well formed, and what inference says of each value holds when it runs."""
    return compare(program, program.module, "nothing")


def roundtrip(program):
    """Printed and parsed, the program is structurally equal and prints alike."""
    text = program.module.script(show_meta=True)
    again = from_source(text)
    tvm.ir.assert_structural_equal(again, program.module)
    return None if again.script(show_meta=True) == text else "prints differently after parsing"


def json(program):
    """Saved and loaded, the program is structurally equal."""
    again = tvm.ir.load_json(tvm.ir.save_json(program.module))
    tvm.ir.assert_structural_equal(again, program.module)


@functools.cache
def single_passes():
    """{name: function that makes the pass} of every pass that keeps the meaning of any graph."""
    found = dict(WITH_ARGUMENTS)
    for name in dir(relax.transform):
        make = getattr(relax.transform, name)
        if not name[0].isupper() or name in NOT_ALONE or not callable(make) or name in found:
            continue
        if make.__name__ in found or make.__name__ in NOT_ALONE:  # under its name elsewhere
            continue
        try:
            if isinstance(make(), tvm.transform.Pass):
                found[name] = make
        except TypeError:  # it wants arguments
            continue
    return found


def legalized(program):
    """Lowered to PrimFuncs, the program computes the same."""
    return compare(program, relax.transform.LegalizeOps()(program.module), "LegalizeOps")


def passes(program, count=4):
    """Passes keep the result, alone and one after the other."""
    rng = random.Random(program.seed)
    module, names = program.module, []
    for _ in range(count):
        name = rng.choice(sorted(single_passes()))
        names.append(name)
        try:
            module = single_passes()[name]()(module)
        except Exception as error:
            return f"{', '.join(names)} raised {type(error).__name__}: {error}"
        is_low = "ToMixedPrecision" in names
        tolerance = LOW_PRECISION_TOLERANCE if is_low else TOLERANCE
        wrong = compare(program, module, ", ".join(names), tolerance)
        if wrong is not None:
            return wrong
    return None


def compiled(program):
    """Compiled and run by the virtual machine, the program computes the same."""
    exec_mode = "compiled" if program.seed % 8 == 0 else "bytecode"
    executable = relax.build(program.module, host_target(), exec_mode=exec_mode)
    machine = relax.VirtualMachine(executable, tvm.cpu())
    found = from_tvm(machine["main"](*map(to_tvm, program.args)))
    return difference(program.evaluate(), found, f"{exec_mode} result")


def toggled(program):
    """Compiled without one or two of the passes that only make it better, it computes the same."""
    rng = random.Random(program.seed)
    names = rng.sample(optional_passes(), rng.randint(1, 2))
    with tvm.transform.PassContext(disabled_pass=names):
        wrong = compiled(program)
    return wrong and f"without {', '.join(names)}: {wrong}"


CHECKS = {f.__name__: f for f in (evaluated, roundtrip, json, legalized, passes, compiled, toggled)}


def complaint(check, program):
    """What a check, by name, says of a program; an exception is a complaint, too."""
    try:
        return CHECKS[check](program)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
