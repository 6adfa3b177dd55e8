# SPDX-License-Identifier: Apache-2.0
"""Space generators: from a module to schedules whose traces sample."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Literal

from tvm import _derive

from ..mutator import Mutator
from ..postproc import Postproc
from ..schedule_rule import ScheduleRule
from ..utils import UserDefined, forward_attributes
from ..utils import create as _create


def _parts(sch_rules, postprocs, mutator_probs):
    """Lists given by the name of a kind of target; None for those of the task's target."""
    given = ((sch_rules, ScheduleRule), (postprocs, Postproc), (mutator_probs, Mutator))
    return [
        None
        if value in ("from-target", None)
        else family.create(value)
        if isinstance(value, str)
        else value
        for value, family in given
    ]


@_derive.register_node("meta_schedule.SpaceGenerator")
class SpaceGenerator(_derive.Node):
    """From a module to schedules whose traces sample."""

    @staticmethod
    def create(kind="post-order-apply", *args, **kwargs):
        """The generator of a kind ("post-order-apply", "union"), or of a scheduling function."""
        if callable(kind):
            return ScheduleFn(kind, *args, **kwargs)
        kinds = {"post-order-apply": PostOrderApply, "union": SpaceGeneratorUnion}
        return _create(kinds, kind, "space generator", args, kwargs)


ScheduleFnType = Callable
SpaceGenerator.ScheduleFnType = ScheduleFnType
SpaceGenerator.SpaceGeneratorType = (
    SpaceGenerator | ScheduleFnType | Literal["post-order-apply", "union"]
)
create = SpaceGenerator.create
_Kind = Literal["llvm", "cuda", "cuda-tensorcore", "hexagon", "from-target"]
ScheduleRuleType = list[ScheduleRule] | _Kind
PostprocType = list[Postproc] | _Kind
MutatorProbType = dict[Mutator, float] | _Kind


@_derive.register_node("meta_schedule.PostOrderApply")
class PostOrderApply(SpaceGenerator):
    """Applies each rule to each block, in program order."""

    def __init__(
        self,
        f_block_filter=None,
        sch_rules="from-target",
        postprocs="from-target",
        mutator_probs="from-target",
    ):
        _derive.construct(self, f_block_filter, *_parts(sch_rules, postprocs, mutator_probs))


@_derive.register_node("meta_schedule.ScheduleFn")
class ScheduleFn(SpaceGenerator):
    """What a function makes of the schedule."""

    def __init__(
        self, sch_fn, sch_rules="from-target", postprocs="from-target", mutator_probs="from-target"
    ):
        _derive.construct(self, sch_fn, *_parts(sch_rules, postprocs, mutator_probs))


@_derive.register_node("meta_schedule.SpaceGeneratorUnion")
class SpaceGeneratorUnion(SpaceGenerator):
    """The spaces of several generators together."""

    def __init__(
        self,
        space_generators,
        sch_rules="from-target",
        postprocs="from-target",
        mutator_probs="from-target",
    ):
        _derive.construct(self, space_generators, *_parts(sch_rules, postprocs, mutator_probs))


_PySpaceGenerator = forward_attributes(
    _derive.node_class("meta_schedule.PySpaceGenerator", __name__)
)


class PySpaceGenerator(UserDefined):
    """Base of user-defined generators."""

    _key = "meta_schedule.PySpaceGenerator"

    @abstractmethod
    def generate_design_space(self, mod):
        """Schedules whose traces sample."""
        raise NotImplementedError
