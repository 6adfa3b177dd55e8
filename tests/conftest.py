# SPDX-License-Identifier: Apache-2.0
"""What all tests share."""

import os
import signal

import hypothesis
import pytest

# apache-tvm-ffi installs a SIGSEGV handler when it is imported; pytest's, which names the test that
# crashed, is installed after this file has been read.
import tvm_ffi  # noqa: F401

# A shell starts background jobs with Ctrl-C ignored, which every process below would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples every time; `--hypothesis-profile=default` looks for new ones.
hypothesis.settings.register_profile("repeatable", derandomize=True)
hypothesis.settings.load_profile("repeatable")


def pytest_addoption(parser):
    parser.addoption(
        "--update-golden", action="store_true", help="write golden files instead of comparing"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """With TVM_HOST_CPU, tests of structure are about that processor everywhere; those that run its
    code are skipped where this machine lacks its instructions."""
    try:
        return (yield)
    except ValueError as error:
        if os.environ.get("TVM_HOST_CPU") and "on this machine, which lacks" in str(error):
            pytest.skip(str(error))
        raise


@pytest.fixture
def golden(request):
    """`golden("name.txt", text)` compares with the file beside the test, or writes it."""

    def compare(name, text):
        path = request.path.parent / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"{path} is missing: run pytest --update-golden"
        assert text == path.read_text(encoding="utf-8")

    return compare
