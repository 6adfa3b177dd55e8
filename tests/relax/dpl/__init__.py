# SPDX-License-Identifier: Apache-2.0
"""The pattern language."""
