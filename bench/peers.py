# SPDX-License-Identifier: Apache-2.0
"""Who is measured: us, and the peers that are installed."""

import functools
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from . import kernels, programs
from .programs import Timed

ROOT = pathlib.Path(__file__).resolve().parents[1]
PEER_PYTHON = ROOT / ".venv-peer-tvm/bin/python"


class Ours:
    name = "tvm"
    unary = staticmethod(programs.unary)
    kernel = staticmethod(kernels.ours)


class NumPy:
    name, module = "numpy", "numpy"

    def unary(self, name, x):
        out = np.empty_like(x)
        if name == "sigmoid":

            def call():
                np.negative(x, out=out)
                np.exp(out, out=out)
                np.add(out, 1, out=out)
                np.reciprocal(out, out=out)

        elif hasattr(np, name):
            call = functools.partial(getattr(np, name), x, out=out)
        else:
            return None
        return Timed(call, lambda: out)


class Torch:
    name, module = "torch", "torch"

    def __init__(self, threads):
        import torch

        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)

    def unary(self, name, x):
        import torch

        a = torch.from_numpy(x)
        out = torch.empty_like(a)
        return Timed(functools.partial(getattr(torch, name), a, out=out), out.numpy)

    kernel = staticmethod(kernels.torch)


class OnnxRuntime:
    name, module = "onnxruntime", "onnxruntime"

    def __init__(self, threads):
        import onnx  # noqa: F401  (models are built with it)
        import onnxruntime

        self.options = onnxruntime.SessionOptions()
        self.options.intra_op_num_threads, self.options.inter_op_num_threads = threads, 1

    def unary(self, name, x):
        import onnxruntime
        from onnx import TensorProto, helper

        def value(name):
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape)

        graph = helper.make_graph(
            [helper.make_node(name.capitalize(), ["x"], ["y"])], name, [value("x")], [value("y")]
        )
        opsets = [helper.make_opsetid("", 17)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), self.options, providers=["CPUExecutionProvider"]
        )
        a = onnxruntime.OrtValue.ortvalue_from_numpy(x)
        out = onnxruntime.OrtValue.ortvalue_from_numpy(np.empty_like(x))
        binding = session.io_binding()
        binding.bind_ortvalue_input("x", a)
        binding.bind_ortvalue_output("y", out)
        return Timed(functools.partial(session.run_with_iobinding, binding), out.numpy)

    def kernel(self, name, inputs):
        return kernels.onnxruntime(name, inputs, self.options)


def environment(python):
    """Variables for a child: a path that leads to our package must not reach another Python, and
    whoever runs Python without bytecode files measures how long it compiles its sources."""
    left_out = {"PYTHONDONTWRITEBYTECODE"}
    if str(python) != sys.executable:
        left_out |= {"PYTHONPATH", "TVM_LIBRARY_PATH"}
    return {key: value for key, value in os.environ.items() if key not in left_out}


class Worker:
    """A process with an environment of its own; it shares our CPUs, and sleeps unless asked."""

    def __init__(self, name, python):
        self.name = name
        self.process = subprocess.Popen(
            [str(python), str(ROOT / "bench/worker.py")],
            env=environment(python),
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

    def unary(self, name, x):
        with tempfile.NamedTemporaryFile(suffix=".npy") as file:
            np.save(file.name, x)
            index = self.ask("unary", name, file.name)
        return Remote(self, index)

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Remote:
    """A program prepared in a worker: the counterpart of Timed."""

    def __init__(self, worker, index):
        self.worker, self.index = worker, index

    def time(self, number):
        return self.worker.ask("time", self.index, number)

    def output(self):
        with tempfile.NamedTemporaryFile(suffix=".npy") as file:
            self.worker.ask("output", self.index, file.name)
            return np.load(file.name)


def pythons():
    """Environments in which `import tvm` can be measured: ours, and Apache TVM's if it is there."""
    found = {"tvm": sys.executable}
    if PEER_PYTHON.exists():
        found["apache-tvm"] = str(PEER_PYTHON)
    return found


def installed(threads):
    """(subjects, notes): we come first; a note says which peer is missing."""
    subjects, notes = [Ours(), NumPy()], []
    for peer in (Torch, OnnxRuntime):
        if importlib.util.find_spec(peer.module):
            subjects.append(peer(threads))
        else:
            notes.append(f"{peer.name} is not installed")
    if PEER_PYTHON.exists():
        subjects.append(Worker("apache-tvm", PEER_PYTHON))
    else:
        notes.append("apache-tvm is not installed: make bench-peers")
    return subjects, notes


def pin(threads):
    """This process, and the workers it starts, on `threads` CPUs; libraries count them later."""
    cpus = sorted(os.sched_getaffinity(0))
    if threads > len(cpus):
        raise SystemExit(f"--threads: expected at most {len(cpus)}, got {threads}")
    os.sched_setaffinity(0, cpus[-threads:])
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TVM_NUM_THREADS"):
        os.environ[variable] = str(threads)
    os.environ["TVM_CACHE_LIMIT_MB"] = "0"  # compilers compile: nothing comes from an earlier run
