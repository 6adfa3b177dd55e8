# SPDX-License-Identifier: Apache-2.0
"""Tests of the graph's operators; `database` holds an entry for each of them."""
