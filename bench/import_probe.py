# SPDX-License-Identifier: Apache-2.0
"""Imports a module in a new process and prints the seconds and the resident KiB it took.

apache-tvm-ffi imports PyTorch wherever it is installed; the probe hides it, so that the import
itself is measured.
"""

import sys
import time


def resident_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


sys.modules["torch"] = None  # type: ignore[assignment]
before, begin = resident_kib(), time.perf_counter()
__import__(sys.argv[1])
print(time.perf_counter() - begin, resident_kib() - before)
