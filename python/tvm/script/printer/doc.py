# SPDX-License-Identifier: Apache-2.0
"""The parts of a Python text: expressions and statements."""

from dataclasses import dataclass, field, fields
from enum import IntEnum, unique


@dataclass(eq=False)
class Doc:
    """A part of a text. `source_paths` says which parts of a program it shows."""

    source_paths: list = field(default_factory=list, init=False, repr=False)

    def __post_init__(self):
        for f in fields(self):
            value = getattr(self, f.name)
            if f.init and isinstance(value, (list, tuple)):
                setattr(self, f.name, tuple(value))

    def __str__(self):
        from .doc_printer import to_python_script

        return to_python_script(self)


@dataclass(eq=False)
class ExprDoc(Doc):
    def attr(self, name):
        """self.name"""
        return AttrAccessDoc(self, name)

    def call(self, *args, **kwargs):
        """self(*args, **kwargs)"""
        return CallDoc(self, *args, **kwargs)

    def __getitem__(self, indices):
        indices = indices if isinstance(indices, tuple) else (indices,)
        return IndexDoc(self, [_slice(i) if isinstance(i, slice) else i for i in indices])

    def __iter__(self):
        raise TypeError(f"{type(self).__name__}: expected an index, got an iteration")


@dataclass(eq=False)
class StmtDoc(Doc):
    """A statement. `comment` stands at the end of its first line, or above it."""

    comment: str = field(default=None, init=False, repr=False)


@dataclass(eq=False)
class StmtBlockDoc(Doc):
    stmts: list


# ---- expressions --------------------------------------------------------------------------------
@dataclass(eq=False)
class LiteralDoc(ExprDoc):
    """None, a text or a number."""

    value: object
    path: object = field(default=None, repr=False)

    def __post_init__(self):
        if self.value is not None and not isinstance(self.value, (str, bool, int, float)):
            raise TypeError(
                "LiteralDoc: expected None, a text or a number, got " + type(self.value).__name__
            )
        if self.path is not None:
            self.source_paths.append(self.path)


@dataclass(eq=False)
class IdDoc(ExprDoc):
    name: str


@dataclass(eq=False)
class AttrAccessDoc(ExprDoc):
    value: ExprDoc
    name: str


@dataclass(eq=False)
class IndexDoc(ExprDoc):
    value: ExprDoc
    indices: list


class CallDoc(ExprDoc):
    """callee(*args, key=value)"""

    def __init__(self, callee, *args, **kwargs):
        super().__init__()
        self.callee, self.args = callee, args
        self.kwargs_keys, self.kwargs_values = tuple(kwargs), tuple(kwargs.values())


@unique
class OperationKind(IntEnum):
    """An operator of Python. Numbers between the groups only separate them."""

    USub = 1
    Invert = 2
    Not = 3
    Add = 6
    Sub = 7
    Mult = 8
    Div = 9
    FloorDiv = 10
    Mod = 11
    Pow = 12
    LShift = 13
    RShift = 14
    BitAnd = 15
    BitOr = 16
    BitXor = 17
    Lt = 18
    LtE = 19
    Eq = 20
    NotEq = 21
    Gt = 22
    GtE = 23
    And = 24
    Or = 25
    IfThenElse = 28


@dataclass(eq=False)
class OperationDoc(ExprDoc):
    """An operator and its operands: one, two, or (condition, value, other value)."""

    kind: OperationKind
    operands: list

    def __post_init__(self):
        super().__post_init__()
        self.kind = OperationKind(self.kind)
        unary, choice = self.kind < OperationKind.Add, self.kind == OperationKind.IfThenElse
        wanted = 1 if unary else 3 if choice else 2
        if len(self.operands) != wanted:
            raise ValueError(
                f"OperationDoc: expected {wanted} operands of {self.kind.name}, "
                f"got {len(self.operands)}"
            )


@dataclass(eq=False)
class LambdaDoc(ExprDoc):
    args: list
    body: ExprDoc


@dataclass(eq=False)
class TupleDoc(ExprDoc):
    elements: list


@dataclass(eq=False)
class ListDoc(ExprDoc):
    elements: list


class DictDoc(ExprDoc):
    """{key: value}"""

    def __init__(self, content):
        super().__init__()
        self.keys, self.values = tuple(content), tuple(content.values())


@dataclass(eq=False)
class SliceDoc(ExprDoc):
    start: ExprDoc = None
    stop: ExprDoc = None
    step: ExprDoc = None


def _slice(value):
    return SliceDoc(value.start, value.stop, value.step)


# ---- statements ---------------------------------------------------------------------------------
@dataclass(eq=False)
class AssignDoc(StmtDoc):
    """lhs: annotation = rhs"""

    lhs: ExprDoc
    rhs: ExprDoc = None
    annotation: ExprDoc = None

    def __post_init__(self):
        if self.rhs is None and self.annotation is None:
            raise ValueError("AssignDoc: expected a value or an annotation, got neither")


@dataclass(eq=False)
class IfDoc(StmtDoc):
    predicate: ExprDoc
    then_branch: list
    else_branch: list

    def __post_init__(self):
        super().__post_init__()
        if not self.then_branch and not self.else_branch:
            raise ValueError("IfDoc: expected statements in one of the branches, got none")


@dataclass(eq=False)
class WhileDoc(StmtDoc):
    predicate: ExprDoc
    body: list


@dataclass(eq=False)
class ForDoc(StmtDoc):
    lhs: ExprDoc
    rhs: ExprDoc
    body: list


class ScopeDoc(StmtDoc):
    """with rhs as lhs: body"""

    def __init__(self, lhs, rhs, body):
        super().__init__()
        self.lhs, self.rhs, self.body = lhs, rhs, tuple(body)


@dataclass(eq=False)
class ExprStmtDoc(StmtDoc):
    expr: ExprDoc


@dataclass(eq=False)
class AssertDoc(StmtDoc):
    test: ExprDoc
    msg: ExprDoc = None


@dataclass(eq=False)
class ReturnDoc(StmtDoc):
    value: ExprDoc


@dataclass(eq=False)
class FunctionDoc(StmtDoc):
    name: IdDoc
    args: list
    decorators: list
    return_type: ExprDoc
    body: list


@dataclass(eq=False)
class ClassDoc(StmtDoc):
    name: IdDoc
    decorators: list
    body: list


class CommentDoc(StmtDoc):
    def __init__(self, comment):
        super().__init__()
        self.comment = comment


class DocStringDoc(StmtDoc):
    def __init__(self, docs):
        super().__init__()
        self.comment = docs


__all__ = [
    "AssertDoc",
    "AssignDoc",
    "AttrAccessDoc",
    "CallDoc",
    "ClassDoc",
    "CommentDoc",
    "DictDoc",
    "Doc",
    "DocStringDoc",
    "ExprDoc",
    "ExprStmtDoc",
    "ForDoc",
    "FunctionDoc",
    "IdDoc",
    "IfDoc",
    "IndexDoc",
    "LambdaDoc",
    "ListDoc",
    "LiteralDoc",
    "OperationDoc",
    "OperationKind",
    "ReturnDoc",
    "ScopeDoc",
    "SliceDoc",
    "StmtBlockDoc",
    "StmtDoc",
    "TupleDoc",
    "WhileDoc",
]
