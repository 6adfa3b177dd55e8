# SPDX-License-Identifier: Apache-2.0
"""What NVIDIA's compiler says of kernels of default rules: nothing of theirs is in slow memory."""

import struct

import pytest
import tvm
from tvm import te, tir, topi

from tests.backend.cuda.attention import attention
from tests.backend.cuda.products import product
from tests.backend.cuda.test_codegen import needs_nvrtc


def matrix(dtype, rows=512, columns=4096):
    return te.placeholder((rows, columns), dtype, name="A")


def of_matrix(function):
    def make(dtype):
        A = matrix(dtype)
        return te.create_prim_func([A, function(A)])

    return make


FUNCTIONS = {
    "elementwise": of_matrix(lambda A: te.compute(A.shape, lambda *i: tir.sigmoid(A(*i)))),
    "rows": of_matrix(lambda A: topi.nn.softmax(A, axis=1)),
    "row sums": of_matrix(lambda A: topi.sum(A, axis=1)),
    "column sums": of_matrix(lambda A: topi.sum(A, axis=0)),
    "one sum": of_matrix(lambda A: topi.sum(A)),
    "transpose": of_matrix(topi.transpose),
    "product": lambda t: product(2048, 2048, 2048, t),
    "product of any size": lambda t: product(te.size_var("m"), 200, 100, t),
    "attention": lambda t: attention(2, 512, 8, 64, dtype=t),
    "wide attention": lambda t: attention(2, 512, 8, 256, dtype=t, causal="TopLeft"),
    "attention in parts": lambda t: attention(1, 1, 8, 128, keys=4096, key_heads=2, dtype=t),
}


def frames(func, arch, path):
    """Bytes of a thread that are not in registers, of each kernel: in the section .nv.info of a
    binary, entries (kind 4, attribute 0x11, 8 bytes: symbol, size)."""
    target = tvm.target.Target({"kind": "cuda", "arch": arch}, host="c")
    tvm.compile(func, target).imports[0].write_to_file(str(path / "k.cubin"), "cubin")
    binary, head, found = (path / "k.cubin").read_bytes(), b"\x04\x11\x08\x00", []
    at = binary.find(head)
    while at >= 0:
        found.append(struct.unpack_from("<I", binary, at + 8)[0])
        at = binary.find(head, at + 1)
    return found


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_everything_is_in_registers(name, dtype, arch, tmp_path):
    if dtype == "float32" and "attention" in name:
        pytest.skip("attention of float32 is several kernels")
    found = frames(FUNCTIONS[name](dtype), arch, tmp_path)
    assert found and not any(found)


@needs_nvrtc
def test_the_largest_tile_of_attention_is_nearly_in_registers(tmp_path):
    """A warp has 32 rows of 128 sums and 64 scores; what is needed outside of the loop may be
    elsewhere."""
    found = frames(attention(4, 4096, 16, 128, causal="TopLeft"), "sm_90a", tmp_path)
    assert found and max(found) <= 64
