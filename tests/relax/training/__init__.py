# SPDX-License-Identifier: Apache-2.0
"""Losses, optimizers, trainers."""
