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

from .steps import check_all_steps

TARGETS = ("llvm", "c")
_target = [Target(host_target())]  # what programs are lowered and compiled for
_chosen = []  # the passes that are run one by one; none for all
# What a pass says of a program that it is not for.
_DECLINES = re.compile(
    r"run \w+ first|expected no buffer of int64|expected constants that fit int32"
    r"|expected constants or scalar parameters as the (shape|strides|offset)"
    r"|InjectRollingBuffer: expected buffer \S+ to be (filled|read|written|declared)"
)
# Passes that need what a random program does not have, with the reason.
NOT_ALONE = {
    "MakePackedAPI": "the interpreter runs functions of arrays",
    "LowerTVMBuiltin": "makes calls of the C interface",
    "LowerIntrin": "makes calls of LLVM",
    "AnnotateDeviceRegions": "changes which function is called",
    "SplitHostDevice": "changes which function is called",
}
# The result of which is only checked for its form: the interpreter runs functions of arrays.
NOT_RUN = {"MakeUnpackedAPI"}


@tir.transform.prim_func_pass(opt_level=0)
def no_change(func, mod, ctx):
    return func


# Passes with an argument that has to be there.
WITH_ARGUMENTS = {
    "Apply": lambda: tir.transform.Apply(lambda func: func),
    "Filter": lambda: tir.transform.Filter(lambda func: True),
    "PrimFuncPass": lambda: no_change,
}
# What a pass may be asked for; one value of each is chosen.
_EITHER = [False, True]
OPTIONS = {
    "CommonSubexprElimTIR": {"identify_equiv_terms": _EITHER},
    "CompactBufferAllocation": {"is_strict": _EITHER},
    "HoistExpression": {"hoisted_conditionals": range(16), "hoisted_let_bindings": range(8)},
    "HoistIfThenElse": {"variant": [None, "basic"], "support_block_scope_hoisting": _EITHER},
    "InjectDoubleBuffer": {"split_loop": [1, 2, 3]},
    "LoopPartition": {"partition_const_loop": _EITHER},
    "NarrowDataType": {"target_bits": [8, 16, 32]},
    "ReduceBranchingThroughOvercompute": {"use_dataflow_analysis": _EITHER},
    "RemoveNoOp": {"use_dataflow_analysis": _EITHER, "max_simplification_steps": [0, 2]},
    "Simplify": {
        "transitively_prove_inequalities": _EITHER,
        "convert_boolean_to_and_of_ors": _EITHER,
        "apply_constraints_to_boolean_branches": _EITHER,
    },
    "UnrollLoop": {
        "auto_max_step": [0, 4, 64],
        "auto_max_depth": [1, 8],
        "auto_max_extent": [0, 4],
        "explicit_unroll": _EITHER,
        "unroll_local_access": _EITHER,
    },
    "VectorizeLoop": {"enable_vectorize": _EITHER},
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
    found = dict(WITH_ARGUMENTS)
    for name in dir(tir.transform):
        make = getattr(tir.transform, name)
        if name[0].isupper() and name not in NOT_ALONE and callable(make):
            try:
                one = make()
            except TypeError:
                continue
            if isinstance(one, tvm.transform.Pass) and _runs_on_nothing(one):
                found[name] = make
    return found


def choose_passes(names):
    """Only these are run one by one."""
    _chosen[:] = names


def some_pass(rng):
    """A pass with some of its options, and both as text."""
    name = rng.choice(_chosen or sorted(single_passes()))
    options = {key: rng.choice(values) for key, values in OPTIONS.get(name, {}).items()}
    text = ", ".join(f"{key}={value}" for key, value in options.items())
    return single_passes()[name](**options), f"{name}({text})" if options else name


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
    ordered = pipeline_passes()
    for _ in range(count):
        single, name = some_pass(rng)
        module = _bound(program.module)
        start = rng.choice([0, 0, rng.randrange(len(ordered))])
        for one in ordered[:start]:
            module = one(module)
        what = f"{name} after {ordered[start - 1].info.name}" if start else name
        try:
            after = single(module)
        except Exception as error:
            if _DECLINES.search(str(error)):
                continue
            return f"{what} raised {type(error).__name__}: {error}"
        if tvm.ir.structural_equal(after, module):
            continue
        if name in NOT_RUN:
            wrong = _safe(tir.analysis.verify_well_formed, after) is not True
            wrong = "not well formed" if wrong else None
        else:
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


def _remapped():
    """Threads along another axis compute the same."""
    axis = tir.IterVar(None, tir.Var("z", "int32"), tir.IterVar.ThreadIndex, "threadIdx.z")
    return tir.transform.RemapThreadAxis({"threadIdx.x": axis})


GPUS = ("opencl", {"kind": "cuda", "thread_warp_size": 4})


def kernels(program):
    """A lowered GPU kernel gives the same, and all of its pipeline accepts it."""
    # Memory of a warp needs warps.
    target = GPUS[1 if "warp" in program.features else program.seed % len(GPUS)]
    arrays = [a.value for a in program.arguments]
    more = [_remapped()] if program.seed % 4 == 0 else []
    check_all_steps(program.module["main"], arrays, target, rtol=0, more=more)
    target = Target(target, host="c")
    main = program.module["main"].with_attr("global_symbol", "main")
    lowered = tir.transform.BindTarget(target)(tvm.IRModule({"main": main}))
    lowered = tir.get_default_tir_pipeline(target)(lowered)
    for is_host, finalize in (
        (True, tir.pipeline.finalize_host_passes),
        (False, tir.pipeline.finalize_device_passes),
    ):
        part = {
            v: f
            for v, f in lowered.functions.items()
            if (f.attrs["target"].kind.name == "c") == is_host
        }
        finalize()(tvm.IRModule(part))


CHECKS = {
    "roundtrip": roundtrip,
    "json": json,
    "well_formed": well_formed,
    "pipeline": pipeline,
    "passes": passes,
    "compile": compile,
    "kernels": kernels,
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
