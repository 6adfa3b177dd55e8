# SPDX-License-Identifier: Apache-2.0
"""A model larger than the memory its process may use, by weights that are asked for one by one:

    python -m bench.lazy_model --gigabytes 4 --limit 2

prints what the process had in memory at most. The results are those of NumPy; with --eager all
weights are there at once, which the limit does not allow.
"""

import argparse
import pathlib
import re
import resource
import sys

import numpy as np
import tvm
from tvm import relax
from tvm.relax import op, transform


def network(layers, size):
    """x · w₀ · w₁ …, each divided by the size."""
    info = relax.TensorStructInfo((size, size), "float32")
    x = relax.Var("x", relax.TensorStructInfo((1, size), "float32"))
    weights = [relax.Var(f"w{i}", info) for i in range(layers)]
    bb = relax.BlockBuilder()
    with bb.function("main", [x, *weights], attrs={"num_input": 1}):
        with bb.dataflow():
            y = x
            for weight in weights:
                y = bb.emit(op.divide(op.matmul(y, weight), relax.const(float(size), "float32")))
            y = bb.emit_output(y)
        bb.emit_func_output(y)
    return bb.get()


def weight(index, size):
    """All elements of the weight of a layer are one number."""
    return np.full((size, size), 1 + index % 3 / 8, "float32")


def run(layers, size, eager=False):
    """(result, what NumPy expects, how many weights were asked for)"""
    mod, asked = network(layers, size), []

    def get(index, name):
        asked.append(str(name))
        return tvm.runtime.tensor(weight(index, size))

    if not eager:
        mod = transform.LazyGetInput()(mod)
    machine = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    x = np.arange(size, dtype="float32").reshape(1, size) / size
    args = [get(i, f"w{i}") for i in range(layers)] if eager else [tvm.runtime.convert(get)]
    result = machine["main"](tvm.runtime.tensor(x), *args).numpy()
    mean = x.mean(dtype="float64")  # every layer after the first sees equal numbers
    expected = mean * np.prod([1 + i % 3 / 8 for i in range(layers)])
    return result, np.full((1, size), expected, "float32"), asked


def main():
    parser = argparse.ArgumentParser(prog="python -m bench.lazy_model", description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=4, help="of weights")
    parser.add_argument("--limit", type=float, default=2, help="of memory, in gigabytes")
    parser.add_argument("--size", type=int, default=4096, help="of a square weight")
    parser.add_argument("--eager", action="store_true", help="all weights at once")
    options = parser.parse_args()
    limit = int(options.limit * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    layers = round(options.gigabytes * 2**30 / (4 * options.size**2))
    result, expected, asked = run(layers, options.size, options.eager)
    np.testing.assert_allclose(result, expected, rtol=1e-3)
    # ru_maxrss would count what the process that started this one had.
    status = pathlib.Path("/proc/self/status").read_text()
    most = int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) / 2**20
    print(f"{len(asked)} weights of {4 * options.size**2 / 2**20:.0f} MB, at most {most:.2f} GB")
    sys.exit(most > options.limit)


if __name__ == "__main__":
    main()
