# SPDX-License-Identifier: Apache-2.0
"""Source texts: finding the syntax tree of a function or class, and showing a place in it."""

import ast
import functools
import inspect
import linecache
import os
import sys
import threading

from tvm.ir import SourceName, Span, diagnostics

from .error import DiagnosticError, ParserError


class Source:
    """A program: its tree, and the text to show in errors."""

    _name = None  # as a node, made when it is needed

    def __init__(self, program):
        self.restricted = isinstance(program, str)  # text gets only the names it was given
        if isinstance(program, str):
            self.source_name, self.lines = "<string>", program.splitlines()
            self.tree = _parse(program, self.source_name, self.lines)
        elif isinstance(program, ast.AST):
            self.source_name, self.lines, self.tree = "<ast>", [], program
        elif inspect.isfunction(program) or inspect.isclass(program):
            self.source_name, self.lines, self.tree = _find(program)
        else:
            raise TypeError(
                f"expected a text, a function or a class to parse, got {type(program).__name__}"
            )

    def as_ast(self):
        return self.tree

    def place(self, node):
        """Where a node of the tree is, as arguments of a Span; columns count from 1."""
        if self._name is None:
            self._name = SourceName(self.source_name)
        try:
            line, column = node.lineno, node.col_offset + 1
            return self._name, line, column, node.end_lineno, node.end_col_offset
        except AttributeError:  # a tree made by hand
            return self._name, 0, 1, 0, 0

    def error_at(self, span, message):
        """The error for a span of the program; without one, or of another text, for the whole."""
        node = None
        if span is not None and span.source_name.name == self.source_name:
            node = ast.Pass(
                lineno=span.line, col_offset=span.column - 1, end_lineno=span.end_line,
                end_col_offset=span.end_column,
            )  # fmt: skip
        return self.error(node, message)

    def show(self, node, message):
        """The message with file, line and the marked text, as compilers show it."""
        line, column = getattr(node, "lineno", None), getattr(node, "col_offset", 0)
        if line is None:
            return f"{message}\n --> {self.source_name}"
        text = self.lines[line - 1].rstrip() if line <= len(self.lines) else ""
        # Columns count bytes.
        begin = len(text.encode()[:column].decode(errors="ignore"))
        end = len(text)
        if getattr(node, "end_lineno", line) == line and node.end_col_offset is not None:
            end = len(text.encode()[: node.end_col_offset].decode(errors="ignore"))
        marks = " " * begin + "^" * max(1, end - begin)
        gutter = " " * len(str(line))
        return (
            f"{message}\n{gutter}--> {self.source_name}:{line}:{begin + 1}\n"
            f"{gutter} |\n{line} | {text}\n{gutter} | {marks}"
        )

    def error(self, node, message):
        """The error to raise; who renders diagnostics in a way of their own is told first."""
        if diagnostics.is_overridden():
            context = diagnostics.DiagnosticContext(sources={self.source_name: self.text()})
            level = diagnostics.DiagnosticLevel.ERROR
            context.emit(diagnostics.Diagnostic(level, self._span(node), message))
            context.renderer.render(context)
        return DiagnosticError(self.show(node, message))

    def text(self):
        return "\n".join(self.lines)

    def _span(self, node):
        """Where a node is; lines count from the first one of the program."""
        name, line, column, end_line, end_column = self.place(node or self.tree)
        decorators = getattr(self.tree, "decorator_list", [])
        first = min([getattr(self.tree, "lineno", 1), *(d.lineno for d in decorators)])
        return Span(name, line - first + 1, end_line - first + 1, column, end_column)


def _parse(text, name, lines):
    """The tree of a text. Python's parser needs stack for depth: a thread of its own has enough."""
    result = []

    def run(limit=None):
        old = sys.getrecursionlimit()
        try:
            sys.setrecursionlimit(limit or old)
            result.append(ast.parse(text, name))
        except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
            result.append(error)
        finally:
            sys.setrecursionlimit(old)

    run()
    if isinstance(result[0], (RecursionError, MemoryError)):
        result.clear()
        old = threading.stack_size(512 << 20)
        thread = threading.Thread(target=run, args=(200_000,))
        thread.start()
        threading.stack_size(old)
        thread.join()
    tree = result[0]
    if isinstance(tree, ast.AST):
        return tree
    if isinstance(tree, SyntaxError):
        where = ast.Pass(
            lineno=tree.lineno or 1, col_offset=max((tree.offset or 1) - 1, 0),
            end_lineno=tree.lineno or 1, end_col_offset=max(tree.end_offset or 0, tree.offset or 1),
        )  # fmt: skip
        message = f"expected Python syntax: {tree.msg}"
    else:
        where, message = None, "expected a program that Python's parser can read, got one too deep"
    source = Source.__new__(Source)
    source.source_name, source.lines = name, lines
    raise source.error(where, message) from None


@functools.lru_cache(maxsize=64)
def _file_tree(filename, text):
    """(tree, functions by line of definition, classes by name) of a file, read once."""
    tree = _parse(text, filename, text.splitlines())
    functions, classes = {}, {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if isinstance(node, ast.FunctionDef):
                functions[first, node.name] = node
            else:
                classes.setdefault(node.name, []).append((first, node))
    return tree, functions, classes


def _find(program):
    """(file, lines, tree) of a Python function or class."""
    if inspect.isfunction(program):
        filename = program.__code__.co_filename
    else:
        module = inspect.getmodule(program)
        filename = getattr(module, "__file__", None)
        for member in vars(program).values():
            if inspect.isfunction(member) and member.__qualname__.startswith(program.__qualname__):
                filename = member.__code__.co_filename
    linecache.checkcache(filename or "")
    lines = linecache.getlines(filename) if filename else []
    if not lines:
        raise DiagnosticError(
            f"expected a definition whose source text is available, got {program.__qualname__} "
            f"from {filename}. Use tvm.script.from_source(text)"
        )
    _, functions, classes = _file_tree(filename, "".join(lines))
    lines = [line.rstrip("\n") for line in lines]
    name = os.path.abspath(filename) if os.path.exists(filename) else filename
    if inspect.isfunction(program):
        node = functions.get((program.__code__.co_firstlineno, program.__name__))
        if node is not None:
            return name, lines, node
    else:
        found = classes.get(program.__name__, [])
        inside = [
            m.__code__.co_firstlineno
            for m in vars(program).values()
            if inspect.isfunction(m) and m.__code__.co_filename == filename
        ]
        fits = [n for _, n in found if all(n.lineno <= i <= n.end_lineno for i in inside)]
        line = getattr(program, "__firstlineno__", None)  # Python 3.13
        fits = [n for first, n in found if first == line] or fits
        if len(fits) >= 1:
            return name, lines, fits[-1]
    raise DiagnosticError(
        f"expected to find {program.__qualname__} in {name}, where it is not (any more)"
    )


__all__ = ["DiagnosticError", "ParserError", "Source"]
