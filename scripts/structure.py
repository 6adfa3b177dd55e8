# SPDX-License-Identifier: Apache-2.0
"""Rules about the repository as a whole: who may include whom, file sizes, headers, paths."""

import pathlib
import posixpath
import re
import subprocess
import sys
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import layers
from layers import PARTS

LISTED, TOO_LONG = 500, 1000
SOURCES = {".cc", ".h", ".py", ".cmake", ".sh", ".in", ".toml"}

_INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
_MACHINE_PATH = re.compile(r"/(?:work|root|home)/\w+")


class Problem(NamedTuple):
    path: str
    line: int
    text: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.text}"


def files(root):
    """Files of the repository: committed ones and those git would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout
    paths = sorted({pathlib.PurePosixPath(n) for n in names.decode().split("\0") if n})
    return [p for p in paths if (root / p).is_file()]


def part_of(path):
    """(part, backend or None) of a source file or of an included path; None: not one of ours."""
    words = path.parts
    if words[:2] == ("include", "tvm"):
        words = words[2:]
    elif words[:1] in (("src",), ("tvm",)):
        words = words[1:]
    if len(words) < 2 or words[0] not in PARTS:
        return None
    return words[0], words[1] if words[0] == "backend" and len(words) > 2 else None


def _includes(text):
    for match in _INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start(1)) + 1, match.group(1)


def include_direction(path, text):
    if path.suffix not in (".cc", ".h") or path.parts[0] not in ("src", "include"):
        return
    mine = part_of(path)
    in_llvm = path.parts[:3] == ("src", "backend", "llvm")
    for line, target in _includes(text):
        if target.split("/")[0] in ("llvm", "llvm-c", "lld", "clang") and not in_llvm:
            yield Problem(str(path), line, f"{target}: only src/backend/llvm may include LLVM")
        if target.startswith("."):
            target = posixpath.normpath(f"{path.parent}/{target}")
        other = part_of(pathlib.PurePosixPath(target))
        if other is None:
            continue
        if mine is None:
            yield Problem(str(path), line, f"expected a file of one of the parts {PARTS}")
        elif PARTS.index(other[0]) > PARTS.index(mine[0]):
            yield Problem(str(path), line, f"{mine[0]} may not include {other[0]} ({target})")
        elif mine[1] and other[1] not in (None, mine[1], "source"):  # what generators of text share
            yield Problem(str(path), line, f"backend {mine[1]} may not include backend {other[1]}")


def name_owners(sources):
    """{registered name: the part of the core that registers it, or "python"}"""
    owners = {}
    for path, text in sources:
        part = part_of(path)
        owner = "python" if path.parts[0] == "python" else part[0] if part else None
        if owner:
            owners.update(dict.fromkeys(layers.defined_names(path.suffix, text), owner))
    return owners


def call_direction(path, text, owners):
    mine = part_of(path) if path.parts[0] in ("src", "include") else None
    if mine is None or path.suffix not in (".cc", ".h"):
        return
    for offset, name in layers.called_names(text):
        if problem := layers.may_call(mine[0], name, owners):
            yield Problem(str(path), text.count("\n", 0, offset) + 1, problem)


def import_direction(path, text):
    if path.suffix != ".py" or path.parts[:2] != ("python", "tvm"):
        return
    inside = pathlib.PurePosixPath(*path.parts[2:])
    unit = inside.parts[0].removesuffix(".py")
    for line, other in layers.imported_units(inside, text):
        if not layers.may_import(unit, other):
            yield Problem(str(path), line, f"tvm.{unit} may not import tvm.{other}: layers.py")


def header(path, text):
    """The licence line, then what the file is for."""
    if not text.strip():
        return
    lines = [line for line in text.splitlines()[:4] if not line.startswith("#!")]
    if "SPDX-License-Identifier: Apache-2.0" not in lines[0]:
        yield Problem(str(path), 1, "expected the line 'SPDX-License-Identifier: Apache-2.0' first")
    elif path.suffix in (".cc", ".h", ".py"):
        opening = ("//", "/*") if path.suffix != ".py" else ('"""', 'r"""')
        if len(lines) < 2 or not lines[1].startswith(opening):
            yield Problem(str(path), 2, "expected a sentence on the file's purpose")


def size(path, text):
    lines = text.count("\n")
    if lines > TOO_LONG:
        yield Problem(str(path), TOO_LONG, f"{lines} lines; at most {TOO_LONG}")


def folder_readme(path, text):
    if path.name == "README.md" and path.parts[0] == "src" and text.count("\n") > 30:
        yield Problem(str(path), 31, "a folder's README has at most 30 lines")


def machine_path(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        if match := _MACHINE_PATH.search(line):
            yield Problem(str(path), number, f"{match.group()}: a path of one machine")


_PLACE = r"[\w.\[\]>*-]+"
_COMMA_OPERATOR = re.compile(rf"\s*{_PLACE} [-+*/|&]?= [^,;(){{}}?]*, {_PLACE} [-+*/|&]?= .*")


def comma_operator(path, text):
    """Two assignments are two statements; a list of declarations goes on after a comma."""
    if path.suffix not in (".cc", ".h"):
        return
    before = ""
    for number, line in enumerate(text.splitlines(), 1):
        if _COMMA_OPERATOR.fullmatch(line) and not before.endswith(","):
            yield Problem(str(path), number, "expected one assignment per statement")
        before = line


# What a target can do is asked of its machine; what differs by kind is a row of a table. Kinds are
# compared where they are defined, and by a backend about its own.
_KIND = re.compile(r"\bkind(?:->|\.)name\)? (?:[!=]= *\"|(?:not )?in [(\[{])")
_KINDS_COMPARED = ("src/ir/target/", "src/backend/", "python/tvm/target/")
_INSTRUCTION = re.compile(r"\binst(?:->|\.)kind")  # of a trace, which has kinds of its own


def kind_names(path, text):
    if path.parts[0] not in ("src", "include", "python"):
        return
    if str(path).startswith(_KINDS_COMPARED):
        return
    for number, line in enumerate(text.splitlines(), 1):
        if _KIND.search(line) and not _INSTRUCTION.search(line):
            yield Problem(str(path), number, "expected no comparison of a target's kind")


# Printer, parser and builder: these files serve every language and name none; a language registers
# itself (include/tvm/script/language.h, script/parser/core/language.py).
_SCRIPT = re.compile(
    r"include/tvm/script/.*|src/script/\w+\.cc|python/tvm/script/"
    r"(\w+\.py|printer/.*|parser/(__init__|ir|core/\w+)\.py|ir_builder/\w+\.py)"
)
_LANGUAGE = re.compile(r"\b(tir|relax)\b", re.IGNORECASE)


def languages_in_script(path, text):
    if not _SCRIPT.fullmatch(str(path)):
        return
    for number, line in enumerate(text.splitlines(), 1):
        if match := _LANGUAGE.search(line):
            yield Problem(
                str(path), number, f"{match.group()}: expected no language by name in shared files"
            )


def check(root):
    """(problems, notes): what must be changed, what should be looked at."""
    problems, notes, sources = [], [], []
    for path in files(root):
        try:
            sources.append((path, (root / path).read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    owners = name_owners(sources)
    for path, text in sources:
        rules = [machine_path, folder_readme]
        if path.suffix in SOURCES or path.name in ("CMakeLists.txt", "Makefile"):
            rules += [header, size, include_direction, import_direction, languages_in_script]
            rules += [comma_operator, kind_names]
            if LISTED < text.count("\n") <= TOO_LONG:
                notes.append(Problem(str(path), 1, f"{text.count(chr(10))} lines"))
        problems += [problem for rule in rules for problem in rule(path, text)]
        problems += call_direction(path, text, owners)
    return problems, notes
