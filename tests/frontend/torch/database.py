# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own database of operators: all samples of an operator as programs that are exported,
imported, compiled and compared, and its gradients through the backend of torch.compile:
`python -m tests.frontend.torch.database [add add/gradients add/bfloat16 …]`."""

import functools
import itertools
import logging
import os
import random
import re
import sys
import types
import unittest
import warnings

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
)
from torch.export import export
from tvm.relax.frontend.torch import from_exported_program
from tvm.relax.frontend.torch.dynamo import autograd_compilers

from .. import scoreboard
from .run import assert_same, compiled, flat, largest_of

GROUP = 12  # samples in one program
ENOUGH = 24  # failures of one entry, after which its other samples are not tried
GRADIENTS = "/gradients"
# Other types than float32, and how near results are to PyTorch's.
TYPES = {"int64": 1e-4, "bool": 1e-4, "bfloat16": 2e-2, "float16": 5e-3, "complex64": 1e-4}
# Their elements are not defined.
EMPTY = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}


def _database():
    # PyTorch's test helpers import this package for tests of their own.
    if "expecttest" not in sys.modules:
        module = types.ModuleType("expecttest")
        module.TestCase = unittest.TestCase
        sys.modules["expecttest"] = module
    from torch.testing._internal.common_methods_invocations import op_db

    return op_db


def name_of(op):
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


@functools.cache
def operators(dtype=torch.float32):
    """All entries for a type, by name."""
    return {name_of(op): op for op in _database() if dtype in op.dtypes}


def _type(name):
    return getattr(torch, name)


def entries():
    """The names of the operators, of the gradients of those that have one, and of the operators on
    other types."""
    differentiable = [n for n, op in operators().items() if op.supports_autograd]
    others = [f"{name}/{kind}" for kind in TYPES for name in operators(_type(kind))]
    return [*operators(), *(name + GRADIENTS for name in differentiable), *others]


def tensors_of(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in tensors_of(v)] if isinstance(value, (list, tuple)) else []


class Sample(torch.nn.Module):
    """A call of an operator as a model of its tensors; complex results as pairs of numbers."""

    def __init__(self, function, sample):
        super().__init__()
        self.function, self.finish = function, sample.output_process_fn_grad
        self.args, self.kwargs = (sample.input, *sample.args), sample.kwargs
        self.tensors = tensors_of((self.args, self.kwargs))

    def forward(self, *tensors):
        remaining = iter(tensors)

        def filled(value):
            if isinstance(value, torch.Tensor):
                return next(remaining)
            if isinstance(value, (list, tuple)):
                return type(value)(filled(item) for item in value)
            if isinstance(value, dict):
                return {key: filled(item) for key, item in value.items()}
            return value

        result = self.finish(self.function(*filled(self.args), **filled(self.kwargs)))
        items = result if isinstance(result, (list, tuple)) else [result]
        return [
            torch.view_as_real(item.resolve_conj())
            if isinstance(item, torch.Tensor) and item.is_complex()
            else item
            for item in items
        ]


class Samples(torch.nn.Module):
    """Several calls as one model of all their tensors."""

    def __init__(self, samples):
        super().__init__()
        self.samples = samples
        self.tensors = [t for sample in samples for t in sample.tensors]

    def forward(self, *tensors):
        remaining = iter(tensors)
        return [s(*itertools.islice(remaining, len(s.tensors))) for s in self.samples]


def samples(op, count=None, requires_grad=False, dtype=torch.float32):
    """The samples of an operator; `count` of them, chosen by its name. Of results of which there
    are many (vectors of either sign) a function that all have in common is compared."""
    every = list(op.sample_inputs("cpu", dtype, requires_grad=requires_grad))
    if count is not None and len(every) > count:
        every = random.Random(name_of(op)).sample(every, count)
    return [Sample(op.op, sample) for sample in every]


def _is_random(graph):
    return any(
        torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        for node in graph.nodes
    )


def _kinds(values):
    tensors = [value for value in flat(values) if hasattr(value, "shape")]
    return [(tuple(t.shape), str(t.dtype).removeprefix("torch.")) for t in tensors]


def _flattened(outcome):
    """Complex tensors as pairs of numbers, as the graph has them."""
    return [
        torch.view_as_real(t.resolve_conj())
        if isinstance(t, torch.Tensor) and t.is_complex()
        else t
        for t in flat(outcome)
    ]


def _by_single(model, theirs):
    """PyTorch's results by float32, in the types of those by a smaller one."""
    wide = [t.float() if t.dtype.is_floating_point else t for t in model.tensors]
    with torch.no_grad():
        exact = [*flat(model(*wide)), *wide]
    return [
        value.to(t.dtype) if isinstance(t, torch.Tensor) else value
        for value, t in zip(exact, theirs, strict=True)
    ]


