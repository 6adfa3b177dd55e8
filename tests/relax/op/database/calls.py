# SPDX-License-Identifier: Apache-2.0
"""Entries of operators that call functions, allocate, or speak of tensors as such: what inference
gives."""

import tvm
from tvm import relax, tir
from tvm.relax import (
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
    op,
)

from .core import inferred

n = tir.Var("n", "int64")
OBJECT, VOID = ObjectStructInfo(), TupleStructInfo([])
A = TensorStructInfo((2, 3), "float32")
B = TensorStructInfo((n, 4), "float32")


def var(info, name="x"):
    """A variable of that struct info."""
    return relax.Var(name, info)


x, y = var(A), var(B, "y")
rank = var(TensorStructInfo(dtype="float32", ndim=3))
unknown = var(TensorStructInfo(dtype="float32"))
anything = var(OBJECT)
shape = var(ShapeStructInfo(ndim=2))
gv, extern = relax.GlobalVar("f"), relax.ExternFunc("packed")

# ---- functions ----------------------------------------------------------------------------------
for _name in ("call_tir", "distributed.call_tir_local_view"):
    _call = op.call_tir if _name == "call_tir" else op.distributed.call_tir_local_view
    inferred(
        {"call_tir": "call_tir"}.get(_name, "dist.call_tir_local_view"),
        (lambda call=_call: call(gv, (x, y), B), B),
        (lambda call=_call: call(gv, x, A), A),
        (lambda call=_call: call(gv, [x], [A, B]), TupleStructInfo([A, B])),
        (lambda call=_call: call(gv, (x,), B, tir_vars=[n]), B),
    )
inferred(
    "call_tir_with_grad",
    (lambda: op.call_tir_with_grad(gv, (x,), A, te_grad_name="f_grad"), A),
    (lambda: op.call_tir_with_grad(gv, (x,), [A, B], "f_grad", {"k": 1}), TupleStructInfo([A, B])),
)
inferred(
    "call_tir_inplace",
    (lambda: op.call_tir_inplace(gv, (x, y), 0, A), A),
    (lambda: op.call_tir_inplace(gv, (x, y), [0, -1], [A, B]), TupleStructInfo([A, B])),
    (lambda: op.call_tir_inplace(gv, (y, x), [1, 0], [A, B]), TupleStructInfo([A, B])),
)
inferred(
    "call_dps_packed",
    (lambda: op.call_dps_packed("packed", (x,), B), B),
    (lambda: op.call_dps_packed(extern, x, [A, B]), TupleStructInfo([A, B])),
)
inferred(
    "call_py_func",
    (lambda: op.call_py_func("name", (x,), A), A),
    (lambda: op.call_py_func("name", (x,), [A, B]), TupleStructInfo([A, B])),
)
inferred(
    "call_pure_packed",
    (lambda: op.call_pure_packed("packed", x, y, sinfo_args=A), A),
    (lambda: op.call_pure_packed(extern, sinfo_args=[A, B]), TupleStructInfo([A, B])),
    (lambda: op.call_pure_packed(extern, x, 3, "text", sinfo_args=[]), OBJECT),
)
inferred(
    "call_inplace_packed",
    (lambda: op.call_inplace_packed("packed", x, inplace_indices=0, sinfo_args=A), A),
    (
        lambda: op.call_inplace_packed(extern, x, y, inplace_indices=[0, -1], sinfo_args=[A, B]),
        TupleStructInfo([A, B]),
    ),
)
inferred(
    "call_builtin_with_ctx",
    (lambda: op.call_builtin_with_ctx("builtin", (x,), sinfo_args=A), A),
    (lambda: op.call_builtin_with_ctx("builtin", (x,)), OBJECT),
)
inferred("make_closure", (lambda: op.make_closure(gv, (x,)), OBJECT))
inferred(
    "invoke_closure",
    (lambda: op.invoke_closure(anything, (x,), A), A),
    (lambda: op.invoke_closure(anything, (x,), [A, B]), TupleStructInfo([A, B])),
)
inferred("invoke_pure_closure", (lambda: op.invoke_pure_closure(anything, (x,), A), A))
inferred("null_value", (op.null_value, OBJECT))
inferred(
    "print",
    (lambda: op.print(x, format="{}"), VOID),
    (lambda: op.print(x, y), VOID),
    (lambda: op.print(format="text"), VOID),
)
inferred(
    "assert_op",
    (lambda: op.assert_op(var(TensorStructInfo((), "bool"))), VOID),
    (lambda: op.assert_op(var(TensorStructInfo((), "bool")), [x, y], format="{} {}"), VOID),
    (lambda: op.assert_op(n > 3, x, "{}"), VOID),
)
inferred("vm.call_tir_dyn", (lambda: op.vm.call_tir_dyn(gv, (x, shape)), VOID))

