# SPDX-License-Identifier: Apache-2.0
"""The program as written, without a schedule: by us, or by Apache TVM where that is installed."""

import functools

from kernels import KERNELS
from programs import Timed, host_target


def prepare(name, inputs, entry="main"):
    import tvm
    from tvm import te

    tensors = [te.placeholder(x.shape, "float32", f"A{i}") for i, x in enumerate(inputs)]
    result = KERNELS[name].te(te, *tensors)
    module = tvm.compile(te.create_prim_func([*tensors, result]), target=host_target())
    function = module[entry] if entry else module
    out = tvm.runtime.empty([int(s) for s in result.shape], "float32")
    return Timed(functools.partial(function, *map(tvm.runtime.tensor, inputs), out), out.numpy)
