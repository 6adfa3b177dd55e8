# SPDX-License-Identifier: Apache-2.0
"""Search strategies: which candidates to measure next."""

from typing import Literal

from tvm import _derive

from ..utils import create as _create
from ..utils import forward_attributes


def _class(name):
    return _derive.node_class("meta_schedule." + name, __name__)


MeasureCandidate = _class("MeasureCandidate")


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


class PySearchStrategy:
    """Base of user-defined strategies."""

    _tvm_metadata = (
        "meta_schedule.PySearchStrategy",
        ("pre_tuning", "post_tuning", "generate_measure_candidates", "notify_runner_results"),
        ("clone", "_initialize_with_tune_context"),
    )
