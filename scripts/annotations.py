# SPDX-License-Identifier: Apache-2.0
"""How many public functions of the package say their types; `./check types` keeps it so."""

import ast
import pathlib

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "python/tvm"
# Where every public function does. More may be added, none is taken away.
COMPLETE = ("driver", "runtime", "target", "relax/vm_build.py")
# The number of annotated functions may grow: raise this with it.
LEAST = 107


def functions(tree, prefix=""):
    """(qualified name, definition) of what is public: constructors, no other special methods."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef):
            if node.name == "__init__" or not node.name.startswith("_"):
                yield prefix + node.name, node


def is_annotated(function):
    a = function.args
    named = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
    parameters = [p for p in named if p.arg not in ("self", "cls")]
    return function.returns is not None and all(p.annotation for p in parameters)


def check(package=PACKAGE, complete=COMPLETE, least=LEAST):
    """What is wrong, as lines of text."""
    problems, annotated = [], 0
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        must = name.startswith(complete)
        for function, node in functions(ast.parse(path.read_text(encoding="utf-8"))):
            annotated += is_annotated(node)
            if must and not is_annotated(node):
                problems.append(f"{name}:{node.lineno}: expected types of {function}")
    if annotated < least:
        problems.append(f"expected {least} public functions with types, got {annotated}")
    return problems
