# SPDX-License-Identifier: Apache-2.0
"""Blocks whose regions have no bounds are not taken for parallel, and nothing worse."""

import numpy as np
import tvm
from tvm import relax


def test_moved_channels_beside_others_quantised_and_padded():
    x = relax.Var("x", relax.TensorStructInfo((1, 3, 16, 16), "float32"))
    y = relax.Var("y", relax.TensorStructInfo((1, 16, 16, 8), "float32"))
    scale, zero = relax.const(0.25, "float32"), relax.const(87, "uint8")
    bb = relax.BlockBuilder()
    with bb.function("main", [x, y]):
        with bb.dataflow():
            moved = bb.emit(relax.op.permute_dims(x, [0, 2, 3, 1]))
            both = bb.emit(relax.op.concat([y, moved], 3))
            small = bb.emit(relax.op.quantize(both, scale, zero, 3, "uint8"))
            pads = [0, 0, 1, 1, 1, 1, 0, 0]
            out = bb.emit_output(relax.op.nn.pad(small, pads, "constant", 87.0))
        bb.emit_func_output(out)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((1, 3, 16, 16)), rng.standard_normal((1, 16, 16, 8))
    a, b = a.astype("float32"), b.astype("float32")
    tvm.compile(bb.get(), tvm.target.Target("llvm -mcpu=skylake-avx512"))
    main = relax.VirtualMachine(tvm.compile(bb.get(), "llvm"), tvm.cpu())["main"]
    joined = np.concatenate([b, a.transpose(0, 2, 3, 1)], 3)
    wanted = np.clip(np.round(joined / 0.25) + 87, 0, 255).astype("uint8")
    wanted = np.pad(wanted, ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=87)
    np.testing.assert_array_equal(main(*map(tvm.runtime.tensor, (a, b))).numpy(), wanted)
