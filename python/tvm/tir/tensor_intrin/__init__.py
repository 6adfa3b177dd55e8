# SPDX-License-Identifier: Apache-2.0
"""Intrinsics for `Schedule.tensorize`: importing a module registers those of one kind of CPU."""

from . import arm_cpu, dot_product_common, riscv_cpu, x86

__all__ = ["arm_cpu", "dot_product_common", "riscv_cpu", "x86"]
