# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own database of operators: samples, each as a program that is exported, imported,
compiled and compared: `python -m tests.frontend.torch.database [names]`."""

import functools
import logging
import os
import random
import sys
import types
import unittest
import warnings

import torch

from .. import scoreboard
from .run import check


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
def operators():
    """All entries for float32, by name."""
    return {name_of(op): op for op in _database() if torch.float32 in op.dtypes}


class Sample(torch.nn.Module):
    """A call of an operator as a model of its tensors; complex results as pairs of numbers."""

    def __init__(self, function, args, kwargs):
        super().__init__()
        self.function, self.args, self.kwargs = function, args, kwargs

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

        result = self.function(*filled(self.args), **filled(self.kwargs))
        items = result if isinstance(result, (list, tuple)) else [result]
        return [
            torch.view_as_real(item.resolve_conj())
            if isinstance(item, torch.Tensor) and item.is_complex()
            else item
            for item in items
        ]


def tensors_of(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in tensors_of(v)] if isinstance(value, (list, tuple)) else []


def samples(op, count=None):
    """(model, tensors) for the samples of an operator; `count` of them, chosen by its name."""
    every = list(op.sample_inputs("cpu", torch.float32, requires_grad=False))
    if count is not None and len(every) > count:
        every = random.Random(name_of(op)).sample(every, count)
    for sample in every:
        args = (sample.input, *sample.args)
        yield Sample(op.op, args, sample.kwargs), tuple(tensors_of((args, sample.kwargs)))


def failure(name, count=None):
    """Why an operator does not pass, or None."""
    op = operators()[name]
    torch.manual_seed(0)
    logging.disable(logging.CRITICAL)
    done = 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for model, tensors in samples(op, count):
                check(model, tensors)
                done += 1
    except Exception as error:
        return f"sample {done}: {scoreboard.reason_of(error)}"
    finally:
        logging.disable(logging.NOTSET)
    return None


if __name__ == "__main__":
    # A number of samples of each, instead of all of them.
    count = int(os.environ["SAMPLES"]) if "SAMPLES" in os.environ else None
    outcome = scoreboard.main(__doc__, operators(), functools.partial(failure, count=count))
    sys.exit(any(outcome.values()))
