# SPDX-License-Identifier: Apache-2.0
"""Layouts of tensors by letters."""

from tvm._derive import Node, function, register_node

layout = function("tir.layout", __name__)


@register_node("tir.Layout")
class Layout(Node):
    def __len__(self):
        return len(self.axes)

    def __str__(self):
        return str(self.name)

    def __contains__(self, axis):
        return any(a.var.name == axis for a in self.axes)

    def __getitem__(self, index):
        """The letter of a dimension."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"Layout: expected a dimension below {len(self)}, got {index}")
        return str(self.axes[index].var.name)


@register_node("tir.BijectiveLayout")
class BijectiveLayout(Node):
    pass


def bijective_layout(src_layout, dst_layout):
    """The maps between two layouts of the same axes."""
    if isinstance(src_layout, str):
        src_layout = layout(src_layout)
    if isinstance(dst_layout, str):
        dst_layout = layout(dst_layout)
    return BijectiveLayout(src_layout, dst_layout)


# Since 0.27.
SLayout, SBijectiveLayout = Layout, BijectiveLayout
slayout, sbijective_layout = layout, bijective_layout
