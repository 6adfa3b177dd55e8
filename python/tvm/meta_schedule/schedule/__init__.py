# SPDX-License-Identifier: Apache-2.0
"""Functions that schedule blocks which ask for them by name ("schedule_rule")."""

from . import cuda
