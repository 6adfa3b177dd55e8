# SPDX-License-Identifier: Apache-2.0
"""The text of a tree of docs."""

import json

import tvm_ffi

from . import doc as d
from .doc import OperationKind as Op

_decorate = tvm_ffi.get_global_func("script._decorate")
# Operator, and how tightly it binds; larger binds tighter.
_UNARY = {Op.USub: ("-", 12), Op.Invert: ("~", 12), Op.Not: ("not ", 4)}
_BINARY = {
    Op.Or: ("or", 2), Op.And: ("and", 3),
    Op.Lt: ("<", 5), Op.LtE: ("<=", 5), Op.Eq: ("==", 5), Op.NotEq: ("!=", 5), Op.Gt: (">", 5),
    Op.GtE: (">=", 5),
    Op.BitOr: ("|", 6), Op.BitXor: ("^", 7), Op.BitAnd: ("&", 8),
    Op.LShift: ("<<", 9), Op.RShift: (">>", 9), Op.Add: ("+", 10), Op.Sub: ("-", 10),
    Op.Mult: ("*", 11), Op.Div: ("/", 11), Op.FloorDiv: ("//", 11), Op.Mod: ("%", 11),
    Op.Pow: ("**", 13),
}  # fmt: skip
_LAMBDA, _CHOICE, _COMPARISON, _ATOM = 0, 1, 5, 15


def to_python_script(
    doc, indent_spaces=4, print_line_numbers=False, num_context_lines=None, path_to_underline=None
):
    """The text of a doc. What shows one of the paths is underlined; `num_context_lines` leaves out
    what is further away from that."""
    writer = _Writer(indent_spaces, list(path_to_underline or ()))
    writer.write(doc)
    context = -1 if num_context_lines is None else num_context_lines
    begins, ends = [b for b, _ in writer.marks], [e for _, e in writer.marks]
    return _decorate("".join(writer.parts), begins, ends, print_line_numbers, context)


class _Writer:
    def __init__(self, indent_spaces, paths):
        self.indent_spaces, self.paths = indent_spaces, paths
        self.parts, self.size, self.depth, self.marks = [], 0, 0, []

    def text(self, *pieces):
        for piece in pieces:
            self.parts.append(piece)
            self.size += len(piece.encode())

    def line(self):
        if self.size:
            self.text("\n", " " * (self.depth * self.indent_spaces))

    def write(self, doc, least=0):
        """Writes a doc; an expression that binds less than `least` gets parentheses."""
        method = _METHODS.get(type(doc))
        if method is None:
            raise TypeError(f"to_python_script: expected a Doc, got {type(doc).__name__}")
        begin = self.size
        own = _level(doc)
        if own < least:
            self.text("(")
        method(self, doc)
        if own < least:
            self.text(")")
        if any(path == wanted for path in doc.source_paths for wanted in self.paths):
            self.marks.append((begin, self.size))

    def commas(self, docs):
        for i, one in enumerate(docs):
            if i:
                self.text(", ")
            self.write(one)

    # ---- expressions ----------------------------------------------------------------------------
    def literal(self, doc):
        is_text = isinstance(doc.value, str)
        self.text(json.dumps(doc.value, ensure_ascii=False) if is_text else repr(doc.value))

    def attribute(self, doc):
        self.write(doc.value, _ATOM)
        self.text("." + doc.name)

    def index(self, doc):
        self.write(doc.value, _ATOM)
        self.text("[")
        self.commas(doc.indices)
        self.text("]" if doc.indices else "()]")

    def call(self, doc):
        self.write(doc.callee, _ATOM)
        self.text("(")
        self.commas(doc.args)
        for i, (key, value) in enumerate(zip(doc.kwargs_keys, doc.kwargs_values, strict=True)):
            self.text(", " if doc.args or i else "", key, "=")
            self.write(value)
        self.text(")")

    def operation(self, doc):
        kind, own = doc.kind, _level(doc)
        if kind in _UNARY:
            self.text(_UNARY[kind][0])
            self.write(doc.operands[0], own)
        elif kind == Op.IfThenElse:
            condition, value, other = doc.operands
            self.write(value, own + 1)
            self.text(" if ")
            self.write(condition, own + 1)
            self.text(" else ")
            self.write(other, own)
        else:
            # a - b - c is (a - b) - c, a ** b ** c is a ** (b ** c), a < b < c is neither.
            right = kind == Op.Pow
            self.write(doc.operands[0], own + (right or own == _COMPARISON))
            self.text(f" {_BINARY[kind][0]} ")
            self.write(doc.operands[1], own + (not right))

    def lambda_(self, doc):
        self.text("lambda ")
        self.commas(doc.args)
        self.text(": ")
        self.write(doc.body)

    def tuple_(self, doc):
        self.text("(")
        self.commas(doc.elements)
        self.text(",)" if len(doc.elements) == 1 else ")")

    def list_(self, doc):
        self.text("[")
        self.commas(doc.elements)
        self.text("]")

    def dict_(self, doc):
        self.text("{")
        for i, (key, value) in enumerate(zip(doc.keys, doc.values, strict=True)):
            self.text(", " if i else "")
            self.write(key)
            self.text(": ")
            self.write(value)
        self.text("}")

    def slice_(self, doc):
        for part, colon in ((doc.start, ":"), (doc.stop, ""), (doc.step, None)):
            if colon is None and part is not None:
                self.text(":")
            if part is not None:
                self.write(part)
            self.text(colon or "")

    # ---- statements -----------------------------------------------------------------------------
    def statements(self, stmts):
        for stmt in stmts:
            self.line()
            self.write(stmt)

    def block(self, stmts):
        self.depth += 1
        if all(isinstance(s, d.CommentDoc) for s in stmts):
            self.statements([*stmts, _PASS])
        else:
            self.statements(stmts)
        self.depth -= 1

    def head(self, doc, *pieces):
        """The first line of a statement with a body, under its comment."""
        for line in (doc.comment or "").splitlines():
            self.text("# " + line)
            self.line()
        for piece in pieces:
            self.text(piece) if isinstance(piece, str) else self.write(piece)
        self.text(":")

    def simple(self, doc, *pieces):
        """A statement of one line, with its comment at the end or, where that is long, above."""
        lines = (doc.comment or "").splitlines()
        if len(lines) > 1:
            for line in lines:
                self.text("# " + line)
                self.line()
        for piece in pieces:
            self.text(piece) if isinstance(piece, str) else self.write(piece)
        if len(lines) == 1:
            self.text("  # " + lines[0])

    def assign(self, doc):
        pieces = [doc.lhs]
        pieces += [": ", doc.annotation] if doc.annotation is not None else []
        pieces += [" = ", doc.rhs] if doc.rhs is not None else []
        self.simple(doc, *pieces)

    def if_(self, doc):
        then, other, condition = doc.then_branch, doc.else_branch, doc.predicate
        self.head(doc, "if ", condition)
        self.block(then)
        if other:
            self.line()
            self.text("else:")
            self.block(other)

    def with_(self, doc):
        self.head(doc, "with ", doc.rhs, *([" as ", doc.lhs] if doc.lhs is not None else []))
        self.block(doc.body)

    def loop(self, doc, *pieces):
        self.head(doc, *pieces)
        self.block(doc.body)

    def assert_(self, doc):
        self.simple(doc, "assert ", doc.test, *([", ", doc.msg] if doc.msg is not None else []))

    def decorated(self, doc):
        for decorator in doc.decorators:
            self.text("@")
            self.write(decorator)
            self.line()

    def function(self, doc):
        self.decorated(doc)
        self.text("def ", doc.name.name, "(")
        self.commas(doc.args)
        self.text(")")
        if doc.return_type is not None:
            self.text(" -> ")
            self.write(doc.return_type)
        self.text(":")
        comment = [d.DocStringDoc(doc.comment)] if doc.comment else []
        self.block([*comment, *doc.body])

    def class_(self, doc):
        self.decorated(doc)
        self.text("class ", doc.name.name, ":")
        comment = [d.DocStringDoc(doc.comment)] if doc.comment else []
        self.block([*comment, *doc.body])

    def comment(self, doc):
        for i, line in enumerate((doc.comment or "").splitlines()):
            if i:
                self.line()
            self.text("# " + line)

    def docstring(self, doc):
        lines = (doc.comment or "").splitlines() or [""]
        self.text('"""', lines[0])
        for line in lines[1:]:
            self.line()
            self.text(line)
        self.text('"""')


