# SPDX-License-Identifier: Apache-2.0
"""Parts that do nothing: builders that build nothing, runners that measure nothing."""

import random

from ..builder import BuilderResult, PyBuilder
from ..mutator import PyMutator
from ..runner import PyRunner, PyRunnerFuture, RunnerResult
from ..utils import derived_object


class DummyRunnerFuture(PyRunnerFuture):
    """A random result that is there."""

    def done(self):
        return True

    def result(self):
        return RunnerResult([random.uniform(5, 30) for _ in range(random.randint(1, 10))], None)


class DummyBuilder(PyBuilder):
    """Says that everything was built."""

    def build(self, build_inputs):
        return [BuilderResult("test_path", None) for _ in build_inputs]


class DummyRunner(PyRunner):
    """Measures nothing."""

    def run(self, runner_inputs):
        return [DummyRunnerFuture() for _ in runner_inputs]


@derived_object
class DummyMutator(PyMutator):
    """Changes nothing."""

    def apply(self, trace, _):
        return trace.simplified(remove_postproc=True)

    def clone(self):
        return DummyMutator()
