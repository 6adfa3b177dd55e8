# SPDX-License-Identifier: Apache-2.0
"""Trees of Python text (tvm.script.printer.doc)."""

import ast

import pytest
from tvm.script.printer import to_python_script
from tvm.script.printer.doc import (
    AssertDoc,
    AssignDoc,
    CallDoc,
    ClassDoc,
    CommentDoc,
    DictDoc,
    DocStringDoc,
    ExprStmtDoc,
    ForDoc,
    FunctionDoc,
    IdDoc,
    IfDoc,
    LambdaDoc,
    ListDoc,
    LiteralDoc,
    OperationDoc,
    OperationKind,
    ReturnDoc,
    ScopeDoc,
    SliceDoc,
    StmtBlockDoc,
    TupleDoc,
    WhileDoc,
)
from tvm_ffi.access_path import AccessPath

x, y, z = IdDoc("x"), IdDoc("y"), IdDoc("z")
Op = OperationKind


def op(kind, *operands):
    return OperationDoc(kind, list(operands))


@pytest.mark.parametrize(
    "doc, text",
    [
        (LiteralDoc(None), "None"),
        (LiteralDoc(True), "True"),
        (LiteralDoc(1.5), "1.5"),
        (LiteralDoc('a "b"\n'), '"a \\"b\\"\\n"'),
        (x.attr("y").call(y, key=z), "x.y(y, key=z)"),
        (LiteralDoc(1).attr("real"), "(1).real"),
        (x[y, 1:2], None),
        (x[SliceDoc(y, None, LiteralDoc(2)), SliceDoc()], "x[y::2, :]"),
        (x[()], "x[()]"),
        (CallDoc(x), "x()"),
        (LambdaDoc([x, y], op(Op.Add, x, y)), "lambda x, y: x + y"),
        (LambdaDoc([x], x).call(y), "(lambda x: x)(y)"),
        (TupleDoc([x]), "(x,)"),
        (TupleDoc([]), "()"),
        (ListDoc([x, TupleDoc([y, z])]), "[x, (y, z)]"),
        (DictDoc({LiteralDoc("a"): x, LiteralDoc(2): y}), '{"a": x, 2: y}'),
        (op(Op.Mult, op(Op.Add, x, y), z), "(x + y) * z"),
        (op(Op.Add, op(Op.Mult, x, y), z), "x * y + z"),
        (op(Op.Sub, x, op(Op.Sub, y, z)), "x - (y - z)"),
        (op(Op.Sub, op(Op.Sub, x, y), z), "x - y - z"),
        (op(Op.Pow, x, op(Op.Pow, y, z)), "x ** y ** z"),
        (op(Op.Pow, op(Op.Pow, x, y), z), "(x ** y) ** z"),
        (op(Op.Lt, op(Op.Lt, x, y), z), "(x < y) < z"),
        (op(Op.Not, op(Op.And, x, y)), "not (x and y)"),
        (op(Op.USub, op(Op.USub, x)), "--x"),
        (op(Op.Pow, LiteralDoc(-2), x), "(-2) ** x"),
        (op(Op.IfThenElse, x, y, z), "y if x else z"),
        (op(Op.Add, op(Op.IfThenElse, x, y, z), x), "(y if x else z) + x"),
    ],
)
def test_expressions(doc, text):
    if text is None:
        with pytest.raises(TypeError, match="expected a Doc, got int"):
            to_python_script(doc)
        return
    assert to_python_script(doc) == text == str(doc)
    ast.parse(text)


def test_operators_keep_their_meaning():
    """A tree of operators, parsed by Python, is the same tree."""
    binary = [k for k in Op if Op.Add <= k <= Op.Or]
    for outer in binary:
        for inner in binary:
            if outer == inner and outer in (Op.And, Op.Or):
                continue  # Python makes one list of `x and y and z`
            for doc in (op(outer, op(inner, x, y), z), op(outer, x, op(inner, y, z))):
                plain = to_python_script(doc)
                a, b = doc.operands
                explicit = f"({a}) {_symbol(outer)} ({b})"
                assert ast.dump(ast.parse(plain)) == ast.dump(ast.parse(explicit))


