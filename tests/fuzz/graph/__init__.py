# SPDX-License-Identifier: Apache-2.0
"""Random graphs: `python -m tests.fuzz.graph`."""
