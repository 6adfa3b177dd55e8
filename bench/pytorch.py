# SPDX-License-Identifier: Apache-2.0
"""PyTorch models through us, beside PyTorch: import, compilation, latency, memory, a call.

python -m bench.pytorch [resnet18 …]
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

from . import models
from .measure import medians
from .model_ops import relax_module, torch_module

WAYS = ("ours", "torch.compile")


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


def importing(name, rounds):
    """Seconds of our import of the program as it was exported, and of PyTorch's decompositions."""
    from tvm.relax.frontend.torch import from_exported_program

    program, _ = _export(name)
    return medians(
        lambda: from_exported_program(program, run_ep_decomposition=False),
        program.run_decompositions,
        rounds,
    )


def latency(name, rounds):
    """Seconds of a call of the imported model, and of the same graph by BlockBuilder."""
    from tvm.relax.frontend.torch import from_exported_program

    program, inputs = _export(name)
    imported = _machine(from_exported_program(program, run_ep_decomposition=False))
    built = _machine(relax_module(models.Model(name)))
    return medians(lambda: imported(*inputs), lambda: built(*inputs), rounds)


def calls(rounds):
    """Seconds of a call of four linear layers of 4 × 4 through torch.compile: ours, Inductor's."""
    import torch
    from tvm.relax.frontend.torch import relax_dynamo

    layers = [torch.nn.Linear(4, 4) for _ in range(4)]
    model, x = torch.nn.Sequential(*layers), torch.randn(1, 4)
    found = []
    for backend in (relax_dynamo(), "inductor"):
        torch._dynamo.reset()
        found.append(torch.compile(model, backend=backend))
        with torch.no_grad():
            found[-1](x)
    count = 200

    def repeated(function):
        def run():
            for _ in range(count):
                function(x)

        return run

    with torch.no_grad():
        return [s / count for s in medians(*map(repeated, found), rounds)]


def main():
    import torch
    import tvm

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["resnet18", "bert_base"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options.child, options.names[0])
    torch.set_num_threads(2)
    tvm.get_global_func("runtime.config_threadpool")(1, 2)
    ours, theirs = calls(options.rounds)
    print(f"call: {ours * 1e6:.0f} us, Inductor {theirs * 1e6:.0f} us, ratio {theirs / ours:.2f}")
    for name in options.names:
        a, b = importing(name, options.rounds)
        print(f"{name}, import: {a:.2f} s, PyTorch's decompositions {b:.2f} s, ratio {b / a:.1f}")
        found = compilation(name)
        weights = sum(v.nbytes for v in _model(name)[0].state_dict().values())
        for i, what in enumerate(("cold", "from the cache")):
            a, b = (found[way][i] for way in WAYS)
            print(f"{name}, compile {what}: {a:.1f} s, torch.compile {b:.1f} s, ratio {b / a:.1f}")
        a, b = (found[way][2] for way in WAYS)
        share = f"{a / weights:.1f} times the weights" if weights else ""
        print(f"{name}, memory: {a / 2**20:.0f} MiB, torch.compile {b / 2**20:.0f} MiB, {share}")
        a, b = latency(name, options.rounds)
        print(f"{name}, call: {a * 1e3:.2f} ms, built by hand {b * 1e3:.2f} ms, ratio {b / a:.2f}")


if __name__ == "__main__":
    main()