def _symbol(kind):
    return to_python_script(op(kind, x, y))[1:-1].strip()


def test_statements():
    body = [
        DocStringDoc("What it does."),
        AssignDoc(x, LiteralDoc(1), annotation=IdDoc("int")),
        AssignDoc(y, None, annotation=IdDoc("float")),
        ForDoc(x, IdDoc("range").call(y), [ExprStmtDoc(x.call()), CommentDoc("two\nlines")]),
        WhileDoc(op(Op.Lt, x, y), []),
        IfDoc(x, [AssertDoc(y, LiteralDoc("why"))], [AssertDoc(z)]),
        ScopeDoc(x, y.call(), [ReturnDoc(x)]),
        ScopeDoc(None, y, [CommentDoc("nothing")]),
    ]
    args = [AssignDoc(x, None, annotation=IdDoc("int")), AssignDoc(y, LiteralDoc(2))]
    function = FunctionDoc(IdDoc("f"), args, [IdDoc("T").attr("prim_func")], IdDoc("int"), body)
    text = """
@I.ir_module
class Module:
  @T.prim_func
  def f(x: int, y = 2) -> int:
    \"\"\"What it does.\"\"\"
    x: int = 1
    y: float
    for x in range(y):
      x()
      # two
      # lines
    while x < y:
      pass
    if x:
      assert y, "why"
    else:
      assert z
    with y() as x:
      return x
    with y:
      # nothing
      pass
""".strip()
    module = ClassDoc(IdDoc("Module"), [IdDoc("I").attr("ir_module")], [function])
    assert to_python_script(module, indent_spaces=2) == text
    ast.parse(text)


def test_comments():
    one, two = ExprStmtDoc(x), ExprStmtDoc(y)
    one.comment, two.comment = "short", "a\nlonger"
    loop = ForDoc(x, y, [one])
    loop.comment = "all of it"
    text = to_python_script(StmtBlockDoc([two, loop]))
    assert text == "# a\n# longer\ny\n# all of it\nfor x in y:\n    x  # short"


def test_underlines_and_line_numbers():
    left, right = IdDoc("left"), IdDoc("right")
    place = AccessPath.root().attr("b")
    right.source_paths.append(place)
    stmts = [ExprStmtDoc(IdDoc(f"line{i}")) for i in range(3)]
    doc = StmtBlockDoc([*stmts, AssignDoc(x, op(Op.Add, left, right)), *stmts])
    text = to_python_script(doc, path_to_underline=[place], num_context_lines=1)
    assert text == (
        "(... 2 lines skipped ...)\nline2\nx = left + right\n           ^^^^^\nline0\n"
        "(... 2 lines skipped ...)"
    )
    assert to_python_script(StmtBlockDoc(stmts), print_line_numbers=True) == (
        "1 line0\n2 line1\n3 line2"
    )


@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda: LiteralDoc([1]), TypeError, "expected None, a text or a number, got list"),
        (lambda: op(Op.Add, x), ValueError, "expected 2 operands of Add, got 1"),
        (lambda: op(Op.Not, x, y), ValueError, "expected 1 operands of Not, got 2"),
        (lambda: op(4, x, y), ValueError, "4 is not a valid OperationKind"),
        (lambda: AssignDoc(x, None), ValueError, "expected a value or an annotation"),
        (lambda: IfDoc(x, [], []), ValueError, "expected statements in one of the branches"),
        (lambda: list(x), TypeError, "expected an index, got an iteration"),
        (lambda: to_python_script("x"), TypeError, "expected a Doc, got str"),
    ],
)
def test_errors(make, error, message):
    with pytest.raises(error, match=message):
        make()
