# SPDX-License-Identifier: Apache-2.0
"""Expressions, evaluated by walking the syntax tree: only what is listed here can run."""

import ast
import operator
import types as _types

import tvm_ffi

from tvm.ir import PrimExpr
from tvm.ir.expr import ExprOp, _op, _tir

from .error import ParserError
from .language import ITEMS, METHODS, VALUES

_BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.MatMult: operator.matmul,
}
_COMPARE = {
    ast.Eq: (operator.eq, "equal"),
    ast.NotEq: (operator.ne, "not_equal"),
    ast.Lt: (operator.lt, "less"),
    ast.LtE: (operator.le, "less_equal"),
    ast.Gt: (operator.gt, "greater"),
    ast.GtE: (operator.ge, "greater_equal"),
    ast.Is: (operator.is_, None),
    ast.IsNot: (operator.is_not, None),
    ast.In: (lambda a, b: a in b, None),
    ast.NotIn: (lambda a, b: a not in b, None),
}
_UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}
# (class of an operand, operator, which operand) -> function of the operands: see dispatch.py
OPERATORS = {}
# A text could reach anything through these.
_FORBIDDEN = {"format", "format_map", "mro"}


def is_symbolic(value):
    """Whether a value is known only when the program runs."""
    return isinstance(value, (PrimExpr, ExprOp)) or VALUES.of(value) is not None


def as_expr(value):
    """The expression that a value stands for; any other value as it is."""
    convert = VALUES.of(value)
    if convert is not None:
        return convert(value)
    return value.asobject() if isinstance(value, tvm_ffi.core.ObjectConvertible) else value


def as_exprs(value):
    """The same for the items of a list, too."""
    return [as_exprs(v) for v in value] if isinstance(value, (list, tuple)) else as_expr(value)


def registered_operator(op, *operands):
    """The function that was registered for one of the operands' classes, or None."""
    if OPERATORS:
        for i, operand in enumerate(operands):
            found = OPERATORS.get((type(operand), type(op), i))
            if found is not None:
                return found
    return None


