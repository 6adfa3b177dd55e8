# SPDX-License-Identifier: Apache-2.0
"""The page of operators is what the registry gives."""

import importlib.util
import pathlib

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "operators_page.py"


def test_page_is_up_to_date():
    spec = importlib.util.spec_from_file_location("operators_page", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), (
        "run python scripts/operators_page.py"
    )
