# SPDX-License-Identifier: Apache-2.0
"""PyTorch models through us, beside PyTorch: import, compilation, latency, memory, a call. It is
the case `pytorch` of `make bench`; some models alone are

python -m bench.pytorch [resnet18 …] [--cpu-time]
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile

from . import models, report
from .measure import Row
from .model_ops import relax_module, torch_module
from .peers import environment
from .programs import clock, peak_bytes, resident_bytes

WAYS = ("ours", "torch.compile")
PAIRS = (("tvm", "ours"), ("torch.compile", "torch.compile"))


def threads():
    """CPU time is measured of one thread."""
    return 1 if os.environ.get("BENCH_CLOCK") == "cpu" else 2


def _compiling_clock():
    """Wall time, or CPU time with that of the compilers that ran."""
    if os.environ.get("BENCH_CLOCK") != "cpu":
        return clock()
    usages = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return lambda: sum(sum(resource.getrusage(who)[:2]) for who in usages)


def _model(name):
    import torch

    model = models.Model(name)
    inputs = [torch.from_numpy(x) for x in model.inputs()]
    return torch_module(model), tuple(inputs)


def _export(name):
    import torch

    module, inputs = _model(name)
    with torch.no_grad():
        return torch.export.export(module, inputs), inputs


def _machine(mod):
    import tvm
    from tvm import relax

    return relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())["main"]


def _compile(way, given):
    """Compilation of what is given, up to the first result."""
    import torch

    with torch.no_grad():
        if way == "ours":
            from tvm.relax.frontend.torch import from_exported_program

            program, inputs = given
            return _machine(from_exported_program(program, run_ep_decomposition=False))(*inputs)
        module, inputs = given
        return torch.compile(module)(*inputs)


def _given(way, name):
    """What both need before: the exported program is the model that we are given."""
    return _export(name) if way == "ours" else _model(name)


def seconds(way, name):
    given, now = _given(way, name), _compiling_clock()
    begin = now()
    _compile(way, given)
    return now() - begin


def memory(way, name):
    """The most bytes that compilation takes, the model's own included, beyond the libraries that
    it needs, which are loaded when a small model has been compiled."""
    import torch

    small = torch.nn.Linear(2, 2).eval(), (torch.randn(1, 2),)
    _compile(way, (torch.export.export(*small), small[1]) if way == "ours" else small)
    given = _given(way, name)
    before = resident_bytes()
    return peak_bytes(lambda: _compile(way, given)) - before + _bytes_of(given[0])


def _bytes_of(model):
    """Of the weights of a module or of an exported program."""
    weights = model.state_dict() if callable(model.state_dict) else model.state_dict
    return sum(v.nbytes for v in weights.values())


def child(what, way, name):
    import torch

    torch.set_num_threads(threads())
    print({"seconds": seconds, "memory": memory}[what](way, name))


def compilation(name):
    """(seconds cold, from the cache, bytes) of each way, in processes and with caches of their
    own."""

    def run(what, way, cache):
        own = {"TVM_CACHE_DIR": cache, "TORCHINDUCTOR_CACHE_DIR": cache}
        own["TVM_NUM_THREADS"] = str(threads())
        if threads() == 1:  # no compilers beside it, whose time would be nobody's
            own["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
        command = [sys.executable, "-m", "bench.pytorch", "--child", what, way, name]
        done = subprocess.run(
            command, env=environment(sys.executable) | own, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-2000:])
        return float(done.stdout.split()[-1])

    found = {}
    for way in WAYS:
        with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as other:
            runs = [("seconds", cache), ("seconds", cache), ("memory", other)]
            found[way] = [run(what, way, folder) for what, folder in runs]
    return found


def _alternating(case, ours, theirs, peer, rounds):
    timed, now = {"tvm": ours, peer: theirs}, clock()
    samples = {who: [] for who in timed}
    for function in timed.values():
        function()
    for _ in range(rounds):
        for who, function in timed.items():
            begin = now()
            function()
            samples[who].append(now() - begin)
    return [Row(case, who, samples[who]) for who in timed]


def importing(name, rounds):
    """Our import of the program as it was exported, and PyTorch's decompositions."""
    from tvm.relax.frontend.torch import from_exported_program

    program, _ = _export(name)
    return _alternating(
        f"pytorch: import of {name}",
        lambda: from_exported_program(program, run_ep_decomposition=False),
        program.run_decompositions,
        "decompositions",
        rounds,
    )


def latency(name, rounds):
    """A call of the imported model, and of the same graph by BlockBuilder."""
    from tvm.relax.frontend.torch import from_exported_program

    program, inputs = _export(name)
    imported = _machine(from_exported_program(program, run_ep_decomposition=False))
    built = _machine(relax_module(models.Model(name)))
    case = f"pytorch: call of {name}"
    return _alternating(
        case, lambda: imported(*inputs), lambda: built(*inputs), "BlockBuilder", rounds
    )


def calls(rounds, count=200):
    """Calls of four linear layers of 4 × 4 through torch.compile: ours, Inductor's, and those of a
    backend whose functions do nothing, which is what no backend can go below."""
    import torch
    from torch._dynamo.backends.common import aot_autograd
    from tvm.relax.frontend.torch import relax_dynamo

    layers = [torch.nn.Linear(4, 4) for _ in range(4)]
    model, x = torch.nn.Sequential(*layers), torch.randn(1, 4)

    def nothing(graph_module, inputs):
        def function(args):
            args.clear()
            return [x]

        function._boxed_call = True
        return function

    backends = {
        "tvm": relax_dynamo(),
        "inductor": "inductor",
        "nothing": aot_autograd(fw_compiler=nothing),
    }
    compiled, now = {}, clock()
    with torch.no_grad():
        for who, backend in backends.items():
            torch._dynamo.reset()
            compiled[who] = torch.compile(model, backend=backend)
            compiled[who](x)
        samples = {who: [] for who in compiled}
        for _ in range(rounds):
            for who, function in compiled.items():
                begin = now()
                for _ in range(count):
                    function(x)
                samples[who].append((now() - begin) / count)
    return [Row("pytorch: call through torch.compile", who, samples[who]) for who in samples]


def rows_of(names, rounds):
    """All rows, those of a model as soon as they are there."""
    yield calls(rounds)
    for name in names:
        yield importing(name, rounds)
        found = compilation(name)
        weights = _bytes_of(_model(name)[0])
        for i, what in enumerate(("compile, cold", "compile, from the cache")):
            case = f"pytorch: {name}, {what}"
            yield [Row(case, who, [found[way][i]]) for who, way in PAIRS]
        case = f"pytorch: memory of {name}"
        peaks = [Row(case, who, [found[way][2]], "B") for who, way in PAIRS]
        yield [*peaks, Row(case, "weights", [weights], "B")]
        yield latency(name, 5 * rounds)


def case(name, subjects, options):
    """PyTorch models: import, compilation, memory, calls, beside torch.compile. Takes minutes."""
    _set_threads()
    return [row for rows in rows_of(models.MODELS, options.rounds) for row in rows]


def _set_threads():
    import torch
    import tvm

    torch.set_num_threads(threads())
    tvm.get_global_func("runtime.config_threadpool")(1, threads())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(models.MODELS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cpu-time", action="store_true", help="of one thread, on a busy machine")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cpu_time:
        os.environ["BENCH_CLOCK"] = "cpu"
    if options.child:
        return child(*options.child, options.names[0])
    _set_threads()
    for rows in rows_of(options.names, options.rounds):
        print(report.table(rows), flush=True)


if __name__ == "__main__":
    main()
