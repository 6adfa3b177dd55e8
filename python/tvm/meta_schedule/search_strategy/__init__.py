# SPDX-License-Identifier: Apache-2.0
"""Search strategies: which candidates to measure next."""

from abc import abstractmethod
from typing import Literal

from tvm import _derive

from ..utils import UserDefined, forward_attributes
from ..utils import create as _create


def _class(name):
    return _derive.node_class("meta_schedule." + name, __name__)


@_derive.register_node("meta_schedule.MeasureCandidate")
class MeasureCandidate(_derive.Node):
    """A schedule to measure, and the parameters of its function."""

    def __init__(self, sch, args_info):
        _derive.construct(self, sch, args_info or [])

    def __repr__(self):
        steps = len(self.sch.trace.insts) if self.sch.trace is not None else 0
        args = ", ".join(str(info) for info in self.args_info)
        return f"meta_schedule.MeasureCandidate({steps} instructions, [{args}])"


@_derive.register_node("meta_schedule.SearchStrategy")
class SearchStrategy(_derive.Node):
    """Proposes candidates, round by round."""

    @staticmethod
    def create(kind="evolutionary", *args, **kwargs):
        """The strategy of a kind: "evolutionary", "replay-trace" or "replay-func"."""
        kinds = {
            "evolutionary": EvolutionarySearch,
            "replay-trace": ReplayTrace,
            "replay-func": ReplayFunc,
        }
        return _create(kinds, kind, "search strategy", args, kwargs)


SearchStrategy.SearchStrategyType = (
    SearchStrategy | Literal["replay-func", "replay-trace", "evolutionary"]
)
create = SearchStrategy.create

EvolutionarySearch = _class("EvolutionarySearch")
ReplayFunc = _class("ReplayFunc")
ReplayTrace = _class("ReplayTrace")
_PySearchStrategy = forward_attributes(_class("PySearchStrategy"))


class PySearchStrategy(UserDefined):
    """Base of user-defined strategies."""

    _key = "meta_schedule.PySearchStrategy"

    @abstractmethod
    def pre_tuning(
        self, max_trials, num_trials_per_iter, design_spaces, database=None, cost_model=None
    ):
        """Begins a search."""
        raise NotImplementedError

    @abstractmethod
    def post_tuning(self):
        """Ends a search."""
        raise NotImplementedError

    @abstractmethod
    def generate_measure_candidates(self):
        """The next round, or None when the search has ended."""
        raise NotImplementedError

    @abstractmethod
    def notify_runner_results(self, measure_candidates, results):
        """Is told what was measured."""
        raise NotImplementedError
