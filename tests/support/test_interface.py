# SPDX-License-Identifier: Apache-2.0
"""Every public name of the package, with its parameters and defaults; and the old homes."""

import enum
import importlib
import inspect
import re
from pathlib import Path

import pytest

FILE = Path(__file__).with_name("interface.txt")


def entries():
    """(module, line) of each entry."""
    module = None
    for line in FILE.read_text().splitlines():
        if line.startswith("## "):
            module = line[3:].strip()
        elif line and not line.startswith("#"):
            yield module, line


ENTRIES = list(entries())


def find(module, dotted):
    value = importlib.import_module(module)
    for name in dotted.split("."):
        value = getattr(value, name)
    return value


def signature_of(text):
    """inspect.Signature of `(a, b=1, *, c=None) -> x`."""
    scope = {}
    exec(f"def f{re.sub(r' *->.*', '', text)}: pass", scope)
    return inspect.signature(scope["f"])


def public(signature):
    """(name, kind, default) of each; those of our own are keyword-only and come on top."""
    return [(p.name, p.kind, p.default) for p in signature.parameters.values()]


@pytest.mark.parametrize("module, line", ENTRIES, ids=lambda text: text.strip())
def test_entry(module, line):
    text = line.split("  #")[0].strip()
    if match := re.fullmatch(r"def ([\w.]+)(\(.*)", text):
        name, expected = match.group(1), public(signature_of(match.group(2)))
        kind = line.partition("#")[2]
        if "property" in kind:
            assert isinstance(find(module, name), property)
            return
        got = public(inspect.signature(find(module, name)))
        if "classmethod" in kind:
            expected = expected[1:]
        extra = [entry for entry in got if entry not in expected]
        assert [entry for entry in got if entry in expected] == expected
        assert all(kind is inspect.Parameter.KEYWORD_ONLY for _, kind, _ in extra)
    elif match := re.fullmatch(r"class (\w+)\((.*)\)", text):
        value = find(module, match.group(1))
        base = match.group(2)
        assert inspect.isclass(value)
        if base == "IntEnum":
            assert issubclass(value, enum.IntEnum)
        elif base == "Exception":
            assert issubclass(value, Exception)
        elif base.startswith("namedtuple"):
            assert list(value._fields) == re.findall(r"'(\w+)'", base)[1:]
    else:
        name, _, value = text.partition(" = ")
        assert hasattr(importlib.import_module(module), name.split(".")[0])
        if value.isdigit():
            assert find(module, name) == int(value)
        else:  # fcntl, where there is one; the set of folders
            find(module, name)


def test_the_whole_list_is_walked():
    assert len(ENTRIES) == 91 and len({module for module, _ in ENTRIES}) == 12


@pytest.mark.parametrize("name", "cc clang emcc ndk nvcc popen_pool rocm tar utils xcode".split())
def test_old_homes_are_the_same_modules(name):
    old = importlib.import_module(f"tvm.contrib.{name}")
    assert old is importlib.import_module(f"tvm.support.{name}")
    assert getattr(importlib.import_module("tvm.contrib"), name) is old
