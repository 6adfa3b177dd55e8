# SPDX-License-Identifier: Apache-2.0
"""Writes stubs of the modules whose names derive from the C++ registry: `stubs.py FOLDER`.

Editors and type checkers read sources, where such names are not. The installation runs this; every
other module is read as it is.
"""

import ast
import importlib
import inspect
import pathlib
import pkgutil
import re
import sys
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))
import tvm
import tvm_ffi

_describe_function = tvm_ffi.get_global_func("ir.DescribeFunction")
_describe_node = tvm_ffi.get_global_func("ir.DescribeNode")
_HEAD = """# Written by scripts/stubs.py from the registry of the libraries.
import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tvm_ffi
"""
# Names of the registry's types in Python; generic ones are patterns.
_TYPES = {
    "Array": "Sequence[{0}]",
    "Bytes": "bytes",
    "DataType": "str",
    "Device": "tvm_ffi.Device",
    "Function": "Callable[..., Any]",
    "Map": "Mapping[{0}, {1}]",
    "Module": "tvm.runtime.Module",
    "Optional": "{0} | None",
    "ir.PrimExpr": "tvm.ir.expr.PrimExpr | float",  # numbers become constants
    "Shape": "Sequence[int]",
    "Tensor": "tvm.runtime.Tensor",
    **{name: name for name in ("None", "bool", "float", "int", "str")},
}


def python_type(schema):
    """`Array[ir.Range]` -> `Sequence[tvm.ir.Range]`; what has no name in Python is Any."""
    name, _, args = schema.partition("[")
    parts, depth, start = [], 0, 0
    for i, c in enumerate(args[:-1] + "," if args else ""):
        depth += (c == "[") - (c == "]")
        if c == "," and depth == 0:
            parts.append(python_type(args[start:i].strip()))
            start = i + 1
    if name == "Variant":
        return " | ".join(parts)
    if name in _TYPES:
        return _TYPES[name].format(*parts)
    owner, _, last = name.rpartition(".")
    try:
        cls = getattr(importlib.import_module("tvm." + owner), last)
        return f"{cls.__module__}.{cls.__qualname__}"
    except (AttributeError, ModuleNotFoundError, ValueError):
        return "Any"


def typed(params, types, defaults):
    """Parameters with their types; a default is there or not."""
    plain = len(params) - len(defaults)
    return [
        f"{p}: {python_type(str(t))}" + (" = ..." if i >= plain and p[0] != "*" else "")
        for i, (p, t) in enumerate(zip(map(str, params), types, strict=False))
    ]


def untyped(fn):
    """Parameters of a function written in Python."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return ["*args", "**kwargs"]
    empty = inspect.Parameter.empty
    plain = [p.replace(annotation=empty) for p in signature.parameters.values()]
    shown = [p if p.default is empty else p.replace(default=...) for p in plain]
    text = str(signature.replace(parameters=shown, return_annotation=empty))
    return [text[1:-1].replace("=Ellipsis", "=...")]


def documentation(thing):
    text = (inspect.getdoc(thing) or "").replace("\\", "\\\\").replace('"""', "'''")
    return [f'"""{text}"""'] if text else ["..."]


def indent(lines):
    return [textwrap.indent(line, "    ") for line in lines]


def is_derived(fn):
    """Whether tvm/_derive.py made it."""
    made = inspect.isfunction(fn) and inspect.unwrap(fn)
    return inspect.isfunction(made) and made.__code__.co_filename == "<string>"


def function_stub(name, fn, key):
    params, result = untyped(fn), "None" if name == "__init__" else "Any"
    info = _describe_function(key) if is_derived(fn) else None
    if info is not None:
        _, names, defaults, types = info
        params = typed(names, types, defaults)
        result = python_type(str(types[-1])).replace("PrimExpr | float", "PrimExpr")
        if len(names) and str(names[0]) == "self":
            params[0] = "self"
    return [f"def {name}({', '.join(params)}) -> {result}:", *indent(documentation(fn))]


