# SPDX-License-Identifier: Apache-2.0
"""The operator database: an entry for every operator, from which the tests of them follow."""

from . import calls, create, elementwise, image, index, manipulate, nn, reduce
from .core import ENTRIES, VARIANTS, S, arrays, expected, infer, make_call, tensors
