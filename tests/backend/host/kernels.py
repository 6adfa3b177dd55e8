# SPDX-License-Identifier: Apache-2.0
"""Lowered functions made by hand, as the passes leave them: what code generation is tested with."""

import numpy as np
import tvm
from tvm import tir
from tvm.ir import GlobalVar, IRModule, PointerType, PrimType, TupleType

HOST = "llvm"  # the code generator of the test that runs (conftest.py)
HEADER = 24  # bytes of an object's header: the DLTensor lies behind it
FIELD_DATA, FIELD_VALUE = 1, 13


def op(name):
    return tvm.ir.Op.get("tir." + name)


def call(dtype, name, *args):
    return tir.Call(dtype, op(name), list(args))


def const(value, dtype="int32"):
    return tir.const(value, dtype)


def pointer(name, dtype):
    return tir.Var(name, PointerType(PrimType(dtype)))


def buffer(name, dtype, size, align=64):
    data = pointer(name, dtype)
    return tir.Buffer(data, dtype, [size], [], const(0), name, align, 1, 1)


def size_var(name, dtype="int32"):
    return tir.SizeVar(name, PrimType(dtype))


def void():
    return TupleType([])


def attrs(**values):
    return tvm.ir.DictAttrs({k.replace("__", "."): v for k, v in values.items()})


def packed(name, buffers, scalars=(), inner=None):
    """The packed entry: takes tensors and numbers apart and calls `inner` with plain arguments."""
    handle = (
        tir.Var("self", "handle"),
        tir.Var("args", "handle"),
        tir.Var("n", "int32"),
        tir.Var("r", "handle"),
    )
    values = []
    for i, _ in enumerate(buffers):
        tensor = call("handle", "tvm_struct_get", handle[1], const(i), const(FIELD_VALUE))
        tensor = call("handle", "handle_add_byte_offset", tensor, const(HEADER))
        values.append(call("handle", "tvm_struct_get", tensor, const(0), const(FIELD_DATA)))
    for i, var in enumerate(scalars):
        values.append(
            call(
                var.dtype, "tvm_struct_get", handle[1], const(i + len(buffers)), const(FIELD_VALUE)
            )
        )
    body = tir.SeqStmt(
        [
            tir.Evaluate(tir.Call("int32", inner, values)),
            tir.Evaluate(call("int32", "ret", const(0))),
        ]
    )
    return tir.PrimFunc(
        list(handle), body, PrimType("int32"), {}, attrs(calling_conv=1, global_symbol=name)
    )


def module(body, buffers, scalars=(), name="main", noalias=True):
    """IRModule of one function over `buffers` and `scalars` with its packed entry."""
    inner = GlobalVar(name + "_compute_")
    params = [b.data for b in buffers] + list(scalars)
    func = tir.PrimFunc(
        params,
        body,
        void(),
        {},
        attrs(global_symbol=name + "_compute_", tir__private=True, tir__noalias=noalias),
    )
    return IRModule({inner: func, GlobalVar(name): packed(name, buffers, scalars, inner)})


def build(mod, target=None):
    target = tvm.target.Target(target or HOST)
    return tvm.target.codegen.build_module(mod, target)


def loop(var, extent, body, kind=0):
    return tir.For(var, const(0, var.dtype), extent, kind, body)


def tensor(array):
    """A tensor aligned as generated code expects."""
    out = tvm.runtime.empty(array.shape, str(array.dtype))
    out.copyfrom(array)
    return out


def run(mod, *args, target=None, name="main"):
    """Runs a built or unbuilt module on NumPy arrays and numbers; arrays are changed in place."""
    if isinstance(mod, IRModule):
        mod = build(mod, target)
    tensors = [tensor(a) if isinstance(a, np.ndarray) else a for a in args]
    mod.get_function(name)(*tensors)
    for a, t in zip(args, tensors, strict=False):
        if isinstance(a, np.ndarray):
            a[...] = t.numpy()
