# SPDX-License-Identifier: Apache-2.0
"""`python model_memory.py LIBRARY INPUTS.npz`: the memory that calls of an exported model take."""

import sys

import numpy as np
from programs import peak_bytes, resident_bytes


def main(library, inputs):
    import tvm
    from tvm import relax

    with np.load(inputs) as arrays:
        args = [tvm.runtime.tensor(arrays[key]) for key in arrays.files]
    before = resident_bytes()
    run = relax.VirtualMachine(tvm.runtime.load_module(library), tvm.cpu())["main"]
    print(peak_bytes(lambda: run(*args)) - before)


main(*sys.argv[1:])
