# SPDX-License-Identifier: Apache-2.0
"""Mutators: one decision of a trace changed."""

from abc import abstractmethod

import tvm_ffi

from tvm import _derive

from ..utils import UserDefined, forward_attributes

_defaults = tvm_ffi.get_global_func("meta_schedule._default_mutators")


@_derive.register_node("meta_schedule.Mutator")
class Mutator(_derive.Node):
    """Changes one decision of a trace."""

    @staticmethod
    def create(kind):
        """The mutators for a kind of target ("llvm") and how often each is used."""
        return dict(_defaults(kind).items())


create = Mutator.create


def _class(name):
    return _derive.node_class("meta_schedule." + name, __name__)


MutateComputeLocation = _class("MutateComputeLocation")
MutateParallel = _class("MutateParallel")
MutateThreadBinding = _class("MutateThreadBinding")
MutateTileSize = _class("MutateTileSize")
MutateUnroll = _class("MutateUnroll")
_PyMutator = forward_attributes(_class("PyMutator"))


class PyMutator(UserDefined):
    """Base of user-defined mutators."""

    _key = "meta_schedule.PyMutator"

    @abstractmethod
    def apply(self, trace, seed):
        """A trace with one decision changed, or None."""
        raise NotImplementedError