class Evaluator:
    """Evaluates expressions with names from `lookup(name)`."""

    def __init__(self, lookup, restricted=False, mark=None):
        """mark(node, value) is told which expression came from where."""
        self.lookup, self.restricted, self.mark = lookup, restricted, mark

    def eval(self, node):
        try:
            method = self._METHODS[type(node)]
        except KeyError:
            kind = type(node).__name__
            raise ParserError(
                node, f"expected an expression of TVMScript, got Python's {kind}"
            ) from None
        return method(self, node)

    def _guard(self, node, function, *args, **kwargs):
        """Runs Python code for a node; its errors are shown there."""
        try:
            value = function(*args, **kwargs)
            if isinstance(value, PrimExpr) and self.mark is not None:
                self.mark(node, value)
            return value
        except ParserError:
            raise
        except Exception as error:
            raise ParserError(node, f"{type(error).__name__}: {error}") from error

    def constant(self, node):
        return node.value

    def name(self, node):
        return self.lookup(node)

    def attribute(self, node):
        value = self.eval(node.value)
        if hasattr(type(value), "script_attribute"):  # functions of a module: any name
            return self._guard(node, value.script_attribute, node.attr)
        if self.restricted and (node.attr.startswith("_") or node.attr in _FORBIDDEN):
            raise ParserError(node, f"expected a public attribute in a text, got '{node.attr}'")
        result = self._guard(node, getattr, value, node.attr)
        if self.restricted and isinstance(result, _types.ModuleType):
            if not result.__name__.startswith("tvm.script."):
                raise ParserError(
                    node, f"expected a name the text was given, got the module {result.__name__}"
                )
        return result

    def subscript(self, node):
        value, index = self.eval(node.value), self.eval(node.slice)
        return self._guard(node, subscript, value, index)

    def slice(self, node):
        parts = [None if p is None else self.eval(p) for p in (node.lower, node.upper, node.step)]
        return slice(*parts)

    def call(self, node):
        function = self.eval(node.func)
        args, kwargs = self.items(node.args), {}
        for keyword in node.keywords:
            if keyword.arg is None:
                kwargs.update(self.eval(keyword.value))
            else:
                kwargs[keyword.arg] = self.eval(keyword.value)
        if isinstance(function, type):
            takes_values = issubclass(function, PrimExpr)
        else:
            takes_values = METHODS.of(getattr(function, "__self__", None))
        if takes_values:
            args = as_exprs(args)
            kwargs = {key: as_exprs(value) for key, value in kwargs.items()}
        return self._guard(node, function, *args, **kwargs)

    def items(self, nodes):
        result = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                result.extend(self.eval(node.value))
            else:
                result.append(self.eval(node))
        return result

    def binary(self, node):
        # Long sums nest to the left: a loop, for the depth.
        chain = []
        while isinstance(node, ast.BinOp):
            chain.append(node)
            node = node.left
        value = self.eval(node)
        for node in reversed(chain):
            right = self.eval(node.right)
            function = registered_operator(node.op, value, right) or _BINARY[type(node.op)]
            value = self._guard(node, self.operate, function, value, right)
        return value

    def operate(self, function, left, right):
        return function(as_expr(left), as_expr(right))

    def unary(self, node):
        value = as_expr(self.eval(node.operand))
        registered = registered_operator(node.op, value)
        if registered is not None:
            return self._guard(node, registered, value)
        if isinstance(node.op, ast.Not):
            return (
                self._guard(node, _op.logical_not, value, None) if is_symbolic(value) else not value
            )
        return self._guard(node, _UNARY[type(node.op)], value)

    def bool_op(self, node):
        is_and = isinstance(node.op, ast.And)
        combine = _op.logical_and if is_and else _op.logical_or
        value = as_expr(self.eval(node.values[0]))
        for other in node.values[1:]:
            if is_symbolic(value):
                value = self._guard(node, combine, value, as_expr(self.eval(other)), None)
            elif bool(value) is is_and:
                right = as_expr(self.eval(other))
                # `True and x` is x; an expression keeps what it is.
                value = right
        return value

    def compare(self, node):
        left, result = self.eval(node.left), None
        for op, other in zip(node.ops, node.comparators, strict=True):
            right = self.eval(other)
            value = self._guard(node, compare, op, left, right)
            if result is None:
                result = value
            elif is_symbolic(result) or is_symbolic(value):
                result = self._guard(node, _op.logical_and, result, value, None)
            else:
                result = result and value
            left = right
        return result

    def if_exp(self, node):
        condition = as_expr(self.eval(node.test))
        if not is_symbolic(condition):
            return self.eval(node.body if condition else node.orelse)
        then, other = as_expr(self.eval(node.body)), as_expr(self.eval(node.orelse))
        return self._guard(node, _tir.if_then_else, condition, then, other, None)

    def tuple(self, node):
        return tuple(self.items(node.elts))

    def list(self, node):
        return self.items(node.elts)

    def set(self, node):
        return set(self.items(node.elts))

    def dict(self, node):
        result = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                result.update(self.eval(value))
            else:
                result[self.eval(key)] = self.eval(value)
        return result

    def joined(self, node):
        return "".join(str(self.eval(part)) for part in node.values)

    def formatted(self, node):
        value = self.eval(node.value)
        convert = (
            {"s": str, "r": repr, "a": ascii}.get(chr(node.conversion))
            if node.conversion > 0
            else None
        )
        value = convert(value) if convert else value
        spec = self.eval(node.format_spec) if node.format_spec else ""
        return format(str(value) if is_symbolic(value) else value, spec)

    def nested(self, names):
        """An evaluator with more names."""
        outer = self.lookup

        def lookup(node):
            return names[node.id] if node.id in names else outer(node)

        return type(self)(lookup, self.restricted, self.mark)

    def lambda_(self, node):
        args = node.args
        if args.vararg or args.kwarg or args.kwonlyargs or args.defaults:
            raise ParserError(node, "expected a lambda with plain parameters")
        params = [a.arg for a in args.args]

        def function(*values):
            if len(values) != len(params):
                raise TypeError(f"lambda: expected {len(params)} arguments, got {len(values)}")
            return self.nested(dict(zip(params, values, strict=True))).eval(node.body)

        return function

    def comprehension(self, node):
        results = []

        def run(evaluator, generators):
            if not generators:
                if isinstance(node, ast.DictComp):
                    results.append((evaluator.eval(node.key), evaluator.eval(node.value)))
                else:
                    results.append(evaluator.eval(node.elt))
                return
            first, rest = generators[0], generators[1:]
            for item in self._guard(first.iter, python_iterator, evaluator.eval(first.iter)):
                pairs = []
                unpack(first.target, item, lambda *pair, pairs=pairs: pairs.append(pair))
                inner = evaluator.nested({target.id: value for target, value in pairs})
                if all(inner.eval(test) for test in first.ifs):
                    run(inner, rest)

        run(self, node.generators)
        make = {ast.SetComp: set, ast.DictComp: dict}.get(type(node), list)
        return make(results)

    _METHODS = {
        ast.Constant: constant,
        ast.Name: name,
        ast.Attribute: attribute,
        ast.Subscript: subscript,
        ast.Slice: slice,
        ast.Call: call,
        ast.BinOp: binary,
        ast.UnaryOp: unary,
        ast.BoolOp: bool_op,
        ast.Compare: compare,
        ast.IfExp: if_exp,
        ast.Tuple: tuple,
        ast.List: list,
        ast.Set: set,
        ast.Dict: dict,
        ast.JoinedStr: joined,
        ast.FormattedValue: formatted,
        ast.Lambda: lambda_,
        ast.ListComp: comprehension,
        ast.SetComp: comprehension,
        ast.DictComp: comprehension,
        ast.GeneratorExp: comprehension,
    }


