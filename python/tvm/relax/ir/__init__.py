# SPDX-License-Identifier: Apache-2.0
"""Instruments for passes over graphs."""

from . import instrument
