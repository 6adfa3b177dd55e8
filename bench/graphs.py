# SPDX-License-Identifier: Apache-2.0
"""Graphs built, printed, read and compared, in the spelling that we share with Apache TVM."""

from patterns import graph  # this file runs in workers
from programs import Timed


def _read(text):
    import tvm
    from tvm.script import ir as I
    from tvm.script import relax as R

    return tvm.script.from_source(text, {"R": R, "I": I})


def seconds(action, bindings, number=1):
    """How long an action takes on a chain of so many operators; "BERT" is its lowering."""
    import tvm
    import tvm_ffi
    from tvm import relax

    if action == "BERT":
        import models
        from model_ops import relax_module

        module = relax_module(models.Model("bert_base"))
        run = relax.transform.LegalizeOps()
        return Timed(lambda: run(module)).time(number) / number
    if action == "emit":
        return Timed(lambda: graph(bindings)).time(number) / number
    mod, other = graph(bindings), graph(bindings)
    text = mod.script() if action == "parse" else ""
    # Apache TVM has it in the object layer alone.
    structural_hash = getattr(tvm.ir, "structural_hash", tvm_ffi.structural_hash)
    normalise, legalize = relax.transform.Normalize(), relax.transform.LegalizeOps()
    run = {
        "normalise": lambda: normalise(mod),
        "print": mod.script,
        "parse": lambda: _read(text),
        "compare": lambda: tvm.ir.assert_structural_equal(mod, other),
        "hash": lambda: structural_hash(mod),
        "well_formed": lambda: relax.analysis.well_formed(mod),
        "legalize": lambda: legalize(mod),
    }[action]
    return Timed(run).time(number) / number
