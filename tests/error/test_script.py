# SPDX-License-Identifier: Apache-2.0
"""Errors in scripts show the file, the line, the text and what was expected."""

import pytest
from tvm.error import DiagnosticError
from tvm.script import from_source
from tvm.script import tir as T

HEAD = "@T.prim_func\ndef main(A: T.Buffer((8,), 'float32'), n: T.int32):\n"
CASES = {
    # body of the function: (the marked text, part of the message)
    "A[i] = 1.0": ("i", "undefined name 'i'"),
    "A[0] = m": ("m", "undefined name 'm'"),
    "A[0] = T.expp(n)": ("T.expp", "did you mean 'exp"),
    "A[0, 1] = 1.0": ("A[0, 1] = 1.0", "expected 1 indices, got 2"),
    "A[0] = T.exp(A[0], A[1], 3, 4)": ("T.exp(A[0], A[1], 3, 4)", "TypeError"),
    "A[0] = T.Broadcast(n, 4)": ("A[0] = T.Broadcast(n, 4)", "expected"),
    "x: T.float32 = n": ("x: T.float32 = n", "expected a value of type float32"),
    "x: 3 = n": ("3", "expected a type such as T.int32"),
    "try:\n        pass\n    finally:\n        pass": ("try:", "got Python's Try"),
    "import os": ("import os", "expected no imports beside tvm.script, got 'os'"),
    "vi = T.axis.spatial(8, n)": ("T.axis.spatial(8, n)", "expected to be inside a block"),
    "T.reads(A[0])": ("T.reads(A[0])", "expected to be inside a block"),
    "for i in n:\n        pass": ("n", "expected a loop such as range(n)"),
    "for i, j in T.grid(1, 2, 3):\n        pass": ("i, j", "expected 2 values, got 3"),
    "with T.block('b'):\n        T.where(n < 1)\n        T.where(n < 2)": (
        "T.where(n < 2)",
        "got twice",
    ),
    "with T.block('b'):\n        v = T.axis.remap('S', [n])": (
        "T.axis.remap('S', [n])",
        "expected the variable of a loop",
    ),
    "with n:\n        pass": ("n", "expected a frame such as T.block"),
    "with T.init():\n        pass": ("with T.init():", "expected to be inside a block"),
    "while A[0]:\n        pass": ("while A[0]:", "expected a bool condition, got float32"),
    "lambda_ = (yield n)": ("yield n", "expected an expression of TVMScript, got Python's Yield"),
    "T.evaluate(n / 2)": ("n / 2", "truncdiv"),
    "T.func_attr({'a': 1})\n    T.func_attr({'b': 1})": ("T.func_attr({'b': 1})", "got twice"),
    "'text'.format(n)": ("'text'.format", "expected a public attribute"),
    "n.__class__": ("n.__class__", "expected a public attribute"),
    "T.Buffer((-1,), 'float32')": ("T.Buffer((-1,), 'float32')", "not negative"),
    "B = T.match_buffer(n, (1,), 'nonsense')": ("T.match_buffer(n, (1,), 'nonsense')", "nonsense"),
    "def f():\n        pass": ("def f():", "expected @T.macro"),
    "T.allocate([4], 'float32', 'global', A[0])": ("T.allocate", "expected a bool condition"),
    # types that do not fit
    "A[0] = A[0] + 'text'": ("A[0] + 'text'", "TypeError"),
    "A[A[0]] = 1.0": ("A[A[0]] = 1.0", "expected"),
    "if A[0]:\n        pass": ("if A[0]:", "expected a bool condition, got float32"),
    "A[0] = T.Add(A[0], n)": ("T.Add(A[0], n)", "expected"),
    # axes
    "with T.block('b'):\n        A[0] = 1.0\n        v = T.axis.spatial(8, n)": (
        "T.axis.spatial(8, n)",
        "axis: expected before the statements of the block",
    ),
    "for i in range(8):\n        with T.block('b'):\n            v = T.axis.remap('X', [i])": (
        "T.axis.remap('X', [i])",
        "expected 'S' or 'R', got 'X'",
    ),
    "for i in range(8):\n        with T.block('b'):\n            v = T.axis.remap('SS', [i])": (
        "T.axis.remap('SS', [i])",
        "expected 2 loop variables, got 1",
    ),
    "with T.block('b'):\n        v = T.axis.spatial(8, None)": (
        "T.axis.spatial(8, None)",
        "expected a value for the iterator",
    ),
    "for i in range(8):\n        with T.block('b'):\n            v = T.axis.spatial(8, i)\n"
    "            A[v] = 1.0\n        A[v] = 2.0": ("v", "undefined name 'v'"),
    "with T.block('b'):\n        v, w = T.axis.remap('S', [n])": (
        "T.axis.remap('S', [n])",
        "expected the variable of a loop",
    ),
    # what is only seen in the whole program
    "with T.block('b', no_realize=True):\n        A[0] = 1.0": (
        "with T.block('b', no_realize=True):",
        "block b has no realization",
    ),
    "B = T.Buffer((8,), 'float32')\n    A[0] = B[1]": (
        "A[0] = B[1]",
        "Invalid use of undefined variable B",
    ),
    "x = T.int32()\n    A[x] = 1.0": ("A[x] = 1.0", "Invalid use of undefined variable x"),
}


