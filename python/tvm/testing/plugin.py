# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest, `pytest_plugins = ["tvm.testing.plugin"]`: markers of features, and `target`
and `dev` of tests that ask for them."""

import pytest

import tvm

from .features import device_enabled
from .parametrize import DEFAULT_TEST_TARGETS, enabled_targets

MARKERS = {
    name: f"mark a test as requiring {name}"
    for name in (
        "gpu tensorcore cuda opencl rocm vulkan metal llvm hexagon rpc nvptx cudnn cublas vta_fsim "
        "adreno_clml"
    ).split()
}


def pytest_configure(config):
    """Makes the markers known."""
    for name, text in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {text}")


def pytest_addoption(parser):
    """--gtest_args, for tests that run programs of C++."""
    parser.addoption("--gtest_args", action="store", default="")


def pytest_generate_tests(metafunc):
    """Tests that take a target run for each that is enabled, unless they say which."""
    if "target" not in metafunc.fixturenames:
        return
    given = [
        name.strip()
        for mark in metafunc.definition.iter_markers("parametrize")
        for name in (mark.args[0].split(",") if isinstance(mark.args[0], str) else mark.args[0])
    ]
    if "target" in given or metafunc._arg2fixturedefs.get("target"):
        return
    targets = [str(target) for target, _ in enabled_targets()] or DEFAULT_TEST_TARGETS[:1]
    params = [
        pytest.param(
            target,
            marks=pytest.mark.skipif(
                not device_enabled(target), reason=f"{target} does not run here"
            ),
        )
        for target in targets
    ]
    metafunc.parametrize("target", params, scope="session")


@pytest.fixture
def dev(target):
    """The device of a target."""
    kind = target.kind.name if isinstance(target, tvm.target.Target) else target.split()[0]
    return tvm.device(str(kind))
