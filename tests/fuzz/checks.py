# SPDX-License-Identifier: Apache-2.0
"""What is checked of a random program. A check returns None, or says what is wrong."""

import functools
import random
import re

import numpy as np
import tvm
from tvm import tir
from tvm.script import from_source
from tvm.target import Target
from tvm.testing.features import host_target

TARGETS = ("llvm", "c")
_target = [Target(host_target())]  # what programs are lowered and compiled for
# What a pass says of a program that it is not for.
_DECLINES = re.compile(
    r"run \w+ first|expected no buffer of int64|expected constants that fit int32"
)
# Passes that need what a random program does not have, with the reason.
NOT_ALONE = {
    "Apply": "has a function as its argument",
    "MakePackedAPI": "the interpreter runs functions of arrays",
    "MakeUnpackedAPI": "the interpreter runs functions of arrays",
    "LowerTVMBuiltin": "makes calls of the C interface",
    "LowerIntrin": "makes calls of LLVM",
    "AnnotateDeviceRegions": "changes which function is called",
    "SplitHostDevice": "changes which function is called",
}


def roundtrip(program):
    """Printed and parsed, the program is structurally equal and prints alike."""
    text = program.module.script(show_meta=True)
    again = from_source(text, check_well_formed=False)
    tvm.ir.assert_structural_equal(again, program.module, map_free_vars=True)
    if again.script(show_meta=True) != text:
        return "prints differently after parsing"
    return None


def json(program):
    """Saved and loaded, the program is structurally equal."""
    again = tvm.ir.load_json(tvm.ir.save_json(program.module))
    tvm.ir.assert_structural_equal(again, program.module, map_free_vars=True)


def well_formed(program):
    """The program obeys the rules of the IR."""
    tir.analysis.verify_well_formed(program.module)


def choose_target(name):
    _target[0] = Target(name)


def _bound(module):
    return tir.transform.BindTarget(_target[0])(module)


def pipeline_passes():
    """The default pipeline up to the pass after which only code generation can run functions."""
    found = []
    for one in tir.get_default_tir_pipeline(_target[0]).passes:
        if one.info.name == "tir.MakePackedAPI":
            break
        found.append(one)
    return found


@functools.cache
def single_passes():
    """Every pass that can be made without arguments."""
    found = {}
    for name in dir(tir.transform):
        make = getattr(tir.transform, name)
        if name[0].isupper() and name not in NOT_ALONE and callable(make):
            try:
                one = make()
            except TypeError:
                continue
            if isinstance(one, tvm.transform.Pass) and _runs_on_nothing(one):
                found[name] = one
    return found


def _runs_on_nothing(one):
    """Whether the pass lacks no argument: some are made without, and say so when they run."""
    func = tir.PrimFunc([], tir.Evaluate(0)).with_attr("global_symbol", "main")
    try:
        one(_bound(tvm.IRModule({"main": func})))
    except TypeError:
        return False
    return True


def _compare(program, expected, module, what):
    found = program.interpret(module)
    wrong = program.difference(expected, found)
    return None if wrong is None else f"after {what}: {wrong}"


def pipeline(program):
    """The default pipeline keeps the result; a difference names the pass that made it."""
    expected = program.interpret()
    passes = pipeline_passes()
    stages = [_bound(program.module)]
    for one in passes:
        stages.append(one(stages[-1]))
        if tvm.ir.structural_equal(stages[-1], stages[-2]):
            stages[-1] = stages[-2]
    if _safe(_compare, program, expected, stages[-1], "") is None:
        return None
    for one, before, after in zip(passes, stages, stages[1:], strict=False):
        if not after.same_as(before):
            wrong = _safe(_compare, program, expected, after, one.info.name)
            if wrong is not None:
                return wrong if one.info.name in wrong else f"after {one.info.name}: {wrong}"
    return "the result differs after the pipeline"


def _safe(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def passes(program, count=4):
    """Single passes keep the result, alone and after some of the pipeline's."""
    rng = random.Random(program.seed)
    expected = program.interpret()
    ordered, single = pipeline_passes(), single_passes()
    for name in rng.sample(sorted(single), count):
        module = _bound(program.module)
        start = rng.choice([0, 0, rng.randrange(len(ordered))])
        for one in ordered[:start]:
            module = one(module)
        what = f"{name} after {ordered[start - 1].info.name}" if start else name
        try:
            after = single[name](module)
        except Exception as error:
            if _DECLINES.search(str(error)):
                continue
            return f"{what} raised {type(error).__name__}: {error}"
        if tvm.ir.structural_equal(after, module):
            continue
        wrong = _safe(_compare, program, expected, after, what)
        if wrong is not None:
            return wrong if what in wrong else f"after {what}: {wrong}"
    return None


def compile(program):
    """Compiled code gives what the interpreter gives."""
    expected = program.interpret()
    built = tvm.compile(program.module, target=_target[0])
    return program.difference(expected, program.outcome(_on_tensors(built["main"])))


def _on_tensors(function):
    """The function on NumPy arrays; types that DLPack does not know go through tensors of ours."""

    def run(*args):
        odd = [isinstance(a, np.ndarray) and a.dtype.type.__module__ != "numpy" for a in args]
        given = [tvm.runtime.tensor(a) if o else a for a, o in zip(args, odd, strict=True)]
        result = function(*given)
        for a, g, o in zip(args, given, odd, strict=True):
            if o:
                a[...] = g.numpy()
        return result

    return run


CHECKS = {
    "roundtrip": roundtrip,
    "json": json,
    "well_formed": well_formed,
    "pipeline": pipeline,
    "passes": passes,
    "compile": compile,
}
# Which programs a check cannot take.
UNABLE = {
    "well_formed": {"syntax"},
    "pipeline": {"syntax", "threads", "realize"},
    "passes": {"syntax", "threads", "realize"},
    "compile": {"syntax", "threads", "realize", "packed types"},
}


def complaint(check, program):
    """What a check says of a program, None if all is well; exceptions count as complaints."""
    if program.features & UNABLE.get(check, set()):
        return None
    return _safe(CHECKS[check], program)
