# SPDX-License-Identifier: Apache-2.0
"""Every test of this folder runs with each code generator for the host; one that takes `target`
also with and without the newer instructions."""

import inspect
import sys
from pathlib import Path

import pytest
import tvm
import tvm.testing

sys.path.insert(0, str(Path(__file__).parent))
HOSTS = ["llvm", "c"]
VARIANTS = ["llvm", "llvm -mcpu=x86-64", "llvm -mcpu=x86-64-v3", "c"]


def _param(target):
    is_there = tvm.testing.device_enabled(target)
    skip = pytest.mark.skipif(not is_there, reason=f"no code generator for {target} here")
    return pytest.param(target, marks=skip, id=target)


def pytest_generate_tests(metafunc):
    wanted = VARIANTS if "target" in inspect.signature(metafunc.function).parameters else HOSTS
    metafunc.parametrize("target", [_param(t) for t in wanted], indirect=True)


@pytest.fixture(autouse=True)
def target(request, monkeypatch):
    """What `build` of the kernels builds for."""
    import kernels

    monkeypatch.setattr(kernels, "HOST", request.param)
    return request.param
