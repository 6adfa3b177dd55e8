# SPDX-License-Identifier: Apache-2.0
"""Looking at design spaces: what rules make of a module, and comparing it with what is expected."""

import tvm
from tvm import tir

from ..schedule_rule import ScheduleRule
from ..space_generator import PostOrderApply
from ..tune_context import TuneContext


def get_rules(kind, types):
    """The default rules of a kind of target that are of some classes."""
    return [rule for rule in ScheduleRule.create(kind) if isinstance(rule, types)]


def generate_design_space(kind, mod, target, types, sch_rules=None):
    """The schedules of a module by the default rules of some classes, or by the rules given."""
    if sch_rules is None:
        sch_rules = get_rules(kind, types)
    generator = PostOrderApply(sch_rules=sch_rules, postprocs=[], mutator_probs={})
    context = TuneContext(
        mod, target=target, space_generator=generator, task_name="test", rand_state=0
    )
    return context.generate_design_space()


def structural_equal_no_gs(mod1, mod2):
    """Whether modules are equal, whatever their functions are called from outside."""

    def nameless(mod):
        functions = mod.functions.items()
        return tvm.IRModule({v: f.without_attr("global_symbol") for v, f in functions})

    return tvm.ir.structural_equal(nameless(mod1), nameless(mod2))


def _decided(sketch, decisions, mod):
    """The sketch with its sampling instructions decided, in order: (kind, decision)."""
    left = list(decisions)
    trace = sketch.trace.simplified(remove_postproc=True)
    for inst in trace.insts:
        if inst in trace.decisions:
            if not left:
                return None
            kind, decision = left.pop(0)
            if inst.kind.name != kind:
                return None
            trace = trace.with_decision(inst, decision, remove_postproc=True)
    sch = tir.Schedule(mod)
    trace.apply_to_schedule(sch, remove_postproc=True)
    return None if left else sch


def check_sketches(mod, sketches, expected_mods, expected_decisions, *, debug_mask="all"):
    """AssertionError unless each expected module is one of the sketches with its decisions."""
    if len(expected_mods) != len(expected_decisions) or len(sketches) != len(expected_mods):
        raise AssertionError(
            f"check_sketches: expected {len(expected_mods)} sketches, got {len(sketches)}"
        )
    left = list(sketches)
    for i, (expected, decisions) in enumerate(zip(expected_mods, expected_decisions, strict=True)):
        expected = (
            expected if isinstance(expected, tvm.IRModule) else tvm.IRModule({"main": expected})
        )
        for sketch in left:
            sch = _decided(sketch, decisions, mod)
            if sch is not None and structural_equal_no_gs(sch.mod, expected):
                left.remove(sketch)
                break
        else:
            if debug_mask == "all" or i in debug_mask:
                print_sketches(left)
            raise AssertionError(f"check_sketches: none of the sketches is expected module {i}")


def print_sketches(sketches):
    """Prints modules and decisions."""
    for i, sketch in enumerate(sketches):
        print(f"# sketch {i}\n{sketch.mod.script()}")
        for inst in sketch.trace.insts:
            if inst in sketch.trace.decisions:
                print(f"#   {inst.kind.name}: {sketch.trace.decisions[inst]}")
