# SPDX-License-Identifier: Apache-2.0
"""Functions and their attributes."""

from enum import IntEnum

import tvm_ffi

from tvm._derive import convert, register_node

from .attrs import DictAttrs
from .expr import RelaxExpr

_own_name = tvm_ffi.get_global_func("ir._OwnName")


class CallingConv(IntEnum):
    DEFAULT = 0
    C_PACKED_FUNC = 1
    DEVICE_KERNEL_LAUNCH = 2


def own_name(key):
    """What the key of an attribute is here: tirx.noalias is tir.noalias."""
    return str(_own_name(key)) if key.startswith(("tirx.", "s_tir.")) else key


def _attribute(value):
    """Attributes are nodes, strings, numbers and containers of them."""
    return convert(value) if isinstance(value, (list, tuple, dict)) else value


@register_node("ir.BaseFunc")
class BaseFunc(RelaxExpr):
    def with_attr(self, attr_key_or_dict, attr_value=None):
        """A copy with one attribute, or those of a dict, set."""
        attrs = attr_key_or_dict
        return self.with_attrs(attrs if isinstance(attrs, dict) else {attrs: attr_value})

    def with_attrs(self, attr_map):
        """A copy with attributes set."""
        attr_map = dict(attr_map.items()) if isinstance(attr_map, DictAttrs) else attr_map
        func = self
        for key, value in attr_map.items():
            func = func._with_attr(own_name(key), _attribute(value))
        return func
