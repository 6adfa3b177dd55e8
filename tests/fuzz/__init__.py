# SPDX-License-Identifier: Apache-2.0
"""Random programs: `python -m tests.fuzz`."""
