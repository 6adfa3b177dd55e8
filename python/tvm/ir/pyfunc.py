# SPDX-License-Identifier: Apache-2.0
"""Python functions in modules: read from a class or a text, and printed."""

import ast
import inspect
import re
import textwrap


def from_node(node, names):
    """The function of a text: defined, not called. Annotations are left out, for they may name
    what is not there."""
    text = ast.unparse(_without_decorators(node))
    for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        arg.annotation = None
    node.returns = None
    scope = dict(names)
    exec(compile(ast.unparse(_without_decorators(node)), "<pyfunc>", "exec"), scope)
    function = scope[node.name]
    function.__script_source__ = text
    return function


def _without_decorators(node):
    node.decorator_list = []
    return node


def source_of(name, function):
    """The text of a function without its decorators."""
    if hasattr(function, "__script_source__"):
        return function.__script_source__
    try:
        lines = textwrap.dedent(inspect.getsource(function)).splitlines()
        definition = ast.parse("\n".join(lines)).body[0]
        if isinstance(definition, ast.FunctionDef):
            return "\n".join(lines[definition.lineno - 1 :])
    except (OSError, TypeError, SyntaxError):
        pass
    return f"def {name}(*args):\n    ...  # {function!r} has no text"


def with_pyfuncs(text, functions, options):
    """The text of a module with Python functions at the beginning of its class."""
    prefix, spaces = options.get("ir_prefix", "I"), " " * options.get("indent_spaces", 4)
    parts = [
        textwrap.indent(f"@{prefix}.pyfunc\n{source_of(name, function)}\n\n", spaces)
        for name, function in functions.items()
    ]
    return re.sub(r"^class .*:\n", lambda m: m.group(0) + "".join(parts), text, count=1, flags=re.M)
