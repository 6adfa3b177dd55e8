# SPDX-License-Identifier: Apache-2.0
"""What is accepted has an effect, or its documentation says that it has none."""

import ast
import importlib
import pathlib
import re

import pytest
import tvm

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = ROOT / "python/tvm"
# Called by a visitor, an interpreter or the pass manager, which give more than some need.
CALLED = r"(visit|eval|op)_|run_(before|after)_pass|transform_module"


def _is_public(path):
    return not any(re.match(r"_(?!_init__)", part) for part in path.relative_to(PACKAGE).parts)


def _refuses(function):
    """Whether a function does nothing, or says that it cannot do what it is called for."""
    body = [s for s in function.body if not isinstance(getattr(s, "value", None), ast.Constant)]
    return all(
        isinstance(s, (ast.Raise, ast.Pass, ast.Import, ast.ImportFrom))
        or "unavailable" in ast.unparse(s)
        for s in body
    )


def _ignored(function):
    """The parameters that neither the function nor its documentation names."""
    a = function.args
    named = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
    used = {n.id for s in function.body for n in ast.walk(s) if isinstance(n, ast.Name)}
    text = ast.get_docstring(function) or ""
    return [
        p.arg
        for p in named
        if p.arg not in used | {"self", "cls"} and not re.search(rf"\b{p.arg}\b", text)
    ]


def _functions(path):
    """(name, function, class name) of what a module defines for its users."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        owner = node.name if isinstance(node, ast.ClassDef) else None
        for f in node.body if owner else [node]:
            if isinstance(f, ast.FunctionDef) and not f.name.startswith("_"):
                yield f.name, f, owner


def _overrides(path, owner, name):
    """Whether the signature of a method is that of a class above."""
    dotted = ".".join(path.relative_to(ROOT / "python").with_suffix("").parts)
    cls = getattr(importlib.import_module(dotted.removesuffix(".__init__")), owner)
    return any(name in base.__dict__ for base in getattr(cls, "__mro__", ())[1:])


def test_parameters_of_public_functions():
    found = []
    for path in filter(_is_public, sorted(PACKAGE.rglob("*.py"))):
        for name, function, owner in _functions(path):
            is_called = any("register" in ast.unparse(d) for d in function.decorator_list)
            is_called |= re.match(CALLED, name) is not None
            if is_called or (owner or "").startswith("_") or _refuses(function):
                continue
            ignored = _ignored(function)
            if ignored and not (owner and _overrides(path, owner, name)):
                found.append(f"{path.relative_to(ROOT)}: {owner or ''} {name}: {ignored}")
    assert not found, "expected parameters that are read or documented:\n" + "\n".join(found)


def _sources():
    paths = [p for d in ("src", "python") for p in (ROOT / d).rglob("*")]
    return {p: p.read_text(encoding="utf-8") for p in paths if p.suffix in (".cc", ".h", ".py")}


def _is_read(name, sources, apart=()):
    count = sum(text.count(f'"{name}"') for path, text in sources.items() if path.name not in apart)
    return count > (0 if apart else 1)


def test_options_of_passes():
    sources = _sources()
    known = tvm.transform.PassContext.list_configs()
    defined = {
        n for text in sources.values() for n in re.findall(r'DefConfig<.*?>\(\s*"(.*?)"', text)
    }
    unread = sorted(name for name in defined & set(known) if not _is_read(name, sources))
    assert unread, "expected options for other targets: else this sees nothing"
    assert [n for n in unread if not str(known[n]["doc"]).startswith("No effect: ")] == []


@pytest.mark.parametrize("kind", ["llvm", "c", "cuda"])
def test_options_of_targets(kind):
    documented = (ROOT / "docs/compatibility.md").read_text(encoding="utf-8")
    section = documented.split("## Accepted, without effect")[1].split("\n## ")[0]
    sources = _sources()
    for option in tvm.target.TargetKind.options_from_name(kind):
        if not _is_read(option, sources, apart=("kinds.cc", "tags.cc")):
            assert f"`{option}`" in section, f"{kind} does not read {option}"
