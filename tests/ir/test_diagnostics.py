# SPDX-License-Identifier: Apache-2.0
"""Diagnostics show the place they are about."""

import pytest
from tvm import ir
from tvm.error import DiagnosticError
from tvm.ir import diagnostics as d


def test_a_place_is_underlined(capsys):
    ctx = d.DiagnosticContext(sources={"f.py": "x = 1\ny = x + q\n"})
    ctx.emit(
        d.Diagnostic(d.DiagnosticLevel.ERROR, ir.Span("f.py", 2, 2, 9, 10), "unknown name 'q'")
    )
    with pytest.raises(DiagnosticError, match="unknown name"):
        ctx.render()
    err = capsys.readouterr().err
    assert "f.py:2:9" in err and "  y = x + q\n          ^" in err


def test_warnings_do_not_raise_and_the_renderer_can_be_replaced():
    seen = []
    d.override_renderer(lambda ctx: seen.extend(x.message for x in ctx.diagnostics))
    try:
        ctx = d.DiagnosticContext()
        ctx.emit(d.Diagnostic(d.DiagnosticLevel.WARNING, None, "careful"))
        ctx.render()
    finally:
        d.override_renderer(None)
    assert seen == ["careful"]
