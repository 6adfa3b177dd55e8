# SPDX-License-Identifier: Apache-2.0
"""Operators against NumPy and PyTorch."""
