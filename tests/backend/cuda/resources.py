# SPDX-License-Identifier: Apache-2.0
"""What kernels of default rules take, read from their binaries: registers, and bytes of a thread
that are not in registers."""

import struct

import tvm
from tvm import te, tir, topi

from tests.backend.cuda.attention import attention
from tests.backend.cuda.products import product


def of_matrix(function):
    def make(dtype):
        A = te.placeholder((512, 4096), dtype, name="A")
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
TYPES = ["float16", "bfloat16", "float32"]


def is_one_kernel(name, dtype):
    """Attention of float32 is several kernels, which have rows of their own."""
    return dtype != "float32" or "attention" not in name


def binary_of(func, arch, path):
    target = tvm.target.Target({"kind": "cuda", "arch": arch}, host="c")
    tvm.compile(func, target).imports[0].write_to_file(str(path / "k.cubin"), "cubin")
    return (path / "k.cubin").read_bytes()


def section(binary, name):
    """The bytes of a section of an ELF file of 64 bits."""
    table, size, count, names = (
        struct.unpack_from(form, binary, at)[0]
        for form, at in (("<Q", 0x28), ("<H", 0x3A), ("<H", 0x3C), ("<H", 0x3E))
    )
    heads = [struct.unpack_from("<IIQQQQ", binary, table + i * size) for i in range(count)]
    for head in heads:
        at = heads[names][4] + head[0]
        if binary[at : binary.index(b"\0", at)] == name:
            return binary[head[4] : head[4] + head[5]]
    raise ValueError(f"expected a section {name}")


def attribute(binary, number):
    """What the section .nv.info says of each kernel: entries (kind, attribute, size or value);
    those of kind 4 go on with (symbol, value)."""
    info, found, at = section(binary, b".nv.info"), [], 0
    while at < len(info):
        kind, which, size = struct.unpack_from("<BBH", info, at)
        if kind == 4 and which == number:
            found.append(struct.unpack_from("<I", info, at + 8)[0])
        at += 4 + (size if kind == 4 else 0)
    return found


def frames(binary):
    """Bytes of a thread that are not in registers, of each kernel."""
    return attribute(binary, 0x11)


def registers(binary):
    """Registers of a thread, of each kernel."""
    return attribute(binary, 0x2F)
