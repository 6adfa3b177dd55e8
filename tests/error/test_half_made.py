# SPDX-License-Identifier: Apache-2.0
"""Objects without a value, which would end the process, are not made."""

import inspect

import pytest
import tvm
from tvm import meta_schedule as ms
from tvm import relax, tir

CLASSES = [
    tir.Var,
    tir.Add,
    tir.Schedule,
    tir.PrimFunc,
    tir.Buffer,
    tvm.IRModule,
    tvm.arith.Analyzer,
    tvm.transform.PassContext,
    relax.Var,
    relax.BlockBuilder,
    ms.Database,
    tvm.ir.Node,
]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_new_alone_is_refused(cls):
    with pytest.raises(TypeError, match=rf"{cls.__name__}.__new__: expected a call of"):
        cls.__new__(cls)
    with pytest.raises(TypeError, match="the object would have no value"):
        cls.__new__(cls, 1, name="x")
    with pytest.raises(AttributeError, match="cannot be set"):
        cls.__new__ = None


def test_classes_are_as_before():
    class Mine(relax.PyExprVisitor):
        def __new__(cls, *args):
            return super().__new__(cls)

    assert isinstance(Mine(), Mine)
    assert list(inspect.signature(tir.Add).parameters) == ["a", "b", "span"]
    assert list(inspect.signature(relax.Var).parameters) == ["name_hint", "struct_info", "span"]