_PASS = d.ExprStmtDoc(d.IdDoc("pass"))
_METHODS = {
    d.LiteralDoc: _Writer.literal,
    d.IdDoc: lambda w, doc: w.text(doc.name),
    d.AttrAccessDoc: _Writer.attribute,
    d.IndexDoc: _Writer.index,
    d.CallDoc: _Writer.call,
    d.OperationDoc: _Writer.operation,
    d.LambdaDoc: _Writer.lambda_,
    d.TupleDoc: _Writer.tuple_,
    d.ListDoc: _Writer.list_,
    d.DictDoc: _Writer.dict_,
    d.SliceDoc: _Writer.slice_,
    d.StmtBlockDoc: lambda w, doc: w.statements(doc.stmts),
    d.AssignDoc: _Writer.assign,
    d.IfDoc: _Writer.if_,
    d.WhileDoc: lambda w, doc: w.loop(doc, "while ", doc.predicate),
    d.ForDoc: lambda w, doc: w.loop(doc, "for ", doc.lhs, " in ", doc.rhs),
    d.ScopeDoc: _Writer.with_,
    d.ExprStmtDoc: lambda w, doc: w.simple(doc, doc.expr),
    d.AssertDoc: _Writer.assert_,
    d.ReturnDoc: lambda w, doc: w.simple(doc, "return ", doc.value),
    d.FunctionDoc: _Writer.function,
    d.ClassDoc: _Writer.class_,
    d.CommentDoc: _Writer.comment,
    d.DocStringDoc: _Writer.docstring,
}


def _level(doc):
    """How tightly an expression holds its parts together."""
    if isinstance(doc, d.LambdaDoc):
        return _LAMBDA
    if isinstance(doc, d.LiteralDoc):
        # A number before a dot, or a negative one after an operator.
        number = isinstance(doc.value, (int, float)) and not isinstance(doc.value, bool)
        return (12 if str(doc.value).startswith("-") else 14) if number else _ATOM
    if isinstance(doc, d.OperationDoc):
        if doc.kind == Op.IfThenElse:
            return _CHOICE
        return (_UNARY.get(doc.kind) or _BINARY[doc.kind])[1]
    return _ATOM


__all__ = ["to_python_script"]
