# SPDX-License-Identifier: Apache-2.0
"""PyTorch models through us, beside PyTorch: import, compilation, latency, memory, a call. It is
the case `pytorch` of `make bench`; some models alone are

python -m bench.pytorch [resnet18 …]
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

from . import models, report
from .measure import Row
from .model_ops import relax_module, torch_module

WAYS = ("ours", "torch.compile")
PAIRS = (("tvm", "ours"), ("torch.compile", "torch.compile"))


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


def child(way, name):
    """Prints the seconds of compilation up to the first result, and the bytes it took at most."""
    import torch

    torch.set_num_threads(2)
    # What both need before: the exported program is the model that we are given.
    given = _export(name) if way == "ours" else _model(name)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.perf_counter()
    with torch.no_grad():
        if way == "ours":
            from tvm.relax.frontend.torch import from_exported_program

            program, inputs = given
            _machine(from_exported_program(program, run_ep_decomposition=False))(*inputs)
        else:
            module, inputs = given
            torch.compile(module)(*inputs)
    seconds = time.perf_counter() - begin
    print(seconds, 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))


def compilation(name):
    """(cold, from the cache, bytes) of each way, in processes and with caches of their own."""
    found = {}
    for way in WAYS:
        with tempfile.TemporaryDirectory() as cache:
            own = {"TVM_CACHE_DIR": cache, "TORCHINDUCTOR_CACHE_DIR": cache}
            command = [sys.executable, "-m", "bench.pytorch", "--child", way, name]
            runs = [
                subprocess.run(
                    command, env=os.environ | own, capture_output=True, text=True, check=True
                ).stdout.split()[-2:]
                for _ in range(2)
            ]
        found[way] = float(runs[0][0]), float(runs[1][0]), float(runs[0][1])
    return found


def _alternating(case, ours, theirs, peer, rounds):
    timed = {"tvm": ours, peer: theirs}
    samples = {who: [] for who in timed}
    for function in timed.values():
        function()
    for _ in range(rounds):
        for who, function in timed.items():
            begin = time.perf_counter()
            function()
            samples[who].append(time.perf_counter() - begin)
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
    compiled = {}
    with torch.no_grad():
        for who, backend in backends.items():
            torch._dynamo.reset()
            compiled[who] = torch.compile(model, backend=backend)
            compiled[who](x)
        samples = {who: [] for who in compiled}
        for _ in range(rounds):
            for who, function in compiled.items():
                begin = time.perf_counter()
                for _ in range(count):
                    function(x)
                samples[who].append((time.perf_counter() - begin) / count)
    return [Row("pytorch: call through torch.compile", who, samples[who]) for who in samples]


def rows_of(names, rounds):
    """All rows, those of a model as soon as they are there."""
    yield calls(rounds)
    for name in names:
        yield importing(name, rounds)
        found = compilation(name)
        weights = sum(v.nbytes for v in _model(name)[0].state_dict().values())
        for i, what in enumerate(("compile, cold", "compile, from the cache")):
            case = f"pytorch: {name}, {what}"
            yield [Row(case, who, [found[way][i]]) for who, way in PAIRS]
        memory = [Row(f"pytorch: memory of {name}", w, [found[way][2]], "B") for w, way in PAIRS]
        yield [*memory, Row(memory[0].case, "weights", [weights], "B")]
        yield latency(name, rounds)


def case(name, subjects, options):
    """PyTorch models: import, compilation, memory, calls, beside torch.compile. Takes minutes."""
    _set_threads()
    return [row for rows in rows_of(models.MODELS, options.rounds) for row in rows]


def _set_threads():
    import torch
    import tvm

    torch.set_num_threads(2)
    tvm.get_global_func("runtime.config_threadpool")(1, 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(models.MODELS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options.child, options.names[0])
    _set_threads()
    for rows in rows_of(options.names, options.rounds):
        print(report.table(rows), flush=True)


if __name__ == "__main__":
    main()