# ---- memory -------------------------------------------------------------------------------------
inferred(
    "builtin.alloc_tensor",
    (lambda: op.builtin.alloc_tensor((2, 3), "float32", 0), A),
    (lambda: op.builtin.alloc_tensor(relax.ShapeExpr([n, 4]), "float32", 0, "global"), B),
)
inferred(
    "memory.alloc_storage",
    (lambda: op.memory.alloc_storage((24,), 0, "global", "float32"), OBJECT),
)
inferred(
    "vm.alloc_storage",
    (lambda: op.vm.alloc_storage((24,), 0, "uint8"), OBJECT),
    (lambda: op.vm.alloc_storage(shape, 0, "uint8", "global"), OBJECT),
)
for _group in ("memory", "vm"):
    _alloc = getattr(op, _group).alloc_tensor
    inferred(
        f"{_group}.alloc_tensor",
        (lambda call=_alloc: call(anything, 0, (2, 3), "float32"), A),
        (lambda call=_alloc: call(anything, 8, [n, 4], "float32", 0), B),
        (
            lambda call=_alloc: call(anything, 0, shape, "float32"),
            TensorStructInfo(shape, "float32"),
        ),
    )
inferred("memory.kill_storage", (lambda: op.memory.kill_storage(anything), VOID))
inferred("memory.kill_tensor", (lambda: op.memory.kill_tensor(x), VOID))
inferred("vm.kill_object", (lambda: op.vm.kill_object(anything), VOID))
inferred(
    "memory.view",
    (lambda: op.memory.view(x), A),
    (lambda: op.memory.view(x, (6,)), TensorStructInfo((6,), "float32")),
    (lambda: op.memory.view(x, (3, 4), "float16"), TensorStructInfo((3, 4), "float16")),
    (lambda: op.memory.view(x, dtype="int32"), TensorStructInfo((2, 3), "int32")),
    (lambda: op.memory.view(x, (3,), None, 12), TensorStructInfo((3,), "float32")),
    (lambda: op.memory.view(y, [n * 4]), TensorStructInfo((n * 4,), "float32")),
    (lambda: op.memory.view(unknown), TensorStructInfo(dtype="float32")),
)
inferred(
    "memory.ensure_zero_offset",
    (lambda: op.memory.ensure_zero_offset(x), A),
    (lambda: op.memory.ensure_zero_offset(unknown), unknown.struct_info),
)
inferred(
    "builtin.stop_lift_params",
    (lambda: op.builtin.stop_lift_params(x), A),
    (lambda: op.builtin.stop_lift_params(unknown), unknown.struct_info),
)

# ---- devices ------------------------------------------------------------------------------------
vdevice = tvm.ir.VDevice("llvm", 0, "global")
ON_DEVICE = TensorStructInfo((2, 3), "float32", vdevice)
inferred(
    "to_vdevice",
    (lambda: op.to_vdevice(x, vdevice), ON_DEVICE),
    (
        lambda: op.to_vdevice(rank, vdevice),
        TensorStructInfo(dtype="float32", ndim=3, vdevice=vdevice),
    ),
)
inferred(
    "hint_on_device",
    (lambda: op.hint_on_device(x, tvm.cpu(0)), A),
    (lambda: op.hint_on_device(unknown, tvm.cuda(1), "shared"), unknown.struct_info),
)

