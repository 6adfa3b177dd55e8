# SPDX-License-Identifier: Apache-2.0
"""Tasks: what is tuned, and by what means."""

from tvm import _derive, ir, tir
from tvm.target import Target

from .logging import get_logger
from .search_strategy import SearchStrategy
from .space_generator import SpaceGenerator
from .utils import fork_seed, num_cores

NO_LOGGER = __name__  # the logger of contexts that were given none


def normalize_module(mod, what="tune_tir"):
    """The module of a function or module, its function called "main"."""
    if isinstance(mod, tir.PrimFunc):
        if not mod.attrs or mod.attrs.get("global_symbol") != "main":
            mod = mod.with_attr("global_symbol", "main")
        mod = mod.with_attr("tir.noalias", True)
        return ir.IRModule({"main": mod})
    if not isinstance(mod, ir.IRModule):
        raise TypeError(f"{what}: expected a PrimFunc or an IRModule, got {type(mod).__name__}")
    return mod


@_derive.register_node("meta_schedule.TuneContext")
class TuneContext(_derive.Node):
    """One task: what is tuned, for which target, and by what means.

    Parameters
    ----------
    mod : IRModule or PrimFunc
    target : Target or str
    space_generator, search_strategy : an object, or the name of a kind; None for none.
    rand_state : the seed; -1 for another one every time.
    num_threads : "physical", "logical" or a number.
    """

    def __init__(
        self,
        mod=None,
        *,
        target=None,
        space_generator=None,
        search_strategy=None,
        task_name="main",
        rand_state=-1,
        num_threads="physical",
        logger=None,
    ):
        if mod is not None:
            mod = normalize_module(mod, "TuneContext")
        if target is not None:
            target = Target(target)
        if space_generator is not None and not isinstance(space_generator, SpaceGenerator):
            space_generator = SpaceGenerator.create(space_generator)
        if search_strategy is not None and not isinstance(search_strategy, SearchStrategy):
            search_strategy = SearchStrategy.create(search_strategy)
        _derive.construct(
            self,
            mod,
            target,
            space_generator,
            search_strategy,
            task_name,
            num_cores(num_threads, "num_threads"),
            fork_seed(rand_state, 1)[0],
            get_logger(NO_LOGGER) if logger is None else logger,
        )
        if mod is not None and target is not None:
            if space_generator is not None:
                space_generator._initialize_with_tune_context(self)
            if search_strategy is not None:
                search_strategy._initialize_with_tune_context(self)

    def __repr__(self):
        return f"meta_schedule.TuneContext({self.task_name}, {self.target})"

    def _require(self, name):
        part = getattr(self, name)
        if part is None:
            raise ValueError(f"TuneContext: expected a {name}, got None")
        return part

    def generate_design_space(self):
        """The schedules that the space generator makes of the module."""
        return list(self._require("space_generator").generate_design_space(self.mod))

    def pre_tuning(
        self, max_trials, num_trials_per_iter=64, design_spaces=None, database=None, cost_model=None
    ):
        """Begins a search."""
        if design_spaces is None:
            design_spaces = self.generate_design_space()
        self._require("search_strategy").pre_tuning(
            max_trials, num_trials_per_iter, design_spaces, database, cost_model
        )

    def post_tuning(self):
        """Ends a search."""
        self._require("search_strategy").post_tuning()

    def generate_measure_candidates(self):
        """The next round, or None when the search has ended."""
        candidates = self._require("search_strategy").generate_measure_candidates()
        return None if candidates is None else list(candidates)

    def notify_runner_results(self, measure_candidates, results):
        """Tells the strategy what was measured."""
        self._require("search_strategy").notify_runner_results(measure_candidates, results)

    def clone(self):
        """A context with its own generator and strategy."""
        generator, strategy = self.space_generator, self.search_strategy
        return TuneContext(
            self.mod,
            target=self.target,
            space_generator=None if generator is None else generator.clone(),
            search_strategy=None if strategy is None else strategy.clone(),
            task_name=self.task_name,
            rand_state=self.rand_state,
            num_threads=self.num_threads,
            logger=self.logger,
        )
