# SPDX-License-Identifier: Apache-2.0
"""Numbers and lists in README.md and docs/ are those of the sources."""

import pathlib
import re

import pytest
import tvm

ROOT = pathlib.Path(__file__).parents[2]


def text(*paths):
    return "\n".join((ROOT / p).read_text(encoding="utf-8") for p in paths)


def sources(*folders):
    paths = [p for folder in folders for p in sorted((ROOT / folder).rglob("*"))]
    return "\n".join(
        p.read_text(encoding="utf-8") for p in paths if p.suffix in (".cc", ".h", ".py")
    )


def test_number_of_primitives():
    registered = re.findall(r'\bDefPrimitive\(\s*"', sources("src/schedule/primitive"))
    (claimed,) = re.findall(r"(\d+) primitives", text("README.md"))
    assert int(claimed) == len(registered)


def test_number_of_onnx_operators():
    onnx = pytest.importorskip("onnx")
    from tvm.relax.frontend.onnx import inspect

    names = sorted({s.name for s in onnx.defs.get_all_schemas() if s.domain == ""})
    nodes = [onnx.helper.make_node(name, [], [name]) for name in names]
    graph = onnx.helper.make_graph(nodes, "all", [], [])
    unsupported = inspect(onnx.helper.make_model(graph)).count("(not supported")
    (claimed,) = re.findall(r"(\d+) of the (\d+) operators of ai.onnx", text("README.md"))
    assert tuple(map(int, claimed)) == (len(names) - unsupported, len(names))


def test_every_environment_variable_is_documented():
    code = sources("src", "python/tvm")
    read = set(re.findall(r'(?:getenv\(|environ(?:\.get\(|\[))"(TVM_\w+)"', code))
    documented = set(re.findall(r"`(TVM_\w+)`", text("docs/overview.md")))
    assert len(read) > 5, "expected to find variables in the sources"
    assert read <= documented
    unread = documented - set(re.findall(r'"(TVM_\w+)"', code))
    assert not unread, "remove from docs/overview.md what nobody reads"


def test_passes_that_are_not_here():
    section = text("docs/compatibility.md").split("\n## Not built\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| passes ")]
    listed = re.findall(r"`(\w+)`", "".join(rows))
    assert len(listed) > 1
    assert [name for name in listed if hasattr(tvm.tir.transform, name)] == []


def glossary(title):
    """The rows of the table below a title of docs/concepts.md."""
    page = text("docs/concepts.md")
    assert f"### {title}\n" in page
    table = page.split(f"### {title}\n")[1].split("\n#")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return rows[2:]


def test_terms_of_the_field_are_in_the_sources_named():
    rows = glossary("Terms of the field")
    assert len(rows) > 10
    for term, *_, where in rows:
        stem = re.sub(r"(ing|ion|s|e|ity)$", "", term.split(",")[0].lower())
        for path in re.findall(r"`([^`]+)`", where):
            assert stem in text(path).lower(), f"{term} is not in {path}"


def test_words_of_our_own_are_used():
    code = sources("src", "include").lower()
    for word, *_ in glossary("Words of our own"):
        assert re.search(rf"\b{word.split(',')[0].lower()}", code), word
