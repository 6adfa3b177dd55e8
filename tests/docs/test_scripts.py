# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/scripts run: the kinds of scripts people have."""

import pathlib
import runpy

import pytest

FOLDER = pathlib.Path(__file__).parents[2] / "examples" / "scripts"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_script(path):
    runpy.run_path(str(path), run_name="script")["main"]()
