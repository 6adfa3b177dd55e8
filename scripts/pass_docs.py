# SPDX-License-Identifier: Apache-2.0
"""Writes docs/passes.md from the documentation that passes are registered with.

A pass shows what it does by a program before and after it, in TVMScript:

    options: factor=4                        # how the pass is made, if it has options
    config: {"tir.UnrollLoop": {...}}        # options of the context, if any
    before(A: T.Buffer((4,), "float32")):    # or "before:" and whole functions
        ...
    after:                                   # the same parameters, or after(...):
        ...

`--check` says whether the page is current; `--run` also runs the examples.
"""

import argparse
import re
import sys
import textwrap
from pathlib import Path

import tvm
from tvm import tir
from tvm.script import from_source
from tvm.tir import transform

PAGE = Path(__file__).parents[1] / "docs/passes.md"
LABEL = re.compile(r"(before|after)(\(.*\))?:$|(options|config): (.*)$")


class Example:
    """One before/after pair of a pass's documentation."""

    def __init__(self, name):
        self.name, self.options, self.config, self.programs = name, "", "{}", {}

    def source(self, which):
        """The text of a module. Functions are named by what they are in the example."""
        header, body = self.programs[which]
        if not header and body.lstrip().startswith("@"):
            functions = body
        else:
            header = header or self.programs["before"][0]
            functions = f"@T.prim_func(check_well_formed=False)\ndef main{header}:\n"
            functions += textwrap.indent(body, "    ")
        return "@I.ir_module\nclass Module:\n" + textwrap.indent(functions, "    ")

    def program(self, which):
        return from_source(self.source(which), {"tvm": tvm, "tir": tir}, check_well_formed=False)

    def make_pass(self):
        scope = {"tir": tir, "tvm": tvm, "make": getattr(transform, self.name)}
        return eval(f"make({self.options})", scope)

    def run(self):
        """The program after the pass."""
        with tvm.transform.PassContext(config=eval(self.config, {"tvm": tvm})):
            return self.make_pass()(self.program("before"))

    def check(self):
        """Compares what the pass makes with what the documentation says, up to Simplify."""
        got, expected = self.run(), self.program("after")
        if not tvm.ir.structural_equal(got, expected):
            simplify = transform.Simplify()
            tvm.ir.assert_structural_equal(simplify(got), simplify(expected))


def split(name, doc):
    """The paragraphs of a documentation: texts and examples in turn."""
    parts, text, example, lines = [], [], None, doc.strip("\n").split("\n")
    at = 0
    while at < len(lines):
        found = LABEL.match(lines[at])
        at += 1
        if not found:
            if lines[at - 1].strip() or text:
                text.append(lines[at - 1])
            continue
        if "\n".join(text).strip():
            parts.append("\n".join(text).strip())
        text = []
        if example is None or "after" in example.programs:
            example = Example(name)
            parts.append(example)
        which, header, setting, value = found.groups()
        if setting:
            setattr(example, setting, value)
            continue
        body = []
        while at < len(lines) and (not lines[at].strip() or lines[at].startswith("    ")):
            body.append(lines[at])
            at += 1
        example.programs[which] = (header or "", textwrap.dedent("\n".join(body)).rstrip())
    if "\n".join(text).strip():
        parts.append("\n".join(text).strip())
    return parts


def documented():
    """(name, parts of its documentation) of every pass, in alphabetical order."""
    for name in sorted(dir(transform)):
        entry = getattr(transform, name)
        if not name[0].isupper() or not callable(entry) or isinstance(entry, type):
            continue
        if entry.__name__ == name:  # else a pass under the name it has in another version
            yield name, split(name, textwrap.dedent(entry.__doc__ or ""))


def examples():
    return [(n, p) for n, parts in documented() for p in parts if isinstance(p, Example)]


def code(example, which):
    header, body = example.programs[which]
    if not header and not body.lstrip().startswith("@"):
        header = example.programs["before"][0]
    return f"def {which}{header}:\n{textwrap.indent(body, '    ')}" if header else body


def page():
    lines = [
        "# Passes over TIR",
        "",
        "Written by `scripts/pass_docs.py` from the registrations; the tests run its examples.",
    ]
    for name, parts in documented():
        lines += ["", f"## {name}"]
        for part in parts:
            lines.append("")
            if not isinstance(part, Example):
                lines.append(part)
                continue
            if part.options:
                lines += [f"`{name}({part.options})`", ""]
            if part.config != "{}":
                lines += [f"with `PassContext(config={part.config})`", ""]
            lines += ["```py", code(part, "before"), "```", "becomes", "```py"]
            lines += [code(part, "after"), "```"]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--show", help="prints a pass's examples as the pass leaves them")
    args = parser.parse_args()
    if args.show:
        for name, example in examples():
            if name == args.show:
                print(example.run().script())
        return 0
    if args.check:
        return 0 if PAGE.exists() and PAGE.read_text() == page() else 1
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