def check_results(model, has_values=True, tolerance=1e-4):
    """The results of an exported program. Where those of a small type are far from PyTorch's, what
    float32 gives decides."""
    tensors = tuple(model.tensors)
    with torch.no_grad():
        program = export(model, tensors)
        main = compiled(from_exported_program(program))
        changed = [t.clone(memory_format=torch.contiguous_format) for t in tensors]
        given = _flattened(changed)
        ours = [*flat(main(*given)), *given]
        theirs = _flattened([model(*tensors), *tensors])
    if has_values and not _is_random(program.graph):
        try:
            assert_same(ours, theirs, tolerance)
        except AssertionError:
            if len(model.samples) > 1 or tolerance <= 1e-4:
                raise
            assert_same(ours, _by_single(model, theirs), tolerance)
    else:  # distributions have a test of their own
        assert _kinds(ours) == _kinds(theirs), (_kinds(ours), _kinds(theirs))


def _whole(gradient):
    """A gradient as real numbers, also of a tensor that only stands for zeros."""
    if gradient._is_zerotensor():
        gradient = torch.zeros(gradient.shape, dtype=gradient.dtype)
    return torch.view_as_real(gradient.resolve_conj()) if gradient.is_complex() else gradient


def gradients_of(function, tensors, places=None):
    """Which results are differentiable, and these with the gradients of a sum of them with fixed
    weights. `places` says which they are: one whose gradients are all 0 may have none."""
    leaves = [t.detach().clone().requires_grad_(t.requires_grad) for t in tensors]
    # An operator that changes its argument cannot change a leaf.
    every = flat(function(*(t.clone() if t.requires_grad else t for t in leaves)))
    if places is None:
        is_wanted = [isinstance(r, torch.Tensor) and r.requires_grad for r in every]
        places = [i for i, is_one in enumerate(is_wanted) if is_one]
    results = [every[i] for i in places]
    weights = [torch.cos(torch.arange(r.numel(), dtype=r.dtype)).reshape(r.shape) for r in results]
    pairs = [(r, w) for r, w in zip(results, weights, strict=True) if r.requires_grad]
    wanted = [t for t in leaves if t.requires_grad]
    if not results:
        return places, []
    gradients = [None] * len(wanted)
    if pairs:
        ends, factors = zip(*pairs, strict=True)
        gradients = torch.autograd.grad(ends, wanted, factors, allow_unused=True)
    return places, results + [
        torch.zeros_like(t) if g is None else _whole(g)
        for g, t in zip(gradients, wanted, strict=True)
    ]


def _compiled_whole(model, compilers):
    """By torch.compile, which sizes and numbers that depend on data need."""
    from torch._dynamo.backends.common import aot_autograd

    @torch._dynamo.config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True)
    def function(*tensors):
        return torch.compile(model, backend=aot_autograd(**compilers), fullgraph=True)(*tensors)

    torch._dynamo.reset()
    return function


def _by_double(model, places, theirs):
    """PyTorch's gradients by float64, in the types of those by float32, which may be far off."""
    wide = [
        t.detach().double().requires_grad_(t.requires_grad) if t.dtype == torch.float32 else t
        for t in model.tensors
    ]
    _, exact = gradients_of(model, wide, places)
    return [value.to(t.dtype) for value, t in zip(exact, theirs, strict=True)]


