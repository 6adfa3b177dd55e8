# SPDX-License-Identifier: Apache-2.0
"""Source positions, equality, JSON and registered functions as nodes."""

from tvm._derive import Node, construct, fill, register_node

__getattr__, __dir__ = fill("tvm.ir")
_ir = __getattr__


@register_node("ir.SourceName")
class SourceName(Node):
    pass


@register_node("ir.Span")
class Span(Node):
    def __init__(self, source_name, line, end_line, column, end_column):
        if isinstance(source_name, str):
            source_name = SourceName(source_name)
        construct(self, source_name, line, end_line, column, end_column)


@register_node("ir.EnvFunc")
class EnvFunc(Node):
    """A function of the global registry, by name."""

    @property
    def func(self):
        return self._function()

    def __call__(self, *args):
        return self._function()(*args)

    @staticmethod
    def get(name):
        return EnvFunc(name)


def save_json(node):
    """The node and all it refers to, as JSON text."""
    return str(_ir("save_json")(node))


def load_json(json_str):
    """Reads what save_json wrote and checks every node in it."""
    return _ir("load_json")(json_str)


def assert_structural_equal(lhs, rhs, map_free_vars=False):
    """ValueError that shows where the two differ unless they are structurally equal."""
    mismatch = _ir("get_first_structural_mismatch")(lhs, rhs, map_free_vars, False)
    if mismatch is None:
        return
    left, right = mismatch
    raise ValueError(
        f"StructuralEqual check failed, caused by lhs at {left}:\n{_text(lhs, left)}\n"
        f"and rhs at {right}:\n{_text(rhs, right)}"
    )


def _text(node, path):
    text = node.script(path_to_underline=[path]) if isinstance(node, Node) else str(node)
    return text if len(text) < 20000 else text[:20000] + "\n..."
