# SPDX-License-Identifier: Apache-2.0
"""Serving language models: caches and what they compute."""
