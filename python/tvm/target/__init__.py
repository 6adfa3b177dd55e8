# SPDX-License-Identifier: Apache-2.0
"""Targets: what code is generated for."""

from tvm._derive import fill

from . import codegen
from .tag import list_tags, register_tag
from .target import (
    Target,
    TargetFeatures,
    TargetKind,
    adreno,
    arm_cpu,
    bifrost,
    create,
    cuda,
    hexagon,
    intel_graphics,
    mali,
    rasp,
    riscv_cpu,
    rocm,
    stm32,
)
from .virtual_device import VirtualDevice

__getattr__, __dir__ = fill(__name__)
