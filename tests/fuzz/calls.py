# SPDX-License-Identifier: Apache-2.0
"""Every registered function, constructor, method and property with bad arguments, and damaged texts
and files:

python -m tests.fuzz.calls --seconds 60 [--only tir.For] [--seed 0]

A call may raise or return; it may not end the process nor go on for longer than a call may. Calls
run in forked processes; one that dies is reported with its seed, and the next ones go on behind it.
The exit status says whether there was one.
"""

import argparse
import collections
import inspect
import keyword
import mmap
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import time

import tvm_ffi
from tvm import _derive

from . import damaged_texts
from .call_values import Values

LONGEST = 10  # seconds of the processor that a call may take
STUCK = 120  # seconds after which a call that does nothing waits for ever
MEMORY = 12 << 30
TOGETHER = 32  # functions that one process calls: to fork takes as long as hundreds of calls
# What ends, blocks or disturbs the process because that is its purpose.
LEFT_OUT = {
    "runtime.clear_cache": "empties the user's cache",
    "runtime.testing.sleep_ms": "sleeps",
    "runtime.testing.busy_ms": "works",
}


def functions():
    """{name: (callable, [schema of each parameter])} of all functions and constructors."""
    found = {}
    for name in map(str, _derive._list_functions("")):
        doc, params, defaults, schemas = _derive._describe_function(name)
        if name not in LEFT_OUT:
            found[name] = _callable(name, params), [str(s) for s in list(schemas)[: len(params)]]
    for key in map(str, tvm_ffi.registry.get_registered_type_keys()):
        info = _derive._describe_node(key)
        kind = tvm_ffi.core._lookup_or_register_type_info_from_type_key(key)
        if info is None or tvm_ffi.core._lookup_type_attr(kind.type_index, "__ffi_init__") is None:
            continue
        made = _derive.node_class(key, "tvm." + key.rsplit(".", 1)[0])
        found[key] = made, [str(s) for s in info[3]]
    return found


def _callable(name, params):
    """What Python makes of a function; the function itself where it makes nothing of the name."""
    if "." in name and not any(map(keyword.iskeyword, map(str, params))):
        return _derive.function(name, "tests.fuzz")
    function = tvm_ffi.get_global_func(name)
    return lambda *args: function(*map(_derive.convert, args))


OPERATORS = (
    "add sub mul truediv floordiv mod and or xor lshift rshift neg invert lt le eq ne gt ge "
    "getitem setitem contains len iter call hash repr enter exit copy deepcopy reduce bool int "
    "float index"
).split()
OPERATORS = {f"__{name}__" for name in OPERATORS} | {f"__r{name}__" for name in OPERATORS[:10]}


def methods(values):
    """{name: (callable, schemas)} of what each kind of object offers itself."""
    found = {}
    for node in values.nodes:
        for name in dir(type(node)):
            known = f"{type(node).__module__}.{type(node).__qualname__}.{name}"
            if known in found or (name.startswith("_") and name not in OPERATORS):
                continue
            attribute = getattr(type(node), name, None)
            if not callable(attribute):
                found[known] = lambda node=node, name=name: getattr(node, name), []
                continue
            try:
                count = len(inspect.signature(attribute).parameters) - 1
            except (TypeError, ValueError):
                count = 1
            use = lambda *args, node=node, name=name: getattr(node, name)(*args)
            found[known] = use, ["Any"] * max(count, 0)
    return found


def damaged():
    """{name: (callable of a seed's random numbers, None)}"""
    return {name: (function, None) for name, function in damaged_texts.KINDS.items()}


class Child:
    """A process that makes calls one after another, and says in shared memory which one."""

    def __init__(self, calls, start, values):
        self.place = mmap.mmap(-1, 16)
        self.pid = os.fork()
        if self.pid == 0:
            self._run(calls, start, values)

    def _run(self, calls, start, values):
        quiet = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(quiet, fd)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for number in (signal.SIGALRM, signal.SIGPROF):
            signal.signal(number, signal.SIG_DFL)
        for number in range(start, len(calls)):
            self.place[:8] = struct.pack("q", number)
            signal.alarm(STUCK)
            signal.setitimer(signal.ITIMER_PROF, LONGEST)
            try:
                call(calls[number], values)
            except Exception:  # what it says is not the matter here
                pass
            except BaseException:
                os._exit(99)
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        self.place[8:16] = struct.pack("q", 1)
        os._exit(0)

    def wait(self):
        """(how it ended, at which call); ("", None) when all were made."""
        status = os.waitpid(self.pid, 0)[1]
        at, done = struct.unpack("qq", self.place)
        if done:
            return "", None
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            late = number in (signal.SIGALRM, signal.SIGPROF)
            how = "took too long" if late else signal.Signals(number).name
            return how, at
        return f"exited with {os.WEXITSTATUS(status)}", at


def call(what, values):
    """One call: (name, function, schemas, seed)."""
    _, function, schemas, seed = what
    if schemas is None:
        return function(random.Random(seed))
    args = values.arguments(random.Random(seed), schemas, seed)
    result = function(*args)
    repr(result)  # what it made must be usable, too
    del result, args


def sweep(chosen, seeds, values, deadline=None, report=print):
    """(calls made, [(name, seed, how)])"""
    made, deaths = 0, []
    for begin in range(0, len(chosen), TOGETHER):
        calls = [
            (name, *what, seed) for name, what in chosen[begin : begin + TOGETHER] for seed in seeds
        ]
        start = 0
        while start < len(calls):
            how, at = Child(calls, start, values).wait()
            if not how:
                break
            name, _, schemas, seed = calls[at]
            deaths.append((name, seed, how))
            known = schemas is not None
            args = values.texts(random.Random(seed), schemas, seed) if known else ""
            report(f"{name}: {how}, seed {seed}: {args}")
            start = at + 1
            if sum(d[0] == name for d in deaths) >= 3:  # enough of this one
                start = next(
                    (i for i in range(start, len(calls)) if calls[i][0] != name), len(calls)
                )
        made += len(calls)
        if deadline and time.time() > deadline:
            break
    return made, deaths


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.calls", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument(
        "--programs", type=int, help="calls of each function; else what time allows"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the first call of each function")
    parser.add_argument("--only", help="functions whose names contain this")
    options = parser.parse_args()
    values, start, batch = Values(), time.time(), 24
    everything = functions() | methods(values) | damaged()
    chosen = [i for i in sorted(everything.items()) if not options.only or options.only in i[0]]
    made, deaths, seed = 0, [], options.seed
    print(f"{len(chosen)} functions, constructors, methods and kinds of files", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        here = os.getcwd()
        os.chdir(folder)  # some write files
        if options.programs is not None:
            made, deaths = sweep(chosen, range(seed, seed + options.programs), values)
        while options.programs is None and time.time() - start < options.seconds:
            seeds = range(seed, seed + batch)
            more, found = sweep(chosen, seeds, values, start + options.seconds)
            made, deaths, seed = made + more, deaths + found, seed + batch
            dead = {name for name, _, _ in deaths}
            chosen = [c for c in chosen if c[0] not in dead]
        os.chdir(here)
    count = collections.Counter(how for _, _, how in deaths)
    print(f"{made} calls in {time.time() - start:.0f} s, {len(deaths)} deaths {dict(count)}")
    return 1 if deaths else 0


if __name__ == "__main__":
    sys.exit(main())
