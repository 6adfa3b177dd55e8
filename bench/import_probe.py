# SPDX-License-Identifier: Apache-2.0
"""Imports a module in a new process and prints the seconds and the resident KiB it took.

apache-tvm-ffi imports PyTorch wherever it is installed; the probe hides it, so that the import
itself is measured.
"""

import os
import sys
import time


def resident_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


sys.modules["torch"] = None  # type: ignore[assignment]
now = time.process_time if os.environ.get("BENCH_CLOCK") == "cpu" else time.perf_counter
before, begin = resident_kib(), now()
__import__(sys.argv[1])
print(now() - begin, resident_kib() - before)
