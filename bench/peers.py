# SPDX-License-Identifier: Apache-2.0
"""Who is measured: us, and the peers that are installed."""

import contextlib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]


@dataclass
class Subject:
    file: str  # in bench/subjects
    needs: str = "numpy"  # the module that has to be there
    venv: str = ""  # .venv-peer-* where it is not ours
    variables: dict = field(default_factory=dict)

    @property
    def folder(self):
        return ROOT / f".venv-peer-{self.venv}"

    @property
    def python(self):
        return str(self.folder / "bin/python") if self.venv else sys.executable

    @property
    def is_there(self):
        if self.venv:
            return (self.folder / ".ready").exists()
        return importlib.util.find_spec(self.needs) is not None


# glibc would write around the caches, or leave copying to one instruction.
_PLAIN = ":".join(
    f"glibc.cpu.x86_{kind}_threshold=0x1000000000" for kind in ("non_temporal", "rep_movsb")
)
SUBJECTS = {
    "tvm": Subject("tvm", "tvm"),
    "numpy": Subject("numpy"),
    "torch": Subject("torch", "torch"),
    "torch.compile": Subject("torch_compile", "torch"),
    "onnxruntime": Subject("onnxruntime", "onnxruntime"),
    "openvino": Subject("openvino", venv="openvino"),
    "jax": Subject("jax", venv="jax"),
    "iree": Subject("iree", venv="iree"),
    "halide": Subject("halide", venv="halide"),
    "apache-tvm": Subject("tvm", venv="tvm", variables={"BENCH_MEMORY": "0"}),
    "copy": Subject("copy", variables={"GLIBC_TUNABLES": _PLAIN}),
}


def environment(python):
    """Variables for a child: a path that leads to our package must not reach another Python, and
    whoever runs Python without bytecode files measures how long it compiles its sources."""
    left_out = {"PYTHONDONTWRITEBYTECODE"}
    if str(python) != sys.executable:
        left_out |= {"PYTHONPATH", "TVM_LIBRARY_PATH"}
    return {key: value for key, value in os.environ.items() if key not in left_out}


class Worker:
    """A process with an environment of its own; it shares our CPUs, and sleeps unless asked."""

    def __init__(self, name, **variables):
        self.name, self.subject = name, SUBJECTS[name]
        self.process = subprocess.Popen(
            [self.subject.python, str(ROOT / "bench/worker.py")],
            env=environment(self.subject.python) | self.subject.variables | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, action, *args):
        try:
            print(json.dumps({"action": action, "args": args}), file=self.process.stdin, flush=True)
            answer = json.loads(self.process.stdout.readline())
        except (BrokenPipeError, json.JSONDecodeError):
            status = self.process.wait()
            raise RuntimeError(f"{self.name}: the worker ended with status {status}") from None
        if "error" in answer:
            raise RuntimeError(f"{self.name}: {answer['error']}")
        return answer["value"]

    def prepare(self, kernel, inputs, *more, action="prepare", subject=None):
        """The kernel, ready to be timed, or None where the subject (by default the process's own)
        does not have it."""
        with tempfile.TemporaryDirectory() as folder:
            files = [f"{folder}/{i}.npy" for i in range(len(inputs))]
            for file, x in zip(files, inputs, strict=True):
                np.save(file, x)
            index = self.ask(action, subject or self.subject.file, kernel, files, *more)
        return None if index is None else Remote(self, index)

    def close(self):
        with contextlib.suppress(BrokenPipeError):  # it may have ended before
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Remote:
    """A kernel prepared in a worker: the counterpart of Timed."""

    def __init__(self, worker, index):
        self.worker, self.index = worker, index

    def time(self, number):
        return self.worker.ask("time", self.index, number)

    def results(self):
        """All results of a model."""
        with tempfile.NamedTemporaryFile(suffix=".npz") as file:
            self.worker.ask("results", self.index, file.name)
            with np.load(file.name) as arrays:
                return [arrays[key] for key in arrays.files]

    def output(self):
        with tempfile.NamedTemporaryFile(suffix=".npy") as file:
            has_output = self.worker.ask("output", self.index, file.name)
            return np.load(file.name) if has_output else None


def compilers():
    """Subjects whose `import tvm` can be measured: ours, and Apache TVM's if it is there."""
    return [name for name, s in SUBJECTS.items() if s.file == "tvm" and s.is_there]


def installed(without=(), only=None):
    """(subjects, notes): we come first; a note says which peer is missing."""
    asked = {
        name: subject
        for name, subject in SUBJECTS.items()
        if name not in without and (only is None or name in (*only, "tvm"))
    }
    there = [name for name, subject in asked.items() if subject.is_there]
    notes = [
        f"{name} is not installed" + (": make bench-peers" if subject.venv else "")
        for name, subject in asked.items()
        if name not in there
    ]
    return [Worker(name) for name in there], notes


def cpu_model():
    """What the CPU calls itself, with the instructions that speed depends on: names are vague."""
    wanted = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile")
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        facts = dict(line.split(":", 1) for line in lines if ":" in line)
    facts = {key.strip(): value.strip() for key, value in facts.items()}
    flags = facts.get("flags", "").split()
    name = facts.get("model name", "unknown")
    only = os.environ.get("TVM_HOST_CPU")  # what all instructions are restricted to
    return " ".join([name, *([only] if only else (flag for flag in wanted if flag in flags))])


def pin(threads):
    """This process, and the workers it starts, on `threads` CPUs; libraries count them later."""
    cpus = sorted(os.sched_getaffinity(0))
    if threads > len(cpus):
        raise SystemExit(f"--threads: expected at most {len(cpus)}, got {threads}")
    os.sched_setaffinity(0, cpus[-threads:])
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TVM_NUM_THREADS", "HL_NUM_THREADS"):
        os.environ[variable] = str(threads)
    os.environ["TVM_CACHE_LIMIT_MB"] = "0"  # compilers compile: nothing comes from an earlier run
