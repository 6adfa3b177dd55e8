# SPDX-License-Identifier: Apache-2.0
"""IR core."""

from tvm._derive import Node, fill, register_node  # noqa: F401

__getattr__, __dir__ = fill(__name__)
