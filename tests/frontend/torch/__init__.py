# SPDX-License-Identifier: Apache-2.0
"""Importing PyTorch models."""
