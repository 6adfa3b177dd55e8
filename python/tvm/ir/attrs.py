# SPDX-License-Identifier: Apache-2.0
"""Attributes of functions, modules and calls."""

from tvm._derive import Node, register_node


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
    def _dict(self):
        return object.__getattribute__(self, "__dict__")

    def keys(self):
        return self._dict().keys()

    def items(self):
        return self._dict().items()

    def get(self, key, default=None):
        return self._dict().get(key, default)

    def __getitem__(self, key):
        return self._dict()[key]

    def __contains__(self, key):
        return key in self._dict()

    def __len__(self):
        return len(self._dict())

    def __iter__(self):
        return iter(self._dict())

    def __getattr__(self, name):
        if name[:2] != "__" and name in self._dict():
            return self._dict()[name]
        return super().__getattr__(name)