@pytest.mark.parametrize(
    "body", ["B = T.alloc_buffer((8,))", "B = T.Buffer((8,), data=T.allocate([8], 'float32'))"]
)
def test_strange_programs_get_a_warning(body):
    if "allocate" in body:
        body = "p = T.allocate([8], 'float32')\n    B = T.Buffer((8,), data=p)"
    with pytest.warns(SyntaxWarning, match="buffer B is read although nothing writes it"):
        from_source(HEAD + "    " + body + "\n    A[0] = B[1]\n")


@pytest.mark.parametrize("body", CASES)
def test_error_points_at_the_place(body):
    marked, message = CASES[body]
    with pytest.raises(DiagnosticError) as caught:
        from_source(HEAD + "    " + body + "\n")
    text = str(caught.value)
    assert message in text, text
    lines = text.splitlines()
    shown = next(i for i, line in enumerate(lines) if "-->" in line)
    assert "<string>:" in lines[shown]
    source, marks = lines[shown + 2], lines[shown + 3]
    assert marked in source, text
    begin, end = marks.index("^"), marks.rindex("^") + 1
    assert source[begin:end].startswith(marked.split("\n")[0][: end - begin]), text


def test_error_syntax():
    with pytest.raises(DiagnosticError, match=r"expected Python syntax") as caught:
        from_source(HEAD + "    A[0] = = 1\n")
    assert "<string>:3:" in str(caught.value) and "A[0] = = 1" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def main():\n    pass", "expected a decorator such as @R.function or @T.prim_func"),
        ("class M:\n    pass", "expected the class M to be decorated with @I.ir_module"),
        ("x = 1", "expected a function or a module"),
        ("@T.prim_func\ndef f(A):\n    pass", "expected a type for parameter A"),
        ("@T.prim_func\ndef f(A: T.int32, A: T.int32):\n    pass", "got 'A' twice"),
        ("@T.prim_func(foo=1)\ndef f():\n    pass", "unknown option 'foo'"),
        ("@T.prim_func\ndef f(*a: T.int32):\n    pass", "expected plain parameters"),
        ("@I.ir_module\nclass M:\n    def f(self): pass", "expected a decorator"),
        (
            "@I.ir_module\nclass M:\n    @T.prim_func\n    def f():\n        cls.g()",
            "expected a function of the module, got 'g'",
        ),
        (
            "@I.ir_module\nclass M:\n    @T.prim_func\n    def f():\n        cls.f(1)",
            "expected 0 arguments, got 1",
        ),
        (
            "@I.ir_module\nclass M:\n    @T.prim_func\n    def f(): pass\n"
            "    @T.prim_func\n    def f(): pass",
            "got 'f' twice",
        ),
        ("open('x')", "undefined name 'open'"),
        ("__import__('os')", "undefined name '__import__'"),
        ("eval('1')", "undefined name 'eval'"),
        ("().__class__.__base__", "expected a public attribute"),
        ("T.inspect", "expected"),
        ("import os", "expected no imports"),
        (
            "@T.prim_func\ndef f(): T.evaluate(" + "(" * 300 + "1" + ")" * 300 + ")",
            "expected Python syntax",
        ),
    ],
)
def test_error_text(text, message):
    with pytest.raises(DiagnosticError) as caught:
        from_source(text)
    assert message in str(caught.value), str(caught.value)


def test_error_in_python_function_shows_its_file():
    with pytest.raises(DiagnosticError) as caught:

        @T.prim_func
        def func(A: T.Buffer((8,), "float32")):
            A[0] = undefined_name  # noqa: F821

    text = str(caught.value)
    assert (
        "test_script.py:" in text and "A[0] = undefined_name" in text and "^^^^^^^^^^^^^^" in text
    )


def test_error_in_macro_shows_the_macro():
    @T.macro
    def store(A):
        A[0] = missing  # noqa: F821

    with pytest.raises(DiagnosticError) as caught:

        @T.prim_func
        def func(A: T.Buffer((8,), "float32")):
            store(A)

    assert "A[0] = missing" in str(caught.value)


def test_error_options():
    func = from_source("@T.prim_func\ndef f():\n    pass")
    with pytest.raises(ValueError, match="expected indent_spaces between 1 and 64, got 0"):
        func.script(indent_spaces=0)
    with pytest.raises(TypeError):
        func.script(unknown=1)


def test_deep_programs():
    """A sum of 9,000 terms prints and parses (Python 3.12 reads 10,000 at most); nesting deeper
    than Python reads is an error."""
    from tvm import tir

    x = tir.Var("x", "int32")
    value = x
    for _ in range(9_000):
        value = value + x
    func = tir.PrimFunc([x], tir.Evaluate(value), None, None, {"global_symbol": "main"})
    again = from_source(func.script())
    assert again.script() == func.script()
    stmt = tir.Evaluate(0)
    for _ in range(10_000):
        stmt = tir.IfThenElse(x < 3, stmt)
    deep = tir.PrimFunc([x], stmt, None, None, {"global_symbol": "main"})
    text = deep.script(indent_spaces=1)
    assert text.count("if x < 3:") == 10_000
    with pytest.raises(DiagnosticError, match="too many levels of indentation|too deep"):
        from_source(text)
