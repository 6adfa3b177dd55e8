# SPDX-License-Identifier: Apache-2.0
"""Coloured source text in terminals and notebooks."""

import functools
import os
import sys

_STYLES = {"light": "default", "dark": "monokai", "ansi": None}


def _in_notebook():
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


@functools.cache
def _pygments():
    try:
        import pygments
        import pygments.formatters
        import pygments.lexers
    except ModuleNotFoundError:
        return None
    return pygments


def _black(text):
    try:
        import black
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "black_format: expected the package 'black' to be installed"
        ) from None
    return black.format_str(text, mode=black.FileMode())


def cprint(printable, style=None, black_format=None):
    """Prints Python text: coloured in a notebook or terminal if Pygments is there, else plain.

    style: "light", "dark", "ansi" (the terminal's own colours) or the name of a Pygments style."""
    text = printable if isinstance(printable, str) else printable.script()
    if black_format is None:
        black_format = os.environ.get("TVM_BLACK_FORMAT", "0") == "1"
    if black_format:
        text = _black(text)
    pygments = _pygments()
    notebook = _in_notebook()
    if pygments is None or not (notebook or style is not None or sys.stdout.isatty()):
        print(text)
        return
    name = _STYLES.get(style, style) if style is not None else None
    lexer = pygments.lexers.PythonLexer()
    if notebook:
        from IPython import display

        formatter = pygments.formatters.HtmlFormatter(style=name or "default", noclasses=True)
        display.display(display.HTML(pygments.highlight(text, lexer, formatter)))
        return
    if name is None:
        formatter = pygments.formatters.TerminalFormatter()
    else:
        formatter = pygments.formatters.Terminal256Formatter(style=name)
    print(pygments.highlight(text, lexer, formatter), end="")
