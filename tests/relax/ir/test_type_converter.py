# SPDX-License-Identifier: Apache-2.0
"""args_converter."""

from typing import List, Optional  # noqa: UP035

import pytest
from tvm import relax
from tvm.relax import Expr, args_converter


def test_arguments_by_name():
    @args_converter.to_expr("a")
    def f(a, b=None):
        return a, b

    a, b = f(1, 2)
    assert isinstance(a, relax.PrimValue) and b == 2

    @args_converter.to_list_expr("items")
    def g(items):
        return items

    assert [type(i).__name__ for i in g([1, "x"])] == ["PrimValue", "StringImm"]
    with pytest.raises(TypeError, match="expected a list or a tuple for 'items', got int"):
        g(1)
    with pytest.raises(ValueError, match="expected a parameter of 'h', got 'z'"):

        @args_converter.to_expr("z")
        def h(a):
            return a


def test_arguments_by_annotation():
    @args_converter.auto
    def f(a: Expr, b: List[Expr], c: Optional[Expr] = None, *rest: Expr, k: int = 0):  # noqa: UP006, UP045
        return a, b, c, rest, k

    a, b, c, rest, k = f((1, 2), [3], None, 4, k=5)
    assert isinstance(a, relax.Tuple) and isinstance(b[0], relax.PrimValue) and c is None
    assert isinstance(rest[0], relax.PrimValue) and k == 5
