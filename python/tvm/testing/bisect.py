# SPDX-License-Identifier: Apache-2.0
"""Which pass of a pipeline changed what a program computes."""

import dataclasses

import numpy as np

import tvm

__all__ = ["WrongPass", "first_wrong_pass"]


@dataclasses.dataclass
class WrongPass:
    """A pass after which a program computes something else, and the program around it."""

    name: str
    before: "tvm.IRModule"
    after: "tvm.IRModule"
    difference: str

    def __str__(self):
        return f"after {self.name}: {self.difference}"


def _result(module, args):
    """The arguments and the result of a run in the interpreter, or the error it raised."""
    copies = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
    try:
        returned = tvm.tir.interpret(module)(*copies)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return [*copies, *([] if returned is None else [returned])]


def _difference(expected, found, rtol, atol):
    if isinstance(found, str) or isinstance(expected, str):
        return None if found == expected else f"the interpreter says {found!r}"
    for i, (a, b) in enumerate(zip(expected, found, strict=True)):
        if isinstance(a, np.ndarray) and not np.allclose(b, a, rtol, atol, equal_nan=True):
            at = np.unravel_index(np.argmax(~np.isclose(b, a, rtol, atol, equal_nan=True)), a.shape)
            where = ", ".join(map(str, at))
            return f"argument {i}[{where}] is {b[at]}, was {a[at]}"
        if not isinstance(a, np.ndarray) and a != b:
            return f"the result is {b}, was {a}"
    return None


def first_wrong_pass(program, args, target=None, passes=None, rtol=1e-5, atol=1e-6):
    """The first pass after which the interpreter gives another result than before all of them, or
    None if there is no such pass.

    program is a PrimFunc or a module of TIR, args are the arrays and numbers of a call. passes are
    those of the default pipeline for the target (the host's, where none is given) up to the one
    that makes C functions, which the interpreter cannot run; results behind that are the code
    generator's.
    """
    module = tvm.IRModule({"main": program}) if isinstance(program, tvm.tir.PrimFunc) else program
    target = tvm.target.Target(target or "llvm")
    if passes is None:
        passes = []
        for one in tvm.tir.get_default_tir_pipeline(target).passes:
            if one.info.name == "tir.MakePackedAPI":
                break
            passes.append(one)
    expected = _result(module, args)
    before = tvm.tir.transform.BindTarget(target)(module)
    for one in passes:
        after = one(before)
        if not tvm.ir.structural_equal(after, before):
            wrong = _difference(expected, _result(after, args), rtol, atol)
            if wrong:
                return WrongPass(str(one.info.name), before, after, wrong)
        before = after
    return None
