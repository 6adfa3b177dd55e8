# SPDX-License-Identifier: Apache-2.0
"""The toy language in Python: how its functions are written. `import language as Y`."""

import ast
import inspect
import sys

from tvm.ir import DictAttrs, make_node
from tvm.script.ir_builder import IRBuilder, IRBuilderFrame
from tvm.script.ir_builder.ir import IRModuleFrame, def_function
from tvm.script.parser import parse
from tvm.script.parser.core.error import ParserError
from tvm.script.parser.core.language import Language, register_language
from tvm.script.parser.core.parser import register
from tvm.script.parser.core.utils import is_defined_in_class


class RecipeFrame(IRBuilderFrame):
    def __init__(self, name):
        super().__init__()
        self.name, self.steps = name, []

    def _finish(self):
        attrs = DictAttrs({"global_symbol": self.name})
        recipe = make_node("toy.Recipe", steps=self.steps, attrs=attrs)
        builder = IRBuilder.current()
        if builder.find(IRModuleFrame):
            def_function(self.name, recipe)
        else:
            builder.result = recipe


def _step(kind):
    def add(argument):
        steps = IRBuilder.current().find(RecipeFrame).steps
        steps.append(make_node("toy.Step", kind=kind, argument=argument))

    return add


add, mul, call = _step("add"), _step("mul"), _step("call")


def recipe(function):
    if is_defined_in_class(inspect.stack(), function):
        return function  # the module is parsed as a whole
    return parse(function)


recipe.dispatch_token = "toy"


@register("toy", "declare")
def declare(parser, node):
    return None


@register("toy", "function")
def visit_function(parser, node):
    with RecipeFrame(node.name), parser.scope(), parser.token("toy"):
        parser.visit_body(node.body)


@register("toy", ast.Assign)
def visit_assign(parser, node):
    parser.define(node.targets[0].id, parser.eval(node.value))


@register("toy", ast.Expr)
def visit_step(parser, node):
    if parser.eval(node.value) is not None:
        raise ParserError(node, "expected a step such as Y.add(1)")


def _check(functions, module):
    steps = [step for _, func in functions for step in func.steps]
    found = [step for step in steps if step.kind not in ("add", "mul", "call")]
    return (f"expected add, mul or call, got '{found[0].kind}'", None) if found else None


register_language(
    Language(
        "toy", "Y", sys.modules[__name__], "Y.recipe", lambda var, signature: var,
        {type(make_node("toy.Recipe", steps=[])): _check},
    )
)  # fmt: skip
