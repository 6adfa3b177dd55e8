# SPDX-License-Identifier: Apache-2.0
"""Names of older versions of the interface say what takes their place."""

import importlib

import pytest
import tvm
from tvm import _aliases


@pytest.mark.parametrize("name", _aliases.GONE)
def test_attribute_and_import(name):
    module, _, attr = name.rpartition(".")
    advice = _aliases.GONE[name].split("(")[0]
    owner = importlib.import_module(module)
    assert not hasattr(owner, attr)
    with pytest.raises(AttributeError, match=f"'{attr}': {advice}"):
        getattr(owner, attr)
    with pytest.raises(ModuleNotFoundError, match=f"'{name}': {advice}"):
        importlib.import_module(name)
    with pytest.raises(ImportError, match=advice):
        exec(f"from {module} import {attr}")


def test_submodules_count_as_names():
    with pytest.raises(AttributeError, match="did you mean 'transform'"):
        tvm.tir.transfrom  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean 'compute'"):
        tvm.te.compte  # noqa: B018
    assert tvm.contrib.utils is tvm.support.utils
