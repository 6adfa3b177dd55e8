# SPDX-License-Identifier: Apache-2.0
"""Attributes of functions, modules and calls."""

from tvm._derive import Node, construct, make_node, register_node  # noqa: F401


@register_node("ir.Attrs")
class Attrs(Node):
    def __getitem__(self, item):
        return getattr(self, item)

    def get_int(self, key):
        return int(self[key])

    def get_str(self, key):
        return str(self[key])

    def get_int_tuple(self, key):
        return tuple(int(x) for x in self[key])


@register_node("ir.DictAttrs")
class DictAttrs(Attrs):
    def __init__(self, dict=None, **kwargs):
        construct(self, {**(dict or {}), **kwargs})

    def keys(self):
        return self.dict.keys()

    def items(self):
        return self.dict.items()

    def get(self, key, default=None):
        return self.dict.get(key, default)

    def __getitem__(self, key):
        return self.dict[key]

    def __contains__(self, key):
        return key in self.dict

    def __len__(self):
        return len(self.dict)

    def __iter__(self):
        return iter(self.dict)

    def __getattr__(self, name):
        if name[:2] != "__" and name != "dict" and name in self.dict:
            return self.dict[name]
        return super().__getattr__(name)
