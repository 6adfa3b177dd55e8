# SPDX-License-Identifier: Apache-2.0
"""Diagnostics: messages about places in source texts, collected and then rendered."""

import enum
import linecache
import sys

from tvm.error import DiagnosticError


class DiagnosticLevel(enum.IntEnum):
    BUG = 10
    ERROR = 20
    WARNING = 30
    NOTE = 40
    HELP = 50


class Diagnostic:
    """A message of some level about a span (or None)."""

    def __init__(self, level, span, message):
        self.level, self.span, self.message = DiagnosticLevel(level), span, message


def _render(ctx):
    """The default renderer: file, line, the text with the place underlined, the message."""
    for d in ctx.diagnostics:
        print(f"{d.level.name.lower()}: {d.message}", file=sys.stderr)
        if d.span is None:
            continue
        name = str(d.span.source_name.name)
        line = ctx.source_line(name, d.span.line)
        print(f" --> {name}:{d.span.line}:{d.span.column}", file=sys.stderr)
        if line:
            width = (
                max(1, d.span.end_column - d.span.column) if d.span.end_line == d.span.line else 1
            )
            print(f"  {line}\n  {' ' * (d.span.column - 1)}{'^' * width}", file=sys.stderr)


class DiagnosticRenderer:
    """Renders the diagnostics of a context by a function."""

    def __init__(self, render_func=_render):
        self.render_func = render_func

    def render(self, ctx):
        return self.render_func(ctx)


_override = None


def override_renderer(render_func):
    """Renders with another function from now on; None goes back to the default."""
    global _override
    _override = render_func


def is_overridden():
    """Whether diagnostics are rendered by another function than the default."""
    return _override is not None


def get_renderer():
    """The renderer in use."""
    return DiagnosticRenderer(_override or _render)


class DiagnosticContext:
    """Collects diagnostics about a module."""

    def __init__(self, module=None, renderer=None, sources=None):
        self.module, self.renderer, self.diagnostics = module, renderer or get_renderer(), []
        self._sources = sources or {}

    def source_line(self, name, number):
        """A line of a source text, "" when it is not known."""
        if name in self._sources:
            lines = self._sources[name].splitlines()
            return lines[number - 1] if 0 < number <= len(lines) else ""
        return linecache.getline(name, number).rstrip("\n")

    def emit(self, diagnostic):
        self.diagnostics.append(diagnostic)

    def render(self):
        """Shows what was collected; DiagnosticError if there is an error among it."""
        self.renderer.render(self)
        if any(d.level <= DiagnosticLevel.ERROR for d in self.diagnostics):
            raise DiagnosticError("\n".join(d.message for d in self.diagnostics))
