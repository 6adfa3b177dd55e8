# SPDX-License-Identifier: Apache-2.0
"""The parts of the parser that know no language: source texts, errors, expressions, scopes."""
