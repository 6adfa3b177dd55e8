# SPDX-License-Identifier: Apache-2.0
"""The languages of TVMScript. A language registers itself; shared code asks these tables."""

import dataclasses
import functools
import importlib
import pkgutil
import types
from collections.abc import Callable


class ClassTable(dict):
    """What is registered for a class, or for the nearest class it derives from."""

    def __missing__(self, kind):
        found = next((self[base] for base in kind.__mro__[1:] if base in self), None)
        self[kind] = found
        return found

    def of(self, value):
        return self[type(value)]


@dataclasses.dataclass(frozen=True)
class Language:
    """What shared code has to know of a language."""

    name: str  # the dispatch token of its decorators; `from tvm.script import <name>`
    prefix: str  # what texts call it without an import: T
    module: types.ModuleType  # its names
    decorator: str  # of its functions, for messages: T.prim_func
    # (GlobalVar, declared signature) -> what `cls.f` is inside its functions
    member: Callable | None = None
    # class of its functions -> ([(GlobalVar or None, function)], module or None) -> a complaint and
    # its span, or None where all is well
    checks: dict = dataclasses.field(default_factory=dict)
    rank: int = 100  # its functions are read after those of a lower rank, whose members they call


LANGUAGES: dict[str, Language] = {}
CHECKS = ClassTable()  # from the languages' checks
# What the evaluator does with values of a class:
VALUES = ClassTable()  # value -> the expression that it stands for
ITEMS = ClassTable()  # (value, index) -> value[index]
METHODS = ClassTable()  # True: its methods take expressions


def register_language(language):
    """Makes a language known; a later one of the same name replaces it."""
    LANGUAGES[language.name] = language
    CHECKS.update(language.checks)


@functools.cache
def load_languages():
    """Imports the languages of this package; each registers itself. Others do so when imported."""
    package = __name__.split(".core.")[0]
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        importlib.import_module(f"{package}.{module.name}")


def such_as():
    """The decorators of functions, for messages."""
    load_languages()
    return " or ".join(sorted(f"@{one.decorator}" for one in LANGUAGES.values() if one.member))


__all__ = ["LANGUAGES", "ClassTable", "Language", "load_languages", "register_language"]
