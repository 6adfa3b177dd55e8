# SPDX-License-Identifier: Apache-2.0
"""A language outside the project's own folders prints, parses, gets a pass and is built like any
other."""

import importlib.util
import pathlib
import sys

import pytest
import tvm
import tvm_ffi
from tvm import _libs
from tvm.error import DiagnosticError
from tvm.script import from_source
from tvm.script import ir as I
from tvm.script import tir as T

HERE = pathlib.Path(__file__).parent
TEXT = """\
# from tvm.script import ir as I
# from tvm.script import tir as T
# from tvm.script import toy as Y

@I.ir_module
class Module:
    @Y.recipe
    def twice():
        cls = Module
        Y.mul(2)

    @T.prim_func
    def zero(A: T.Buffer((1,), "float32")):
        A[0] = T.float32(0.0)

    @Y.recipe
    def main():
        cls = Module
        Y.add(1)
        Y.add(2)
        Y.call(cls.twice)"""
Y = None  # the language


@pytest.fixture(scope="module", autouse=True)
def toy(tmp_path_factory):
    """Compiles and loads the language: one library, one Python module."""
    global Y
    library = tmp_path_factory.mktemp("toy") / "toy.so"
    libraries = [str(_libs.find(name)) for name in ("tvm", "tvm_runtime")]
    options = ["-std=c++20", "-O0", "-Wno-invalid-offsetof"]
    tvm.support.cc.create_shared(str(library), [str(HERE / "language.cc"), *libraries], options)
    tvm_ffi.load_module(str(library), keep_module_alive=True).get_function("Init")()
    spec = importlib.util.spec_from_file_location("toy_language", HERE / "language.py")
    Y = sys.modules["toy_language"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(Y)


def test_parses_from_python_and_prints():
    @I.ir_module
    class Module:
        @Y.recipe
        def main():
            cls = Module
            Y.add(1)
            Y.add(2)
            Y.call(cls.twice)

        @Y.recipe
        def twice():
            Y.mul(2)

        @T.prim_func
        def zero(A: T.Buffer((1,), "float32")):
            A[0] = T.float32(0.0)

    assert Module.script() == TEXT


def test_printed_text_parses_back():
    module = from_source(TEXT)
    assert module.script() == TEXT
    tvm.ir.assert_structural_equal(from_source(TEXT), module)
    recipe = from_source("@Y.recipe\ndef main():\n    Y.add(3)")
    tvm.ir.assert_structural_equal(from_source(recipe.script()), recipe)


def test_a_pass_changes_its_functions_only():
    join = tvm.get_global_func("toy.transform.JoinAdditions")()
    after = join(from_source(TEXT))
    expected = TEXT.replace("Y.add(1)\n        Y.add(2)", "Y.add(3)")
    tvm.ir.assert_structural_equal(after, from_source(expected))


@tvm.testing.requires_llvm
def test_functions_are_built():
    lib = tvm.build(from_source(TEXT), target="llvm")
    assert lib["main"](4) == (4 + 1 + 2) * 2 and lib["twice"](21) == 42
    assert tvm.compile(from_source(TEXT), target="llvm")["twice"](4) == 8
    loop = from_source(TEXT.replace("Y.mul(2)", "Y.call(cls.main)"))
    with pytest.raises(ValueError, match="expected recipes that do not call themselves"):
        tvm.build(loop, target="llvm")


def test_errors_show_the_place():
    with pytest.raises(DiagnosticError, match=r"expected a step such as Y.add\(1\)[^$]*:4:5"):
        from_source("@Y.recipe\ndef main():\n    Y.add(1)\n    3")
    with pytest.raises(DiagnosticError, match="expected a statement of @Y.recipe, got .*While"):
        from_source("@Y.recipe\ndef main():\n    while True:\n        pass")


def test_wellformedness_is_the_languages():
    text = "@Y.recipe\ndef main():\n    Y._step('divide')(1)"
    with pytest.raises(DiagnosticError, match="expected add, mul or call, got 'divide'"):
        from_source(text.replace("Y._step('divide')", "divide"), {"divide": Y._step("divide")})
