# SPDX-License-Identifier: Apache-2.0
"""Models written in nn."""
