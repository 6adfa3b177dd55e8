# SPDX-License-Identifier: Apache-2.0
"""The table of spellings of other versions: it is current, and each row is true."""

import importlib
import sys
from pathlib import Path

import pytest
import tvm
import tvm_ffi
from tvm.script import tir as T

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import spellings_page

NAMES = {"tvm": tvm, "tvm_ffi": tvm_ffi, "T": T, "importlib": importlib}


def test_page_is_current():
    assert spellings_page.PAGE.read_text() == spellings_page.page(), "run scripts/spellings_page.py"


@pytest.mark.parametrize("row", spellings_page.ROWS, ids=lambda row: row[0])
def test_row(row):
    _, _, here, expression = row
    if here != "error":
        assert eval(expression, NAMES)
        return
    with pytest.raises(AttributeError, match="write|tunes|lowers"):
        eval(expression, NAMES)
