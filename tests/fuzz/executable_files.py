# SPDX-License-Identifier: Apache-2.0
"""Mutated executables of a compiled model: python -m tests.fuzz.executable_files --seconds 3600

Each is refused when it is loaded, or made a machine and called: it gives any result, or an
exception with a message. A crash ends the process, and the last seeds printed are near the one that
did it.
"""

import contextlib
import functools
import random
import signal
import struct

import numpy as np
import tvm
import tvm_ffi
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

from .onnx_files import main, mutate

# Numbers that mean something to an executable: sizes, opcodes, registers, kinds of arguments.
WORDS = (-1, 0, 1, 2, 3, 4, 5, 8, 64, 1 << 16, 1 << 31, 1 << 54, (1 << 54) + 1, 2 << 54, 1 << 62)


def _model():
    weight = np.random.default_rng(0).random((8, 8), "float32")

    @I.ir_module
    class Model:
        @R.function
        def scaled(x: R.Tensor(("n", 8), "float32")) -> R.Tensor(("n", 8), "float32"):
            with R.dataflow():
                y = R.matmul(x, R.const(weight))
                z = R.nn.softmax(R.add(y, x))
                R.output(z)
            return z

        @R.function
        def main(x: R.Tensor(("n", 8), "float32"), c: R.Tensor((), "bool")):
            n = T.int64()
            cls = Model
            if c:
                y = cls.scaled(x)
            else:
                y = R.nn.relu(x)
            with R.dataflow():
                z = R.reshape(R.permute_dims(y), (n * 8,))
                both = R.concat((z, R.multiply(z, R.const(2.0))))
                R.output(z, both)
            return (both, R.sum(z))

    return Model


@functools.cache
def seeds():
    """[(bytes, kernels)] of one model as bytecode and as machine code."""
    save = tvm_ffi.get_global_func("runtime.ModuleSaveToBytes")
    made = []
    for mode in ("bytecode", "compiled"):
        mod = relax.build(_model(), "llvm", exec_mode=mode).mod
        made.append((bytes(save(mod)), list(mod.imports)))
    return made


class Stopped(Exception):
    """A jump became a loop."""


def _stop(*_):
    raise Stopped("a loop")


@contextlib.contextmanager
def _at_most(seconds):
    """Stopped after as much time of the processor: others may keep it busy."""
    old = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, old)


def _changed(rng, data, files):
    if rng.random() < 0.3:
        return mutate(rng, data, files)
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(data) - 8)
        data[at : at + 8] = struct.pack("<q", rng.choice(WORDS))
    return bytes(data)


def arguments(rows, flag):
    return np.ones((rows, 8), "float32"), np.array(flag)


def run(data, kernels):
    """What became of it: "refused", "failed" in a call, or "ran"."""
    load = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.relax.VMExecutable")
    try:
        mod = load(data)
    except (ValueError, MemoryError) as error:
        if not str(error):
            raise AssertionError("an error without a message") from error
        return "refused"
    for kernel in kernels:
        mod.import_module(kernel)
    executable = relax.VMExecutable(mod)
    try:
        executable.as_text()
        with _at_most(0.5):
            machine = relax.VirtualMachine(executable, tvm.cpu())
            for rows, flag in ((3, True), (2, False)):
                machine["main"](*arguments(rows, flag))
    except Exception as error:
        if not str(error):
            raise AssertionError(f"{type(error).__name__} without a message") from error
        return "failed"
    return "ran"


def check(seed, outcomes=None):
    """None, or what is wrong with a mutated executable; `outcomes` collects what became of it."""
    rng = random.Random(seed)
    data, kernels = rng.choice(seeds())
    try:
        outcome = run(_changed(rng, data, [file for file, _ in seeds()]), kernels)
        if outcomes is not None:
            outcomes.append(outcome)
    except Exception as error:
        return f"seed {seed}: {type(error).__name__}: {error}"
    return None


if __name__ == "__main__":
    main(__doc__, check)
