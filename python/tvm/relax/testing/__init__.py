# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests of graphs."""

from . import nn, transform
from .ast_printer import dump_ast
from .attention import get_relax_attention_module, get_relax_stacked_attention_module
from .matmul import get_relax_matmul_module
from .nn import *  # noqa: F403
