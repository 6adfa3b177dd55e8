# SPDX-License-Identifier: Apache-2.0
"""Compiles the default rules' kernels for every type and architecture and prints what they take:

python -m tests.backend.cuda [sm_80 ...]
"""

import pathlib
import sys
import tempfile

from tests.backend.cuda.resources import (
    FUNCTIONS,
    TYPES,
    binary_of,
    frames,
    is_one_kernel,
    registers,
)
from tests.backend.cuda.test_codegen import ARCHS


def main(archs):
    print("| kernels | type | architecture | registers | bytes beside them |")
    print("| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name, make in FUNCTIONS.items():
            for dtype in (t for t in TYPES if is_one_kernel(name, t)):
                for arch in archs:
                    binary = binary_of(make(dtype), arch, pathlib.Path(folder))
                    row = name, dtype, arch, registers(binary), frames(binary)
                    print("|", " | ".join(map(str, row)), "|", flush=True)


main(sys.argv[1:] or ARCHS)
