# SPDX-License-Identifier: Apache-2.0
"""Gradients of operators."""