def subscript(value, index):
    item = ITEMS.of(value)
    if item is not None:
        return item(value, index)
    if is_symbolic(index):
        raise TypeError(f"expected a constant index into {type(value).__name__}, got {index}")
    return value[index]


def compare(op, left, right):
    python, name = _COMPARE[type(op)]
    registered = registered_operator(op, left, right)
    if registered is not None:
        return registered(left, right)
    if name is None:
        return python(left, right)
    left, right = as_expr(left), as_expr(right)
    if not is_symbolic(left) and not is_symbolic(right):
        return python(left, right)
    if isinstance(left, (str, type(None))) or isinstance(right, (str, type(None))):
        return python(left, right)  # x is not None, dtype == "float32"
    return getattr(_op, name)(left, right, None)


def python_iterator(value):
    """Items of a Python value; a loop of the program is none."""
    if is_symbolic(value) or not hasattr(value, "__iter__"):
        raise TypeError(f"expected something Python can iterate over, got {type(value).__name__}")
    return iter(value)


def unpack(target, value, bind):
    """Calls bind(name node, value) for the names of an assignment's target."""
    if isinstance(target, ast.Name):
        bind(target, value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        values = (
            list(value)
            if isinstance(value, (tuple, list, tvm_ffi.Array)) or hasattr(value, "__iter__")
            else None
        )
        if values is None:
            raise ParserError(
                target, f"expected {len(target.elts)} values, got one {type(value).__name__}"
            )
        star = [i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)]
        if star:
            i, after = star[0], len(target.elts) - star[0] - 1
            if len(values) < len(target.elts) - 1:
                raise ParserError(
                    target, f"expected at least {len(target.elts) - 1} values, got {len(values)}"
                )
            values = [*values[:i], values[i : len(values) - after], *values[len(values) - after :]]
        if len(values) != len(target.elts):
            raise ParserError(target, f"expected {len(target.elts)} values, got {len(values)}")
        for part, item in zip(target.elts, values, strict=True):
            unpack(part.value if isinstance(part, ast.Starred) else part, item, bind)
    else:
        raise ParserError(target, f"expected a name, got Python's {type(target).__name__}")
