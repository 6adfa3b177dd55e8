# SPDX-License-Identifier: Apache-2.0
"""Tests of this folder run where there is a GPU."""

import pytest
import tvm


def pytest_collection_modifyitems(items):
    if not tvm.cuda(0).exist:
        skip = pytest.mark.skip(reason="no NVIDIA GPU here")
        for item in items:
            if "tests/gpu/" in item.nodeid:
                item.add_marker(skip)
