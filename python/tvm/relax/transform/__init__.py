# SPDX-License-Identifier: Apache-2.0
"""Passes over graphs: every registered `relax.transform.X` is a function here that makes it."""

import tvm_ffi

from tvm._derive import Node, construct, fill, function, pass_maker, register_node
from tvm.ir.transform import Pass, _pass_decorator, module_pass
from tvm.relax.expr import values_of_params
from tvm.tir import IndexMap

from .tuning import (
    FewShotTuning,
    MetaScheduleApplyDatabase,
    MetaScheduleTuneIRMod,
    MetaScheduleTuneTIR,
)

__getattr__, __dir__ = fill(__name__)


@register_node("relax.FunctionPass")
class FunctionPass(Pass):
    pass


@register_node("relax.DataflowBlockPass")
class DataflowBlockPass(Pass):
    pass


def _maker(cls):
    def make(func, info):
        return cls(tvm_ffi.convert(lambda program, mod, ctx: func(program, mod, ctx)), info)

    return make


function_pass = _pass_decorator(_maker(FunctionPass))
function_pass.__doc__ = "Makes a pass of a function (func, module, context) -> func or of a class."
dataflowblock_pass = _pass_decorator(_maker(DataflowBlockPass), "transform_dataflowblock")
dataflowblock_pass.__doc__ = (
    "Makes a pass of a function (block, module, context) -> block or of a class."
)

_bind_params = function("relax.transform.BindParams", __name__)


@pass_maker
def BindParams(func_name, params):
    return _bind_params(func_name, values_of_params(params))


BindParams.__doc__ = _bind_params.__doc__
_fuse_ops_by_pattern = function("relax.transform.FuseOpsByPattern", __name__)


@register_node("relax.transform.FusionPattern")
class FusionPattern(Node):
    """A pattern for a backend: "backend.what", the pattern, the names of its parts, and
    `check(PatternCheckContext) -> bool`; `attrs_getter({name: expression})` gives attributes of the
    function that a match becomes."""

    def __init__(self, name, pattern, annotation_patterns=None, check=None, attrs_getter=None):
        construct(self, name, pattern, annotation_patterns or {}, check, attrs_getter)


@pass_maker
def FuseOpsByPattern(patterns, bind_constants=True, annotate_codegen=False, entry_functions=None):
    patterns = [p if isinstance(p, FusionPattern) else FusionPattern(*p) for p in patterns]
    return _fuse_ops_by_pattern(patterns, bind_constants, annotate_codegen, entry_functions)


FuseOpsByPattern.__doc__ = _fuse_ops_by_pattern.__doc__
_alter_op_impl = function("relax.transform.AlterOpImpl", __name__)


@pass_maker
def AlterOpImpl(
    op_impl_map,
    op_buffer_transforms,
    op_buffer_axis_separators=None,
    op_buffer_input_axis_separators=None,
):
    maps, separators = {}, dict(op_buffer_axis_separators or {})
    for name, transforms in op_buffer_transforms.items():
        given = separators.get(name) or [None] * len(transforms)
        maps[name], separators[name] = [], list(given)
        for i, transform in enumerate(transforms):
            if callable(transform):
                transform, found = IndexMap.from_func_with_separators(transform)
                separators[name][i] = separators[name][i] or found
            maps[name].append(transform)
    return _alter_op_impl(op_impl_map, maps, separators, op_buffer_input_axis_separators or {})


AlterOpImpl.__doc__ = _alter_op_impl.__doc__


@pass_maker
@module_pass(opt_level=0, name="AttachExternModules")
class AttachExternModules:
    """The external modules of a model become modules that its executable imports."""

    def __init__(self, extern_modules):
        self.extern_modules = list(extern_modules)

    def transform_module(self, mod, ctx):
        loaded = [extern.load() for extern in self.extern_modules]
        attached = (mod.attrs or {}).get("external_mods", [])
        return mod.with_attr("external_mods", [*attached, *loaded]) if loaded else mod