def check_gradients(model, has_values=True):
    """The gradients, by functions that the backend of torch.compile makes. Some that are 0 by their
    nature are compared by the scale of the others, where one sample stands alone."""
    from torch._functorch.aot_autograd import aot_function

    compilers = autograd_compilers()
    compile_forward, graphs = compilers["fw_compiler"], []

    def forward(graph_module, inputs):
        graphs.append(graph_module.graph)
        return compile_forward(graph_module, inputs)

    compilers["fw_compiler"] = forward
    places, theirs = gradients_of(model, model.tensors)
    try:
        _, ours = gradients_of(aot_function(model, **compilers), model.tensors, places)
    except (DataDependentOutputException, DynamicOutputShapeException):
        _, ours = gradients_of(_compiled_whole(model, compilers), model.tensors, places)
    if has_values and not any(map(_is_random, graphs)):
        scale = largest_of(theirs) if len(model.samples) == 1 else None
        try:
            assert_same(ours, theirs, 1e-3, scale)
        except AssertionError:
            if len(model.samples) > 1:
                raise
            assert_same(ours, _by_double(model, places, theirs), 1e-3, scale)
    else:
        assert _kinds(ours) == _kinds(theirs), (_kinds(ours), _kinds(theirs))


def import_all():
    """Imports what a check would import in each of its processes, before they are forked."""
    from torch._functorch import aot_autograd  # noqa: F401

    torch.set_num_threads(1)  # threads do not survive the fork
    program = export(Samples([]), ())
    program.run_decompositions()


def failure(name, count=None):
    """Why an entry does not pass, or None."""
    operator, _, kind = name.partition("/")
    with_gradients, dtype = "/" + kind == GRADIENTS, _type(kind if kind in TYPES else "float32")
    check = check_gradients if with_gradients else check_results
    if kind in TYPES:
        check = functools.partial(check_results, tolerance=TYPES[kind])
    torch.manual_seed(0)
    logging.disable(logging.CRITICAL)
    failures = {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("error", message=".*PyTorch runs")
            every = samples(operators(dtype)[operator], count, with_gradients, dtype)
            for begin in range(0, len(every), GROUP):
                if len(failures) < ENOUGH:
                    failures |= _failures(every, begin, check, operator not in EMPTY)
    except Exception as error:
        return scoreboard.reason_of(error)
    finally:
        logging.disable(logging.NOTSET)
    if not failures:
        return None
    first = min(failures)
    return f"{len(failures)} of {len(every)} samples, first {first}: {failures[first]}"


def _failures(every, begin, check, has_values):
    """{number: reason} of a group of samples, which are tried alone where they fail together."""
    group = every[begin : begin + GROUP]
    try:
        check(Samples(group), has_values)
        return {}
    except Exception as error:
        if len(group) == 1:
            return {begin: scoreboard.reason_of(error)}
    reasons = {}
    for i, sample in enumerate(group, begin):
        try:
            check(Samples([sample]), has_values)
        except Exception as error:
            reasons[i] = scoreboard.reason_of(error)
    return reasons


# What PyTorch itself does not do, by its exceptions and messages.
REFUSED = ("DataDependentOutputException", "DynamicOutputShapeException", "Jiterator",
           "GuardOnDataDependentSymNode", "PendingUnbackedSymbolNotFound", "Unsupported: D",
           "Could not guard on data-dependent", "setStorage")  # fmt: skip


def _shown(reason):
    """A reason in a cell of a table: its first words, without places in memory."""
    words = " ".join(
        re.sub(r" of R\.Tensor.*| imported from .*| Explanation: .*", "", reason).split()
    )
    return words[:120].rstrip().replace("|", "\\|")


def database(results):
    """The scoreboard: how many entries pass, and which do not, with the reason."""
    lines = [
        "| | run | pass | PyTorch cannot trace them | fail |",
        "| --- | --- | --- | --- | --- |",
    ]
    for kind in ("results", "gradients", *TYPES):
        suffix = "" if kind == "results" else kind
        every = [name for name in entries() if name.partition("/")[2] == suffix]
        run = [name for name in every if name in results]
        failed = [name for name in run if results[name] is not None]
        refused = sum(any(word in results[name] for word in REFUSED) for name in failed)
        counts = f"{len(run)} of {len(every)} | {len(run) - len(failed)}"
        lines.append(f"| {kind} | {counts} | {refused} | {len(failed) - refused} |")
    rest = [f"| {n} | {_shown(r)} |" for n, r in sorted(results.items()) if r is not None]
    return [*lines, "", "| does not pass | samples, and why |", "| --- | --- |", *rest]


if __name__ == "__main__":
    # A number of samples of each, instead of all of them.
    count = int(os.environ["SAMPLES"]) if "SAMPLES" in os.environ else None
    check = functools.partial(failure, count=count)
    import_all()
    outcome = scoreboard.main(__doc__, entries(), check, table=database)
    sys.exit(any(outcome.values()))
