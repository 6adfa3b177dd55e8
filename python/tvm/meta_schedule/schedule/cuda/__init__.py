# SPDX-License-Identifier: Apache-2.0
"""Those for GPUs."""

from . import layout_transform
