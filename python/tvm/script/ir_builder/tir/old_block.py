# SPDX-License-Identifier: Apache-2.0
"""Blocks as version 0.8 writes them, with their iterators in a list:

with T.block([16, T.reduce_axis(0, 8)], "C") as [vi, vk]:
    T.bind(vi, i)
    T.bind(vk, k)

Without T.bind the block gets loops of its own.
"""

from tvm import tir
from tvm.tir import IterVar, Var

from . import frame
from .frame import IRBuilder, add, range_of


class _Axis:
    def __init__(self, dom, kind):
        self.dom, self.kind = dom, kind


def _axis(kind):
    return lambda begin, end: _Axis(range_of((begin, end)), kind)


reduce_axis = _axis(IterVar.CommReduce)
scan_axis = _axis(IterVar.Ordered)
opaque_axis = _axis(IterVar.Opaque)


class OldBlockFrame(frame.BlockFrame):
    """A block whose iterators come before their values."""

    def __init__(self, axes, name):
        super().__init__(name, False)
        for axis in axes:
            if not isinstance(axis, _Axis):
                axis = _Axis(range_of(axis), IterVar.DataPar)
            var = Var("", axis.dom.extent.dtype)  # named by `as`
            self.iter_vars.append(IterVar(axis.dom, var, axis.kind))
        self.iter_values = [None] * len(axes)

    def __enter__(self):
        super().__enter__()
        return [iv.var for iv in self.iter_vars]

    def bind(self, var, value):
        for i, iv in enumerate(self.iter_vars):
            if iv.var.same_as(var):
                self.iter_values[i] = tir.convert(value)
                return
        raise ValueError(f"bind: expected an iterator of block {self.name}, got {var}")

    def _finish(self):
        values = zip(self.iter_vars, self.iter_values, strict=True)
        unbound = [iv for iv, value in values if value is None]
        if not unbound:
            return super()._finish()
        if len(unbound) != len(self.iter_vars):
            raise ValueError(f"block: expected T.bind of {unbound[0].var.name}, or of no iterator")
        loops = [Var(f"i{i}", iv.var.dtype) for i, iv in enumerate(self.iter_vars)]
        self.iter_values = list(loops)
        stmt = self.realize()
        for var, iv in reversed(list(zip(loops, self.iter_vars, strict=True))):
            stmt = tir.For(var, iv.dom.min, iv.dom.extent, tir.ForKind.SERIAL, stmt)
        add(stmt)


def bind(iter_var, expr):
    """The value of an iterator of a block that has its iterators in a list."""
    owner = IRBuilder.current().find(frame.BlockFrame)
    if not isinstance(owner, OldBlockFrame):
        raise ValueError("bind: expected to be in a block with its iterators in a list")
    owner.bind(iter_var, expr)
