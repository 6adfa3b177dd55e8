# SPDX-License-Identifier: Apache-2.0
"""Schedule rules: ways to schedule a block."""

from abc import abstractmethod
from typing import Any, NamedTuple

import tvm_ffi

from tvm import _derive

from ..utils import UserDefined, forward_attributes, registered

_defaults = tvm_ffi.get_global_func("meta_schedule._default_schedule_rules")


class ReuseType(NamedTuple):
    """Whether ("no", "may", "must"), at which levels and in which memory data is kept for reuse."""

    req: str
    levels: list[int]
    scope: str

    def as_dict(self) -> dict[str, Any]:
        """The same as a dictionary."""
        return {"req": self.req, "levels": self.levels, "scope": self.scope}


@registered("meta_schedule._intrin_extents")
def _intrin_extents(name):
    """The extents of the loops of a tensor intrinsic's description, outermost first."""
    from tvm import tir
    from tvm.tir import tensor_intrin  # which registers those of CPUs

    extents = []

    def visit(node):
        if isinstance(node, tir.For):
            extents.append(int(node.extent))

    tir.stmt_functor.post_order_visit(tir.TensorIntrin.get(name).desc.body, visit)
    return extents[::-1]


@registered("meta_schedule._tensor_core_groups")
def _tensor_core_groups():
    """The intrinsics of the products that matrix units of NVIDIA GPUs compute."""
    from tvm.tir.tensor_intrin import cuda

    types = (("float16", "float32"), ("float16", "float16"), ("int8", "int32"))
    return [
        cuda.get_wmma_intrin_group("shared", "shared", *pair, trans_b)
        for pair in types
        for trans_b in (False, True)
    ]


@registered("meta_schedule._rvv_intrinsics")
def _rvv_intrinsics(target):
    """The dot products of RISC-V's vectors, as long as those of the target, the longest first."""
    from tvm.tir.tensor_intrin import riscv_cpu

    if target is None:
        raise ValueError(
            "meta_schedule: expected a target for the rules 'rvv' (`with target:`), got none"
        )
    return list(riscv_cpu.register_rvv_isa_intrinsics(target))


@_derive.register_node("meta_schedule.ScheduleRule")
class ScheduleRule(_derive.Node):
    """Offers ways to schedule a block."""

    @staticmethod
    def create(kind):
        """The rules for a kind of target: "llvm", "cuda", "hexagon", …; with matrix units
        "cuda-tensorcore", of CPUs with dot products "vnni", "avx512", "dotprod", "asimd" and "rvv"
        (for the current target). Tuning adds rules of its own: see tuning_rules."""
        return list(_defaults(kind, False))


create = ScheduleRule.create


def tuning_rules(kind):
    """The rules that tuning uses for a kind of target when it gets none."""
    return list(_defaults(kind, True))


def _class(name):
    return _derive.node_class("meta_schedule." + name, __name__)


AddRFactor = _class("AddRFactor")
ApplyCustomRule = _class("ApplyCustomRule")
AroundDefault = _class("AroundDefault")
AutoBind = _class("AutoBind")
AutoInline = _class("AutoInline")
CrossThreadReduction = _class("CrossThreadReduction")
InlineConstantScalars = _class("InlineConstantScalars")
MultiLevelTiling = _class("MultiLevelTiling")
MultiLevelTilingTensorCore = _class("MultiLevelTilingTensorCore")
MultiLevelTilingWideVector = _class("MultiLevelTilingWideVector")
MultiLevelTilingWithIntrin = _class("MultiLevelTilingWithIntrin")
ParallelizeVectorizeUnroll = _class("ParallelizeVectorizeUnroll")
RandomComputeLocation = _class("RandomComputeLocation")
RegisterTiling = _class("RegisterTiling")
SpatialTiling = _class("SpatialTiling")
_PyScheduleRule = forward_attributes(_class("PyScheduleRule"))


class PyScheduleRule(UserDefined):
    """Base of user-defined rules."""

    _key = "meta_schedule.PyScheduleRule"

    @abstractmethod
    def apply(self, sch, block):
        """The ways to schedule a block: schedules, the given one where there is none."""
        raise NotImplementedError
