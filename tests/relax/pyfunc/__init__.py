# SPDX-License-Identifier: Apache-2.0
"""Python functions in modules."""
