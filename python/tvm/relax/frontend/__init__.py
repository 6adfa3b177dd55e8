# SPDX-License-Identifier: Apache-2.0
"""Models of other frameworks as programs of the graph language."""

from tvm._derive import fill

from .common import detach_params

__getattr__, __dir__ = fill(__name__)
