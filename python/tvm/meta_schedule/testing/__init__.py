# SPDX-License-Identifier: Apache-2.0
"""Parts for tests of tuners."""
