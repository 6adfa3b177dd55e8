# SPDX-License-Identifier: Apache-2.0
"""Relax: @R.function, @R.macro, struct info, and the builder's names."""

import sys as _sys

from tvm import relax as _relax

from ...ir_builder import relax as _builder
from ..core.language import Language as _Language
from ..core.language import register_language as _register_language
from . import dist, entry, parser
from .dist import DTensor, device_mesh
from .entry import Callable, Object, Prim, Shape, Tensor, Tuple, function, macro, match_cast

Any = Object  # since 0.27

_register_language(
    _Language(
        "relax", "R", _sys.modules[__name__], "R.function", parser.member,
        {_relax.Function: parser.check}, 30,
    )
)  # fmt: skip


def __getattr__(name):
    value = getattr(_builder, name)
    globals()[name] = value
    return value


def __dir__():
    own = [n for n in globals() if n[0] != "_" and n not in ("entry", "parser")]
    return sorted({*own, *dir(_builder)})
