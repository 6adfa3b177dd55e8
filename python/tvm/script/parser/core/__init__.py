# SPDX-License-Identifier: Apache-2.0
"""The parts of the parser that know no language: source texts, errors, expressions, scopes."""

from . import diagnostics, dispatch, doc, doc_core, entry, error, evaluator, language, parser, utils

__all__ = [
    "diagnostics",
    "dispatch",
    "doc",
    "doc_core",
    "entry",
    "error",
    "evaluator",
    "language",
    "parser",
    "utils",
]
