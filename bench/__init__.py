# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: us and installed peers, alternating in one run. `python -m bench --help`."""
