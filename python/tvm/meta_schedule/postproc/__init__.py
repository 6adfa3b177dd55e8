# SPDX-License-Identifier: Apache-2.0
"""Postprocessors: what happens to a replayed schedule before it is built."""

from abc import abstractmethod

import tvm_ffi

from tvm import _derive

from ..utils import UserDefined, forward_attributes

_defaults = tvm_ffi.get_global_func("meta_schedule._default_postprocs")


@_derive.register_node("meta_schedule.Postproc")
class Postproc(_derive.Node):
    """Makes a replayed schedule ready to be built, or refuses it."""

    @staticmethod
    def create(kind):
        """The postprocessors for a kind of target: "llvm"."""
        return list(_defaults(kind))


create = Postproc.create


def _class(name):
    return _derive.node_class("meta_schedule." + name, __name__)


DisallowAsyncStridedMemCopy = _class("DisallowAsyncStridedMemCopy")
DisallowDynamicLoop = _class("DisallowDynamicLoop")
RewriteCooperativeFetch = _class("RewriteCooperativeFetch")
RewriteLayout = _class("RewriteLayout")
RewriteParallelVectorizeUnroll = _class("RewriteParallelVectorizeUnroll")
RewriteReductionBlock = _class("RewriteReductionBlock")
RewriteTensorize = _class("RewriteTensorize")
RewriteUnboundBlock = _class("RewriteUnboundBlock")
VerifyGPUCode = _class("VerifyGPUCode")
VerifyVTCMLimit = _class("VerifyVTCMLimit")
_PyPostproc = forward_attributes(_class("PyPostproc"))


class PyPostproc(UserDefined):
    """Base of user-defined postprocessors."""

    _key = "meta_schedule.PyPostproc"

    @abstractmethod
    def apply(self, sch):
        """Changes the schedule; False refuses it."""
        raise NotImplementedError
