# SPDX-License-Identifier: Apache-2.0
"""Every public name of the package, with its parameters and defaults; and the old homes."""

import enum
import importlib
import inspect
import re
from pathlib import Path

import pytest

FILES = sorted(Path(__file__).parents[1].glob("*/interface.txt"))


def entries(file):
    """(module, line) of each entry."""
    module = None
    for line in file.read_text().splitlines():
        if line.startswith("## "):
            module = line[3:].strip()
        elif line and not line.startswith("#"):
            yield module, line


ENTRIES = [entry for file in FILES for entry in entries(file)]


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


def accepts(got, expected):
    """Whether a parameter can be given as expected; it may be given in more ways, or left out."""
    same_kind = got[1] is expected[1] or expected[1] is inspect.Parameter.KEYWORD_ONLY
    same_default = got[2] == expected[2] or expected[2] is inspect.Parameter.empty
    return got[0] == expected[0] and same_kind and same_default


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
        known = [entry for entry in got if entry[0] in {name for name, _, _ in expected}]
        assert len(known) == len(expected)
        assert all(accepts(a, b) for a, b in zip(known, expected, strict=True)), got
        extra = [entry for entry in got if entry not in known]
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
    by_folder = {file.parent.name: list(entries(file)) for file in FILES}
    counts = {name: (len(e), len({m for m, _ in e})) for name, e in by_folder.items()}
    assert counts == {"schedule": (331, 41), "support": (91, 12)}


@pytest.mark.parametrize("name", "cc clang emcc ndk nvcc popen_pool rocm tar utils xcode".split())
def test_old_homes_are_the_same_modules(name):
    old = importlib.import_module(f"tvm.contrib.{name}")
    assert old is importlib.import_module(f"tvm.support.{name}")
    assert getattr(importlib.import_module("tvm.contrib"), name) is old
