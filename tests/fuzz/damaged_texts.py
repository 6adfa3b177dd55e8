# SPDX-License-Identifier: Apache-2.0
"""Texts and files that are nearly right: TVMScript, JSON, targets, libraries."""

import functools
import json
import os
import re
import tempfile

import numpy as np
import tvm
from tvm import meta_schedule as ms
from tvm import te, tir
from tvm.script import from_source

from . import programs
from .call_values import program

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_NUMBERS = ["0", "1", "-1", "2**31", "2**63", "-(2**63)", "1e400", "None", "()", "[]", '"x"', "i"]
_VALUES = [None, True, 0, -1, 2**31, 2**63 - 1, -(2**63), 2**70, 0.5, "", "x", "\0", [], {}, [[]]]


@functools.cache
def scripts():
    made = [programs.generate(seed).module for seed in range(40)]
    made += [programs.generate_kernel(seed).module for seed in range(10)]
    return [m.script(show_meta=True) for m in made] + [
        program.script(),
        tir.Schedule(program).mod.script(),
    ]


@functools.cache
def jsons():
    made = [programs.generate(seed).module for seed in range(10)]
    sch = tir.Schedule(program)
    sch.split(sch.get_loops("B")[0], [None, 2])
    made += [
        tvm.target.Target("cuda", host="llvm"),
        sch.mod,
        tir.IndexMap.from_func(lambda i: (i // 4, i % 4)),
    ]
    return [tvm.ir.save_json(m) for m in made]


@functools.cache
def traces():
    sch = tir.Schedule(program, seed=1)
    block = sch.get_block("B")
    i, j = sch.get_loops(block)
    sch.split(i, sch.sample_perfect_tile(i, 2))
    sch.annotate(j, "a", sch.sample_categorical([1, 2], [0.5, 0.5]))
    sch.transform_layout(block, ("write", 0), lambda a, b: (b, a))
    sch.compute_at(block, sch.get_loops("C")[0])
    return [sch.trace.as_json()]


def _text(rng, text):
    """Some tokens or lines dropped, repeated, moved or replaced."""
    for _ in range(rng.choice([1, 1, 2, 4])):
        if rng.random() < 0.25:
            lines = text.split("\n")
            at = rng.randrange(len(lines))
            line = lines.pop(at)
            lines[at:at] = rng.choice(
                [[], [line, line], ["    " + line], [line[4:]], ["\0" + line]]
            )
            if rng.random() < 0.3:
                lines.insert(rng.randrange(len(lines) + 1), line)
            text = "\n".join(lines)
            continue
        tokens = _TOKEN.findall(text)
        at = rng.randrange(len(tokens))
        tokens[at] = rng.choice(
            ["", tokens[at] * 2, rng.choice(tokens), rng.choice(tokens), rng.choice(_NUMBERS)]
        )
        text = "".join(tokens)
    return text


def _tree(rng, value):
    """A JSON value with a part of it replaced, dropped or moved."""
    places = []

    def collect(owner):
        for key in owner if isinstance(owner, dict) else range(len(owner)):
            places.append((owner, key))
            if isinstance(owner[key], (dict, list)):
                collect(owner[key])

    if not isinstance(value, (dict, list)) or not value:
        return rng.choice(_VALUES)
    collect(value)
    for _ in range(rng.choice([1, 1, 2, 4])):
        owner, key = rng.choice(places)
        other, there = rng.choice(places)
        what = rng.random()
        try:
            if what < 0.2:
                del owner[key]
            elif what < 0.6:
                owner[key] = other[there]
            elif isinstance(owner[key], int) and what < 0.8:
                owner[key] += rng.choice([-1, 1])
            else:
                owner[key] = rng.choice(_VALUES)
        except (KeyError, IndexError):
            continue  # an earlier change took it away
    return value


def _dumped(value):
    try:
        return json.dumps(value)
    except (ValueError, RecursionError):  # it contains itself by now
        return "{}"


# ---- what is done with them ----------------------------------------------------------------------
def script_of(rng):
    module = from_source(_text(rng, rng.choice(scripts())))
    module = module if isinstance(module, tvm.IRModule) else tvm.IRModule({"main": module})
    module.script()
    tvm.compile(module, target=rng.choice(["c", "llvm"]))


def json_of(rng):
    text = rng.choice(jsons())
    text = _text(rng, text) if rng.random() < 0.3 else _dumped(_tree(rng, json.loads(text)))
    found = tvm.ir.load_json(text)
    repr(found)
    if isinstance(found, tvm.IRModule):
        tir.transform.Simplify()(found)
        tvm.compile(found, target="c")


def trace_of(rng):
    trace = _tree(rng, _plain(traces()[0]))
    sch = tir.Schedule(program)
    tir.schedule.Trace.apply_json_to_schedule(trace, sch)
    sch.mod.script()


def _plain(value):
    """The same in Python's lists, to be changed."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (bool, int, float)) or value is None:
        return value
    if hasattr(value, "items"):
        return {_plain(k): _plain(v) for k, v in value.items()}
    if hasattr(value, "__iter__"):
        return [_plain(v) for v in value]
    return value.value if hasattr(value, "value") else value


_OPTIONS = (
    "mcpu mattr mtriple mabi mfloat-abi num-cores keys libs device model arch max_num_threads "
    "thread_warp_size opt-level fast-math host tag vector-width jit from_device kind"
).split()
_WORDS = (
    "llvm c cuda opencl rocm metal skylake sm_80 sm_999 +avx2,-fma x86_64-linux-gnu aarch64 "
    "cpu,gpu -1 0 4 99999999999999999999 1.5 true {} [] nvidia/nvidia-a100 --"
).split()


def target_of(rng):
    def config(depth):
        made = {"kind": rng.choice(_WORDS)}
        for _ in range(rng.randrange(4)):
            value = rng.choice([*_WORDS, *_VALUES, [rng.choice(_WORDS)]])
            made[rng.choice(_OPTIONS)] = (
                config(depth - 1) if depth and rng.random() < 0.2 else value
            )
        return made

    made = config(2)
    if rng.random() < 0.5:
        made = " ".join(
            [rng.choice(_WORDS)]
            + [
                f"-{rng.choice(_OPTIONS)}{rng.choice('= ')}{rng.choice(_WORDS)}"
                for _ in range(rng.randrange(4))
            ]
        )
    elif rng.random() < 0.3:
        made = _text(rng, _dumped(made))
    target = tvm.target.Target(made)
    str(target), target.export(), target.keys, target.features
    x = te.placeholder((8,), name="x")
    tvm.compile(te.create_prim_func([x, te.compute((8,), lambda i: x[i] + 1.0)]), target=target)


@functools.cache
def files():
    """{suffix: bytes} of what a compiled function is exported to."""
    x = te.placeholder((8,), name="x")
    built = tvm.compile(te.create_prim_func([x, te.compute((8,), lambda i: te.exp(x[i]))]), "llvm")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("so", "tar"):
            built.export_library(f"{folder}/a.{suffix}")
            with open(f"{folder}/a.{suffix}", "rb") as file:
                found[suffix] = file.read()
        for suffix in ("o", "ll", "bc"):
            built.write_to_file(f"{folder}/a.{suffix}")
            with open(f"{folder}/a.{suffix}", "rb") as file:
                found[suffix] = file.read()
    return found


def file_of(rng):
    suffix = rng.choice(
        [s for s in files() if s != "so"]
    )  # the system's loader trusts what it gets
    data = bytearray(files()[suffix])
    for _ in range(rng.choice([1, 2, 8])):
        at = rng.randrange(len(data))
        if rng.random() < 0.2:
            del data[at:]
        else:
            data[at : at + rng.choice([1, 4])] = rng.randbytes(rng.choice([1, 4]))
        if not data:
            break
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, f"a.{suffix}")
        with open(path, "wb") as file:
            file.write(data)
        tvm.runtime.load_module(path)


def database_of(rng):
    mod = tvm.IRModule({"main": program})
    with tempfile.TemporaryDirectory() as folder:
        database = ms.database.JSONDatabase(work_dir=folder)
        workload = database.commit_workload(mod)
        database.commit_tuning_record(
            ms.database.TuningRecord(
                tir.Schedule(mod).trace, workload, [1.0], tvm.target.Target("c"),
                ms.arg_info.ArgInfo.from_prim_func(program),
            )
        )  # fmt: skip
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            with open(path) as file:
                text = file.read()
            if rng.random() < 0.7:
                whole = rng.random() < 0.5
                text = _text(rng, text) if whole else _dumped(_tree(rng, json.loads(text))) + "\n"
            with open(path, "w") as file:
                file.write(text)
        database = ms.database.JSONDatabase(work_dir=folder)
        database.get_all_tuning_records()
        database.query_schedule(mod, tvm.target.Target("c"), "main")


def params_of(rng):
    data = bytearray(
        tvm.runtime.save_param_dict({"a": np.ones((3, 4), "float32"), "b": np.ones(2)})
    )
    for _ in range(rng.choice([1, 2, 8])):
        at = rng.randrange(len(data))
        data[at : at + rng.choice([0, 1, 8])] = rng.randbytes(rng.choice([0, 1, 8]))
    {k: v.numpy() for k, v in tvm.runtime.load_param_dict(bytes(data)).items()}


KINDS = {
    "text of TVMScript": script_of,
    "text of JSON": json_of,
    "text of a trace": trace_of,
    "text of a target": target_of,
    "file of a library": file_of,
    "file of a database": database_of,
    "file of parameters": params_of,
}
