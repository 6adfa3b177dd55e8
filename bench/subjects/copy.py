# SPDX-License-Identifier: Apache-2.0
"""A plain copy of as many bytes: what moving them costs, without waking threads for each one."""

import concurrent.futures
import ctypes
import os

import numpy as np
from kernels import KERNELS
from programs import Timed, threads


class Copy(Timed):
    def __init__(self, source):
        self.source, self.result = source, np.empty_like(source)
        self.result[:] = 0  # memory is there before it is timed
        self.cpus = sorted(os.sched_getaffinity(0))
        self.pool = concurrent.futures.ThreadPoolExecutor(threads())
        super().__init__(None)

    def time(self, number):
        """Every thread copies its own part again and again."""
        share = -(-self.source.nbytes // threads() // 64) * 64

        def copy(i):
            os.sched_setaffinity(0, self.cpus[i : i + 1])
            begin = i * share
            size = max(0, min(share, self.source.nbytes - begin))
            one = Timed(lambda: ctypes.memmove(target + begin, origin + begin, size))
            return one.time(number)

        origin, target = self.source.ctypes.data, self.result.ctypes.data
        return max(self.pool.map(copy, range(threads())))


def prepare(name, inputs):
    return Copy(inputs[0]) if KERNELS[name].copies and inputs[0].size > 1 else None