def class_stub(name, cls):
    homes = ("tvm", "enum", "builtins")
    places = [b for b in cls.__bases__ if b is not object and b.__module__.split(".")[0] in homes]
    bases = ", ".join(f"{b.__module__}.{b.__qualname__}".removeprefix("builtins.") for b in places)
    info = cls.__dict__.get("__tvm_ffi_type_info__")
    node = _describe_node(info.type_key) if info and issubclass(cls, tvm.ir.Node) else None
    _, names, defaults, types = node or ("", (), (), ())
    fields = dict(zip(map(str, names), types, strict=False))
    fields |= {str(f.name): "Any" for f in info.fields if str(f.name) not in fields} if info else {}
    body = documentation(cls)
    body += [f"{field}: {python_type(str(schema))}" for field, schema in fields.items()]
    for key, value in vars(cls).items():
        special = key[:2] == "__" and key not in ("__init__", "__new__")
        wrapped = getattr(value, "__func__", value)
        if key == "__init__" and is_derived(value):
            body.append(f"def __init__({', '.join(['self', *typed(names, types, defaults)])}): ...")
        elif inspect.isfunction(wrapped) and (key[0] != "_" or special or key == "__init__"):
            body += [f"@{type(value).__name__}"] if wrapped is not value else []
            body += function_stub(key, wrapped, f"{info.type_key}.{key}" if info else "")
        elif isinstance(value, cls):  # of an enumeration
            body.append(f"{key} = {value.value!r}")
        elif key[0] != "_" and key not in fields:
            body.append(f"{key}: Any")
    return [f"class {name}({bases}):", *indent(body)]


def bound_names(source):
    """What the statements of a module bind; "*" for all names of another one."""
    names = set()
    for node in ast.parse(source).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        else:
            stores = (n for n in ast.walk(node) if isinstance(n, ast.Name))
            names |= {n.id for n in stores if isinstance(n.ctx, ast.Store)}
    return names


def module_stub(module):
    """The text, or None where the source has all names."""
    written = bound_names(pathlib.Path(module.__file__).read_text())
    names = [n for n in dir(module) if n[0] != "_"]
    if "*" not in written and all(n in written for n in names):
        return None
    lines = []
    for name in names:
        try:
            value = getattr(module, name, None)
        except ModuleNotFoundError as missing:  # a module whose optional package is not installed
            if str(missing.name).startswith("tvm"):
                raise
            lines.append(f"from {module.__name__} import {name} as {name}")
            continue
        if inspect.ismodule(value):
            home, _, last = value.__name__.rpartition(".")
            if home.startswith("tvm"):
                real = getattr(value, "__file__", None)  # others are made of aliases
                lines.append(f"from {home} import {last} as {name}" if real else f"{name}: Any")
            continue
        home, last = getattr(value, "__module__", None), getattr(value, "__name__", name)
        own = home == module.__name__
        source = sys.modules.get(home)
        if not own and last in dir(source) and vars(source).get(last) is value:
            # Only `import x as x` says that a name is for others as well.
            same = last == name
            lines.append(
                f"from {home} import {name} as {name}" if same else f"{name} = {home}.{last}"
            )
        elif inspect.isclass(value) and own:
            lines += class_stub(name, value)
        elif inspect.isfunction(value) and own:
            lines += function_stub(name, value, f"{module.__name__[4:]}.{name}")
        else:
            lines.append(f"{name}: Any")
    text = "\n".join(lines) + "\n"
    used = {m for m in re.findall(r"tvm[\w.]*(?=\.\w)", text) if m in sys.modules}
    text = _HEAD + "".join(f"import {m}\n" for m in sorted(used)) + text
    ast.parse(text)
    return text


def modules():
    """All public modules but those whose optional packages (torch) are not installed."""
    names = [info.name for info in pkgutil.walk_packages(tvm.__path__, "tvm.")]
    for name in names:
        if "._" in name:
            continue
        try:
            yield importlib.import_module(name)
        except ModuleNotFoundError as missing:
            if missing.name in (None, *names):
                raise
            print(f"{name}: no stub, since {missing.name} is not installed")


def main(folder):
    folder = pathlib.Path(folder)
    root = pathlib.Path(tvm.__file__).parent
    for module in list(modules()):  # all there, then any looked at
        text = module_stub(module)
        if text is not None:
            path = folder / pathlib.Path(module.__file__).relative_to(root).with_suffix(".pyi")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