# ---- shapes and facts as values -----------------------------------------------------------------
inferred(
    "shape_of",
    (lambda: op.shape_of(x), ShapeStructInfo([2, 3])),
    (lambda: op.shape_of(y), ShapeStructInfo([n, 4])),
    (lambda: op.shape_of(rank), ShapeStructInfo(ndim=3)),
    (lambda: op.shape_of(unknown), ShapeStructInfo(ndim=-1)),
)
inferred(
    "size",
    (lambda: op.size(x), TensorStructInfo((), "int64")),
    (lambda: op.size(unknown), TensorStructInfo((), "int64")),
)
inferred(
    "tensor_to_shape",
    (lambda: op.tensor_to_shape(var(TensorStructInfo((3,), "int64"))), ShapeStructInfo(ndim=3)),
    (lambda: op.tensor_to_shape(var(TensorStructInfo((n,), "int64"))), ShapeStructInfo(ndim=-1)),
    (lambda: op.tensor_to_shape(var(TensorStructInfo(dtype="int64"))), ShapeStructInfo(ndim=-1)),
)
inferred(
    "shape_to_tensor",
    (lambda: op.shape_to_tensor([2, n, 4]), TensorStructInfo((3,), "int64")),
    (lambda: op.shape_to_tensor(shape), TensorStructInfo((2,), "int64")),
    (
        lambda: op.shape_to_tensor(var(ShapeStructInfo(ndim=-1))),
        TensorStructInfo(dtype="int64", ndim=1),
    ),
)
_untyped = var(TensorStructInfo(dtype=""))
for _name, _dtype in (
    ("dtype_code", "uint8"),
    ("dtype_bits", "uint8"),
    ("dtype_lanes", "uint16"),
    ("ndim", "int32"),
    ("byte_offset", "uint64"),
    ("elem_offset", "uint64"),
):
    inferred(
        f"inspect.tensor_{_name}",
        (
            lambda name=_name: getattr(op.inspect, f"tensor_{name}")(_untyped),
            PrimStructInfo(_dtype),
        ),
    )
for _name in ("shape_i", "stride_i"):
    inferred(
        f"inspect.tensor_{_name}",
        (
            lambda name=_name: getattr(op.inspect, f"tensor_{name}")(unknown, 1),
            PrimStructInfo("int64"),
        ),
    )

# ---- several workers ----------------------------------------------------------------------------
inferred(
    "ccl.allreduce",
    (lambda: op.ccl.allreduce(x), A),
    (lambda: op.ccl.allreduce(y, "max", False), B),
    (lambda: op.ccl.allreduce(unknown, "avg"), unknown.struct_info),
)
inferred(
    "ccl.allgather",
    (lambda: op.ccl.allgather(x, 2), TensorStructInfo((4, 3), "float32")),
    (lambda: op.ccl.allgather(y, 2), TensorStructInfo((n * 2, 4), "float32")),
    (lambda: op.ccl.allgather(rank, 2), rank.struct_info),
)
inferred("ccl.broadcast_from_worker0", (lambda: op.ccl.broadcast_from_worker0(y), B))
inferred(
    "ccl.scatter_from_worker0",
    (lambda: op.ccl.scatter_from_worker0(x, 2), TensorStructInfo((1, 3), "float32")),
    (lambda: op.ccl.scatter_from_worker0(y, 2, axis=1), TensorStructInfo((n, 2), "float32")),
    (lambda: op.ccl.scatter_from_worker0(unknown, 2), unknown.struct_info),
)
inferred(
    "dist.redistribute_replica_to_shard",
    (
        lambda: op.distributed.redistribute_replica_to_shard(x, 3, 1),
        TensorStructInfo((2, 1), "float32"),
    ),
)
_mesh = relax.distributed.DeviceMesh((2,), tvm.ir.Range(0, 2))
_split, _copies = (relax.distributed.Placement.from_text(text) for text in ("S[0]", "R"))
_spread = relax.distributed.DTensorStructInfo(A, _mesh, _split)
inferred(
    "dist.annotate_sharding",
    (lambda: op.distributed.annotate_sharding(x, _mesh, _split), A),
)
inferred(
    "dist.redistribute",
    (
        lambda: op.distributed.redistribute(var(_spread), _mesh, _copies),
        relax.distributed.DTensorStructInfo(A, _mesh, _copies),
    ),
)
